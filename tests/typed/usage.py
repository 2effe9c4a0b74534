"""The public names as a user's type checker sees them: read by `make lint`, never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import polysift
from polysift import (
    Comparison,
    DataSource,
    Explanation,
    Forecast,
    FPCClassifier,
    FPCClassifierCV,
    PolynomialKernelMap,
    RayCluster,
    datasets,
    plots,
)

Array = npt.NDArray[Any]


def train(source: DataSource) -> None:
    X, y = datasets.make_bayes_curve(1000, noise=0.1, random_state=0)
    assert_type(X, Array)
    assert_type(datasets.load("magic", fetch=False), datasets.Dataset)
    classifier = FPCClassifier(degree=3, n_centers="auto", memory_limit="2GB", random_state=0)
    assert_type(classifier, FPCClassifier)
    assert_type(classifier.plan(X, y), Forecast)
    assert_type(classifier.fit(X, y, sample_weight=np.ones(1000)), FPCClassifier)
    assert_type(classifier.fit(source), FPCClassifier)
    assert_type(classifier.partial_fit(X, y, classes=[-1, 1]), FPCClassifier)
    assert_type(FPCClassifier(engine=RayCluster(workers=2)).fit(source), FPCClassifier)
    assert_type(classifier.decision_function(X), Array)
    assert_type(classifier.predict_proba(X), Array)
    assert_type(classifier.score(X, y), float)


def choose(source: DataSource) -> None:
    search = FPCClassifierCV(degrees=(2, 3), calibration="isotonic", cv=5)
    assert_type(search, FPCClassifierCV)
    assert_type(search.fit(source), FPCClassifierCV)
    assert_type(search.best_estimator_, FPCClassifier)
    assert_type(PolynomialKernelMap(degree=2).fit(np.eye(3)), PolynomialKernelMap)


def keep(model: FPCClassifier, path: Path) -> None:
    source = polysift.open_data("rows/*.parquet", target="label", weight="w", drop=["id"])
    assert_type(source, DataSource)
    assert_type(model.predict_to(source, path / "predictions.csv"), None)
    assert_type(polysift.save(model, path / "model.polysift"), None)
    assert_type(polysift.load(path / "model.polysift"), FPCClassifier | FPCClassifierCV)
    assert_type(polysift.register_onnx_converters(), None)
    assert_type(polysift.report(model, source, path / "report.html"), str)
    assert_type(polysift.explain(model, np.eye(3)), Explanation)
    found = polysift.compare(np.eye(3), [0, 1, 1], models=["logistic"])
    assert_type(found, Comparison)
    assert_type(polysift.degree_bound(1000, 3), int)
    assert_type(polysift.__version__, str)
    display = plots.ConvergenceDisplay.from_estimator(model)
    assert_type(display, plots.ConvergenceDisplay)


def refuse() -> None:
    polysift.open_date("rows.csv")  # type: ignore[attr-defined]
    polysift.degree_bound("many", 3)  # type: ignore[arg-type]

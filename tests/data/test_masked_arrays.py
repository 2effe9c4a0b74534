"""Masked arrays are refused: what a mask hides must not be used."""

from __future__ import annotations

import numpy as np
import pytest

from polysift import FPCClassifierCV, PolynomialKernelMap, explain, open_data
from problems import paper_classifier

X = np.random.default_rng(0).random((40, 2))
Y = (X[:, 0] > 0.5).astype(int)
MASKED = {
    "X": np.ma.masked_array(X, X > 0.9),
    "y": np.ma.masked_array(Y, Y == 5),
    "sample_weight": np.ma.masked_array(np.ones(40), np.arange(40) < 2),
}


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize(
    "model", [paper_classifier(2), FPCClassifierCV(1, cv=2)], ids=["fit", "cv"]
)
def test_a_fit_refuses_them(name, model):
    given = {"X": X, "y": Y, "sample_weight": np.ones(40)} | {name: MASKED[name]}
    with pytest.raises(TypeError, match=f"{name} is a masked array.*Drop these rows"):
        model.fit(**given)


def test_everything_else_that_takes_rows_refuses_them():
    model = paper_classifier(2, calibration="sigmoid", random_state=0).fit(X, Y)
    map_ = PolynomialKernelMap(2, random_state=0).fit(X)
    for method in (model.predict, model.decision_function, model.predict_proba, map_.transform):
        with pytest.raises(TypeError, match="X is a masked array"):
            method(MASKED["X"])
    for name, call in {
        "X": lambda: map_.fit(MASKED["X"]),
        "sample_weight": lambda: map_.fit(X, sample_weight=MASKED["sample_weight"]),
        "y": lambda: model.score(X, MASKED["y"]),
    }.items():
        with pytest.raises(TypeError, match=f"{name} is a masked array"):
            call()
    with pytest.raises(TypeError, match="X is a masked array"):
        explain(model, MASKED["X"])


@pytest.mark.needs("pyarrow")
def test_a_source_of_data_refuses_them():
    with pytest.raises(TypeError, match="got MaskedArray"):
        open_data(MASKED["X"])

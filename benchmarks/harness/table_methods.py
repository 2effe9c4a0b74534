"""The methods that are compared on tables, each with its default parameters.

A method takes categories and missing values itself, where it can; else they are encoded by a
pipeline: numbers are imputed with indicators and standardised, categories are one-hot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from polysift import FPCClassifier
from polysift import __version__ as polysift_version
from polysift.reporting.rivals import (
    Frames,
    encoder,
    few_levels,
    hist_gb,
    lightgbm,
    logistic,
    plain,
    raw,
)

OURS, REFERENCE, LINEAR = "polysift", "lightgbm", "logistic"

MAX_SVC_ROWS = 10_000

VALIDATION_SHARE = 0.2
"""The share of the rows by which xRFM chooses its iteration."""


def words(X: pd.DataFrame, X_test: pd.DataFrame) -> Frames:
    """Return plain columns, with categories as text and a word for missing ones."""
    frames = plain(X, X_test)
    for frame in frames:
        for name in frame.select_dtypes("category"):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "missing")
    return frames


def polysift(threads: int, seed: int) -> Any:
    """Return our classifier with nothing set."""
    return FPCClassifier(n_jobs=threads, random_state=seed)


def xgboost(threads: int, seed: int) -> Any:
    """Return XGBoost, which must be told that it may use categories."""
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=threads, random_state=seed, enable_categorical=True)


class CatBoost:
    """CatBoost, which must be told which columns are categories."""

    def __init__(self, threads: int, seed: int) -> None:
        from catboost import CatBoostClassifier

        self.model = CatBoostClassifier(
            thread_count=threads, random_seed=seed, verbose=False, allow_writing_files=False
        )

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CatBoost:
        """Fit it."""
        self.model.fit(X, y, cat_features=list(X.select_dtypes("object")))
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return labels, which it has in a column if there are more than two."""
        return np.ravel(self.model.predict(X))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return probabilities."""
        return self.model.predict_proba(X)


def svc(threads: int, seed: int) -> Any:
    """Return the support vector machine with the Gaussian kernel; it has one thread."""
    return make_pipeline(encoder(), SVC(random_state=seed))


class Xrfm:
    """xRFM behind the encoder of the pipelines, with a part of the rows for validation."""

    def __init__(self, threads: int, seed: int) -> None:
        self.threads, self.seed = threads, seed

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Xrfm:
        """Fit it."""
        import torch
        from xrfm import xRFM

        self.encoder = encoder()
        values = np.asarray(self.encoder.fit_transform(X), dtype=np.float32)
        parts = train_test_split(
            values, y, test_size=VALIDATION_SHARE, random_state=self.seed, stratify=y
        )
        self.model = xRFM(
            device=torch.device("cpu"),
            n_threads=self.threads,
            random_state=self.seed,
            verbose=False,
        )
        self.model.fit(parts[0], parts[2], parts[1], parts[3])
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return labels."""
        return np.ravel(self.model.predict(self._values(X)))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return probabilities."""
        return self.model.predict_proba(self._values(X))

    def _values(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.encoder.transform(X), dtype=np.float32)


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes
    ----------
    name, title : str
        How code and tables call it.
    package : str
        The module that must be there; the distribution has the same name, or that of scikit-learn.
    build : callable
        ``build(threads, seed)`` returns an estimator.
    frames : callable
        Makes of the frames of a table what the estimator takes; before the clock starts.
    most_rows : int or None
        The most training rows with which it ends in reasonable time.
    """

    name: str
    title: str
    package: str
    build: Callable[[int, int], Any]
    frames: Callable[[pd.DataFrame, pd.DataFrame], Frames] = plain
    most_rows: int | None = None

    def installed(self) -> bool:
        """Return whether its package is there."""
        return find_spec(self.package) is not None

    def version(self) -> str:
        """Return the version of its package; of ours that of the code, whatever was installed."""
        if self.name == OURS:
            return polysift_version
        return version("scikit-learn" if self.package == "sklearn" else self.package)


METHODS = {
    method.name: method
    for method in (
        Method(OURS, "polysift", "polysift", polysift, raw),
        Method(REFERENCE, "LightGBM", "lightgbm", lightgbm),
        Method("hist_gb", "HistGradientBoosting", "sklearn", hist_gb, few_levels),
        Method("xgboost", "XGBoost", "xgboost", xgboost),
        Method("catboost", "CatBoost", "catboost", CatBoost, words),
        Method(LINEAR, "LogisticRegression", "sklearn", logistic),
        Method("svc", "SVC", "sklearn", svc, plain, MAX_SVC_ROWS),
        Method("xrfm", "xRFM", "xrfm", Xrfm),
    )
}

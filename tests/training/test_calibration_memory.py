"""The forecast of a fit with calibration holds: what it allocates is counted as it goes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from polysift import FPCClassifierCV, open_data
from polysift.engine.budget import Shape, calibration_bytes
from polysift.training.calibration import calibrate
from problems import paper_classifier

SIZE = {"features": 3, "centers": 10, "itemsize": 8, "quantiles": False, "unit_bytes": 0}


def traced(run):
    """Return the result of a call, and the most bytes that it had allocated at once."""
    tracemalloc.start()
    try:
        return run(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("columns", [1, 3, 6, 20])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bytes_of_a_calibration_are_counted(kind, columns, weighted):
    m, classes, rng = 20_000, max(columns, 2), np.random.default_rng(0)
    codes = rng.integers(0, classes, m).astype(np.int8)
    scores = rng.normal(size=(m, columns)) + (codes[:, None] == (np.arange(columns) + 2 - classes))
    weights = rng.random(m) if weighted else None
    folds = (np.arange(m) % 5).astype(np.int32)
    _, used = traced(lambda: calibrate(kind, scores, codes, classes, weights, folds))
    shape = Shape(rows=m, columns=columns, weighted=weighted, calibrated=True, **SIZE)
    counted = calibration_bytes(shape) - scores.nbytes
    assert used < counted < 1.6 * used


@pytest.mark.parametrize(
    ("where", "classes", "kind", "rows"),
    [
        ("memory", 2, "sigmoid", 500_000),
        ("weights", 4, "isotonic", 60_000),
        ("file", 2, "isotonic", 60_000),
        ("file", 4, "sigmoid", 60_000),
    ],
)
def test_a_fit_stays_within_its_forecast(where, classes, kind, rows, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((rows, 3))
    y, weights = (X[:, 0] * classes).astype(int), rng.random(rows) if where == "weights" else None
    given = (X, y, weights)
    if where == "file":
        np.savez(tmp_path / "rows.npz", X=X, y=y)
        given = (open_data(tmp_path / "rows.npz"),)
    limit = 10**7 + 140 * classes * rows
    model = paper_classifier(1, calibration=kind, n_jobs=1, memory_limit=limit, random_state=0)
    fitted, used = traced(lambda: model.fit(*given))
    assert used < fitted.training_summary_["expected_memory"] <= limit


def test_a_limit_that_a_calibration_exceeds_is_refused_at_once():
    X = np.random.default_rng(0).random((420_000, 3))
    y, limit = X[:, 0] > 0.5, 55 * 10**6
    for model in (paper_classifier(1), FPCClassifierCV(1, cv=2)):
        with pytest.raises(MemoryError, match="memory_limit"):
            model.set_params(calibration="sigmoid", memory_limit=limit).fit(X, y)

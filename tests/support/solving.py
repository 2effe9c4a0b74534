"""What tests of the solvers share."""

from __future__ import annotations

import numpy as np

from polysift import PolynomialKernelMap
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import LOCAL, FitContext
from polysift.engine.local import LocalEngine
from polysift.estimators.fitted import feature_map_of
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import AffineScaler, learn_scaler
from polysift.features.statistics import column_statistics
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.solvers import starts
from polysift.solvers.admm import AdmmSettings, ConvergedSettings
from polysift.solvers.factor import Ridge

PROBLEMS = [
    (2, 1, 300, 0.2),
    (2, 3, 500, 0.15),
    (3, 2, 400, 0.2),
    (3, 3, 300, 0.15),
    (4, 3, 700, 0.25),
    (5, 2, 500, 0.1),
    (6, 2, 800, 0.3),
    (8, 1, 300, 0.1),
    (5, 3, 900, 0.25),
    (4, 2, 600, 0.2),
    (2, 4, 500, 0.25),
    (3, 4, 600, 0.2),
]


def engine_for(X, y, C, degree, weights=None, dtype=float):
    d = X.shape[1]
    same = AffineScaler(np.zeros(d), np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))
    data = TrainingSet(ArraySource(X.astype(dtype)), (y > 0).astype(np.int8), 2, weights)
    return LocalEngine(data, FeatureMap(same, C, degree), Pool(1))


def paper(beta, rho=None, *, relative_rho=None, floor_multiple=1.0, **more):
    """Return settings of the paper's algorithm."""
    return AdmmSettings(beta, ridge=Ridge(rho, relative_rho, floor_multiple), **more)


def converged(m, rho=None, **changes):
    """Return settings of the ADMM that goes to the minimum."""
    return ConvergedSettings(**({"beta": 0.1 / m, "ridge": Ridge(rho)} | changes))


def solve(engine, settings, *, monitor=None, **more):
    """Minimise over the rows of an engine, on one thread."""
    context = FitContext(monitor or Monitor(), LOCAL)
    return starts.solve(engine, settings, context, **more)[0]


def problem(m, d, n, degree, dtype, *, seed=0, scaler="minmax", **more):
    rng = np.random.default_rng(seed)
    X = rng.random((m, d)).astype(dtype)
    source = ArraySource(X)
    learned = learn_scaler(scaler, column_statistics(X, np.ones(m)), None)
    centers = learned.transform(rng.random((n, d)))
    data = TrainingSet(source, rng.integers(0, 2, m).astype(np.int8), 2, **more)
    return data, FeatureMap(learned, centers, degree)


def spline_problem(m, d, n, degree, dtype):
    """Return rows, a fifth of which lack values of the second column, and a map by splines."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d)).astype(dtype)
    X[:, 0] = np.round(X[:, 0], 1)
    X[: m // 5, 1:2] = np.nan
    made = PolynomialKernelMap(degree, n, kernel="spline", scaler=None, random_state=0).fit(X)
    y = rng.integers(0, 2, m).astype(np.int8)
    return TrainingSet(ArraySource(X), y, 2), feature_map_of(made)

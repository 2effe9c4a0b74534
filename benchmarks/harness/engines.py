"""The engine on drawn rows: what the sections on its verbs time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.kernels import has_kernels
from polysift import PolynomialKernelMap
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.budget import Execution
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate
from polysift.estimators.fitted import feature_map_of
from polysift.features.feature_map import FeatureMap, MapSpec, build_feature_map
from polysift.features.survey import survey
from polysift.runtime.parallel import Pool, single_threaded_blas

GAMMA, RELAX = 0.1, 1.7
"""Those of the converged mode; the arithmetic is the same for all."""


@dataclass(frozen=True)
class Shape:
    """Rows, features, degree, centers, and the type of the rows."""

    m: int
    d: int
    degree: int
    n: int
    dtype: str


class Bench:
    """An engine with one problem, and what its verbs do once.

    Parameters
    ----------
    shape : Shape
        What to draw.
    pool : Pool
        The threads.
    fused : bool, optional
        Whether to use the compiled loops; by default where there are any.
    """

    def __init__(self, shape: Shape, pool: Pool, fused: bool | None = None) -> None:
        rng = np.random.default_rng(0)
        self.shape = shape
        self.X = rng.random((shape.m, shape.d), dtype=shape.dtype)
        self.codes = rng.integers(0, 2, shape.m).astype(np.int8)
        source = ArraySource(self.X)
        self.map = _learn(source, shape, pool)
        data = TrainingSet(source, self.codes, 2)
        # Scores about as large as those of a model: neither overflow nor denormal numbers.
        size = float(np.median(1.0 + self.X[:100] @ self.map.centers.T)) ** shape.degree
        self.u = rng.normal(size=(shape.n, 1)) / (size * np.sqrt(shape.n))
        self._problem = Problem(shape.n, AdmmUpdate(GAMMA, RELAX))
        self._engine = LocalEngine(
            data, self.map, pool, Execution(compiled=has_kernels() if fused is None else fused)
        )
        self._engine.begin(1)

    def gram(self) -> None:
        """Sum the Gram matrix."""
        with single_threaded_blas():
            self._engine.gram()

    def sweep(self) -> None:
        """Visit every row once."""
        with single_threaded_blas():
            self._engine.sweep([self._problem], self.u)


def _learn(source: ArraySource, shape: Shape, pool: Pool) -> FeatureMap:
    spec = MapSpec(shape.degree, shape.n, "uniform", "minmax", 0)
    with single_threaded_blas():
        found = survey(source, spec.questions(source.n_features, labels=False), pool)
    return build_feature_map(spec, found, source.dtype)


def feature_map(X: np.ndarray, kernel: str, degree: int, n: int) -> FeatureMap:
    """Return the map of a kernel with n drawn centers for rows X, whatever its dimension."""
    made = PolynomialKernelMap(degree, 1, kernel=kernel, scaler="standard", random_state=0).fit(X)
    scaler = feature_map_of(made).scaler
    centers = np.random.default_rng(1).random((n, X.shape[1]))
    return FeatureMap(scaler, scaler.transform(centers), degree)

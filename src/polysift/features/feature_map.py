"""The feature map x -> (base(z, c_j)^s)_j, with z the coordinates of a row x and c_j the centers.

The base of the polynomial kernel is ``1 + z.c_j``; ``features.kernels`` has the others.

Its parameters are checked (``check_map_spec``) and kept as a ``MapSpec``, which says what a survey
of the rows must collect; ``build_feature_map`` makes a ``FeatureMap`` from that survey, and
``BlockFeatures`` applies it to blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.kinds import DROP, NUMBER
from polysift.data.source import DataSource
from polysift.features.centers import SCHEMES, uniform_centers
from polysift.features.kernels import (
    KERNELS,
    Kernel,
    full_dimension,
    power_in_place,
)
from polysift.features.level_columns import MAX_SELF_KERNEL
from polysift.features.scalers import SCALERS, Scaler, learn_scaler, needs_sketch
from polysift.features.statistics import ColumnStatistics
from polysift.features.survey import Questions, Survey
from polysift.features.table_learning import learn_table
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import Workspace
from polysift.runtime.parameters import check_choice, check_integer
from polysift.runtime.types import Block, FloatArray

BLOCK_BYTES = 2**22
"""The features of a block: enough to hide the cost of a call and of the GIL, within the cache."""

MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 8, 8192

DEFAULT_MAX_LEVELS = 100
"""The most levels of a category that have a coordinate each."""

AUTO_CENTERS = 1000
"""The number of centers for ``n_centers="auto"``, where the full dimension is not smaller."""


@dataclass(frozen=True)
class MapSpec:
    """The checked parameters of a feature map.

    Attributes
    ----------
    degree : int
        The degree s.
    n_centers : int or None
        The number of centers, at most; None means the default.
    centers : str or ndarray of shape (n, d)
        A scheme, or the centers themselves in the units of the data.
    scaler : str or None
        The name of the scaler.
    seed : int
        The seed of uniform points and of the rows' hash.
    table : bool
        Whether the rows are those of a table (``features.tables``), whose number of coordinates is
        known after the survey.
    max_levels : int
        The most levels of a category with a coordinate for each.
    kernel : str
        "polynomial" or "spline".
    weights : ndarray of shape (d,) or None
        The weights of the columns, which sum to one; None for equal ones.
    """

    degree: int
    n_centers: int | None
    centers: str | FloatArray
    scaler: str | None
    seed: int
    table: bool = False
    max_levels: int = DEFAULT_MAX_LEVELS
    kernel: str = "polynomial"
    weights: FloatArray | None = None

    def resolve(self, d: int) -> tuple[str, int]:
        """Return the scheme ("given" for an array) and the largest number of centers.

        Of a table it is before the limit by its coordinates.
        """
        full = None if self.table else full_dimension(self.degree, d)
        if not isinstance(self.centers, str):
            n = min(self.n_centers or len(self.centers), len(self.centers))
            return "given", n if full is None else min(n, full)
        n = AUTO_CENTERS if self.n_centers is None else self.n_centers
        if full is None:
            return "random" if self.centers == "auto" else self.centers, n
        n = min(n, full)
        if self.centers == "auto":
            return ("uniform" if n == full else "random"), n
        return self.centers, n

    def questions(self, d: int, *, labels: bool, digest: bool = False) -> Questions:
        """Return what a survey must collect for this map."""
        scheme, n = self.resolve(d)
        quantiles = self.table or needs_sketch(self.scaler)
        return Questions(labels, digest, quantiles, scheme, n, self.seed)


def check_map_spec(estimator: Any, source: DataSource, seed: int) -> MapSpec:
    """Return the checked parameters of an estimator's feature map of the rows of a source."""
    kernel = check_kernel(estimator.kernel, estimator.centers, source)
    return MapSpec(
        degree=check_degree(estimator.degree),
        n_centers=check_n_centers(estimator.n_centers),
        centers=check_centers(estimator.centers, source.n_features),
        scaler=check_choice("scaler", estimator.scaler, SCALERS),
        seed=seed,
        table=is_table(source) or kernel == "spline",
        max_levels=check_integer("max_levels", estimator.max_levels, least=2),
        kernel=kernel,
    )


def check_kernel(value: Any, centers: Any, source: DataSource) -> str:
    """Return the kernel, which the centers and the rows must admit."""
    kernel = str(check_choice("kernel", value, KERNELS))
    if kernel == "spline" and isinstance(centers, str) and centers == "uniform":
        raise ValueError(
            "centers='uniform' needs kernel='polynomial': the centers of the spline kernel are "
            "rows. Use centers='random', or leave it at 'auto'."
        )
    if kernel == "spline" and source.sparse:
        raise ValueError(
            "kernel='spline' needs dense rows: it would fill sparse input. Use "
            "kernel='polynomial', or pass X.toarray()."
        )
    return kernel


def is_table(source: DataSource) -> bool:
    """Return whether columns of a source are used that are not numbers, by their types."""
    return any(column.kind not in (NUMBER, DROP) for column in source.types or ())


def check_degree(value: Any, name: str = "degree", hint: str = "") -> int:
    """Return the degree; the message for 2.5 suggests 2 or 3."""
    if isinstance(value, float | np.floating) and 1 < value < 1e6:
        below = int(value)
        hint = f" Use {name}={below} or {name}={below + 1}."
    return check_integer(name, value, hint=hint)


def check_n_centers(value: Any) -> int | None:
    """Return the number of centers, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    return check_integer("n_centers", value, hint=' Or use n_centers="auto".')


def check_centers(value: Any, n_features: int) -> str | FloatArray:
    """Return a scheme, or the given centers as a float64 array of shape (n, d)."""
    if isinstance(value, str) or value is None:
        return str(check_choice("centers", value, SCHEMES))
    try:
        centers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"centers must be one of {', '.join(map(repr, SCHEMES))} or an array of numbers of "
            f"shape (n, {n_features}); got {type(value).__name__}."
        ) from None
    if centers.ndim != 2 or centers.shape[1] != n_features or len(centers) == 0:
        raise ValueError(
            f"centers must have shape (n, {n_features}), a row per center and a column per "
            f"feature of X; got shape {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise ValueError("centers must be finite; got NaN or infinity.")
    return centers


@dataclass(frozen=True)
class FeatureMap:
    """A learned feature map.

    Attributes
    ----------
    scaler : Scaler
        The map from raw rows to the coordinates of the centers.
    centers : ndarray of shape (n, D)
        The centers, scaled, float64; D is the number of features of the rows, or, of a table, that
        of its coordinates.
    degree : int
        The degree s.
    """

    scaler: Scaler
    centers: FloatArray
    degree: int

    @property
    def n_centers(self) -> int:
        """The number of features, n."""
        return len(self.centers)

    @property
    def kernel(self) -> Kernel:
        """How the coordinates of a row and a center are paired."""
        return self.scaler.kernel

    @property
    def fill(self) -> FloatArray:
        """The coordinates of missing values that the scaler leaves, (D,): means of the centers."""
        return np.asarray(self.centers.mean(axis=0))

    def coordinates(self, block: FloatArray) -> FloatArray:
        """Return the coordinates of dense rows, (rows, D), with means for values that lack them."""
        scaled = self.scaler.transform(block)
        self.fill_missing(scaled)
        return scaled

    def fill_missing(self, scaled: FloatArray) -> None:
        """Put means in the place of missing values that the scaler has left, in (rows, D)."""
        if not self.scaler.places_missing and (absent := np.isnan(scaled)).any():
            np.copyto(scaled, self.fill, casting="same_kind", where=absent)

    def fitted(self) -> FeatureMap:
        """Return the map as predictions use it."""
        return replace(self, scaler=self.scaler.fitted())

    def block_rows(self, dtype: Any) -> int:
        """Return the rows of a block: by n and dtype alone, since it affects the last bit."""
        rows = BLOCK_BYTES // (self.n_centers * np.dtype(dtype).itemsize)
        return max(MIN_BLOCK_ROWS, min(rows // 8 * 8, MAX_BLOCK_ROWS))


class BlockFeatures:
    """A feature map prepared for blocks of one dtype; threads may share it.

    Attributes
    ----------
    map : FeatureMap
        The feature map.
    dtype : dtype
        The dtype of the features.
    kernel : Kernel
        How the coordinates of a row and a center are paired.
    C1 : ndarray of shape (D + 1, n)
        The centers as columns, as rows with a last coordinate of one face them.
    """

    def __init__(self, feature_map: FeatureMap, dtype: Any) -> None:
        self.map = feature_map
        self.dtype = np.dtype(dtype)
        self.kernel = feature_map.kernel
        # A coordinate of ones adds the kernel's 1 inside the product, without a pass of its own.
        self.C1 = np.ascontiguousarray(self.kernel.facing(feature_map.centers), dtype)
        self._parted = self.kernel.parted(self.C1)
        self._work = Workspace()

    def rows(self, block: FloatArray) -> FloatArray:
        """Return dense rows scaled, with a last column of ones, in this thread's scratch space."""
        X1 = self._work.array("X1", (block.shape[0], len(self.C1)), self.dtype)
        X1[:, :-1] = self.map.coordinates(block)
        X1[:, -1] = 1.0
        return X1

    def base(self, X: FloatArray, out: FloatArray, scratch: FloatArray) -> None:
        """Write the base of the power, of what ``rows`` returns, into ``out``."""
        self.kernel.base(X, self._parted, out, scratch)

    def __call__(self, block: Block, out: FloatArray | None = None) -> FloatArray:
        """Return the features of a block, of shape (rows, n).

        Without ``out`` they lie in this thread's scratch space, until its next call.
        """
        shape = (block.shape[0], self.map.n_centers)
        Z = self._work.array("Z", shape, self.dtype) if out is None else out
        scratch = self._work.array("scratch", shape, self.dtype)
        if sp.issparse(block):
            origin, scaled = self.map.scaler.transform_sparse(block)
            C = self.C1[:-1]
            np.add(scaled.astype(self.dtype) @ C, 1.0 + origin.astype(self.dtype) @ C, out=Z)
        else:
            self.base(self.rows(block), Z, scratch)
        power_in_place(Z, self.map.degree, scratch)
        return Z


def build_feature_map(
    spec: MapSpec, found: Survey, dtype: Any, total_weight: float = 1.0
) -> FeatureMap:
    """Return the feature map of these parameters for surveyed rows, which weigh so much in all."""
    statistics = found.statistics
    scheme, n = spec.resolve(len(statistics.low))
    scaler: Scaler
    spline = spec.kernel == "spline"
    if found.columns is None or (spec.weights is None and not spline and found.columns.all_plain):
        scaler = learn_scaler(spec.scaler, statistics, found.sketch)
    else:
        scaler = learn_table(spec.scaler, found.columns, found, spline=spline, weights=spec.weights)
    if not spline:
        n = min(n, full_dimension(spec.degree, scaler.n_coordinates(len(statistics.low))))
    if scheme == "uniform":
        box = scaler.box(statistics)
        centers = uniform_centers(box[0], box[1], n, spec.seed)
    elif found.candidates is not None:
        centers = scaler.transform(found.candidates.dense_rows()[:n])
    else:
        assert not isinstance(spec.centers, str)
        centers = scaler.transform(spec.centers[:n])
    feature_map = FeatureMap(scaler, centers, spec.degree)
    refuse_overflow(feature_map, statistics, dtype, total_weight)
    return feature_map


def refuse_overflow(
    feature_map: FeatureMap, statistics: ColumnStatistics, dtype: Any, total_weight: float
) -> None:
    """Raise if a feature, or a sum of squared features, can exceed its dtype on the data's box."""
    reach = _reach(feature_map, statistics)
    s = feature_map.degree
    room = np.log(np.finfo(float).max) - np.log(max(total_weight, 1.0))
    in_gram = 2 * s * reach >= room
    in_features = s * reach + np.log(feature_map.block_rows(dtype)) >= np.log(np.finfo(dtype).max)
    if not (in_gram or in_features):
        return
    remedy = "Lower the degree, or use a scaler ('standard' and 'quantile' keep x.c near 1)."
    if not in_gram:
        remedy = f"Pass X as float64. {remedy}"
    raise FeatureOverflowError(
        f"degree={s} overflows {np.dtype(dtype).name}: 1 + x.c reaches {np.exp(reach):.3g} on "
        f"these data, and its power {s} is too large to sum. {remedy}"
    )


def _reach(feature_map: FeatureMap, statistics: ColumnStatistics) -> float:
    """Return the logarithm of the kernel's largest base on the data's box, or a bound on it."""
    if feature_map.kernel.ranks:  # the parts of columns, and their indicators, are bounded
        return float(np.log(1.0 + 2.0 * MAX_SELF_KERNEL))
    box = feature_map.scaler.box(statistics)
    with np.errstate(over="ignore"):
        return float(np.log(1.0 + np.max(np.abs(feature_map.centers) @ np.abs(box).max(axis=0))))

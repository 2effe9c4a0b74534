"""What scalers know of the compiled loops: a protocol, and coordinates that are looked up.

The loops belong to the engine (``engine.compiled_features``), and are passed in.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from polysift.runtime.types import FloatArray, IntArray


class ScalingLoops(Protocol):
    """The compiled loops that scale rows (``engine.compiled_features``), into d + 1 columns."""

    def scale_affinely(
        self,
        X: FloatArray,
        low: FloatArray,
        high: FloatArray,
        offset: FloatArray,
        scale: FloatArray,
        out: FloatArray,
    ) -> None:
        """Scale rows as ``AffineScaler`` does."""

    def scale_by_quantiles(
        self,
        X: FloatArray,
        values: FloatArray,
        levels: FloatArray,
        counts: IntArray,
        out: FloatArray,
    ) -> None:
        """Scale rows as ``QuantileScaler`` does."""

    def interpolate_pairs(
        self,
        X: FloatArray,
        knots: FloatArray,
        first: FloatArray,
        second: FloatArray,
        counts: IntArray,
        out: FloatArray,
        other: FloatArray,
    ) -> None:
        """Interpolate ranks and heights as ``SplineScaler`` does."""

    def unfold_rows(
        self,
        X: FloatArray,
        owners: IntArray,
        parts: IntArray,
        cycles: FloatArray,
        fineness: float,
        out: FloatArray,
    ) -> None:
        """Write the numbers of rows as ``Unfolding`` does."""

    def place_numbers(
        self,
        X: FloatArray,
        low: FloatArray,
        high: FloatArray,
        offset: FloatArray,
        scale: FloatArray,
        known: bool,
        out: FloatArray,
    ) -> None:
        """Scale rows as ``AffineScaler`` does; missing values become zero if they are known to."""

    def find_rows(
        self,
        X: FloatArray,
        column: int,
        levels: FloatArray,
        codes: IntArray,
        unknown: int,
        first: int,
        folded: float,
        out: IntArray,
    ) -> None:
        """Find the rows of values in the table of a ``LevelColumn``."""


class Lookup(NamedTuple):
    """Coordinates that are together a row of a table, such as those of a category.

    Attributes
    ----------
    start : int
        The position of the first.
    table : ndarray of shape (R, width)
        The table; its last row is zero.
    """

    start: int
    table: FloatArray

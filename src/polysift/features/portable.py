"""The feature map in the array API, for rows that lie on another device (a GPU) or in torch.

It computes what ``scalers``, ``tables`` and ``kernels`` compute, with the functions that every
library of the standard has (https://data-apis.org), so that neither rows nor features leave their
device. Tables with categories or dates are left to NumPy (``is_portable``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.data.kinds import NUMBER
from polysift.features.feature_map import FeatureMap
from polysift.features.knots import Knots
from polysift.features.scalers import AffineScaler, QuantileScaler, Scaler
from polysift.features.splines import SplineScaler
from polysift.features.tables import TableScaler

Array = Any
"""An array of any library; the standard has no type for it."""


def is_portable(scaler: Scaler) -> bool:
    """Return whether a scaler's rows are numbers alone."""
    if isinstance(scaler, TableScaler):
        return not scaler.levels and all(scaler.kinds[j] == NUMBER for j in scaler.inputs)
    return isinstance(scaler, AffineScaler | QuantileScaler)


class PortableMap:
    """A feature map whose arrays lie where the rows do.

    Parameters
    ----------
    feature_map : FeatureMap
        The learned map, of a scaler that ``is_portable``.
    xp : namespace
        The library of the rows.
    device : object
        The device of the rows.
    wide : dtype
        The dtype of coordinates: float64, where the device has it.
    dtype : dtype
        The dtype of features.
    """

    def __init__(
        self, feature_map: FeatureMap, xp: Any, device: Any, wide: Any, dtype: Any
    ) -> None:
        self._map, self._xp, self._device, self._wide = feature_map, xp, device, wide
        self._dtype = dtype
        kernel = feature_map.kernel
        facing = kernel.facing(feature_map.centers)
        self._ranks = [self.array(row, dtype) for row in facing[: kernel.ranks]]
        self._facing = self.array(facing[kernel.ranks : -1], dtype)
        self._own = self.array(facing[-1], dtype)

    def array(self, values: Any, dtype: Any = None) -> Array:
        """Return a NumPy array as one on the device, floats in a dtype: wide, if it is None."""
        values = np.ascontiguousarray(values)
        if values.dtype.kind == "f":
            dtype = self._wide if dtype is None else dtype
            return self._xp.asarray(values, dtype=dtype, device=self._device)
        return self._xp.asarray(values, device=self._device)

    def __call__(self, X: Array) -> Array:
        """Return the features of rows, (rows, n)."""
        xp = self._xp
        x = xp.astype(X, self._wide)
        z = self._coordinates(x)
        if not self._map.scaler.places_missing:
            z = xp.where(xp.isnan(z), self.array(self._map.fill), z)
        z = xp.astype(z, self._dtype)
        base = z[:, len(self._ranks) :] @ self._facing + self._own
        for k, ranks in enumerate(self._ranks):
            base = base - xp.maximum(z[:, k : k + 1], ranks)
        out = base
        for bit in bin(self._map.degree)[3:]:  # as ``kernels.power_in_place``
            out = out * out
            if bit == "1":
                out = out * base
        return out

    def interpolated(self, x: Array, columns: list[Knots]) -> Array:
        """Return ``np.interp`` of each column of x between knots of its own."""
        xp = self._xp
        found = [self._interpolated(x[:, j], *knots) for j, knots in enumerate(columns)]
        return xp.stack(found, axis=1)

    def _interpolated(self, x: Array, knots: Any, values: Any) -> Array:
        xp = self._xp
        if len(knots) == 1:
            return xp.where(xp.isnan(x), x, self.array(values)[0])
        rise = np.diff(values) / np.where(np.diff(knots) > 0, np.diff(knots), np.inf)
        starts, heights, slopes = (self.array(part) for part in (knots, values, rise))
        inside = xp.minimum(xp.maximum(x, starts[0]), starts[-1])
        last = xp.asarray(len(knots) - 2, device=self._device)
        at = xp.searchsorted(starts, inside, side="right") - 1
        at = xp.minimum(xp.maximum(at, 0 * at), xp.astype(last, at.dtype))
        return xp.take(slopes, at) * (inside - xp.take(starts, at)) + xp.take(heights, at)

    def _coordinates(self, x: Array) -> Array:
        scaler = self._map.scaler
        return self._table(scaler, x) if isinstance(scaler, TableScaler) else self._plain(scaler, x)

    def _plain(self, scaler: Scaler | None, x: Array) -> Array:
        xp = self._xp
        if isinstance(scaler, QuantileScaler):
            return (2.0 * self.interpolated(x, scaler.knots()) - 1.0) / float(np.sqrt(x.shape[1]))
        if isinstance(scaler, AffineScaler):
            x = xp.minimum(xp.maximum(x, self.array(scaler.low)), self.array(scaler.high))
            return (x - self.array(scaler.offset)) * self.array(scaler.scale)
        return x

    def _table(self, scaler: TableScaler, x: Array) -> Array:
        xp = self._xp
        raw = xp.take(x, self.array(scaler.numbers), axis=1)
        missing = xp.isnan(raw)
        z = self._plain(scaler.affine, self._plain(scaler.ranks, raw))
        if scaler.places_missing:
            z = xp.where(missing, self.array(0.0), z)
        parts, rest = [z], []
        if scaler.spline is not None:
            q, *rest = self._splines(scaler, scaler.spline, raw, missing)
            parts.insert(0, q)
        if len(scaler.indicators):
            absent = xp.isnan(xp.take(x, self.array(scaler.indicators), axis=1))
            there, gone = (self.array(side) for side in scaler.indicator_values)
            parts.append(xp.where(absent, gone, there))
        return xp.concat([*parts, *rest], axis=1)

    def _splines(
        self, scaler: TableScaler, spline: SplineScaler, raw: Array, missing: Array
    ) -> list[Array]:
        """Return ranks, absences and the sum of heights, as ``TableScaler`` has them."""
        xp, at = self._xp, scaler.absent
        known = xp.where(missing, self.array(spline.middle), raw)
        q, heights = (self.interpolated(known, part) for part in spline.curves())
        if not len(at):
            return [q, xp.sum(heights, axis=1, keepdims=True)]
        possible = np.zeros(len(scaler.numbers), dtype=bool)
        possible[at] = True
        lacking = xp.logical_and(missing, self.array(possible))
        zero = self.array(0.0)
        q, heights = xp.where(lacking, zero, q), xp.where(lacking, zero, heights)
        columns = self.array(at)
        gone, left = (
            xp.take(part, columns, axis=1) for part in (xp.astype(lacking, self._wide), heights - q)
        )
        return [q, gone, left, xp.sum(heights, axis=1, keepdims=True)]

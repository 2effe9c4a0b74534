"""The base of the kernel as a sum over columns: ``base(z, c_j) = 1 + sum_i part_i(z, c_j)``."""

from __future__ import annotations

import numpy as np

from polysift.features.feature_map import FeatureMap
from polysift.features.tables import TableScaler
from polysift.runtime.types import FloatArray


def column_part(feature_map: FeatureMap, Z: FloatArray, column: int) -> FloatArray:
    """Return a column's part of the base, (rows, n), for rows with coordinates Z (rows, D)."""
    scaler, C = feature_map.scaler, feature_map.centers
    if not isinstance(scaler, TableScaler):
        return np.outer(Z[:, column], C[:, column])
    own, N = np.flatnonzero(scaler.owners == column), feature_map.kernel.ranks
    products = own[own >= N]
    part = Z[:, products] @ C[:, products].T
    for k in own[own < N].tolist():
        part += spline_part(scaler, Z, C, k)
    return part


def spline_part(scaler: TableScaler, Z: FloatArray, C: FloatArray, k: int) -> FloatArray:
    """Return the spline of the k-th number, which is zero where one of the values is absent."""
    assert scaler.spline is not None
    a, b = Z[:, k], C[:, k]
    h_a, h_b = (scaler.spline.heights_at(side, k) for side in (a, b))
    part = h_a[:, np.newaxis] + h_b - np.maximum(a[:, np.newaxis], b)
    for number in np.flatnonzero(scaler.absent == k).tolist():
        at = len(scaler.owners) + number
        part *= (1.0 - Z[:, at])[:, np.newaxis]  # a mean of rows may lack it in part
        part *= 1.0 - C[:, at]
    return np.asarray(part)

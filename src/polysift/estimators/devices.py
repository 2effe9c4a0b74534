"""Prediction where the rows are: arrays of torch, CuPy and others, by the array API.

As in scikit-learn it happens inside ``sklearn.config_context(array_api_dispatch=True)``. Then
features, scores and probabilities are arrays of the library and on the device of X. A model stays a
model of NumPy arrays: it can be fitted anywhere, and serve rows of any library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from polysift.data.inputs import array_namespace, on_host
from polysift.data.source import ArraySource
from polysift.estimators.fitted import feature_map_of
from polysift.estimators.prediction import MissingWatch
from polysift.features.feature_map import FeatureMap
from polysift.features.portable import Array, PortableMap, is_portable
from polysift.runtime.errors import FeatureOverflowError
from polysift.runtime.parallel import block_spans
from polysift.runtime.types import FloatArray
from polysift.training.calibration import Calibrator, IsotonicCalibrator, SigmoidCalibrator

BLOCK_FEATURES = 2**24
"""The features of a block of rows: 128 MiB in float64."""


class Device:
    """The library and the device of rows, and prediction there.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    feature_map : FeatureMap
        Its feature map.
    X : array
        The rows.
    """

    def __init__(self, estimator: Any, feature_map: FeatureMap, X: Array) -> None:
        found = array_namespace(X)
        assert found is not None
        self.xp, self.device = found
        self._map, self._estimator = feature_map, estimator
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
        validate_data(estimator, X, reset=False, skip_check_array=True)
        if X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                f"{estimator.n_features_in_} features as input."
            )
        self.wide = self._wide_dtype()
        self._X = X if self.xp.isdtype(X.dtype, "real floating") else self.xp.astype(X, self.wide)

    def _wide_dtype(self) -> Any:
        """Return float64, or float32 on a device without it."""
        try:
            self.xp.zeros(1, dtype=self.xp.float64, device=self.device)
        except (TypeError, RuntimeError):  # as torch's mps
            return self.xp.float32
        return self.xp.float64

    @property
    def usable(self) -> bool:
        """Whether all can be computed on the device: not for categories, dates and infinity."""
        finite = not bool(self.xp.any(self.xp.isinf(self._X)))
        return finite and is_portable(self._map.scaler)  # NumPy names what is not finite

    def features(self) -> Array:
        """Return the features of the rows, in their dtype."""
        made = PortableMap(self._map, self.xp, self.device, self.wide, self._X.dtype)
        return self._in_blocks(made)

    def scores(self, coef: Any) -> Array:
        """Return the scores of the rows by coefficients (K, n), (rows, K)."""
        made = PortableMap(self._map, self.xp, self.device, self.wide, self.wide)
        u = made.array(coef.T)
        return self._in_blocks(lambda rows: made(rows) @ u)

    def _in_blocks(self, compute: Any) -> Array:
        length = max(1, BLOCK_FEATURES // self._map.n_centers)
        spans = block_spans((0, self._X.shape[0]), length)
        with np.errstate(over="ignore", invalid="ignore"):  # of libraries on top of NumPy
            parts = [compute(self._X[lo:hi, ...]) for lo, hi in spans]
        out = parts[0] if len(parts) == 1 else self.xp.concat(parts, axis=0)
        if not bool(self.xp.all(self.xp.isfinite(out))):
            raise FeatureOverflowError(
                "The kernel overflows: a row lies too far from the training data. Use a scaler, "
                "which clips, or a lower degree."
            )
        self._warn_of_missing()
        return out

    def _warn_of_missing(self) -> None:
        lacking = np.asarray(on_host(self.xp.any(self.xp.isnan(self._X), axis=0)))
        if lacking.any():
            row = np.where(lacking, np.nan, 0.0)[np.newaxis]
            names = getattr(self._estimator, "feature_names_in_", None)
            watch = MissingWatch(ArraySource(row, names, None, None), self._map.scaler)
            watch.look_at(row)
            watch.warn(6)

    def moved(self, values: Any) -> Array:
        """Return what NumPy has computed on the device; text, which no device holds, as it is."""
        if values.dtype.kind not in "biuf":
            return values
        return self.xp.asarray(values, device=self.device)

    def labels(self, scores: Array, classes: Any, thresholds: FloatArray | None = None) -> Array:
        """Return the classes of scores (rows, K); classes that are text as a NumPy array.

        ``thresholds`` (K,) are subtracted from the scores before.
        """
        xp = self.xp
        if thresholds is not None:
            scores = scores - xp.asarray(thresholds, dtype=scores.dtype, device=self.device)
        if scores.shape[1] == 1:
            codes = xp.astype(scores[:, 0] >= 0, xp.int64)
        else:
            codes = xp.argmax(scores, axis=1)
        if classes.dtype.kind not in "biuf":
            return classes[on_host(codes)]
        return xp.take(xp.asarray(classes, device=self.device), codes)

    def probabilities(self, scores: Array, calibrator: Calibrator) -> Array:
        """Return the probabilities of scores (rows, K), (rows, classes)."""
        xp = self.xp
        p = self._positive(scores, calibrator)
        if p.shape[1] == 1:
            return xp.concat([1.0 - p, p], axis=1)
        total = xp.sum(p, axis=1, keepdims=True)
        nothing = total == 0
        share = p / xp.where(nothing, xp.ones_like(total), total)
        return xp.where(nothing, xp.ones_like(p) / p.shape[1], share)

    def _positive(self, scores: Array, calibrator: Calibrator) -> Array:
        xp, made = self.xp, PortableMap(self._map, self.xp, self.device, self.wide, self.wide)
        if isinstance(calibrator, SigmoidCalibrator):
            t = scores * made.array(calibrator.slope) + made.array(calibrator.intercept)
            e = xp.exp(-xp.abs(t))  # does not overflow
            return xp.where(t >= 0, xp.ones_like(e), e) / (1.0 + e)
        assert isinstance(calibrator, IsotonicCalibrator)
        p = made.interpolated(scores, calibrator.knots())
        return xp.minimum(p, xp.ones_like(p))


def device_of(estimator: Any, X: Any) -> Device | None:
    """Return where the rows X of a fitted estimator lie, if it is not in NumPy."""
    if array_namespace(X) is None:
        return None
    return Device(estimator, feature_map_of(estimator), X)

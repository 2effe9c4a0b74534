"""Scores of a few rows of plain numbers: the same bits as ``score_shards``, without a source.

What checks and prepares a model takes longer than the scores of a row. So rows that are plainly
fine (a float array of the right width, finite, few) are scored by features that were prepared
before, as long as the model's fitted attributes are those of then. Anything else, an error to be
named or a warning to be given included, is left to the ordinary way.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polysift.data.inputs import FLOATS
from polysift.data.kinds import NUMBER
from polysift.estimators.fitted import feature_map_of
from polysift.features.feature_map import BlockFeatures, FeatureMap
from polysift.features.tables import TableScaler
from polysift.runtime.parallel import MIN_SHARD_ROWS, single_threaded_blas
from polysift.runtime.parameters import check_n_jobs
from polysift.runtime.types import FloatArray

MAX_FEATURES = 2**16
"""Features of the rows at most, so that what is kept of a model's scratch memory is little."""


class PreparedModel:
    """The features of a fitted model, prepared for rows of plain numbers.

    Parameters
    ----------
    model : estimator
        The fitted classifier.
    """

    def __init__(self, model: Any) -> None:
        feature_map = feature_map_of(model)
        self._scaler, self._degree = model.scaler_, model.degree_
        self._centers = model.centers_.copy()
        self.plain = _takes_plain_rows(feature_map)
        self.features = BlockFeatures(feature_map, np.float64)
        rows = min(feature_map.block_rows(np.float64), MIN_SHARD_ROWS)  # one block of one shard
        self.max_rows = min(rows, MAX_FEATURES // feature_map.n_centers)

    def is_of(self, model: Any) -> bool:
        """Return whether a model is as it was when this was made."""
        return (
            self._scaler is model.scaler_
            and self._degree == model.degree_
            and np.array_equal(self._centers, model.centers_)  # these may be written to
        )


_prepared: WeakKeyDictionary[Any, PreparedModel] = WeakKeyDictionary()


def few_plain_scores(model: Any, X: Any) -> FloatArray | None:
    """Return the scores of a few rows of plain numbers, (rows, K), or None for any other rows."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in FLOATS or not X.size:
        return None
    if X.shape[1] != model.n_features_in_ or len(X) * model.n_centers_ > MAX_FEATURES:
        return None
    if "feature_names_in_" in vars(model):  # scikit-learn warns that X has none
        return None
    check_n_jobs(model.n_jobs)
    made = _prepared.get(model)
    if made is None or not made.is_of(model):
        made = _prepared[model] = PreparedModel(model)
    if not made.plain or len(X) > made.max_rows or not np.isfinite(X).all():
        return None
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        scores = made.features(X) @ np.ascontiguousarray(model.coef_.T)
    return scores if np.isfinite(scores).all() else None


def _takes_plain_rows(feature_map: FeatureMap) -> bool:
    """Return whether all columns that a map uses are numbers."""
    scaler = feature_map.scaler
    if not isinstance(scaler, TableScaler):
        return True
    return all(scaler.kinds[j] == NUMBER for j in scaler.inputs)

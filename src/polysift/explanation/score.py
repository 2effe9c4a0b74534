"""The score as a function of coordinates, each of which belongs to a column of the rows.

The rows of plain numbers have a coordinate per column. A table has several for a category, a date,
or a column with missing values, and none for a column that is left out. What is explained are
columns: a column is one feature, whatever number of coordinates it has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import feature_map_of
from polysift.explanation.attributions import Attributor, score_gradients
from polysift.features.feature_map import FeatureMap
from polysift.features.level_columns import LevelColumn
from polysift.features.scalers import Scaler
from polysift.features.tables import TableScaler
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Score:
    """The scores ``sum_j u_j (1 + z.c_j)^s`` of a model, with z the coordinates of a row.

    Attributes
    ----------
    feature_map : FeatureMap
        The model's map, from rows to coordinates.
    centers : ndarray of shape (n, D)
        The centers c.
    coef : ndarray of shape (K, n)
        The coefficients u.
    degree : int
        The degree s.
    owners : ndarray of int of shape (D,)
        The column of each coordinate.
    n_columns : int
        The number of columns of the rows, d.
    used : ndarray of int or None
        Where no column has several coordinates, but some have none: the columns of the scaler's
        coordinates. Then D is d, and the coordinates of the other columns are zero.
    """

    feature_map: FeatureMap
    centers: FloatArray
    coef: FloatArray
    degree: int
    owners: IntArray
    n_columns: int
    used: IntArray | None = None

    @property
    def scaler(self) -> Scaler:
        """The scaler of the model."""
        return self.feature_map.scaler

    @property
    def has_several(self) -> bool:
        """Whether a column has several coordinates."""
        return len(np.unique(self.owners)) < len(self.owners)

    @property
    def n_used(self) -> int:
        """The number of coordinates that can vary."""
        return len(self.owners if self.used is None else self.used)

    @property
    def levels(self) -> list[LevelColumn]:
        """The categories whose levels have words."""
        found = self.scaler.levels if isinstance(self.scaler, TableScaler) else []
        return [column for column in found if not column.buckets]

    def transform(self, block: FloatArray) -> FloatArray:
        """Return the coordinates of dense rows, (rows, D)."""
        return self._spread(self.feature_map.coordinates(block))

    def scores(self, Z: FloatArray) -> FloatArray:
        """Return the scores of coordinates (rows, D), of shape (rows, K)."""
        return np.asarray((1.0 + Z @ self.centers.T) ** self.degree @ self.coef.T)

    def attributor(self) -> Attributor:
        """Return what computes the Shapley values of the columns."""
        return Attributor(self.centers, self.coef, self.degree, self.owners, self.n_columns)

    def gradients(self, block: FloatArray) -> FloatArray:
        """Return the gradients by the columns of dense rows, of shape (rows, d, K)."""
        slopes = self._spread(self.scaler.slope(block))[:, :, None]
        values = score_gradients(self.transform(block), self.centers, self.coef, self.degree)
        values *= slopes
        if not self.has_several:
            return values
        out = np.zeros((len(block), self.n_columns, len(self.coef)))
        for coordinate, column in enumerate(self.owners):
            out[:, column] += values[:, coordinate]
        return out

    def by_column(self, Z: FloatArray) -> FloatArray:
        """Return coordinates (rows, D) as (rows, d): NaN for a column that has several."""
        if not self.has_several:
            return Z
        counts = np.bincount(self.owners, minlength=self.n_columns)
        out = np.zeros((len(Z), self.n_columns))
        out[:, self.owners] = Z
        out[:, counts > 1] = np.nan
        return out

    def _spread(self, Z: FloatArray) -> FloatArray:
        """Return coordinates of the scaler at the places of their columns, where some have none."""
        return Z if self.used is None else _placed(Z, self.used, self.n_columns)


def score_of(model: FPCClassifier) -> Score:
    """Return the score of a fitted classifier as a function of coordinates."""
    d, feature_map, centers = model.n_features_in_, feature_map_of(model), model.centers_
    scaler = feature_map.scaler
    owners = scaler.owners if isinstance(scaler, TableScaler) else np.arange(d)
    used = None
    alone = len(np.unique(owners)) == len(owners)
    if alone and not np.array_equal(owners, np.arange(d)):
        centers, used, owners = _placed(centers, owners, d), owners, np.arange(d)
    return Score(feature_map, centers, model.coef_, model.degree_, owners, d, used)


def _placed(Z: FloatArray, columns: IntArray, d: int) -> FloatArray:
    out = np.zeros((len(Z), d))
    out[:, columns] = Z
    return out

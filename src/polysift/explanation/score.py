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
from polysift.explanation.parts import Baseline, Products, Splines, placed
from polysift.explanation.reference import Reference
from polysift.features.feature_map import FeatureMap
from polysift.features.level_columns import LevelColumn
from polysift.features.scalers import Scaler
from polysift.features.tables import TableScaler
from polysift.runtime.types import FloatArray


@dataclass(frozen=True, eq=False)
class Score:
    """The scores ``sum_j u_j base(z, c_j)^s`` of a model, with z the coordinates of a row.

    Attributes
    ----------
    feature_map : FeatureMap
        The model's map, from rows to coordinates.
    parts : Products
        The parts of the columns in the base.
    coef : ndarray of shape (K, n)
        The coefficients u.
    degree : int
        The degree s.
    """

    feature_map: FeatureMap
    parts: Products
    coef: FloatArray
    degree: int

    @property
    def scaler(self) -> Scaler:
        """The scaler of the model."""
        return self.feature_map.scaler

    @property
    def n_columns(self) -> int:
        """The number of columns of the rows, d."""
        return self.parts.n_columns

    @property
    def is_spline(self) -> bool:
        """Whether the kernel is that of splines."""
        return self.feature_map.kernel.ranks > 0

    @property
    def expandable(self) -> bool:
        """Whether the score is a polynomial in a coordinate per column."""
        return not (self.is_spline or self.parts.has_several)

    @property
    def n_used(self) -> int:
        """The number of coordinates that can vary."""
        return len(self.parts.owners if self.parts.used is None else self.parts.used)

    @property
    def levels(self) -> list[LevelColumn]:
        """The categories whose levels have words."""
        found = self.scaler.levels if isinstance(self.scaler, TableScaler) else []
        return [column for column in found if not column.buckets]

    def transform(self, block: FloatArray) -> FloatArray:
        """Return the coordinates of dense rows, (rows, D)."""
        return self.parts.spread(self.feature_map.coordinates(block))

    def scores(self, Z: FloatArray) -> FloatArray:
        """Return the scores of coordinates (rows, D), of shape (rows, K)."""
        return self.of_base(self.parts.base(Z))

    def of_base(self, base: FloatArray) -> FloatArray:
        """Return the scores of bases (rows, n), of shape (rows, K)."""
        return np.asarray(base**self.degree @ self.coef.T)

    def baseline(self, reference: Reference) -> Baseline:
        """Return the mean of the reference.

        That is the mean of its coordinates; of the spline kernel, whose parts are no products of
        these, the mean of the parts over the sample.
        """
        if self.is_spline:
            return self.parts.baseline(reference.rows, reference.weights)
        return self.parts.baseline(reference.means[:, 1][None], np.ones(1))

    def attributor(self) -> Attributor:
        """Return what computes the Shapley values of the columns."""
        return Attributor(self.parts, self.coef, self.degree)

    def gradients(self, block: FloatArray) -> FloatArray:
        """Return the gradients by the columns of dense rows, of shape (rows, d, K)."""
        return score_gradients(self.parts, self.coef, self.degree, block, self.transform(block))

    def by_column(self, Z: FloatArray) -> FloatArray:
        """Return coordinates (rows, D) as (rows, d): NaN for a column that has several."""
        if self.expandable:
            return Z
        owners = self.parts.owners
        counts = np.bincount(owners, minlength=self.n_columns)
        out = np.zeros((len(Z), self.n_columns))
        out[:, owners] = Z[:, : len(owners)]
        out[:, counts > 1] = np.nan
        return out


def score_of(model: FPCClassifier) -> Score:
    """Return the score of a fitted classifier as a function of coordinates."""
    feature_map = feature_map_of(model)
    parts = _parts(feature_map, model.n_features_in_)
    return Score(feature_map, parts, model.coef_, model.degree_)


def _parts(feature_map: FeatureMap, d: int) -> Products:
    """Return the parts of d columns in the base of a kernel."""
    scaler, centers = feature_map.scaler, feature_map.centers
    if not isinstance(scaler, TableScaler):
        return Products(scaler, centers, np.arange(d), d)
    owners = scaler.owners
    if scaler.spline is not None:
        return Splines(scaler, centers, owners, d)
    if len(np.unique(owners)) < len(owners) or np.array_equal(owners, np.arange(d)):
        return Products(scaler, centers, owners, d)
    return Products(scaler, placed(centers, owners, d), np.arange(d), d, owners)

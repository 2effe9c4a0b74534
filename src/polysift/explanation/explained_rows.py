"""What an explanation tells of rows, block by block: scaled, attributed, differentiated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polysift.data.inputs import rows_source
from polysift.data.source import check_finite
from polysift.estimators.classifier import FPCClassifier
from polysift.explanation.attributions import Attributor, score_gradients
from polysift.explanation.reference import dense
from polysift.features.scalers import scaler_from_dict
from polysift.runtime.parallel import block_spans, single_threaded_blas
from polysift.runtime.types import FloatArray

BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class RowAnswers:
    """What an ``Explanation`` can tell of rows; it says more of the attributes."""

    model: FPCClassifier
    classes: tuple[Any, ...]
    baseline: FloatArray

    def scaled(self, X: Any) -> FloatArray:
        """Return rows in the scaled features that the polynomial is about.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, d)
            The scaled rows, float64.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> bool(found.scaled(X).min() == 0), bool(found.scaled(X).max() == 1)
        (True, True)
        """
        return scaled_rows(self.model, X)

    def attributions(self, X: Any, baseline: Any = None) -> FloatArray:
        """Return how much each feature adds to the score of each row: exact Shapley values.

        Features go from the baseline to the row one after the other; a feature's value is the
        change of the score when its turn comes, averaged over all orders. The values of a row add
        up to its score less the baseline's.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.
        baseline : array-like of shape (d,) or (n_rows, d), default=None
            A row to compare with, in the units of X, or several, whose values are averaged (the
            time is proportional to their number). None is ``baseline``, the mean of the reference.

        Returns
        -------
        ndarray of shape (m, d), or (m, d, n_classes) for more than two classes
            The attributions.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.attributions(X[:5]).shape
        (5, 4, 3)
        >>> found.attributions(X[:5], baseline=X[0])[0].tolist() == [[0.0] * 3] * 4
        True
        """
        return self._like_scores(row_attributions(self.model, X, self._baselines(baseline)))

    def base_score(self, baseline: Any = None) -> Any:
        """Return the score of the baseline, what attributions start from.

        Parameters
        ----------
        baseline : array-like of shape (d,) or (n_rows, d), default=None
            As in ``attributions``; of several rows the mean score.

        Returns
        -------
        float, or ndarray of shape (n_classes,) for more than two classes
            The score.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.base_score().shape
        (3,)
        """
        model = self.model
        features = (1.0 + self._baselines(baseline) @ model.centers_.T) ** model.degree_
        scores = (features @ model.coef_.T).mean(axis=0)
        return float(scores[0]) if len(self.classes) == 1 else scores

    def gradients(self, X: Any) -> FloatArray:
        """Return the gradients of the score by the features, in the units of X.

        A scaler that clips, or that has knots, makes kinks. There the gradient is the mean of the
        derivatives from both sides, and beyond the clipping it is zero: so it is what central
        differences tend to, everywhere.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, d), or (m, d, n_classes) for more than two classes
            The gradients.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polysift import FPCClassifier, explain
        >>> X, y = load_iris(return_X_y=True)
        >>> found = explain(FPCClassifier(2, random_state=0).fit(X, y), X)
        >>> found.gradients(X[:5]).shape
        (5, 4, 3)
        """
        return self._like_scores(row_gradients(self.model, X))

    def _baselines(self, given: Any) -> FloatArray:
        """Return baselines, scaled, as rows."""
        if given is None:
            return self.baseline[None]
        if np.ndim(given) == 1:  # a row of a frame keeps its names
            given = given.to_frame().T if hasattr(given, "to_frame") else np.asarray(given)[None]
        return self.scaled(given)

    def _like_scores(self, values: FloatArray) -> FloatArray:
        """Return values without the axis of scores where there is but one."""
        return values[..., 0] if len(self.classes) == 1 else values


def scaled_rows(model: FPCClassifier, X: Any) -> FloatArray:
    """Return rows scaled, of shape (m, d)."""
    scaler = scaler_from_dict(model.scaler_)
    return _by_blocks(model, X, scaler.transform)


def row_attributions(model: FPCClassifier, X: Any, baselines: FloatArray) -> FloatArray:
    """Return Shapley values against scaled baselines, on average, of shape (m, d, K)."""
    scaler = scaler_from_dict(model.scaler_)
    attribute = Attributor(model.centers_, model.coef_, model.degree_)

    def values(block: FloatArray) -> FloatArray:
        Z = scaler.transform(block)
        total = attribute(Z, baselines[0])
        for baseline in baselines[1:]:
            total += attribute(Z, baseline)
        return total / len(baselines)

    return _by_blocks(model, X, values)


def row_gradients(model: FPCClassifier, X: Any) -> FloatArray:
    """Return gradients by the features, in the units of X, of shape (m, d, K)."""
    scaler = scaler_from_dict(model.scaler_)
    kernel = model.centers_, model.coef_, model.degree_

    def values(block: FloatArray) -> FloatArray:
        slopes = scaler.slope(block)[:, :, None]
        return score_gradients(scaler.transform(block), *kernel) * slopes

    return _by_blocks(model, X, values)


def _by_blocks(
    model: FPCClassifier, X: Any, values: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return ``values`` of dense blocks of rows, in one array."""
    source = rows_source(model, X, reset=False)
    parts = []
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        for span, part in source.parts():
            rows = source.rows(part)
            check_finite(source, span[0], rows)
            for lo, hi in block_spans((0, rows.shape[0]), BLOCK_ROWS):
                found = values(dense(rows[lo:hi]))
                wrong = ~np.isfinite(found).reshape(len(found), -1).all(axis=1)
                if wrong.any():
                    where = source.place(span[0] + lo + int(wrong.argmax()))
                    raise ValueError(
                        f"The kernel overflows float64 in {where}: that row lies too far from the "
                        "training data. Use a scaler, which clips, or a lower degree."
                    )
                parts.append(found)
    return np.concatenate(parts)

"""From X, y and sample_weight to a source, with errors that name column, row and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from polysift.data.arrow import is_numeric
from polysift.data.source import ArraySource, DataSource
from polysift.runtime.types import FloatArray

FLOATS = np.dtype(np.float64), np.dtype(np.float32)

ENCODE = (
    "Encode it as numbers first, for example with sklearn.preprocessing.OneHotEncoder or "
    "OrdinalEncoder, or leave it out."
)


@contextmanager
def keeping_features(estimator: Any) -> Iterator[None]:
    """Restore an estimator's features if a fit fails, so that an old model stays usable."""
    names = ("n_features_in_", "feature_names_in_")
    before = {name: vars(estimator)[name] for name in names if name in vars(estimator)}
    try:
        yield
    except BaseException:
        for name in names:
            estimator.__dict__.pop(name, None)
        estimator.__dict__.update(before)
        raise


def rows_source(estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool) -> DataSource:
    """Return rows without labels as a source, checked as scikit-learn does.

    float32 stays float32 where every column is float32; everything else becomes float64. Whether
    values are finite is checked when blocks are read, where the column can be named.
    """
    if isinstance(X, DataSource):
        return _known_source(estimator, X, reset)
    refuse_masked(X=X)
    matrix = X
    if not _needs_no_check(estimator, X, reset):
        matrix = validate_data(estimator, X, reset=reset, **_validation_options(X))
    return _array_source(estimator, matrix, None, sample_weight, reset)


def training_source(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool
) -> DataSource:
    """Return rows with labels and weights as a source; a given source has its own."""
    if isinstance(X, DataSource):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "y and sample_weight must be left out when X is a data source: its own labels and "
                "weights are used. Name their columns in open_data(..., target=..., weight=...)."
            )
        if not X.has_labels:
            raise ValueError(
                "The data source has no labels to learn from. Name their column: "
                "open_data(..., target=...)."
            )
        return _known_source(estimator, X, reset)
    refuse_masked(X=X, y=y)
    y = _plain_labels(y)
    matrix, labels = X, y
    if not (_needs_no_check(estimator, X, reset) and _are_small_numbers(y, len(X))):
        matrix, labels = validate_data(estimator, X, y, reset=reset, **_validation_options(X))
        if labels.dtype.kind != "O":  # objects of one ordered type may be labels, too
            check_classification_targets(labels)
    return _array_source(estimator, matrix, labels, sample_weight, reset)


def _array_source(
    estimator: Any, matrix: Any, labels: Any, sample_weight: Any, reset: bool
) -> DataSource:
    if reset:
        estimator.n_features_in_ = matrix.shape[1]
    weights = row_weights(sample_weight, matrix.shape[0])
    names = getattr(estimator, "feature_names_in_", None)
    return ArraySource(_canonical(matrix), names, labels, weights)


def row_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Check sample weights; None, which means 1 for each row, stays None."""
    if sample_weight is None:
        return None
    refuse_masked(sample_weight=sample_weight)
    values = np.asarray(sample_weight)
    if values.ndim and values.size and not values.any():
        raise ValueError(
            "sample_weight is zero for all rows, which leaves nothing to learn from. Pass None to "
            "count each row once."
        )
    weights = _check_sample_weight(
        sample_weight if values.ndim == 0 else values, np.empty((n_rows, 0)), dtype=float
    )
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must not be negative; got {weights[row]} in row {row} (counted from "
            "0). Use 0 to leave a row out."
        )
    return np.asarray(weights)


def refuse_masked(**given: Any) -> None:
    """Raise for a masked array: its mask would be lost, and what it hides be used as it is."""
    for name, value in given.items():
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(
                f"{name} is a masked array, whose masked entries cannot be left out one by one. "
                f"Drop these rows and pass a plain array, or fill them in: {name}.filled(...)."
            )


def is_ray_dataset(data: Any) -> bool:
    """Return whether this is a ``ray.data.Dataset``, without importing Ray."""
    ancestors = ((cls.__module__, cls.__name__) for cls in type(data).__mro__)
    return ("ray.data.dataset", "Dataset") in ancestors


def _plain_labels(y: Any) -> Any:
    """Return labels without missing values; objects of a plain type become an array of it."""
    if not (isinstance(y, list | tuple) or hasattr(y, "dtype")):
        return y
    labels = np.asarray(y)
    if labels.dtype.kind != "O" or labels.ndim != 1:
        return y
    names = {"NoneType", "NAType", "NaTType"}
    for row, label in enumerate(labels):
        if type(label).__name__ in names or (isinstance(label, float) and label != label):
            raise ValueError(
                f"Input y contains NaN or another missing value, first in row {row} (counted from "
                "0). Drop such rows, or fill them in."
            )
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        return np.array(labels.tolist())
    return labels


def _known_source(estimator: Any, source: DataSource, reset: bool) -> DataSource:
    """Record a source's features in the estimator, or select those that the estimator knows."""
    if source.n_rows == 0:
        raise ValueError("The data source has no rows; at least one is needed.")
    if reset:
        source.check()
        estimator.n_features_in_ = source.n_features
        if source.names is not None:
            estimator.feature_names_in_ = np.array(source.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return source
    if hasattr(estimator, "feature_names_in_") and source.names is not None:
        source = source.select([str(name) for name in estimator.feature_names_in_])
    source = source.widen(estimator.n_features_in_)
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input. Choose them with "
            "open_data(..., columns=...)."
        )
    source.check()
    return source


def _needs_no_check(estimator: Any, X: Any, reset: bool) -> bool:
    """Return whether scikit-learn's checks would return this array as it is, without a warning.

    They take longer than the scores of a few rows, and a good part of a small fit.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.size == 0 or X.dtype not in FLOATS:
        return False
    if hasattr(estimator, "feature_names_in_"):  # to be removed, or to warn that X has none
        return False
    return reset or X.shape[1] == getattr(estimator, "n_features_in_", None)


def _are_small_numbers(y: Any, n_rows: int) -> bool:
    """Return whether y holds integers of a small range, so that no check of scikit-learn fails."""
    if type(y) is not np.ndarray or y.shape != (n_rows,) or y.dtype.kind not in "biuf":
        return False
    span = y.max().item() - y.min().item()  # NaN where a label is NaN
    return span < n_rows // 2 and (y.dtype.kind != "f" or bool((y == np.rint(y)).all()))


def _validation_options(X: Any) -> dict[str, Any]:
    """Return the options of scikit-learn's ``validate_data``; raise for what is not numeric."""
    dtype: Any = [np.float64, np.float32]
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        dtype = _frame_dtype(X)
    elif hasattr(X, "schema") and hasattr(X, "column_names"):
        _refuse_arrow_text(X)
    else:
        _refuse_text(X)
    return {"accept_sparse": "csr", "dtype": dtype, "ensure_all_finite": False}


def _canonical(matrix: Any) -> Any:
    """Return a matrix without duplicate entries, where it is sparse."""
    if sp.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _frame_dtype(frame: Any) -> type:
    """Return the dtype for a pandas or polars frame; raise for a column that is not numeric."""
    if len(frame.columns) == 0:
        raise ValueError("Found array with 0 feature(s): X is a frame without columns.")
    all_single = True
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if not (_is_numeric(dtype) or _holds_numbers(frame[name], dtype)):
            raise ValueError(
                f"X has a column that is not numeric: {str(name)!r} of type {dtype}. {ENCODE}"
            )
        all_single &= str(dtype).lower() == "float32"
    return np.float32 if all_single else np.float64


def _refuse_arrow_text(table: Any) -> None:
    """Raise for a column of a pyarrow Table or RecordBatch that is not numeric."""
    for field in table.schema:
        if not is_numeric(field.type):
            raise ValueError(
                f"X has a column that is not numeric: {field.name!r} of type {field.type}. {ENCODE}"
            )


def _is_numeric(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"  # numpy and pandas


def _holds_numbers(column: Any, dtype: Any) -> bool:
    if getattr(dtype, "kind", "") != "O" or str(dtype) != "object":
        return False
    return all(isinstance(value, Number) or value is None for value in column)


def _refuse_text(X: Any) -> None:
    """Raise for text in an array or a list, and name its row and column."""
    given = X
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame; pass X.collect().")
    if is_ray_dataset(X):
        raise TypeError(
            "X is a Ray Dataset; pass polysift.open_data(X, target=...) in its place, which names "
            "the labels and leaves the rows on the cluster."
        )
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    if kind in ("M", "m"):
        raise ValueError(f"X holds dates or durations ({X.dtype}). {ENCODE}")
    if kind is None and isinstance(X, list | tuple):
        X = np.asarray(X)
        if X.dtype.kind not in ("U", "S", "O"):
            return
        X = np.asarray(X.tolist() if X.dtype.kind == "O" else given, dtype=object)
        kind = "O"
    if kind not in ("U", "S", "O") or getattr(X, "ndim", 0) != 2:
        return
    for row, column in np.ndindex(X.shape):
        value = X[row, column]
        if isinstance(value, str | bytes):
            raise ValueError(
                f"X has text in column {column}: could not convert string to float: "
                f"{str(value)!r} in row {row} (counted from 0). {ENCODE}"
            )

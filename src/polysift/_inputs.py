"""From what a user passes to arrays, with errors that name the column, the row and the remedy."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from polysift._data import ArraySource
from polysift._types import FloatArray, IntArray

ENCODE = (
    "Encode it as numbers first, for example with sklearn.preprocessing.OneHotEncoder or "
    "OrdinalEncoder, or leave it out."
)


def as_source(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """Check rows (and labels) as scikit-learn does; return a source, or a source and the labels.

    float32 stays float32 where every column is float32; everything else becomes float64. Whether
    values are finite is left to whoever reads the blocks, who can name the column.
    """
    dtype: Any = [np.float64, np.float32]
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        dtype = _frame_dtype(X)
    else:
        _refuse_text(X)
    checked = validate_data(
        estimator, X, y, reset=reset, accept_sparse="csr", dtype=dtype, ensure_all_finite=False
    )
    has_labels = not (isinstance(y, str) and y == "no_validation")
    matrix, labels = checked if has_labels else (checked, None)
    if sp.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    source = ArraySource(matrix, getattr(estimator, "feature_names_in_", None))
    return (source, labels) if has_labels else source


def encode_labels(y: Any, weights: FloatArray | None) -> tuple[np.ndarray[Any, Any], IntArray]:
    """Return the classes of the rows of positive weight, and each row's class number.

    Rows of weight zero whose label occurs nowhere else get -1.
    """
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if weights is not None:
        present = np.bincount(codes, weights > 0, len(classes)) > 0
        numbers = np.where(present, np.cumsum(present) - 1, -1)
        classes, codes = classes[present], numbers[codes]
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes; got one class only, {classes[0]!r}. Rows of "
            "weight zero do not count."
        )
    smallest = np.int8 if len(classes) < 127 else np.int32
    return classes, codes.astype(smallest)


def row_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Check sample weights: None stays None, since it means once each."""
    if sample_weight is None:
        return None
    values = np.asarray(sample_weight)
    if values.size and not values.any():
        raise ValueError(
            "sample_weight is zero for all rows, which leaves nothing to learn from. Pass None to "
            "count each row once."
        )
    weights = _check_sample_weight(values, np.empty((n_rows, 0)), dtype=float)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must not be negative; got {weights[row]} in row {row} (counted from "
            "0). Use 0 to leave a row out."
        )
    return np.asarray(weights)


def apply_class_weight(
    class_weight: Any, weights: FloatArray | None, codes: IntArray, classes: Any
) -> FloatArray | None:
    """Multiply each row's weight by that of its class."""
    if class_weight is None:
        return weights
    rows = np.ones(len(codes)) if weights is None else weights
    if isinstance(class_weight, str):  # "balanced": every class weighs the same
        counts = np.bincount(np.maximum(codes, 0), rows, len(classes))
        factors = rows.sum() / (len(classes) * counts)
    else:
        names = list(classes)
        unknown = [label for label in class_weight if label not in names]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not a class of y; the classes are "
                f"{names}."
            )
        factors = np.array([class_weight.get(label, 1.0) for label in names], dtype=float)
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            raise ValueError(f"class_weight must hold positive numbers; got {class_weight!r}.")
    return np.asarray(rows * factors[codes])


def _frame_dtype(frame: Any) -> type:
    """Return the dtype for a pandas or polars frame; raise for a column that is not numeric."""
    all_single = True
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if not (_is_numeric(dtype) or _holds_numbers(frame[name], dtype)):
            raise ValueError(
                f"X has a column that is not numeric: {str(name)!r} of type {dtype}. {ENCODE}"
            )
        all_single &= str(dtype).lower() == "float32"
    return np.float32 if all_single else np.float64


def _is_numeric(dtype: Any) -> bool:
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"  # numpy and pandas


def _holds_numbers(column: Any, dtype: Any) -> bool:
    if getattr(dtype, "kind", "") != "O" or str(dtype) != "object":
        return False
    return all(isinstance(value, Number) or value is None for value in column)


def _refuse_text(X: Any) -> None:
    """Raise for text in an array or a list, and say where it stands."""
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    if kind is None and isinstance(X, list | tuple):
        X = np.asarray(X)
        kind = X.dtype.kind
    if kind not in ("U", "S", "O") or getattr(X, "ndim", 0) != 2:
        return
    for row, column in np.ndindex(X.shape):
        value = X[row, column]
        if isinstance(value, str | bytes):
            raise ValueError(
                f"X has text in column {column}: could not convert string to float: {value!r} in "
                f"row {row} (counted from 0). {ENCODE}"
            )

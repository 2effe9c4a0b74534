"""From X, y and sample_weight to a source, with errors that name column, row and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from polysift.data.kinds import (
    CATEGORY,
    DATE,
    DROP,
    NUMBER,
    PLAIN_NUMBER,
    ColumnType,
    asked_kinds,
    check_kinds,
)
from polysift.data.source import ArraySource, DataSource
from polysift.data.tables import columns_of, is_table, read_table, repeated_name
from polysift.data.words import reading_notes
from polysift.runtime.types import FloatArray

FLOATS = np.dtype(np.float64), np.dtype(np.float32)


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


def array_namespace(X: Any) -> tuple[Any, Any] | None:
    """Return the library and the device of an array that is not NumPy's, by the array API.

    None for NumPy, and unless scikit-learn's ``array_api_dispatch`` is on.
    """
    if type(X) is np.ndarray or not get_config()["array_api_dispatch"]:
        return None
    from sklearn.utils._array_api import get_namespace_and_device

    if not (hasattr(X, "__dlpack__") or hasattr(X, "__array_namespace__")):
        return None
    xp, known, device = get_namespace_and_device(X)
    return (xp, device) if known and not isinstance(X, np.ndarray) else None


def on_host(values: Any) -> Any:
    """Return an array of another library as NumPy's; anything else as it is."""
    found = array_namespace(values)
    if found is None:
        return values
    from sklearn.utils._array_api import _convert_to_numpy

    return _convert_to_numpy(values, found[0])


UNREAD = {
    "LazyFrame": "polars LazyFrame; pass X.collect()",
    "DuckDBPyRelation": "DuckDB relation; pass X.df() or X.arrow()",
    "dict": "dict; pass a frame, such as pandas.DataFrame(X)",
    "generator": "generator, and rows are read more than once; pass list(X)",
}
"""What is no table yet, by the name of its type: what it is, and what to do."""


def rows_source(estimator: Any, X: Any, sample_weight: Any = None, *, reset: bool) -> DataSource:
    """Return rows without labels as a source, checked as scikit-learn does.

    float32 stays float32 where every column is float32; everything else becomes float64. Values are
    checked when blocks are read, where the column can be named.
    """
    if isinstance(X, DataSource):
        return _known_source(estimator, X, reset)
    _refuse_path(X, "")
    X, sample_weight = on_host(X), on_host(sample_weight)
    refuse_masked(X=X)
    if _is_read_as_table(estimator, X, reset):
        return _table_source(estimator, X, None, sample_weight, reset)
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
    _refuse_path(X, ", target=...")
    X, y, sample_weight = on_host(X), on_host(y), on_host(sample_weight)
    refuse_masked(X=X, y=y)
    y = _plain_labels(y)
    if _is_read_as_table(estimator, X, reset):
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but y is None.")
        labels = column_or_1d(y, warn=True)
        check_consistent_length(X, labels)
        assert_all_finite(labels, input_name="y")
        if labels.dtype.kind != "O":
            check_classification_targets(labels)
        return _table_source(estimator, X, labels, sample_weight, reset)
    matrix, labels = X, y
    if not (_needs_no_check(estimator, X, reset) and _are_small_numbers(y, len(X))):
        matrix, labels = validate_data(estimator, X, y, reset=reset, **_validation_options(X))
        if labels.dtype.kind != "O":  # objects of one ordered type may be labels, too
            check_classification_targets(labels)
    return _array_source(estimator, matrix, labels, sample_weight, reset)


def known_types(estimator: Any) -> tuple[ColumnType, ...] | None:
    """Return what the columns of the training rows were; None where all are numbers."""
    learned = getattr(estimator, "scaler_", {})
    if learned.get("kind") != "table":
        return None
    read = {"number": NUMBER, "date": DATE, "category": CATEGORY, "encoded category": CATEGORY}
    columns = zip(learned["kinds"], learned["readings"], strict=True)
    return tuple(ColumnType(read.get(kind, DROP), True, reading) for kind, reading in columns)


def _is_read_as_table(estimator: Any, X: Any, reset: bool) -> bool:
    """Return whether X, or what is known of its columns, asks for a look at every column."""
    asked = bool(getattr(estimator, "columns", None) if reset else known_types(estimator))
    if type(X) is np.ndarray and X.dtype in FLOATS:  # most arrays, at once
        return asked
    if (twice := repeated_name(X)) is not None:
        raise ValueError(
            f"X has several columns with the name {twice!r}. Rename them, so that each has a name "
            "of its own."
        )
    if (remedy := UNREAD.get(type(X).__name__)) is not None:
        raise TypeError(f"X is a {remedy}.")
    if is_ray_dataset(X):
        raise TypeError(
            "X is a Ray Dataset; pass polysift.open_data(X, target=...) in its place, which names "
            "the labels and leaves the rows on the cluster."
        )
    if not sp.issparse(X):
        return asked or is_table(X)
    if asked:
        raise ValueError(
            "X is sparse, and columns that are no numbers, or have missing values, need dense "
            "rows. Pass X.toarray(), or a frame."
        )
    return False


def _table_source(
    estimator: Any, X: Any, labels: Any, sample_weight: Any, reset: bool
) -> DataSource:
    """Return a table in memory as a source of floats."""
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)
    elif not any(hasattr(X, name) for name in ("dtype", "dtypes", "schema")):
        X = np.asarray(X)  # what only has __array__
    if getattr(X, "ndim", 2) != 2 and not getattr(X.dtype, "names", None):
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: a row per sample."
        )
    columns, names = columns_of(X)
    if not columns or not len(X):
        what = "feature" if not columns else "sample"
        raise ValueError(f"Found array with 0 {what}(s) while a minimum of 1 is required.")
    if getattr(getattr(X, "dtype", None), "names", None):
        _check_field_names(estimator, names, reset)
    else:
        validate_data(estimator, X, skip_check_array=True, reset=reset)
    if reset:
        estimator.n_features_in_ = len(columns)
        if names is not None and not hasattr(estimator, "feature_names_in_"):
            estimator.feature_names_in_ = np.array(names, dtype=object)
    known = None if reset else known_types(estimator)
    if known is None and not reset:
        known = (PLAIN_NUMBER,) * estimator.n_features_in_
    if len(columns) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(columns)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    table = read_table(columns, names, check_kinds(getattr(estimator, "columns", None)), known)
    plain = all(column == PLAIN_NUMBER for column in table.types)
    weights = row_weights(sample_weight, len(table.X))
    names = getattr(estimator, "feature_names_in_", None)
    return ArraySource(
        table.X,
        names,
        labels,
        weights,
        types=None if plain else table.types,
        words=table.words,
        notes=reading_notes(table.types, names),
    )


def _check_field_names(estimator: Any, names: Any, reset: bool) -> None:
    """Check the names of a structured array, which scikit-learn does not know, as it does others'.

    When fitting, forget those of an earlier fit.
    """
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        return
    known = [str(name) for name in getattr(estimator, "feature_names_in_", names)]
    if known != names:
        raise ValueError(
            f"The fields of X must be those of the training rows, in their order: {known}; got "
            f"{names}."
        )


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


def _refuse_path(X: Any, target: str) -> None:
    """Raise for the name of a file in the place of rows."""
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X is a name, {str(X)!r}, and must be rows. For those of a file pass "
            f"polysift.open_data({str(X)!r}{target}) in its place."
        )


def is_ray_dataset(data: Any) -> bool:
    """Return whether this is a ``ray.data.Dataset``, without importing Ray."""
    ancestors = ((cls.__module__, cls.__name__) for cls in type(data).__mro__)
    return ("ray.data.dataset", "Dataset") in ancestors


def _plain_labels(y: Any) -> Any:
    """Return labels without missing values; objects of a plain type become an array of it."""
    if not (isinstance(y, list | tuple) or hasattr(y, "dtype") or hasattr(y, "to_numpy")):
        return y
    labels = np.asarray(y)
    if labels.ndim != 1:
        return y
    if labels.dtype.kind != "O":
        lacking = labels != labels if labels.dtype.kind in "fmM" else np.zeros(0, dtype=bool)
        if lacking.any():
            raise _missing_label(int(np.argmax(lacking)))
        # Truth values and integers of pandas' own types would become floats.
        return y if isinstance(getattr(y, "dtype", None), np.dtype) else labels
    names = {"NoneType", "NAType", "NaTType"}
    for row, label in enumerate(labels):
        if type(label).__name__ in names or (isinstance(label, float) and label != label):
            raise _missing_label(row)
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        return np.array(labels.tolist())
    return labels


def _missing_label(row: int) -> ValueError:
    return ValueError(
        f"Input y contains NaN or another missing value, first in row {row} (counted from 0). Drop "
        "such rows, or fill them in."
    )


def _known_source(estimator: Any, source: DataSource, reset: bool) -> DataSource:
    """Record a source's features in the estimator, or select those that the estimator knows."""
    if source.n_rows == 0:
        where = "" if source.origin is None else f" {source.origin}"
        raise ValueError(f"The data source{where} has no rows; at least one is needed.")
    if reset:
        asked = asked_kinds(
            check_kinds(getattr(estimator, "columns", None)), source.names, source.n_features
        )
        source = source.asked(asked)
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
    known = known_types(estimator)
    if known is not None or source.types is not None:
        source = source.typed(known or (PLAIN_NUMBER,) * source.n_features)
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
    """Return the options of scikit-learn's ``validate_data``."""
    dtype: Any = [np.float64, np.float32]
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        if len(X.columns) == 0:
            raise ValueError("Found array with 0 feature(s): X is a frame without columns.")
        single = all(str(kind).lower() == "float32" for kind in X.dtypes)
        dtype = np.float32 if single else np.float64
    return {"accept_sparse": "csr", "dtype": dtype, "ensure_all_finite": False}


def _canonical(matrix: Any) -> Any:
    """Return a matrix without duplicate entries, where it is sparse."""
    if sp.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix

"""Other classifiers of scikit-learn's kind, and the tables of people as each of them takes them.

A method takes categories and missing values itself, where it can; else they are encoded by a
pipeline: numbers are imputed with indicators and standardised, categories are one-hot.
"""

from __future__ import annotations

from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

Frames = tuple[Any, Any]
"""The frames of the training rows and of others."""

MOST_LEVELS = 254
"""Levels of a category that scikit-learn's boosted trees can tell apart."""

MIN_FREQUENCY = 10
"""Rows of a level that has a column of its own in the pipeline."""


def raw(X: Any, X_test: Any) -> Frames:
    """Return frames as they are."""
    return X, X_test


def plain(X: Any, X_test: Any) -> Frames:
    """Return numbers as floats, dates as seconds, and other columns as categories.

    Levels are those of the training rows; others are missing. Columns are renamed, since not every
    rival takes every name.
    """
    import pandas as pd

    columns = [_plain_column(X[name], X_test[name]) for name in X]
    names = [f"c{i}" for i in range(len(columns))]
    return (
        pd.DataFrame(dict(zip(names, (train for train, _ in columns), strict=True))),
        pd.DataFrame(dict(zip(names, (test for _, test in columns), strict=True))),
    )


def few_levels(X: Any, X_test: Any) -> Frames:
    """Return plain columns, with the most frequent levels of a category alone."""
    X, X_test = plain(X, X_test)
    for name in X.select_dtypes("category"):
        kept = list(X[name].value_counts().index[:MOST_LEVELS])
        X[name] = X[name].cat.set_categories(kept)
        X_test[name] = X_test[name].cat.set_categories(kept)
    return X, X_test


def _plain_column(train: Any, test: Any) -> Frames:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(train):
        return train.astype(float), test.astype(float)
    seconds = _seconds(train)
    if seconds is not None:
        read = pd.to_datetime(test, utc=True, errors="coerce", format="ISO8601")
        return seconds, _since_epoch(read)
    levels = pd.CategoricalDtype(sorted(train.dropna().astype(str).unique()))
    return _as_levels(train, levels), _as_levels(test, levels)


def _as_levels(column: Any, levels: Any) -> Any:
    """Return a column as a category; what is not among the levels is missing."""
    import pandas as pd

    known = column.astype(object).where(column.notna(), None)
    codes = pd.Index(levels.categories).get_indexer([None if v is None else str(v) for v in known])
    return pd.Series(pd.Categorical.from_codes(codes, dtype=levels))


def _seconds(column: Any) -> Any:
    """Return the seconds of a column of dates, or None if it is none."""
    import pandas as pd

    try:
        read = pd.to_datetime(column, utc=True, format="ISO8601")
    except (ValueError, TypeError):
        return None
    return _since_epoch(read) if read.notna().any() else None


def _since_epoch(dates: Any) -> Any:
    import pandas as pd

    return (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def encoder() -> Any:
    """Return what makes numbers of plain columns."""
    numbers = make_pipeline(
        SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler()
    )
    one_hot = OneHotEncoder(
        min_frequency=MIN_FREQUENCY, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (one_hot, make_column_selector(dtype_exclude="number")),
    )


def logistic(threads: int | None, seed: int) -> Any:
    """Return logistic regression, with steps enough to end."""
    return make_pipeline(encoder(), LogisticRegression(max_iter=1000))


def lightgbm(threads: int | None, seed: int) -> Any:
    """Return LightGBM."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=threads, random_state=seed, verbose=-1)


def hist_gb(threads: int | None, seed: int) -> Any:
    """Return scikit-learn's boosted trees, whose threads are those of OpenMP."""
    return HistGradientBoostingClassifier(random_state=seed)

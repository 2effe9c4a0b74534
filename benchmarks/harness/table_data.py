"""Real tables with their raw columns, in seeded splits, and as rivals want them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

VARIABLE, FOLDER = "POLYSIFT_DATA", "tables"
"""The environment variable that names the folder of the data, and a folder in it."""

TARGET = "target"

ROW_NUMBERS: Mapping[str, tuple[str, ...]] = {"credit_default": ("ID",)}
"""Columns that number the rows, which no method gets."""

TEST_SHARE = 0.3


@dataclass(frozen=True)
class Split:
    """Rows to fit to and rows to judge on; labels are 0, 1, ..."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


def table_files() -> dict[str, Path]:
    """Return the files of all tables by name; none if the folder of the data is not known."""
    if VARIABLE not in os.environ:
        return {}
    folder = Path(os.environ[VARIABLE])
    files = [*folder.glob("*.parquet"), *(folder / FOLDER).glob("*.parquet")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def read_split(path: str, split: int, most: int) -> Split:
    """Read a table, draw at most so many rows, and split them by the seed ``split``."""
    frame = pd.read_parquet(path).dropna(subset=[TARGET])
    frame = frame.drop(columns=list(ROW_NUMBERS.get(Path(path).stem, ())))
    order = np.random.default_rng(split).permutation(len(frame))[:most]
    frame = frame.iloc[order].reset_index(drop=True)
    y = np.unique(frame.pop(TARGET).astype(str), return_inverse=True)[1]
    X, X_test, y, y_test = train_test_split(
        frame, y, test_size=TEST_SHARE, random_state=split, stratify=y
    )
    return Split(X.reset_index(drop=True), y, X_test.reset_index(drop=True), y_test)


def plain(X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return numbers as floats, dates as seconds, and other columns as categories.

    Levels are those of the training rows; others are missing. Columns are renamed, since not every
    rival takes every name.
    """
    columns = [_plain_column(X[name], X_test[name]) for name in X]
    names = [f"c{i}" for i in range(len(columns))]
    return (
        pd.DataFrame(dict(zip(names, (train for train, _ in columns), strict=True))),
        pd.DataFrame(dict(zip(names, (test for _, test in columns), strict=True))),
    )


def _plain_column(train: pd.Series, test: pd.Series) -> tuple[pd.Series, pd.Series]:
    if pd.api.types.is_numeric_dtype(train):
        return train.astype(float), test.astype(float)
    seconds = _seconds(train)
    if seconds is not None:
        read = pd.to_datetime(test, utc=True, errors="coerce", format="ISO8601")
        return seconds, _since_epoch(read)
    levels = pd.CategoricalDtype(sorted(train.dropna().astype(str).unique()))
    return _as_levels(train, levels), _as_levels(test, levels)


def _as_levels(column: pd.Series, levels: pd.CategoricalDtype) -> pd.Series:
    """Return a column as a category; what is not among the levels is missing."""
    known = column.astype(object).where(column.notna(), None)
    codes = pd.Index(levels.categories).get_indexer([None if v is None else str(v) for v in known])
    return pd.Series(pd.Categorical.from_codes(codes, dtype=levels))


def _seconds(column: pd.Series) -> pd.Series | None:
    """Return the seconds of a column of dates, or None if it is none."""
    try:
        read = pd.to_datetime(column, utc=True, format="ISO8601")
    except (ValueError, TypeError):
        return None
    return _since_epoch(read) if read.notna().any() else None


def _since_epoch(dates: pd.Series) -> pd.Series:
    return (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds()

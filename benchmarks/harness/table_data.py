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

"""Real data sets as their publishers write them: text, ARFF, and arrays of numpy and MATLAB.

Text is read in blocks of rows into one growing array, so that a file of any size takes little more
memory than its attributes.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from polysift.datasets.catalogue import Entry
from polysift.datasets.prepared import NPZ_ERRORS, Content, DatasetError, check_finite, from_arrays
from polysift.runtime.types import FloatArray, IntArray

BLOCK_VALUES = 1 << 21
"""How many numbers are parsed at a time."""

FIRST_ROWS = 1024
"""The rows that a growing array begins with."""

Report = Callable[[int], None]
"""Takes the number of further rows that have been read."""


@dataclass(frozen=True)
class Layout:
    """The layout of a text file.

    Attributes
    ----------
    first, label : int
        The columns of the first attribute and of the label; negative ones count from the end, where
        a file may have keys before them or not.
    positive, negative : tuple of int
        The values of the label that stand for +1 and for -1.
    delimiter : str or None
        The character between fields; None is white space.
    codes : mapping of int to str
        Columns of letters, and these letters in the order of their codes 0, 1, ...
    keep : callable, or None
        Takes a line, returns whether it belongs to the data set.
    """

    first: int = 0
    label: int = -1
    positive: tuple[int, ...] = (1,)
    negative: tuple[int, ...] = (0,)
    delimiter: str | None = ","
    codes: Mapping[int, str] = field(default_factory=dict)
    keep: Callable[[str], bool] | None = None


_PHYSICS = Layout(first=1, label=0)
LAYOUTS: Mapping[str, Layout] = {
    "breast_cancer": Layout(1, positive=(4,), negative=(2,), keep=lambda line: "?" not in line),
    "banknote": Layout(),
    "seismic_bumps": Layout(codes={0: "abcd", 1: "abcd", 2: "NW", 7: "abcd"}),
    "musk2": Layout(first=-167),
    "htru2": Layout(),
    "magic": Layout(codes={10: "hg"}, label=10),
    "occupancy": Layout(first=-6),
    "credit_default": Layout(first=-24),
    "skin": Layout(delimiter=None, negative=(2,)),
    "covtype_binary": Layout(positive=(2,), negative=(1, 3, 4, 5, 6, 7)),
    "mnist38": Layout(
        positive=(8,), negative=(3,), keep=lambda line: line.rstrip()[-2:] in (",3", ",8")
    ),
    "higgs": _PHYSICS,
    "susy": _PHYSICS,
}
"""The layouts of the text files, by the names of the data sets."""


def read_published(
    paths: Sequence[Path], entry: Entry, report: Report = lambda rows: None
) -> Content:
    """Return the content of the published files of a data set; or raise a DatasetError."""
    return check_finite(_read(paths, entry, report), ", ".join(map(str, paths)))


def _read(paths: Sequence[Path], entry: Entry, report: Report) -> Content:
    if paths[0].suffix == ".npz":
        return _read_mnist(paths[0], entry)
    if paths[0].suffix == ".mat":
        return _read_mat(paths[0], entry)
    growing = _Growing(len(entry.features), np.float32 if entry.single else np.float64)
    if entry.name == "gisette":
        for data, labels in zip(paths[::2], paths[1::2], strict=True):
            _read_gisette(data, labels, growing, report)
    else:
        layout = LAYOUTS[entry.name]
        columns = [*range(layout.first, layout.first + growing.width), layout.label]
        for path in paths:
            done = 0
            for block in _blocks(path, layout, columns, growing.dtype):
                growing.add(block[:, :-1], _signs(block[:, -1], layout, path, done))
                done += len(block)
                report(len(block))
    return growing.content(entry)


class _Growing:
    """Arrays of rows and labels that grow.

    They are enlarged in place: the operating system moves them without a second copy.
    """

    def __init__(self, width: int, dtype: Any) -> None:
        self.width, self.dtype, self._rows = width, dtype, 0
        self._X: FloatArray = np.empty((FIRST_ROWS, width), dtype=dtype)
        self._y: IntArray = np.empty(FIRST_ROWS, dtype=np.int8)

    def add(self, X: FloatArray, y: IntArray) -> None:
        end = self._rows + len(X)
        if end > len(self._X):
            self._resize(max(end, 2 * len(self._X)))
        self._X[self._rows : end], self._y[self._rows : end] = X, y
        self._rows = end

    def content(self, entry: Entry) -> Content:
        self._resize(self._rows)
        return Content(self._X, self._y, entry.features)

    def _resize(self, rows: int) -> None:
        self._X.resize((rows, self.width), refcheck=False)
        self._y.resize(rows, refcheck=False)


def _blocks(path: Path, layout: Layout, columns: Sequence[int], dtype: Any) -> Iterator[FloatArray]:
    """Yield the numbers of some columns, in blocks of rows."""
    coders: Any = {at: _coder(letters) for at, letters in layout.codes.items()}
    n_rows = max(1, BLOCK_VALUES // len(columns))
    done = 0
    lines = _FileLines(path, layout)
    try:
        while (first := next(lines, None)) is not None:
            block = np.loadtxt(
                chain([first], islice(lines, n_rows - 1)),
                dtype=dtype,
                delimiter=layout.delimiter,
                usecols=columns,
                converters=coders or None,
                comments=None,
                ndmin=2,
                encoding=None,  # else numpy before 2.0 hands converters bytes
            )
            done += len(block)
            yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DatasetError(f"{path} is damaged or truncated: {error}. Get it again.") from error
    except ValueError as error:
        # numpy takes a line at a time, and counts rows from 0 or from 1, depending on the error.
        said = re.sub(r" at row \d+", "", str(error)).rstrip(".")
        raise DatasetError(
            f"{path}, line {lines.number:,}: {said}. Correct or replace the file."
        ) from error
    finally:
        lines.close()
    if done == 0:
        between = "white space" if layout.delimiter is None else repr(layout.delimiter)
        raise DatasetError(f"{path} holds no rows of numbers with {between} between them.")


class _FileLines:
    """The lines of rows, without headers, comments, quotes and lines that are not to be kept.

    ``number`` is the number of the last one in the file, counted from 1.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self.number, self._rows = 0, self._read(path, layout)

    def __iter__(self) -> Iterator[str]:
        return self._rows

    def __next__(self) -> str:
        return next(self._rows)

    def close(self) -> None:
        """Close the file."""
        self._rows.close()

    def _read(self, path: Path, layout: Layout) -> Generator[str]:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as file:
            head = True
            for self.number, line in enumerate(file, 1):
                text = line.replace('"', "").replace("'", "")
                if head:  # also the declarations of an ARFF file
                    fields = text.split(layout.delimiter)
                    head = text[:1] in "@%" or not any(map(_is_number, fields))
                if not head and text.strip() and (layout.keep is None or layout.keep(text)):
                    yield text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _coder(letters: str) -> Callable[[str], float]:
    codes = {letter: float(code) for code, letter in enumerate(letters)}
    return lambda text: codes[text.strip()]  # numpy names the field, the row and the column


def _signs(labels: FloatArray, layout: Layout, path: Path, done: int) -> IntArray:
    """Return the labels of the rows after the first ``done`` as -1 and +1."""
    positive = np.isin(labels, layout.positive)
    strange = np.flatnonzero(~positive & ~np.isin(labels, layout.negative))
    if len(strange):
        known = sorted((*layout.positive, *layout.negative))
        raise DatasetError(
            f"{path}: labels must be {', '.join(map(str, known))}; got {labels[strange[0]]:g} in "
            f"row {done + strange[0]:,} of numbers (counted from 0). Correct or replace the file."
        )
    return np.where(positive, np.int8(1), np.int8(-1))


def _read_gisette(data: Path, labels: Path, growing: _Growing, report: Report) -> None:
    """Add the rows of a file of attributes, with the labels of another file."""
    layout = Layout(delimiter=None, negative=(-1,))
    y = np.concatenate(
        [
            _signs(block[:, 0], layout, labels, 0)  # they are so few that one block holds them
            for block in _blocks(labels, layout, [0], np.float64)
        ]
    )
    done = 0
    for block in _blocks(data, layout, range(growing.width), growing.dtype):
        done += len(block)
        if done > len(y):
            break
        growing.add(block, y[done - len(block) : done])
        report(len(block))
    if done != len(y):
        more = "more rows" if done > len(y) else f"{done:,} rows"
        raise DatasetError(f"{data} has {more}, but {labels} has {len(y):,} labels.")


def _read_mnist(path: Path, entry: Entry) -> Content:
    """Return the digits 3 and 8 of the training set, then those of the test set."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            parts = [(file[f"x_{part}"], file[f"y_{part}"]) for part in ("train", "test")]
    except (KeyError, *NPZ_ERRORS) as error:
        raise DatasetError(
            f"{path} must be an .npz file with x_train, y_train, x_test and y_test: {error}"
        ) from error
    rows, signs = [], []
    for images, digits in parts:
        if images.ndim < 2 or digits.shape != (len(images),):
            raise DatasetError(
                f"{path}: {digits.shape} labels do not fit images of shape {images.shape}."
            )
        chosen = np.isin(digits, (3, 8))
        rows.append(images[chosen].reshape(int(chosen.sum()), -1).astype(np.float32))
        signs.append(np.where(digits[chosen] == 8, np.int8(1), np.int8(-1)))
    return from_arrays({"X": np.concatenate(rows), "y": np.concatenate(signs)}, path, entry)


def _read_mat(path: Path, entry: Entry) -> Content:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError
    from scipy.sparse import issparse

    # Newer versions of scipy want to know which kind of sparse matrix is meant; all become dense.
    asked = {"spmatrix": False} if "spmatrix" in signature(loadmat).parameters else {}
    try:
        found = loadmat(path, variable_names=["X", "y"], **asked)
    except (ValueError, TypeError, OSError, NotImplementedError, MatReadError, zlib.error) as error:
        raise DatasetError(
            f"{path} is not a MATLAB file that scipy reads: {error}. Save it with -v7, or as .npz."
        ) from error
    arrays = {name: found[name] for name in ("X", "y") if name in found}
    dense = {name: a.toarray() if issparse(a) else a for name, a in arrays.items()}
    return from_arrays(dense, path, entry)

"""libsvm (svmlight) text, parsed once into a CSR array on memory-mapped files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.packing import open_binary
from polysift.data.source import DataSource
from polysift.data.text import ParsedText, TextLabels, reading, temporary_folder
from polysift.runtime.types import Block, FloatArray, IntArray

BLOCK_BYTES = 1 << 22
"""How much text is parsed at a time."""

INT32_MAX = 2**31 - 1
"""The largest index, and how many stored values have positions of 32 bits."""

LINE = re.compile(rb"(?:\s+([^\s:]+))?(?:\s+qid:\d+)?((?:\s+\d+:[^\s:]+)*)\s*")
"""A label, perhaps a query, and ``index:value`` pairs; a space goes before the line."""


def open_libsvm(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return a libsvm file as a source."""
    path = found.single
    if options.roles.given or options.types:
        raise ValueError(
            f"{path}: libsvm text has its labels in place and no named columns; leave target, "
            "weight, columns and drop out."
        )
    return parse_libsvm(path, n_features=options.n_features).source(str(path))


def parse_libsvm(
    path: Path, *, n_features: int | None = None, with_labels: bool = True
) -> ParsedText:
    """Parse a libsvm (svmlight) file, plain or compressed, with bounded memory.

    Parameters
    ----------
    path : Path
        The file, compressed where its name says so (``data.packing``). Indices count from 1, or
        from 0 if an index 0 occurs anywhere. Values of the same index in a line are added up.
    n_features : int or None
        The number of features; None takes the largest index.
    with_labels : bool
        Whether each line must begin with a label; without, a label is skipped where there is one.
    """
    path = Path(path)
    if n_features is not None and not 1 <= n_features < INT32_MAX:
        raise ValueError(f"n_features must be 1 to {INT32_MAX - 1}, or None; got {n_features}.")
    with temporary_folder() as folder:
        writer = _Writer(path, folder.path, n_features)
        first_line, labels = 1, TextLabels()
        for lines in _blocks(path):
            part = _checked_part(path, lines, first_line, with_labels)
            writer.add(part, first_line)
            labels.add(part.labels)
            first_line += len(lines)
        X = writer.finish()
        y = _as_integers(labels.finish()) if with_labels else None
        return ParsedText(X, None, y, None, folder)


def _blocks(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of a file, ``BLOCK_BYTES`` at a time."""
    with reading(path), open_binary(path) as file:
        while lines := file.readlines(BLOCK_BYTES):
            yield lines


@dataclass(frozen=True)
class _Part:
    """The rows of some lines: their labels, their features, and the number of each row's line."""

    labels: FloatArray
    rows: Block
    lines: list[int]


def _parse_part(lines: Sequence[bytes], with_labels: bool) -> _Part:
    """Parse lines, or raise an error that says what one of them lacks."""
    labels, pairs, ends, numbers = [], [], [0], []
    for number, line in enumerate(lines):
        content = line.partition(b"#")[0]
        if content.isspace() or not content:
            continue
        match = LINE.fullmatch(b" " + content)
        if match is None:
            raise ValueError("expected a label and pairs such as 3:0.5")
        if with_labels and match[1] is None:
            raise ValueError("expected a label before the pairs")
        labels.append(match[1] if with_labels else b"0")
        pairs.append(match[2])
        ends.append(ends[-1] + match[2].count(b":"))
        numbers.append(number)
    indices, values = _numbers(b"".join(pairs).replace(b":", b" "), ends[-1])
    if indices.max(initial=0) >= INT32_MAX:
        raise ValueError(f"expected indices below {INT32_MAX}")
    width = int(indices.max(initial=0)) + 1
    rows = sp.csr_array((values, indices.astype(np.int32), ends), shape=(len(labels), width))
    rows.sum_duplicates()
    return _Part(_label_values(labels), rows, numbers)


def _numbers(text: bytes, n_pairs: int) -> tuple[FloatArray, FloatArray]:
    """Return the indices and the values of pairs."""
    try:
        flat = np.fromstring(text + b" 0", sep=" ")
    except (ValueError, DeprecationWarning):
        flat = np.empty(0)
    # Old numpy stops without an error at what is not a number; then the last zero is missing.
    if len(flat) != 2 * n_pairs + 1:
        raise ValueError("expected numbers as values")
    return flat[:-1:2], np.ascontiguousarray(flat[1::2])


def _label_values(labels: Sequence[bytes]) -> FloatArray:
    """Return labels as numbers, or raise."""
    try:
        values = np.array(labels, dtype=float)
    except ValueError:
        raise ValueError("expected a number as label") from None
    if not np.isfinite(values).all():
        raise ValueError("expected a finite label")
    return values


def _checked_part(path: Path, lines: list[bytes], first_line: int, with_labels: bool) -> _Part:
    """Parse lines, or raise an error that names the line."""
    try:
        return _parse_part(lines, with_labels)
    except ValueError:
        for number, line in enumerate(lines, first_line):
            try:
                _parse_part([line], with_labels)
            except ValueError as error:
                shown = line[:80].decode(errors="replace").strip()
                raise ValueError(
                    f"{path}, line {number} (counted from 1): {error}; got {shown!r}. A line of "
                    "a libsvm file reads 'label index:value index:value ...'."
                ) from error
        raise


@dataclass
class _Writer:
    """Appends the rows of a CSR array to files, and maps the files at the end."""

    path: Path
    folder: Path
    n_features: int | None
    n_rows: int = 0
    n_stored: int = 0
    from_zero: bool = False
    largest: int = -1
    largest_line: int = 0
    ends: list[IntArray] = field(default_factory=lambda: [np.zeros(1, dtype=np.int64)])

    def add(self, part: _Part, first_line: int) -> None:
        """Append a part."""
        rows = part.rows
        if rows.nnz:
            position = int(np.argmax(rows.indices))
            if rows.indices[position] > self.largest:
                row = int(np.searchsorted(rows.indptr, position, side="right")) - 1
                self.largest = int(rows.indices[position])
                self.largest_line = first_line + part.lines[row]
            self.from_zero |= bool(rows.indices.min() == 0)
        # An index 0 may come long after the index that it makes too large: check each time.
        if self.n_features is not None and self.largest > self.n_features - self.from_zero:
            raise ValueError(
                f"{self.path}, line {self.largest_line} (counted from 1): index {self.largest} is "
                f"too large for n_features={self.n_features}, with indices that count from "
                f"{0 if self.from_zero else 1}. Pass n_features={self.largest + self.from_zero} or "
                "more, or leave the feature out."
            )
        for name, array in (("data", rows.data), ("indices", rows.indices.astype(np.int32))):
            with (self.folder / f"{name}.raw").open("ab") as out:
                out.write(array.data)  # tofile does not see all that fails
        self.ends.append(self.n_stored + rows.indptr[1:].astype(np.int64))
        self.n_rows += rows.shape[0]
        self.n_stored += rows.nnz

    def finish(self) -> Block:
        """Return all rows as a CSR array on memory maps."""
        if not self.n_rows:
            raise ValueError(f"{self.path} is empty. It must hold at least one row.")
        d = self.largest + self.from_zero if self.n_features is None else self.n_features
        if d < 1:
            raise ValueError(f"{self.path} holds no features. Pass n_features if this is intended.")
        (self.folder / "indptr.raw").write_bytes(np.concatenate(self.ends).tobytes())
        # scipy needs both index arrays of one type; otherwise it would copy them into memory.
        kind = np.dtype(np.int32 if self.n_stored <= INT32_MAX else np.int64)
        X = sp.csr_array((self.n_rows, d))
        X.data = self._mapped("data", np.dtype(np.float64), np.dtype(np.float64), 0)
        X.indices = self._mapped("indices", np.dtype(np.int32), kind, int(not self.from_zero))
        X.indptr = self._mapped("indptr", np.dtype(np.int64), kind, 0)
        X.has_sorted_indices = X.has_canonical_format = True  # else scipy reads all to check
        return X

    def _mapped(
        self, name: str, stored: np.dtype[Any], kind: np.dtype[Any], shift: int
    ) -> np.ndarray[Any, Any]:
        """Convert a raw file block by block, where its type or values must change, and map it."""
        raw, final = self.folder / f"{name}.raw", self.folder / name
        if stored == kind and not shift:
            raw.rename(final)
        else:
            with raw.open("rb") as source, final.open("wb") as out:
                while content := source.read(BLOCK_BYTES):
                    out.write((np.frombuffer(content, stored) - shift).astype(kind).data)
            raw.unlink()
        # An empty file cannot be mapped.
        return (
            np.memmap(final, kind, "r") if self.n_stored or name == "indptr" else np.empty(0, kind)
        )


def _as_integers(labels: FloatArray) -> np.ndarray[Any, Any]:
    """Return labels as integers where none has a fraction."""
    whole = np.all((labels == np.rint(labels)) & (np.abs(labels) < 2**53))
    return labels.astype(np.int64) if whole else labels

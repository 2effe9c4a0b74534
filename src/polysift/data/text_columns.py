"""The columns of a text file while it is parsed: what their cells are, and their values.

What a column holds is known when all of it is read. So a column is taken for what its first cells
are. If a later one does not fit, the rest of the file is looked through, and the file is parsed
again with what is then known: from numbers to words, and from words to a category. A file is parsed
three times at most, and most are parsed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from polysift.data.arrow import load_pyarrow
from polysift.data.kinds import (
    CATEGORY,
    MAX_COUNTED_LEVELS,
    MISSING_WORDS,
    NUMBER,
    PLAIN_NUMBER,
    ColumnType,
    Words,
    plain_word,
    word_of,
)
from polysift.data.words import (
    UnreadableWordError,
    WordEvidence,
    among_commas,
    is_ambiguous,
    read_words,
)
from polysift.runtime.types import FloatArray


@dataclass
class TextColumn:
    """A column of a text file.

    Attributes
    ----------
    asked : ColumnType or None
        What a user or a model says that it holds.
    among_commas : bool
        Whether the fields of the file are separated by commas.
    found : ColumnType or None
        What its cells are read as; None while all of them are missing.
    text : bool
        Whether a cell is no plain number.
    wrong : bool
        Whether values were returned that are not what the whole column says.
    """

    asked: ColumnType | None = None
    among_commas: bool = False
    found: ColumnType | None = None
    text: bool = False
    wrong: bool = False
    _complete: bool = False  # whether all words of the column are known
    _evidence: WordEvidence = field(default_factory=WordEvidence)
    _words: dict[float, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._is_fixed:
            self.text, self.found = True, self.asked

    @property
    def _is_fixed(self) -> bool:
        """Whether the cells have no say in how they are read."""
        return self.asked is not None and (self.asked.kind != NUMBER or bool(self.asked.reading))

    @property
    def type(self) -> ColumnType:
        """What the column holds; one that is all missing holds numbers."""
        if self.found is None:
            return self.asked or PLAIN_NUMBER
        return self.found if self.asked is None else replace(self.found, asked=True)

    @property
    def words(self) -> Words:
        """The words of the levels with the smallest hashes."""
        self._keep_words(MAX_COUNTED_LEVELS)
        return self._words

    def add_numbers(self, values: FloatArray) -> None:
        """Take into account that all cells of a part are plain numbers, or missing."""
        if self.found is None and not np.isnan(values).all():
            self.found = PLAIN_NUMBER

    def read(self, cells: Any, missing: Sequence[str]) -> FloatArray:
        """Return the values of a part, an Arrow array of text in which null is missing.

        Raises an ``UnreadableWordError`` for a cell that is not what the column was asked to be.
        """
        if not self.text:
            values = as_plain_numbers(cells, missing)
            if values is not None:
                self.add_numbers(values)
                return values
            self.text = True
            if self.found is not None:  # numbers so far; what they are as words is not known
                self.wrong = True
        if self.wrong and self.found == PLAIN_NUMBER:
            return np.full(len(cells), np.nan)
        return self._read_words(cells, missing)

    def _read_words(self, cells: Any, missing: Sequence[str]) -> FloatArray:
        packed = cells.dictionary_encode()
        # Cells that Arrow was asked to read as numbers are words of their values.
        found = (w if w is None or isinstance(w, str) else word_of(w) for w in _texts(packed))
        words = [None if w is None or w.strip() in missing else w for w in found]
        if not self._is_fixed:
            before = self.found
            self._evidence.add(words)
            self.found = self._decided(words)
            self.wrong |= before is not None and before != self.found
            # A later word may tell.
            self.wrong |= not self._complete and is_ambiguous(self.found)
        codes = packed.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        if self.found is None or self.wrong:
            return np.full(len(cells), np.nan)
        if self.found.kind == CATEGORY:
            words = list(map(plain_word, words))
        levels = np.append(read_words(words, self.found), np.nan)  # the last is for -1
        if self.found.kind == CATEGORY:
            pairs = zip(levels.tolist(), words, strict=False)
            self._words.update((level, word) for level, word in pairs if word is not None)
            if len(self._words) > 2 * MAX_COUNTED_LEVELS:
                self._keep_words(MAX_COUNTED_LEVELS)
        return np.asarray(levels[codes])

    def _decided(self, words: Sequence[str | None]) -> ColumnType | None:
        if self._evidence.empty:
            return self.found
        decided = self._evidence.decide()
        if self.asked is None:
            return among_commas(decided) if self.among_commas else decided
        if decided.kind == NUMBER:
            return decided
        read_words(words, PLAIN_NUMBER)  # which names a word that is no number
        return PLAIN_NUMBER

    def restart(self) -> None:
        """Prepare for another pass over the file, with what is known after this one."""
        self._complete = self.text and self.found != PLAIN_NUMBER
        if self.wrong and self.found == PLAIN_NUMBER:
            self.found = None
            self._evidence = WordEvidence()
        self.wrong = False
        self._words = {}

    def _keep_words(self, most: int) -> None:
        if len(self._words) > most:
            self._words = {level: self._words[level] for level in sorted(self._words)[:most]}


class UnreadableCellError(ValueError):
    """A cell that is not what its column was asked to be.

    Attributes
    ----------
    column, row : int
        Its place among the columns and in the part.
    error : UnreadableWordError
        What it holds.
    """

    def __init__(self, column: int, row: int, error: UnreadableWordError) -> None:
        self.column, self.row, self.error = column, row, error
        super().__init__(str(error))


@dataclass
class TextColumns:
    """All columns of a text file that are features.

    Attributes
    ----------
    columns : list of TextColumn
        The columns.
    missing : sequence of str
        Words that stand for a missing value, beside ``MISSING_WORDS``.
    """

    columns: list[TextColumn]
    missing: Sequence[str] = ()

    @property
    def wrong(self) -> bool:
        """Whether the file must be parsed again."""
        return any(column.wrong for column in self.columns)

    @property
    def types(self) -> tuple[ColumnType, ...]:
        """What the columns hold."""
        return tuple(column.type for column in self.columns)

    @property
    def words(self) -> dict[int, Words]:
        """The words of the levels of categories."""
        kinds = enumerate(self.types)
        return {j: self.columns[j].words for j, column in kinds if column.kind == CATEGORY}

    def restart(self) -> None:
        """Prepare for another pass over the file."""
        for column in self.columns:
            column.restart()

    def read(self, cells: Sequence[Any], n_rows: int) -> FloatArray:
        """Return a part as an array of shape (rows, columns), or raise an UnreadableCellError."""
        block = np.empty((n_rows, len(self.columns)))
        # One conversion of all numbers: a table may have ten thousand columns.
        plain = [j for j, column in enumerate(self.columns) if not column.text]
        numbers = self._all_numbers([cells[j] for j in plain])
        if numbers is not None:
            block[:, plain] = numbers.reshape(len(plain), n_rows).T
            for j in plain:
                if self.columns[j].found is None:
                    self.columns[j].add_numbers(block[:, j])
        others = range(len(cells)) if numbers is None else sorted({*range(len(cells))} - {*plain})
        for j in others:
            try:
                block[:, j] = self.columns[j].read(cells[j], self.missing)
            except UnreadableWordError as error:
                raise UnreadableCellError(j, _row_of(cells[j], error.word), error) from None
        return block

    def _all_numbers(self, cells: list[Any]) -> FloatArray | None:
        pa = load_pyarrow()
        if not cells or self.missing or any(column.type != pa.string() for column in cells):
            return None
        try:
            return np.asarray(pa.chunked_array(cells).cast(pa.float64()).to_numpy())
        except pa.ArrowInvalid:
            return None


def as_plain_numbers(cells: Any, missing: Sequence[str]) -> FloatArray | None:
    """Return text cells as numbers, NaN where they are missing; None if one is no number.

    Cells of another Arrow type are converted to numbers.
    """
    pa = load_pyarrow("compute")
    if cells.type != pa.string():
        return np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if not missing:
        try:
            return np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            pass
    trimmed = pa.compute.utf8_trim_whitespace(cells)
    absent = pa.compute.is_in(trimmed, pa.array([*MISSING_WORDS, *missing], pa.string()))
    present = pa.compute.if_else(absent, pa.scalar(None, pa.string()), trimmed)
    try:
        return np.asarray(present.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None


def _texts(packed: Any) -> list[Any]:
    texts: list[Any] = packed.dictionary.to_pylist()
    return texts


def _row_of(cells: Any, word: str) -> int:
    return int(load_pyarrow("compute").compute.index(cells, word).as_py())

"""Predictions to a file: streamed, in row order, and there only when complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polysift._arrow import load_pyarrow
from polysift._files import replacing
from polysift._types import FloatArray, IntArray

ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True)
class Predictions:
    """Class numbers (rows,), and where wanted scores (rows, K) and probabilities."""

    codes: IntArray
    scores: FloatArray | None
    probabilities: FloatArray | None


class PredictionWriter:
    """Writes predictions, a run of rows at a time."""

    def __init__(self, path: Path, ending: str, classes: Any) -> None:
        self._path, self._ending, self._classes = path, ending, classes
        self._writer: Any = None

    def write(self, rows: Predictions) -> None:
        """Write the next rows."""
        pa = load_pyarrow("csv", "parquet")
        columns = {"prediction": pa.array(self._classes).take(pa.array(rows.codes))}
        if rows.scores is not None and rows.scores.shape[1] == 1:
            columns["score"] = pa.array(rows.scores[:, 0])
        elif rows.scores is not None:
            columns |= self._by_class("score", rows.scores)
        if rows.probabilities is not None:
            columns |= self._by_class("probability", rows.probabilities)
        table = pa.table(columns)
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)

    def _by_class(self, name: str, values: FloatArray) -> dict[str, Any]:
        pa = load_pyarrow("csv", "parquet")
        pairs = zip(self._classes, values.T, strict=True)
        return {
            f"{name}_{label}": pa.array(np.ascontiguousarray(column)) for label, column in pairs
        }

    def close(self) -> None:
        """Write what is still in buffers."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _open(self, schema: Any) -> Any:
        pa = load_pyarrow("csv", "parquet")
        if self._ending == ".parquet":
            return pa.parquet.ParquetWriter(self._path, schema)
        return pa.csv.CSVWriter(str(self._path), schema)


@contextmanager
def writing_predictions(path: Path, classes: Any) -> Iterator[PredictionWriter]:
    """Open a writer; the file is there when it is complete, and not at all on failure."""
    try:
        with replacing(path) as partial:
            writer = PredictionWriter(partial, path.suffix.lower(), classes)
            try:
                yield writer
                writer.close()
            finally:
                with suppress(OSError):  # the reason is already on its way
                    writer.close()
    except OSError as error:
        raise OSError(
            error.errno, f"Predictions could not be written to {path}: {error}. Nothing was left."
        ) from error

"""Predictions to a file: streamed, in row order, and there only when complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from polysift._arrow import load_pyarrow
from polysift._files import replacing
from polysift._types import FloatArray

ENDINGS = (".parquet", ".csv")


class PredictionWriter:
    """Writes classes and scores, a run of rows at a time."""

    def __init__(self, path: Path, ending: str, classes: Any) -> None:
        self._path, self._ending, self._classes = path, ending, classes
        self._writer: Any = None

    def write(self, codes: Any, scores: FloatArray | None) -> None:
        """Write the next rows: class numbers (rows,) and scores (rows, K)."""
        pa = load_pyarrow("csv", "parquet")
        columns = {"prediction": pa.array(self._classes).take(pa.array(codes))}
        if scores is not None and scores.shape[1] == 1:
            columns["score"] = pa.array(scores[:, 0])
        elif scores is not None:
            columns |= {
                f"score_{label}": pa.array(scores[:, k]) for k, label in enumerate(self._classes)
            }
        table = pa.table(columns)
        if self._writer is None:
            self._writer = self._open(table.schema)
        self._writer.write_table(table)

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

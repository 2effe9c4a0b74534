"""Predictions to a file: streamed, in row order, and there only when complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from polysift._arrow import load_pyarrow
from polysift._types import FloatArray

ENDINGS = (".parquet", ".csv")


def check_output(path: Any, *, overwrite: bool) -> Path:
    """Return the path of an output file that can be written, or raise."""
    output = Path(path)
    if output.suffix.lower() not in ENDINGS:
        raise ValueError(f"path must end in {' or '.join(ENDINGS)}; got {str(path)!r}.")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"The folder {output.parent} does not exist; create it first.")
    if output.exists() and not overwrite:
        raise FileExistsError(f"{output} exists already; pass overwrite=True to replace it.")
    return output


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
    """Open a writer beside ``path``; the file takes its name at the end, or goes on failure."""
    partial = path.with_name(f".{path.name}.partial")
    writer = PredictionWriter(partial, path.suffix.lower(), classes)
    try:
        yield writer
        writer.close()
        os.replace(partial, path)
    except OSError as error:
        raise OSError(
            error.errno, f"Predictions could not be written to {path}: {error}. Nothing was left."
        ) from error
    finally:
        with suppress(OSError):  # the reason is already on its way
            writer.close()
        partial.unlink(missing_ok=True)

"""Predictions to a file: streamed, in row order, and there only when complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from polysift.data.arrow_units import load_pyarrow
from polysift.runtime.folders import placing
from polysift.runtime.outputs import replacing
from polysift.runtime.types import FloatArray, IntArray

T = TypeVar("T")

ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True)
class Predictions:
    """Class numbers (rows,), and where wanted scores (rows, K) and probabilities."""

    codes: IntArray
    scores: FloatArray | None
    probabilities: FloatArray | None


class PredictionWriter:
    """Writes predictions, a run of rows at a time; messages call the file ``output``."""

    def __init__(self, path: Path, ending: str, classes: Any, output: Path) -> None:
        self._path, self._ending, self._classes, self._output = path, ending, classes, output
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
        try:
            if self._writer is None:
                self._writer = self._open(table.schema)
            self._writer.write_table(table)
        except OSError as error:
            raise unwritten(self._output, error) from error

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


def writing_predictions(path: Path, classes: Any) -> AbstractContextManager[PredictionWriter]:
    """Open a writer; the file is there when it is complete, and not at all on failure."""
    return telling(path, _writing(replacing(path), path.suffix.lower(), classes, path))


def write_part(path: Path, rows: Predictions, classes: Any, output: Path) -> None:
    """Write a whole Parquet file, which is there when it is complete, of a folder ``output``."""
    with telling(output, _writing(placing(path), ".parquet", classes, output)) as writer:
        writer.write(rows)


@contextmanager
def _writing(
    place: AbstractContextManager[Path], ending: str, classes: Any, output: Path
) -> Iterator[PredictionWriter]:
    with place as partial:
        writer = PredictionWriter(partial, ending, classes, output)
        try:
            yield writer
            writer.close()
        finally:
            with suppress(OSError):  # the reason is already on its way
                writer.close()


@contextmanager
def telling(output: Path, whole: AbstractContextManager[T]) -> Iterator[T]:
    """Enter a context that writes, and tell where that fails; failures of its body are its own.

    The body reads rows, and what goes wrong there must not be taken for a failure to write.
    """
    body: BaseException | None = None
    try:
        with whole as given:
            try:
                yield given
            except BaseException as error:
                body = error
                raise
    except OSError as error:
        if error is body:
            raise
        raise unwritten(output, error) from error


def unwritten(output: Path, error: OSError) -> OSError:
    """Return the error that tells where predictions could not be written."""
    return OSError(
        error.errno, f"Predictions could not be written to {output}: {error}. Nothing was left."
    )

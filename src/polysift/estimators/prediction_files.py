"""Predictions of all rows, streamed to a file, or to a folder with one file per shard.

A single file is written by this process, in row order. The files of a folder are written by the
tasks of a backend, each of which reads its own rows. A file depends on its rows alone and takes its
name when it is complete, so that it does no harm to write it again. The file or the folder itself
appears when everything is written, or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from platform import node
from typing import Any, BinaryIO, TypeVar

import numpy as np

from polysift.data.arrow import load_pyarrow
from polysift.data.locations import is_remote, public_name
from polysift.data.source import DataSource
from polysift.engine.sums import predicted_codes
from polysift.estimators.prediction import score_shards
from polysift.features.feature_map import FeatureMap
from polysift.runtime.locks import LOCK_NAME
from polysift.runtime.outputs import (
    check_output,
    check_output_folder,
    part_name,
    replacing,
    replacing_folder,
)
from polysift.runtime.parallel import Span
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.calibration import Calibrator
from polysift.training.job import backend_of

T = TypeVar("T")
R = TypeVar("R")

FILE_ENDINGS = (".parquet", ".csv")

FORMULA = re.compile(r"(?![+-]\d+(\.\d+)?\Z)[=+\-@\t\r\n]")
"""How a cell begins that a spreadsheet may execute; a number with a sign is none."""


def is_folder(path: Any) -> bool:
    """Return whether a path names a folder for predictions, and not a single file."""
    name = os.fspath(path)
    ending = Path(name).suffix.lower()
    if ending in FILE_ENDINGS:
        return False
    return not ending or name.endswith(("/", os.sep)) or Path(name).is_dir()


def check_predictions(path: Any, *, overwrite: bool) -> Path:
    """Return the path of a file or folder to which predictions can be written, or raise."""
    name = os.fspath(path)
    if not name:
        raise ValueError("path is empty; name a folder, or a file ending in .parquet or .csv.")
    if is_remote(name):
        raise ValueError(
            f"Predictions are written to file systems, not to {public_name(name)}. Write them to a "
            "folder that is mounted, or copy them there."
        )
    if is_folder(name):
        return check_output_folder(Path(name), overwrite=overwrite)
    if Path(name).suffix.lower() not in FILE_ENDINGS:
        raise ValueError(
            f"path must end in {' or '.join(FILE_ENDINGS)}, or name a folder: without an ending, "
            f"or with a slash at the end; got {name!r}."
        )
    return check_output(name, overwrite=overwrite)


@dataclass(frozen=True)
class Predictions:
    """Class numbers (rows,) and, where wanted, scores (rows, K) and probabilities."""

    codes: IntArray
    scores: FloatArray | None
    probabilities: FloatArray | None


@dataclass(frozen=True)
class Predictor:
    """A model, and which of its predictions are wanted.

    Attributes
    ----------
    feature_map : FeatureMap
        The features.
    coef : ndarray of shape (K, n)
        The coefficients.
    classes : ndarray
        The classes.
    scores : bool
        Whether scores are wanted.
    calibrator : Calibrator or None
        How scores become probabilities, where those are wanted.
    thresholds : ndarray of shape (K,) or float
        What is subtracted from the scores before a class is chosen.
    """

    feature_map: FeatureMap
    coef: FloatArray
    classes: Any
    scores: bool
    calibrator: Calibrator | None
    thresholds: FloatArray | float = 0.0

    def map_shards(
        self, source: DataSource, n_threads: int, finish: Callable[[Span, Predictions], R]
    ) -> Generator[R]:
        """Yield ``finish(span, predictions)`` for each shard in order; threads call it."""

        def predict(span: Span, _part: Any, scores: FloatArray) -> R:
            p = None if self.calibrator is None else self.calibrator.probabilities(scores)
            codes = predicted_codes(scores - self.thresholds)
            return finish(span, Predictions(codes, scores if self.scores else None, p))

        return score_shards(source, self.feature_map, self.coef, n_threads, predict)


@dataclass(frozen=True)
class FolderTask:
    """Writes the predictions for each shard to a file of its own; see ``ShardTask``.

    Attributes
    ----------
    predictor : Predictor
        The model.
    folder : Path
        Where the files are written.
    output : Path
        The name of the folder in messages, which it has when it is complete.
    n_files : int
        The number of shards of all rows.
    """

    predictor: Predictor
    folder: Path
    output: Path
    n_files: int

    def __call__(self, source: DataSource, first_shard: int, threads: int) -> Generator[int]:
        """Write the files of a source's shards; yield the rows of each."""
        if not self.folder.is_dir():
            raise FileNotFoundError(
                f"The worker on {node()} finds no folder in {self.folder.parent} that it shares "
                "with this process. Workers write predictions themselves: "
                f"{self.output} must be in storage that all nodes share, under the same path."
            )
        numbers = {start: first_shard + i for i, (start, _) in enumerate(source.shards())}

        def write(span: Span, predictions: Predictions) -> int:
            path = self.folder / self.file_name(numbers[span[0]])
            write_part(path, predictions, self.predictor.classes, self.output)
            return span[1] - span[0]

        return self.predictor.map_shards(source, threads, write)

    def file_name(self, shard: int) -> str:
        """Return the name of a shard's file."""
        return part_name(shard, self.n_files)

    def check_files(self) -> None:
        """Remove what lost workers have left, and raise if a file is missing."""
        expected = set(map(self.file_name, range(self.n_files)))
        present = set(os.listdir(self.folder))
        for name in present - expected - {LOCK_NAME}:
            (self.folder / name).unlink(missing_ok=True)
        if missing := sorted(expected - present):
            raise FileNotFoundError(
                f"{len(missing)} of {self.n_files} files are missing in {self.output}, though all "
                f"tasks are done, {missing[0]} first: it must be in storage that all nodes share. "
                "Nothing was left."
            )


def write_predictions(
    predictor: Predictor,
    source: DataSource,
    output: Path,
    *,
    overwrite: bool,
    engine: Any,
    n_threads: int,
    show: bool,
    safe_csv: bool = False,
) -> None:
    """Write the predictions for all rows to a file, or to a folder with one file per shard.

    Parameters
    ----------
    predictor : Predictor
        The model.
    source : DataSource
        The rows.
    output : Path
        The file or folder, as ``check_predictions`` returns it.
    overwrite : bool
        Whether to replace a folder that exists by then.
    engine : str or object
        The parameter ``engine`` of the estimator, whose backend writes a folder. A single file is
        always written by this process.
    n_threads : int
        The threads of this process.
    show : bool
        Whether to show progress.
    safe_csv : bool, default=False
        Whether classes that a spreadsheet would execute are quoted in a CSV file.
    """
    if safe_csv and output.suffix.lower() != ".csv":
        raise ValueError(f"safe_csv goes with a .csv file; path is {str(output)!r}.")
    _refuse_rows(source, output)
    with Monitor(show=show) as monitor:
        if output.suffix.lower() in FILE_ENDINGS:
            writing = open_file(output, predictor.classes, safe_csv=safe_csv)
            _write_file(predictor, source, writing, n_threads, monitor)
            return
        backend = backend_of(engine)
        with naming_output(output, replacing_folder(output, overwrite=overwrite)) as folder:
            task = FolderTask(predictor, folder.absolute(), output, len(source.shards()))
            backend.process_shards("prediction", source, task, n_threads, monitor)
            task.check_files()


def _write_file(
    predictor: Predictor,
    source: DataSource,
    writing: AbstractContextManager[PredictionWriter],
    n_threads: int,
    monitor: Monitor,
) -> None:
    def with_rows(span: Span, predictions: Predictions) -> tuple[int, Predictions]:
        return span[1] - span[0], predictions

    shards = closing(predictor.map_shards(source, n_threads, with_rows))
    with shards as parts, writing as writer:
        for predictions in monitor.watch("prediction", source.n_rows, parts):
            writer.write(predictions)


def _refuse_rows(source: DataSource, output: Path) -> None:
    """Raise if the output would replace the files that are read."""
    if not output.exists():
        return
    for file in {unit.file for unit in getattr(source, "_units", ())} or {source.origin}:
        if file is None or is_remote(file) or not os.path.exists(file):
            continue
        if output.samefile(file) or output.resolve() in Path(file).resolve().parents:
            raise ValueError(f"{output} holds the rows themselves; name another output.")


class PredictionWriter:
    """Writes predictions to a Parquet or CSV file, the rows of one shard after the other.

    Parameters
    ----------
    file : binary file
        The file, open for writing.
    ending : {".parquet", ".csv"}
        Its format.
    classes : ndarray
        The classes.
    output : Path
        The name of the file in messages.
    safe_csv : bool, default=False
        Whether classes that a spreadsheet would execute are quoted.
    """

    def __init__(
        self, file: BinaryIO, ending: str, classes: Any, output: Path, *, safe_csv: bool = False
    ) -> None:
        self._file, self._ending, self._classes, self._output = file, ending, classes, output
        self._cells = quoted_formulas(classes) if safe_csv else classes
        self._writer: Any = None

    def write(self, rows: Predictions) -> None:
        """Write the next rows."""
        pa = load_pyarrow("csv", "parquet")
        columns = {"prediction": pa.array(self._cells).take(pa.array(rows.codes))}
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
            raise write_error(self._output, error) from error

    def close(self) -> None:
        """Write what is still in buffers."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _by_class(self, name: str, values: FloatArray) -> dict[str, Any]:
        pa = load_pyarrow("csv", "parquet")
        pairs = zip(self._classes, values.T, strict=True)
        return {
            f"{name}_{label}": pa.array(np.ascontiguousarray(column)) for label, column in pairs
        }

    def _open(self, schema: Any) -> Any:
        pa = load_pyarrow("csv", "parquet")
        if self._ending == ".parquet":
            return pa.parquet.ParquetWriter(self._file, schema)
        return pa.csv.CSVWriter(self._file, schema)


def quoted_formulas(classes: Any) -> Any:
    """Return classes of which those that a spreadsheet would execute begin with an apostrophe."""
    if classes.dtype.kind not in "UO":
        return classes
    found = (isinstance(name, str) and FORMULA.match(name) for name in classes)
    cells = [f"'{name}" if one else name for name, one in zip(classes, found, strict=True)]
    return np.array(cells, dtype=object)


def open_file(
    path: Path, classes: Any, *, safe_csv: bool = False
) -> AbstractContextManager[PredictionWriter]:
    """Open a single file; it appears when it is complete, and not at all on failure."""
    writing = _writing(replacing(path), path.suffix.lower(), classes, path, safe_csv=safe_csv)
    return naming_output(path, writing)


def write_part(path: Path, rows: Predictions, classes: Any, output: Path) -> None:
    """Write a Parquet file of the folder ``output``; it appears when it is complete."""
    writing = _writing(replacing(path, part=True), ".parquet", classes, output)
    with naming_output(output, writing) as writer:
        writer.write(rows)


@contextmanager
def _writing(
    temporary: AbstractContextManager[BinaryIO],
    ending: str,
    classes: Any,
    output: Path,
    *,
    safe_csv: bool = False,
) -> Iterator[PredictionWriter]:
    with temporary as file:
        writer = PredictionWriter(file, ending, classes, output, safe_csv=safe_csv)
        try:
            yield writer
            writer.close()
        finally:
            with suppress(OSError):  # the first error is raised already
                writer.close()


@contextmanager
def naming_output(output: Path, context: AbstractContextManager[T]) -> Iterator[T]:
    """Enter a context that writes, and name the output where it fails to.

    An error of the body is raised as it is: the body reads rows, and a failure to read them must
    not be taken for one to write.
    """
    body: BaseException | None = None
    try:
        with context as value:
            try:
                yield value
            except BaseException as error:
                body = error
                raise
    except OSError as error:
        if error is body:
            raise
        raise write_error(output, error) from error


def write_error(output: Path, error: OSError) -> OSError:
    """Return an error that says where predictions could not be written."""
    return OSError(
        error.errno, f"Predictions could not be written to {output}: {error}. Nothing was left."
    )

"""Predictions to a file, or to a folder with one file per shard, here or on a cluster.

Predictions to a file: streamed, in row order, and there only when complete.

Predictions, shard by shard, a file each: plain functions, to be run wherever the rows are.

A worker is told all it needs. Its files depend on its rows alone, and take their names when they
are complete, so that it is harmless to write one again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from platform import node
from typing import Any, TypeVar

import numpy as np

from polysift.cluster.backend import ClusterBackend
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import Partition, cut_into_partitions, partition_sizes
from polysift.cluster.scheduler import Cluster, LostError, Ref, Scheduler
from polysift.data.arrow import load_pyarrow
from polysift.data.locations import is_remote, public_name
from polysift.data.source import DataSource
from polysift.engine.sums import predicted_codes
from polysift.estimators.prediction import score_shards
from polysift.features.feature_map import FeatureMap
from polysift.runtime.outputs import (
    check_output,
    check_output_folder,
    part_name,
    placing,
    replacing,
    replacing_folder,
)
from polysift.runtime.parallel import Span
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.calibration import Calibrator
from polysift.training.job import backend_of

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
    backend: AbstractContextManager[Path], ending: str, classes: Any, output: Path
) -> Iterator[PredictionWriter]:
    with backend as partial:
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


@dataclass(frozen=True)
class Predictor:
    """A model, and what of its predictions is wanted.

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
    """

    feature_map: FeatureMap
    coef: FloatArray
    classes: Any
    scores: bool
    calibrator: Calibrator | None

    def predictions(self, values: FloatArray) -> Predictions:
        """Return what scores say of their rows."""
        p = None if self.calibrator is None else self.calibrator.probabilities(values)
        return Predictions(predicted_codes(values), values if self.scores else None, p)

    def of_shards(self, source: DataSource, n_threads: int) -> Iterator[tuple[int, Predictions]]:
        """Yield the number of rows of each shard and their predictions, in order."""

        def finish(span: Span, _part: Any, values: FloatArray) -> tuple[int, Predictions]:
            return span[1] - span[0], self.predictions(values)

        return score_shards(source, self.feature_map, self.coef, n_threads, finish)


@dataclass(frozen=True)
class Parts:
    """Where the files of all shards go.

    Attributes
    ----------
    folder, output : Path
        Where they are written, and how messages call it.
    count : int
        How many there will be.
    """

    folder: Path
    output: Path
    count: int

    def name(self, number: int) -> str:
        """Return the name of a shard's file."""
        return part_name(number, self.count)


def write_parts(
    source: DataSource, predictor: Predictor, parts: Parts, first_shard: int, n_threads: int
) -> Iterator[tuple[int, None]]:
    """Write the files of a source's shards, numbered from ``first_shard``; yield their rows."""
    numbers = {start: first_shard + i for i, (start, _) in enumerate(source.shards())}

    def finish(span: Span, _part: Any, values: FloatArray) -> tuple[int, None]:
        path = parts.folder / parts.name(numbers[span[0]])
        write_part(path, predictor.predictions(values), predictor.classes, parts.output)
        return span[1] - span[0], None

    return score_shards(source, predictor.feature_map, predictor.coef, n_threads, finish)


def predict_partition(
    source: DataSource, predictor: Predictor, parts: Parts, first_shard: int, n_threads: int
) -> Exception | None:
    """Write the files of a partition, as a worker; return what went wrong with rows or files.

    It is not raised here: an error that nobody takes, since another came first or the work was
    given up and its folder is gone, would be logged.
    """
    if not parts.folder.is_dir():
        return FileNotFoundError(
            f"The worker on {node()} finds no folder in {parts.folder.parent} that it shares with "
            f"this process. Workers write predictions themselves: {parts.output} must be in "
            "storage that all nodes share, under the same path."
        )
    try:
        for _ in write_parts(source, predictor, parts, first_shard, n_threads):
            pass
    except (ValueError, OSError) as error:
        return error
    return None


PIECE_BYTES = 2**28
"""The most that the rows of one task take as numbers: arrays are sent in such pieces."""


def is_folder(path: Any) -> bool:
    """Return whether predictions go to a folder of this name, or else to a file."""
    name = os.fspath(path)
    ending = Path(name).suffix.lower()
    if ending in ENDINGS:
        return False
    return not ending or name.endswith(("/", os.sep)) or Path(name).is_dir()


def check_predictions(path: Any, *, overwrite: bool) -> Path:
    """Return where predictions can be written, a file or a folder, or raise."""
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
    if Path(name).suffix.lower() not in ENDINGS:
        raise ValueError(
            f"path must end in {' or '.join(ENDINGS)}, or name a folder: without an ending, or "
            f"with a slash at the end; got {name!r}."
        )
    return check_output(name, overwrite=overwrite)


def write_predictions(
    predictor: Predictor,
    source: DataSource,
    output: Path,
    *,
    overwrite: bool,
    engine: Any,
    n_threads: int,
    show: bool,
) -> None:
    """Write the predictions of all rows to a file, or to a folder with one file per shard.

    Parameters
    ----------
    predictor : Predictor
        The model.
    source : DataSource
        The rows.
    output : Path
        Where to, as ``check_predictions`` returns it.
    overwrite : bool
        Whether to replace a folder that is there by then.
    engine : str or object
        Who writes a folder; see ``FPCClassifier``. A file is always written by this process.
    n_threads : int
        The threads of this process.
    show : bool
        Whether to show progress.
    """
    _refuse_rows(source, output)
    with Monitor(show=show) as monitor:
        if output.suffix.lower() in ENDINGS:
            shards = predictor.of_shards(source, n_threads)
            with writing_predictions(output, predictor.classes) as writer:
                for predictions in monitor.watch("prediction", source.n_rows, shards):
                    writer.write(predictions)
            return
        backend = backend_of(engine)
        with telling(output, replacing_folder(output, overwrite=overwrite)) as folder:
            parts = Parts(folder.absolute(), output, len(source.shards()))
            if isinstance(backend, ClusterBackend):
                _by_workers(backend.cluster, predictor, source, parts, monitor)
            else:
                written = write_parts(source, predictor, parts, 0, n_threads)
                for _ in monitor.watch("prediction", source.n_rows, written):
                    pass
            _check_all_there(parts)


def _by_workers(
    cluster: Cluster, predictor: Predictor, source: DataSource, parts: Parts, monitor: Monitor
) -> None:
    """Have workers read their rows and write their files; nothing of either passes through here."""
    pieces = PartitionedSource(cluster, source, _partitions(source, cluster.workers))
    partitions, sent = pieces.partitions, [cluster.put(predictor)]

    def submit(i: int) -> list[Ref]:
        first = partitions[i].first_shard
        return cluster.submit(predict_partition, pieces[i], sent[0], parts, first, cluster.threads)

    def recover(i: int, lost: LostError) -> str:
        if lost.objects:
            pieces.drop(i)
            sent[0] = cluster.put(predictor)
        return ""

    scheduler = Scheduler(cluster, partitions, monitor)
    for i, _, error in scheduler.run("prediction", range(len(partitions)), submit, recover):
        if error is not None:
            raise error
        pieces.drop(i)  # the rows are read once: let the cluster have the room


def _partitions(source: DataSource, workers: int) -> list[Partition]:
    """Return the rows in tasks: long, since a row group on a border is decoded by both sides."""
    shards, row_bytes = source.shards(), source.dtype.itemsize * source.n_features
    partitions: list[Partition] = []
    for size in partition_sizes(shards, workers):
        partitions = cut_into_partitions(shards, size)
        if max(s.n_rows for s in partitions) * row_bytes <= PIECE_BYTES:
            break
    return partitions


def _check_all_there(parts: Parts) -> None:
    """Remove what workers that were lost have left, and raise if a file is missing."""
    expected, present = set(map(parts.name, range(parts.count))), set(os.listdir(parts.folder))
    for name in present - expected:
        (parts.folder / name).unlink(missing_ok=True)
    if missing := sorted(expected - present):
        raise FileNotFoundError(
            f"{len(missing)} of {parts.count} files were written, but are not in {parts.output}, "
            f"{missing[0]} first: it must be in storage that all nodes share. Nothing was left."
        )


def _refuse_rows(source: DataSource, output: Path) -> None:
    """Raise if the output would replace what is read."""
    if not output.exists():
        return
    for file in {unit.file for unit in getattr(source, "_units", ())} or {source.origin}:
        if file is None or is_remote(file) or not os.path.exists(file):
            continue
        if output.samefile(file) or output.resolve() in Path(file).resolve().parents:
            raise ValueError(f"{output} holds the rows themselves; name another output.")

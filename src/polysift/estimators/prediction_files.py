"""Predictions to a file, or to a folder with one file per shard, here or on a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from polysift.cluster.backend import DistributedPlace
from polysift.cluster.partitions import Stretch, cut_into_stretches, stretch_sizes
from polysift.cluster.pieces import Pieces
from polysift.cluster.scheduler import Cluster, Crew, LostError, Ref
from polysift.data.addresses import is_remote, public_name
from polysift.data.source import DataSource
from polysift.estimators.output import ENDINGS, telling, writing_predictions
from polysift.estimators.prediction_tasks import Parts, Predictor, predict_stretch, write_parts
from polysift.runtime.folders import check_output_folder, replacing_folder
from polysift.runtime.outputs import check_output
from polysift.runtime.progress import Monitor
from polysift.training.job import place_of

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
        place = place_of(engine)
        with telling(output, replacing_folder(output, overwrite=overwrite)) as folder:
            parts = Parts(folder.absolute(), output, len(source.shards()))
            if isinstance(place, DistributedPlace):
                _by_workers(place.cluster, predictor, source, parts, monitor)
            else:
                written = write_parts(source, predictor, parts, 0, n_threads)
                for _ in monitor.watch("prediction", source.n_rows, written):
                    pass
            _check_all_there(parts)


def _by_workers(
    cluster: Cluster, predictor: Predictor, source: DataSource, parts: Parts, monitor: Monitor
) -> None:
    """Have workers read their rows and write their files; nothing of either passes through here."""
    pieces = Pieces(cluster, source, _stretches(source, cluster.workers))
    stretches, sent = pieces.stretches, [cluster.put(predictor)]

    def submit(i: int) -> list[Ref]:
        first = stretches[i].first_shard
        return cluster.submit(predict_stretch, pieces[i], sent[0], parts, first, cluster.threads)

    def recover(i: int, lost: LostError) -> str:
        if lost.objects:
            pieces.forget(i)
            sent[0] = cluster.put(predictor)
        return ""

    crew = Crew(cluster, stretches, monitor)
    for i, _, error in crew.visit("prediction", range(len(stretches)), submit, recover):
        if error is not None:
            raise error
        pieces.forget(i)  # the rows are read once: let the cluster have the room


def _stretches(source: DataSource, workers: int) -> list[Stretch]:
    """Return the rows in tasks: long, since a row group on a border is decoded by both sides."""
    shards, row_bytes = source.shards(), source.dtype.itemsize * source.n_features
    stretches: list[Stretch] = []
    for size in stretch_sizes(shards, workers):
        stretches = cut_into_stretches(shards, size)
        if max(s.n_rows for s in stretches) * row_bytes <= PIECE_BYTES:
            break
    return stretches


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

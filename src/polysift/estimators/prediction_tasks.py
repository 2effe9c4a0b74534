"""Predictions, shard by shard, a file each: plain functions, to be run wherever the rows are.

A worker is told all it needs. Its files depend on its rows alone, and take their names when they
are complete, so that it is harmless to write one again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from platform import node
from typing import Any

from polysift.data.source import DataSource
from polysift.engine.sums import predicted_codes
from polysift.estimators.output import Predictions, write_part
from polysift.estimators.prediction import score_shards
from polysift.features.feature_map import FeatureMap
from polysift.runtime.folders import part_name
from polysift.runtime.parallel import Span
from polysift.runtime.types import FloatArray
from polysift.training.calibrators import Calibrator


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


def predict_stretch(
    source: DataSource, predictor: Predictor, parts: Parts, first_shard: int, n_threads: int
) -> Exception | None:
    """Write the files of a stretch, as a worker; return what went wrong with rows or files.

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

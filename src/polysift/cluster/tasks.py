"""The tasks of workers on a partition of shards, and the messages that they are given.

A task is a plain function, to be run wherever the rows are. Its first argument is the partition's
rows as a source of their own; the others are messages: the context of all tasks of an engine, the
labels of the rows, the steps of their state. A worker keeps nothing between two tasks: the result
depends on the arguments alone, so that another worker can do a task again. Sums are returned as
``partial_sums`` returns them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from polysift.data.labels import Encoding, label_part
from polysift.data.source import DataSource
from polysift.data.training_set import TrainingSet
from polysift.engine.backend import ShardTask
from polysift.engine.budget import SERIAL, Execution
from polysift.engine.problems import Problem, Problems
from polysift.engine.sampling import Draw, Picked
from polysift.engine.shard_features import Item
from polysift.engine.shards import ShardWork
from polysift.engine.sums import AdmmSums, GramSums, SweepSums
from polysift.features.feature_map import FeatureMap
from polysift.features.survey import (
    Questions,
    Survey,
    checked_labels,
    checked_weights,
    survey_shards,
)
from polysift.runtime import clock
from polysift.runtime.parallel import Partial, Pool, partial_sums, single_threaded_blas
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class TaskContext:
    """What all tasks of an engine have in common.

    Attributes
    ----------
    feature_map : FeatureMap
        The features.
    n_classes, n_fold_parts : int
        The numbers of classes and of fold parts.
    encoding : Encoding or None
        How labels become class numbers, where tasks find those.
    execution : Execution
        How a task is executed.
    """

    feature_map: FeatureMap
    n_classes: int
    n_fold_parts: int
    encoding: Encoding | None
    execution: Execution = SERIAL


@dataclass(frozen=True)
class RowLabels:
    """The class numbers, weights and fold parts of a partition's rows, as in ``TrainingSet``."""

    codes: IntArray
    weights: FloatArray | None
    fold_parts: IntArray | None


@dataclass(frozen=True)
class Sweep:
    """A step of the per-row state: a sweep with new coefficients."""

    problems: Sequence[Problem]
    u: FloatArray


@dataclass(frozen=True)
class Keep:
    """A step of the per-row state: all columns but these are dropped."""

    columns: list[int]


Step = Sweep | Keep


def survey_partition(
    source: DataSource, questions: Questions, first_shard: int, threads: int
) -> list[Partial[Survey]]:
    """Return the survey of a partition, whose shards are numbered from ``first_shard``."""
    with single_threaded_blas(), Pool(threads) as pool:
        parts = survey_shards(source, questions, pool)
        return partial_sums(first_shard, parts, lambda a, b: a.merge(b, questions.n_centers))


def gram(
    source: DataSource, context: TaskContext, labels: RowLabels | None, first: int, skip: int
) -> tuple[list[Partial[GramSums]], RowLabels]:
    """Return the sums that do not depend on u, and the labels of all rows.

    The spans of the sums are numbered from ``first``; the first ``skip`` are left out.
    """
    with _open_work(source, context, labels) as (rows, work, map_shards):
        if skip:
            rows.find_all_labels()
        parts = map_shards(work.gram, rows.items(source.parts(work.spans()[skip:])))
        return partial_sums(first + skip, parts, GramSums.add), rows.labels


def pick(
    source: DataSource, context: TaskContext, labels: RowLabels | None, first: int, draw: Draw
) -> tuple[list[Partial[Picked]], RowLabels]:
    """Return the rows of a sample, and the labels of all rows.

    The spans of the sums are numbered from ``first``.
    """
    with _open_work(source, context, labels) as (rows, work, map_shards):
        items = rows.items(source.parts(work.spans()))
        parts = map_shards(lambda item: work.pick(item, draw), items)
        return partial_sums(first, parts, Picked.add), rows.labels


def product(
    source: DataSource,
    context: TaskContext,
    labels: RowLabels | None,
    features: FloatArray | None,
    first: int,
    problems: Sequence[Problem],
    P: FloatArray,
) -> tuple[list[Partial[FloatArray]], RowLabels | None, FloatArray | None]:
    """Return A' Omega A P; and labels and features, as ``advance`` does."""
    with _open_work(source, context, labels, features) as (rows, work, map_shards):
        table = Problems(problems, rows.data.n_columns)
        items = rows.items(_shards(source, work))
        parts = map_shards(lambda item: work.product(item, table, P), items)
        found = partial_sums(first, parts, operator.add)
        made = rows.labels if labels is None else None
        return found, made, work.kept_features() if features is None else None


def curvature(
    source: DataSource,
    context: TaskContext,
    labels: RowLabels | None,
    features: FloatArray | None,
    first: int,
    problem: Problem,
    number: int,
    k: int,
    least: float,
    T: FloatArray,
    state: FloatArray | int,
    *steps: Step,
) -> list[Partial[FloatArray]]:
    """Return T'A' D A T of ``ShardWork.curvature``, after steps that the state still lacks."""
    with _open_work(source, context, labels, features) as (rows, work, map_shards):
        K = rows.data.n_columns
        replay, table = _Replay(work, steps, K), Problems([problem], K)

        def visit(item: Item) -> FloatArray:
            t, _ = replay.apply(item, _state_of(item, state))
            own = np.ascontiguousarray(t[:, number * K + k])
            return work.curvature(item, table, k, least, own, T)

        parts = map_shards(visit, rows.items(_shards(source, work)))
        return partial_sums(first, parts, operator.iadd)


def advance(
    source: DataSource,
    context: TaskContext,
    labels: RowLabels | None,
    features: FloatArray | None,
    first: int,
    state: FloatArray | int,
    *steps: Step,
) -> tuple[list[Partial[Any]], FloatArray, RowLabels | None, FloatArray | None]:
    """Take the rows' state through some steps.

    Return the sums of the last step, whose shards are numbered from ``first``; the new state; the
    labels, where they were not given; and the features, where they were not given and are kept.
    ``state`` may be a number of columns: the initial state, t = 1.
    """
    with _open_work(source, context, labels, features) as (rows, work, map_shards):
        replay = _Replay(work, steps, rows.data.n_columns)
        states: list[FloatArray] = []

        def visit(item: Item) -> tuple[FloatArray, SweepSums]:
            return replay.apply(item, _state_of(item, state))

        def sums() -> Iterator[Any]:
            for t, swept in map_shards(visit, rows.items(_shards(source, work))):
                states.append(t)
                yield swept

        found = partial_sums(first, sums(), SweepSums.add)
        made = rows.labels if labels is None else None
        kept = work.kept_features() if features is None else None
        return found, np.concatenate(states), made, kept


def scores(
    source: DataSource,
    context: TaskContext,
    labels: RowLabels,
    problems: Sequence[Problem],
    coefficients: list[FloatArray],
) -> FloatArray:
    """Return the scores of every row by the coefficients (n, K per problem) of its fold part."""
    with _open_work(source, context, labels) as (rows, work, map_shards):
        table = Problems(problems, rows.data.n_columns)
        parts = map_shards(lambda item: work.scores(item, table, coefficients), source.parts())
        return np.concatenate(list(parts))


def sweep_seconds_per_row(
    source: DataSource, context: TaskContext, labels: RowLabels | None
) -> float:
    """Return the time of a sweep of one problem per row, measured on the first shard."""
    with _open_work(source, context, labels) as (rows, work, _):
        K = rows.data.n_columns
        item = next(rows.items(source.parts(source.shards()[:1])))
        n, n_rows = context.feature_map.n_centers, item[0][1]
        table, u = Problems([Problem(n)], K), np.zeros((n, K))
        state = np.ones((n_rows, K))
        work.sweep(item, table, u, state)  # its buffers are allocated first
        began = clock.now()
        work.sweep(item, table, u, state)
        return (clock.now() - began) / n_rows


def process_partition(
    source: DataSource, task: ShardTask, first_shard: int, threads: int
) -> Exception | None:
    """Run a task of ``Backend.process_shards``; return the error that its rows or files cause.

    It is not raised here: Ray logs an error that nobody fetches, as when another came first.
    """
    try:
        for _ in task(source, first_shard, threads):
            pass
    except (ValueError, OSError) as error:
        return error
    return None


@contextmanager
def _open_work(
    source: DataSource,
    context: TaskContext,
    labels: RowLabels | None,
    features: FloatArray | None = None,
) -> Iterator[tuple[_LabelledRows, ShardWork, Callable[..., Iterator[Any]]]]:
    """Give the rows with their labels, the work on a shard, and a map over shards by threads."""
    with single_threaded_blas(), Pool(context.execution.threads) as pool:
        rows = _LabelledRows(source, context, labels)
        work = ShardWork(rows.data, context.feature_map, context.execution, features)
        yield rows, work, partial(pool.map, work=source.n_rows * context.feature_map.n_centers)


class _LabelledRows:
    """The rows of a partition with their labels: given, or found as the rows are read."""

    def __init__(self, source: DataSource, context: TaskContext, labels: RowLabels | None) -> None:
        self._source, self._encoding, self._known = source, context.encoding, labels is not None
        self.labels = labels or self._blank()
        self.data = TrainingSet(
            source,
            self.labels.codes,
            context.n_classes,
            self.labels.weights,
            self.labels.fold_parts,
            context.n_fold_parts,
        )

    def items(self, parts: Iterable[Item]) -> Iterator[Item]:
        """Pass on parts, whose labels are known from then on."""
        for item in parts:
            if not self._known:
                self._find(item)
            yield item

    def find_all_labels(self) -> None:
        """Find the labels of all rows now."""
        if self._known:
            return
        for _ in self.items(self._source.parts()):
            pass
        self._known = True

    def _blank(self) -> RowLabels:
        encoding, m = self._encoding, self._source.n_rows
        assert encoding is not None
        weighted = self._source.has_weights or encoding.factors is not None
        codes = np.empty(m, encoding.numbers.dtype)
        return RowLabels(codes, np.empty(m) if weighted else None, None)

    def _find(self, item: Item) -> None:
        (start, stop), part = item
        assert self._encoding is not None
        own = checked_weights(self._source, start, self._source.weights(part))
        codes = self._encoding.codes(label_part(checked_labels(self._source, start, part), own))
        self.labels.codes[start:stop] = codes
        weights = self._encoding.weights(self._encoding.own_weights(own), codes)
        if self.labels.weights is not None and weights is not None:
            self.labels.weights[start:stop] = weights


class _Replay:
    """Steps to be applied to the state of each shard."""

    def __init__(self, work: ShardWork, steps: Sequence[Step], K: int) -> None:
        self._work = work
        self._steps = [
            (step, Problems(step.problems, K) if isinstance(step, Sweep) else None)
            for step in steps
        ]

    def apply(self, item: Item, t: FloatArray) -> tuple[FloatArray, SweepSums]:
        """Return the state after all steps, and the sums of the last sweep."""
        sums: SweepSums = AdmmSums.zeros(0, 0, 0)
        for step, table in self._steps:
            if isinstance(step, Keep):
                t = np.ascontiguousarray(t[:, step.columns])
            elif table is not None:
                sums = self._work.sweep(item, table, step.u, t)
        return t, sums


def _state_of(item: Item, state: FloatArray | int) -> FloatArray:
    """Return the state of a shard, as an array of its own."""
    start, stop = item[0]
    if isinstance(state, int):
        return np.ones((stop - start, state))
    return np.array(state[start:stop])


def _shards(source: DataSource, work: ShardWork) -> Iterable[Item]:
    """Return the shards; where all features are kept, without their rows."""
    if work.all_kept():
        return [(span, None) for span in source.shards()]
    return source.parts()

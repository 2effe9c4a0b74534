"""What a worker does with a partition of shards: plain functions, to be run wherever the rows are.

A worker is told all it needs and keeps nothing: what a task returns depends on its arguments alone,
so that it can be done again by another. Sums come as ``partial_sums`` returns them.

What workers are told: the task of an engine, the labels of rows, the steps of their state.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from polysift.data.labels import Encoding, label_part
from polysift.data.source import DataSource, TrainingSet
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
from polysift.runtime.parallel import Partial, Pool, partial_sums, single_threaded_blas
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True)
class Task:
    """What all tasks of an engine must know.

    Attributes
    ----------
    feature_map : FeatureMap
        The features.
    n_classes, n_fold_parts : int
        The numbers of classes and of fold parts of rows.
    encoding : Encoding
        How labels become class numbers.
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
    """A step of the per-row state: only these columns go on."""

    columns: list[int]


Step = Sweep | Keep


def survey_partition(
    source: DataSource, first_shard: int, questions: Questions, threads: int
) -> list[Partial[Survey]]:
    """Visit every row once."""
    with single_threaded_blas(), Pool(threads) as pool:
        parts = survey_shards(source, questions, pool)
        return partial_sums(first_shard, parts, lambda a, b: a.merge(b, questions.n_centers))


def gram(
    source: DataSource, task: Task, labels: RowLabels | None, first: int, skip: int
) -> tuple[list[Partial[GramSums]], RowLabels]:
    """Return the sums that do not depend on u, and the labels of all rows.

    The spans of the sums are numbered from ``first``; the first ``skip`` are left out.
    """
    with _working(source, task, labels) as (labelled, work, over):
        if skip:
            labelled.find_all()
        parts = over(work.gram, labelled.items(source.parts(work.spans()[skip:])))
        return partial_sums(first + skip, parts, GramSums.add), labelled.labels


def pick(
    source: DataSource, task: Task, labels: RowLabels | None, first: int, draw: Draw
) -> tuple[list[Partial[Picked]], RowLabels]:
    """Return the rows of a sample, and the labels of all rows.

    The spans of the sums are numbered from ``first``.
    """
    with _working(source, task, labels) as (labelled, work, over):
        items = labelled.items(source.parts(work.spans()))
        parts = over(lambda item: work.pick(item, draw), items)
        return partial_sums(first, parts, Picked.add), labelled.labels


def product(
    source: DataSource,
    task: Task,
    labels: RowLabels | None,
    features: FloatArray | None,
    first: int,
    problems: Sequence[Problem],
    P: FloatArray,
) -> tuple[list[Partial[FloatArray]], RowLabels | None, FloatArray | None]:
    """Return A' Omega A P; labels and features come along as in ``advance``."""
    with _working(source, task, labels, features) as (labelled, work, over):
        table = Problems(problems, labelled.data.n_columns)
        items = labelled.items(_shards(source, work))
        parts = over(lambda item: work.product(item, table, P), items)
        found = partial_sums(first, parts, operator.add)
        made = labelled.labels if labels is None else None
        return found, made, work.kept_features() if features is None else None


def curvature(
    source: DataSource,
    task: Task,
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
    with _working(source, task, labels, features) as (labelled, work, over):
        K = labelled.data.n_columns
        walk, table = _Walk(work, steps, K), Problems([problem], K)

        def visit(item: Item) -> FloatArray:
            t, _ = walk.along(item, _state_of(item, state))
            own = np.ascontiguousarray(t[:, number * K + k])
            return work.curvature(item, table, k, least, own, T)

        parts = over(visit, labelled.items(_shards(source, work)))
        return partial_sums(first, parts, operator.iadd)


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


def advance(
    source: DataSource,
    task: Task,
    labels: RowLabels | None,
    features: FloatArray | None,
    first: int,
    state: FloatArray | int,
    *steps: Step,
) -> tuple[list[Partial[Any]], FloatArray, RowLabels | None, FloatArray | None]:
    """Take the rows' state through some steps.

    Returns the sums of the last step, whose shards are numbered from ``first``, the new state, and
    the labels and the features, where they were not given and the latter shall be kept. ``state``
    may be a number of columns: the start, t = 1.
    """
    with _working(source, task, labels, features) as (labelled, work, over):
        walk = _Walk(work, steps, labelled.data.n_columns)
        moved: list[FloatArray] = []

        def visit(item: Item) -> tuple[FloatArray, SweepSums]:
            return walk.along(item, _state_of(item, state))

        def sums() -> Iterator[Any]:
            for t, swept in over(visit, labelled.items(_shards(source, work))):
                moved.append(t)
                yield swept

        found = partial_sums(first, sums(), SweepSums.add)
        made = labelled.labels if labels is None else None
        kept = work.kept_features() if features is None else None
        return found, np.concatenate(moved), made, kept


@contextmanager
def _working(
    source: DataSource,
    task: Task,
    labels: RowLabels | None,
    features: FloatArray | None = None,
) -> Iterator[tuple[_Labelled, ShardWork, Callable[..., Iterator[Any]]]]:
    """Give the rows with their labels, the work on them, and who maps the one over the other."""
    with single_threaded_blas(), Pool(task.execution.threads) as pool:
        labelled = _Labelled(source, task, labels)
        over = partial(pool.map, work=source.n_rows * task.feature_map.n_centers)
        work = ShardWork(labelled.data, task.feature_map, task.execution, features)
        yield labelled, work, over


class _Walk:
    """The way of a shard's state through steps."""

    def __init__(self, work: ShardWork, steps: Sequence[Step], K: int) -> None:
        self._work = work
        self._steps = [
            (step, Problems(step.problems, K) if isinstance(step, Sweep) else None)
            for step in steps
        ]

    def along(self, item: Item, t: FloatArray) -> tuple[FloatArray, SweepSums]:
        """Return the state after all steps, and the sums of the last sweep."""
        sums: SweepSums = AdmmSums.zeros(0, 0, 0)
        for step, table in self._steps:
            if isinstance(step, Keep):
                t = np.ascontiguousarray(t[:, step.columns])
            elif table is not None:
                sums = self._work.sweep(item, table, step.u, t)
        return t, sums


def scores(
    source: DataSource,
    task: Task,
    labels: RowLabels,
    problems: Sequence[Problem],
    coefficients: list[FloatArray],
) -> FloatArray:
    """Return the scores of every row by the coefficients (n, K per problem) of its fold part."""
    with _working(source, task, labels) as (labelled, work, over):
        table = Problems(problems, labelled.data.n_columns)
        parts = over(lambda item: work.scores(item, table, coefficients), source.parts())
        return np.concatenate(list(parts))


def sweep_seconds_per_row(source: DataSource, task: Task, labels: RowLabels | None) -> float:
    """Return the time of a sweep of one problem, judged by the first shard."""
    with _working(source, task, labels) as (labelled, work, _):
        K = labelled.data.n_columns
        item = next(labelled.items(source.parts(source.shards()[:1])))
        n, rows = task.feature_map.n_centers, item[0][1]
        table, u = Problems([Problem(n)], K), np.zeros((n, K))
        state = np.ones((rows, K))
        work.sweep(item, table, u, state)  # the first touch of the buffers is not the rule
        began = perf_counter()
        work.sweep(item, table, u, state)
        return (perf_counter() - began) / rows


class _Labelled:
    """The rows of a partition with their labels: given, or found as the rows are read."""

    def __init__(self, source: DataSource, task: Task, labels: RowLabels | None) -> None:
        self._source, self._encoding, self._known = source, task.encoding, labels is not None
        self.labels = labels or self._blank()
        self.data = TrainingSet(
            source,
            self.labels.codes,
            task.n_classes,
            self.labels.weights,
            self.labels.fold_parts,
            task.n_fold_parts,
        )

    def items(self, parts: Iterable[Item]) -> Iterator[Item]:
        """Pass on parts, whose labels are known from then on."""
        for item in parts:
            if not self._known:
                self._find(item)
            yield item

    def find_all(self) -> None:
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
        weights = self._encoding.weights(own, codes)
        if self.labels.weights is not None and weights is not None:
            self.labels.weights[start:stop] = weights

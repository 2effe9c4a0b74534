"""Sums over the rows: Gram matrices, and the sums of a sweep.

``GrowingGram`` adds up Gram matrices of shards in the fixed tree, and saves and resumes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from polysift.runtime.arrays import require, required_array
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Partial, TreeSum
from polysift.runtime.progress import OutOfTime, WorkersLostError
from polysift.runtime.types import FloatArray

S = TypeVar("S", bound="_Sums")
W = TypeVar("W", bound="SweepSums")

STEP_LENGTHS = 2.0 ** np.arange(-9, 3)
"""Step lengths at which a sweep of Newton's method computes the slope of the loss."""


SCALES = 2.0 ** (0.5 * np.arange(-4, 13))
"""Factors of the scores at which ``ScaleUpdate`` computes the slope of the loss."""


def names_of(kind: Any) -> tuple[str, ...]:
    """Return the fields of sums; ``dataclasses.fields`` is too slow to be called per shard."""
    return tuple(kind.__dataclass_fields__)


class _Sums:
    """Arrays that add up, field by field."""

    def add(self: S, other: S) -> S:
        """Add ``other``, in place unless this one must not be written to."""
        for name in names_of(type(self)):
            total = getattr(self, name)
            if total.flags.writeable:
                total += getattr(other, name)
            else:  # in memory that processes share
                setattr(self, name, total + getattr(other, name))
        return self


@dataclass
class GramSums(_Sums):
    """The sums of the first pass, for each fold part.

    Attributes
    ----------
    G : ndarray of shape (fold parts, n, n)
        A' Omega A.
    Aty : ndarray of shape (fold parts, n, K)
        A' Omega y, the residual of the start (u, v, w) = (0, y, 0).
    """

    G: FloatArray
    Aty: FloatArray

    @classmethod
    def zeros(cls, fold_parts: int, n: int, K: int) -> GramSums:
        """Return empty sums."""
        return cls(np.zeros((fold_parts, n, n)), np.zeros((fold_parts, n, K)))

    def over(self, without: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Return G and A'y of all rows but those of one fold part, which the caller may overwrite.

        The other parts are added up. Subtracting one from the total would be cheaper, but would
        leave the rounding errors of the total in a smaller matrix.
        """
        if len(self.G) == 1:  # no other caller needs it
            return self.G[0], self.Aty[0]
        kept = [fold_part for fold_part in range(len(self.G)) if fold_part != without]
        if len(kept) == 1:
            return self.G[kept[0]].copy(), self.Aty[kept[0]].copy()
        G, Aty = self.G[kept[0]] + self.G[kept[1]], self.Aty[kept[0]] + self.Aty[kept[1]]
        for fold_part in kept[2:]:
            G += self.G[fold_part]
            Aty += self.Aty[fold_part]
        return G, Aty


class SweepSums(_Sums):
    """The sums of a sweep over all its problems, for any update.

    Attributes
    ----------
    r : ndarray of shape (n, columns)
        The first field: A' Omega times what the update returns for each row.
    loss : ndarray of shape (columns,)
        Sums over rows of the loss.
    wrong : ndarray of shape (problems,)
        The last field: the weight of the rows that the scores put in the wrong class.
    """

    r: FloatArray
    loss: FloatArray
    wrong: FloatArray

    def of_problem(self: W, problem: int, n: int) -> W:
        """Return the sums of one problem, which uses n centers."""
        K = len(self.loss) // len(self.wrong)
        columns = slice(problem * K, (problem + 1) * K)
        kind: Any = type(self)
        parts = {name: getattr(self, name)[..., columns] for name in names_of(kind)[1:-1]}
        wrong = self.wrong[problem : problem + 1]
        return kind(r=self.r[:n, columns].copy(), wrong=wrong, **parts)


@dataclass
class AdmmSums(SweepSums):
    """The sums of ``AdmmUpdate``; f = A u, v and q = w / beta are new, ``d_`` is new minus old.

    Attributes
    ----------
    r : ndarray of shape (n, columns)
        The residual A' Omega (v - q - f) of the next u-step.
    loss, primal, f2, v2, q2, dv2, dq2 : ndarray of shape (columns,)
        Sums over rows of the loss of f, and of the squares of f - v, f, v, q, dv and dq.
    wrong : ndarray of shape (problems,)
        The weight of the rows that f puts in the wrong class.
    """

    r: FloatArray
    loss: FloatArray
    primal: FloatArray
    f2: FloatArray
    v2: FloatArray
    q2: FloatArray
    dv2: FloatArray
    dq2: FloatArray
    wrong: FloatArray

    @classmethod
    def zeros(cls, n: int, columns: int, problems: int) -> AdmmSums:
        """Return empty sums."""
        names = names_of(cls)[1:-1]
        each = dict(zip(names, np.zeros((len(names), columns)), strict=True))
        return cls(r=np.zeros((n, columns)), wrong=np.zeros(problems), **each)


@dataclass
class NewtonSums(SweepSums):
    """The sums of ``NewtonUpdate``; f are the new margins.

    Attributes
    ----------
    r : ndarray of shape (n, columns)
        A' Omega y c, with c minus the slope of the rounded loss: minus its gradient.
    loss, gap, curved : ndarray of shape (columns,)
        Sums over rows of the loss, of its duality gap with c, and of the scaled curvature.
    slopes : ndarray of shape (len(STEP_LENGTHS), columns)
        The slopes of the loss along the step from the old margins, at ``STEP_LENGTHS``.
    wrong : ndarray of shape (problems,)
        The weight of the rows that f puts in the wrong class.
    """

    r: FloatArray
    loss: FloatArray
    gap: FloatArray
    curved: FloatArray
    slopes: FloatArray
    wrong: FloatArray

    @classmethod
    def zeros(cls, n: int, columns: int, problems: int) -> NewtonSums:
        """Return empty sums."""
        loss, gap, curved = np.zeros((3, columns))
        slopes = np.zeros((len(STEP_LENGTHS), columns))
        return cls(np.zeros((n, columns)), loss, gap, curved, slopes, np.zeros(problems))


@dataclass
class ScaleSums(SweepSums):
    """The sums of ``ScaleUpdate``.

    Attributes
    ----------
    r : ndarray of shape (n, columns)
        Zero.
    loss : ndarray of shape (columns,)
        Sums over rows of the loss.
    slopes, curved : ndarray of shape (len(SCALES), columns)
        Sums over rows of the derivative of the loss by the factor of the scores, at ``SCALES``, and
        of the curvature of the loss there.
    wrong : ndarray of shape (problems,)
        The weight of the rows that the scores put in the wrong class.
    """

    r: FloatArray
    loss: FloatArray
    slopes: FloatArray
    curved: FloatArray
    wrong: FloatArray

    @classmethod
    def zeros(cls, n: int, columns: int, problems: int) -> ScaleSums:
        """Return empty sums."""
        slopes, curved = np.zeros((2, len(SCALES), columns))
        return cls(np.zeros((n, columns)), np.zeros(columns), slopes, curved, np.zeros(problems))


def weighted_sum(x: FloatArray, counts: FloatArray | None) -> FloatArray:
    """Return the sum over rows, weighted by ``counts`` (rows,) or like x; None means 1."""
    if counts is None:
        return np.asarray(x.sum(axis=0))
    return np.asarray(counts @ x if counts.ndim == 1 else np.einsum("ij,ij->j", counts, x))


def predicted_codes(f: FloatArray) -> FloatArray:
    """Return the class of each row of scores (..., K); a score of 0 means the positive class."""
    return (f[..., 0] >= 0).astype(np.intp) if f.shape[-1] == 1 else f.argmax(axis=-1)


def checked_gram(
    arrays: dict[str, FloatArray],
    G: str,
    Aty: str,
    n_centers: int | None = None,
    n_columns: int | None = None,
) -> GramSums:
    """Return the sums under these names in a checkpoint, whose shapes must fit each other."""
    shape = np.shape(arrays[G])
    n = shape[-1] if n_centers is None else n_centers
    found = required_array(arrays, G, "f", (shape[0], n, n), of_a_fit=True)
    return GramSums(
        found, required_array(arrays, Aty, "f", (shape[0], n, n_columns), of_a_fit=True)
    )


class GrowingGram:
    """The Gram matrices of the first shards, to which those of the next are added.

    Parameters
    ----------
    checkpoint : Checkpoint or None
        Where they are saved, and resumed from, as the state "gram" with ``suffix``.
    suffix : str
        Distinguishes the states of several engines in one checkpoint.
    sizes : tuple of int, optional
        The numbers of centers and of label columns, which saved sums must have.

    Attributes
    ----------
    done : int
        The number of shards, or of joined shards, that are added.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        suffix: str = "",
        sizes: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self._checkpoint, self._name = checkpoint, f"gram{suffix}"
        self._tree: TreeSum[GramSums] = TreeSum(GramSums.add)
        self.done = 0
        self._unsaved = False
        saved = None if checkpoint is None else checkpoint.load(self._name)
        if saved is not None:
            assert checkpoint is not None
            with checkpoint.using(self._name):
                self._restore(*saved, sizes)

    def _restore(
        self,
        arrays: dict[str, FloatArray],
        values: dict[str, Any],
        sizes: tuple[int | None, int | None],
    ) -> None:
        counts, shards = values["counts"], values["shards"]
        whole = isinstance(counts, list) and all(
            type(n) is int and n >= 0 for n in [*counts, shards]
        )
        require(whole, "counts and shards must be whole numbers")
        levels: list[tuple[int, GramSums | None]] = []
        for i, count in enumerate(counts):
            known = checked_gram(arrays, f"G{i}", f"Aty{i}", *sizes) if count else None
            levels.append((count, known))
        require(len(arrays) == 2 * sum(map(bool, counts)), "every matrix must have its count")
        require(len({(g.G.shape, g.Aty.shape) for _, g in levels if g}) <= 1, "shapes must agree")
        self._tree, self.done = TreeSum(GramSums.add, levels), shards

    def push(self, sums: Iterable[Partial[GramSums]], count: int) -> None:
        """Add the sums over the next ``count`` shards, and save all if the checkpoint is due."""
        for level, parts, total in sums:
            self._tree.push(total, level, parts)
        self.done += count
        self._unsaved = True
        if self._checkpoint is not None and self._checkpoint.due():
            self._save()

    @contextmanager
    def saved_at_the_end(self) -> Iterator[None]:
        """Save the sums when the pass is done, or is stopped."""
        try:
            yield
        except (
            OutOfTime,
            WorkersLostError,
        ):  # raised between shards; Ctrl-C may interrupt an addition
            self._save()
            raise
        if self._unsaved:
            self._save()

    def result(self) -> GramSums:
        """Return the sums over all shards; the object must not be used afterwards."""
        total = self._tree.result()
        return GramSums(np.require(total.G, requirements="W"), total.Aty)  # factors overwrite G

    def _save(self) -> None:
        """Save the partial sums, of which there is at most one per level of the tree."""
        if self._checkpoint is None:
            return
        arrays: dict[str, FloatArray] = {}
        for level, (_, total) in enumerate(self._tree.levels):
            if total is not None:
                arrays |= {f"G{level}": total.G, f"Aty{level}": total.Aty}
        counts = [count for count, _ in self._tree.levels]
        values = {"shards": self.done, "counts": counts}
        self._unsaved = not self._checkpoint.save(self._name, arrays, values)

"""What passes over the rows add up, and what a sweep does to a row.

Labels are gone here: f, v and q are margins, that is multiplied by y.

The Gram matrix while it grows: added up in the fixed tree, saved now and then, gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from polysift.losses import (
    STEPS,
    curvedness,
    duality_gap,
    hinge_loss,
    keep_multipliers,
    multipliers,
    predicted,
    prox_step,
    steepness,
)
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Partial, TreeSum
from polysift.runtime.progress import OutOfTime, WorkersLostError
from polysift.runtime.types import FloatArray

S = TypeVar("S", bound="_Sums")


def names_of(kind: Any) -> tuple[str, ...]:
    """Return the fields of sums; ``dataclasses.fields`` takes a while, and shards are many."""
    return tuple(kind.__dataclass_fields__)


class _Sums:
    """Arrays that add up, field by field."""

    def add(self: S, other: S) -> S:
        """Add ``other``, in place unless this one must not be written to."""
        for name in names_of(type(self)):
            total = getattr(self, name)
            if total.flags.writeable:
                total += getattr(other, name)
            else:  # it lies in memory that processes share
                setattr(self, name, total + getattr(other, name))
        return self


@dataclass
class GramSums(_Sums):
    """What the first pass adds up, for each fold part of rows.

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

        The other parts are added up. Subtracting the one from the total would cost less, but leave
        the total's rounding errors in a smaller matrix.
        """
        if len(self.G) == 1:  # nobody else needs it
            return self.G[0], self.Aty[0]
        kept = [fold_part for fold_part in range(len(self.G)) if fold_part != without]
        if len(kept) == 1:
            return self.G[kept[0]].copy(), self.Aty[kept[0]].copy()
        G, Aty = self.G[kept[0]] + self.G[kept[1]], self.Aty[kept[0]] + self.Aty[kept[1]]
        for fold_part in kept[2:]:
            G += self.G[fold_part]
            Aty += self.Aty[fold_part]
        return G, Aty

    def trace_over(self, without: int | None = None) -> float | None:
        """Return the trace of the Gram matrix that ``over`` estimates; None where it is that."""
        return None


@dataclass
class SweepSums(_Sums):
    """What a sweep adds up; f = A u, v and q = w / beta are new, ``d_`` is new minus old.

    Attributes
    ----------
    r : ndarray of shape (n, columns)
        The residual A' Omega (v - q - f) of the next u-step.
    loss, primal, f2, v2, q2, dv2, dq2 : ndarray of shape (columns,)
        Sums over rows of the hinge loss of f, and of the squares of f - v, f, v, q, dv and dq.
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
    def zeros(cls, n: int, columns: int, problems: int) -> SweepSums:
        """Return empty sums."""
        each = dict(zip(names_of(cls)[1:-1], np.zeros((7, columns)), strict=True))
        return cls(r=np.zeros((n, columns)), wrong=np.zeros(problems), **each)

    def of_problem(self, problem: int, n: int) -> SweepSums:
        """Return the sums of one problem, which uses n centers."""
        K = len(self.loss) // len(self.wrong)
        columns = slice(problem * K, (problem + 1) * K)
        parts = {name: getattr(self, name)[columns] for name in names_of(SweepSums)[1:-1]}
        wrong = self.wrong[problem : problem + 1]
        return SweepSums(r=self.r[:n, columns].copy(), wrong=wrong, **parts)


@dataclass
class SmoothSums(_Sums):
    """What a sweep adds up for problems that minimise a rounded loss; f are the new margins.

    Attributes
    ----------
    r : ndarray of shape (n, columns)
        A' Omega y c, with c the steepness of the loss: minus its gradient.
    loss, gap, curved : ndarray of shape (columns,)
        Sums over rows of the hinge loss, of what c leaves of it, and of how curved rows are.
    slopes : ndarray of shape (len(STEPS), columns)
        The slopes of the loss along the way from the old margins, so many steps from there.
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
    def zeros(cls, n: int, columns: int, problems: int) -> SmoothSums:
        """Return empty sums."""
        loss, gap, curved = np.zeros((3, columns))
        slopes = np.zeros((len(STEPS), columns))
        return cls(np.zeros((n, columns)), loss, gap, curved, slopes, np.zeros(problems))

    def of_problem(self, problem: int, n: int) -> SmoothSums:
        """Return the sums of one problem, which uses n centers."""
        K = len(self.loss) // len(self.wrong)
        columns = slice(problem * K, (problem + 1) * K)
        parts = {name: getattr(self, name)[..., columns] for name in names_of(SmoothSums)[1:-1]}
        wrong = self.wrong[problem : problem + 1]
        return SmoothSums(r=self.r[:n, columns].copy(), wrong=wrong, **parts)


Swept = SweepSums | SmoothSums


def move_smoothly(
    t: FloatArray,
    f: FloatArray,
    delta: FloatArray,
    line: FloatArray,
    counts: FloatArray | None,
    sums: SmoothSums,
) -> FloatArray:
    """Move the margins t to f and add up what a rounded loss needs; return its steepness at f.

    The multipliers in t follow where slopes are asked for, begin with the steepness where ``line``
    is negative, and otherwise stay.
    """
    c = steepness(f, delta)
    own = np.where(line < 0.0, c, multipliers(t))
    if np.any(line > 0.0):
        way = np.where(line > 0.0, f - t, 0.0)
        asked = np.where(line > 0.0, line, 1.0)
        begun = np.where(line > 0.0, t, 1.0)
        own = np.where(line > 0.0, predicted(begun, way, asked, own), own)
        for i, step in enumerate(STEPS):
            slopes = steepness(begun + step * way, asked) * way
            sums.slopes[i] -= weighted_sum(slopes, counts)
    sums.loss += weighted_sum(hinge_loss(f), counts)
    sums.gap += weighted_sum(duality_gap(f, c), counts)
    sums.curved += weighted_sum(curvedness(f, delta, own), counts)
    t[:] = f
    keep_multipliers(t, own)
    return c


def move(
    t: FloatArray, f: FloatArray, gamma: float | FloatArray, relax: float | FloatArray
) -> FloatArray:
    """Move the state t to the scores f (both as margins); return v - q - f, as margins too.

    The new t is ``relax f + (1 - relax) v + q`` with the old v and q.
    """
    k = prox_step(t, gamma)
    if isinstance(relax, float) and relax == 1.0:
        np.subtract(f, k, out=t)
    else:
        t *= 1.0 - relax
        t += relax * (f - k)
    k = prox_step(t, gamma)
    k *= 2.0
    k += t
    k -= f
    return k


def add_statistics(
    sums: SweepSums,
    f: FloatArray,
    t_old: FloatArray,
    t: FloatArray,
    gamma: float | FloatArray,
    counts: FloatArray | None,
) -> None:
    """Add the sums over rows that measure progress; all but ``counts`` are margins."""
    k_old, k = prox_step(t_old, gamma), prox_step(t, gamma)
    v = t + k
    sums.loss += weighted_sum(hinge_loss(f), counts)
    sums.primal += weighted_sum((f - v) ** 2, counts)
    sums.f2 += weighted_sum(f**2, counts)
    sums.v2 += weighted_sum(v**2, counts)
    sums.q2 += weighted_sum(k**2, counts)
    sums.dv2 += weighted_sum((v - t_old - k_old) ** 2, counts)
    sums.dq2 += weighted_sum((k - k_old) ** 2, counts)


def weighted_sum(x: FloatArray, counts: FloatArray | None) -> FloatArray:
    """Sum over rows, each counted once, or as often as ``counts``, (rows,) or like x, says."""
    if counts is None:
        return np.asarray(x.sum(axis=0))
    return np.asarray(counts @ x if counts.ndim == 1 else np.einsum("ij,ij->j", counts, x))


def predicted_codes(f: FloatArray) -> FloatArray:
    """Return the class of each row of scores (..., K); a score of exactly 0 is the positive."""
    return (f[..., 0] >= 0).astype(np.intp) if f.shape[-1] == 1 else f.argmax(axis=-1)


class GrowingGram:
    """Sums over shards, as far as they have come.

    Parameters
    ----------
    checkpoint : Checkpoint or None
        Where they are saved, and gone on from, as the state "gram" with ``suffix``.

    Attributes
    ----------
    done : int
        The shards (or whatever the parts are sums over) that are in.
    """

    def __init__(self, checkpoint: Checkpoint | None, suffix: str = "") -> None:
        self._checkpoint, self._name = checkpoint, f"gram{suffix}"
        self._tree: TreeSum[GramSums] = TreeSum(GramSums.add)
        self.done = 0
        self._unsaved = False
        saved = None if checkpoint is None else checkpoint.load(self._name)
        if saved is not None:
            arrays, values = saved
            levels = [
                (count, GramSums(arrays[f"G{i}"], arrays[f"Aty{i}"]) if f"G{i}" in arrays else None)
                for i, count in enumerate(values["counts"])
            ]
            self._tree, self.done = TreeSum(GramSums.add, levels), values["shards"]

    def push(self, sums: Iterable[Partial[GramSums]], count: int) -> None:
        """Add the sums over the next ``count`` shards, and save them if it is time."""
        for level, parts, total in sums:
            self._tree.push(total, level, parts)
        self.done += count
        self._unsaved = True
        if self._checkpoint is not None and self._checkpoint.due():
            self._save()

    @contextmanager
    def saved_at_the_end(self) -> Iterator[None]:
        """Save what is in when the work is done, or when it cannot go on."""
        try:
            yield
        except (OutOfTime, WorkersLostError):  # between parts; Ctrl-C can strike within one
            self._save()
            raise
        if self._unsaved:
            self._save()

    def result(self) -> GramSums:
        """Return the sums over all shards; the object must not be used any more."""
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
        self._checkpoint.save(self._name, arrays, {"shards": self.done, "counts": counts})
        self._unsaved = False

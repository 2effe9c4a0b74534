"""The Gram matrix while it grows: added up in the fixed tree, saved now and then, gone on with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from polysift.engine.sums import GramSums
from polysift.runtime.checkpoints import Checkpoint
from polysift.runtime.parallel import Partial, TreeSum
from polysift.runtime.progress import OutOfTime, WorkersLostError
from polysift.runtime.types import FloatArray


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

"""Scratch memory, kept for whoever needs some next.

Page faults of fresh memory cost more than the arithmetic done in it: a fit of ten milliseconds
would spend half its time on them.
"""

from __future__ import annotations

from sys import getrefcount

import numpy as np
import numpy.typing as npt

Piece = npt.NDArray[np.uint8]

SMALL = 2**16
"""Bytes that are not worth keeping: the allocator has them at hand."""

MOST = 2**25
"""Bytes that are kept at most while nobody uses them."""

_spares: dict[int, Piece] = {}  # by identity; single operations on a dict need no lock


def _references(box: list[Piece]) -> int:
    return getrefcount(box[0])


_ALONE = _references([np.empty(0, np.uint8)])


class Buffers(dict[str, Piece]):
    """Pieces of memory by name; when it goes, those that no array lies in are kept as spares."""

    def piece(self, name: str, size: int) -> Piece:
        """Return so many bytes: the same memory as long as no more of it is asked for."""
        held = self.get(name)
        if held is None or len(held) < size:
            held = self[name] = _piece(size)
        return held[:size]

    def __del__(self) -> None:
        while self:
            box = [self.popitem()[1]]
            size = len(box[0])
            if size >= SMALL and _references(box) == _ALONE and size + _kept() <= MOST:
                _spares[id(box[0])] = box[0]


def _kept() -> int:
    return sum(map(len, list(_spares.values())))


def _piece(size: int) -> Piece:
    """Return at least so many bytes, and at most twice as many."""
    if size < SMALL:
        return np.empty(size, np.uint8)
    fitting = [(len(p), key) for key, p in list(_spares.items()) if size <= len(p) <= 2 * size]
    for _, key in sorted(fitting):
        spare = _spares.pop(key, None)
        if spare is not None:  # else another thread was faster
            return spare
    return np.empty(size, np.uint8)

"""Scratch memory that is used again."""

import threading

import numpy as np
import pytest

from polysift.runtime import parallel
from polysift.runtime.parallel import Workspace

ROWS = parallel.MIN_SPARE_BYTES // 4


@pytest.fixture(autouse=True)
def no_spares(monkeypatch):
    monkeypatch.setattr(parallel, "_spares", {})


def address(array):
    return array.__array_interface__["data"][0]


def use(size, dtype=float):
    """Work in an array for a moment; return where it was."""
    work = Workspace()
    return address(work.array("Z", (size,), dtype))


def test_memory_is_used_again():
    first = use(ROWS)
    assert len(parallel._spares) == 1
    work = Workspace()
    assert address(work.array("another", (ROWS - 5, 2), np.float32)) == first
    assert not parallel._spares


def test_memory_of_a_thread_is_used_again():
    work, seen = Workspace(), []
    thread = threading.Thread(target=lambda: seen.append(address(work.array("Z", (ROWS,), float))))
    thread.start()
    thread.join()
    assert address(work.array("Z", (ROWS,), float)) in seen


def test_memory_with_an_array_in_it_is_not_given_away():
    kept = Workspace().array("Z", (ROWS // 2, 2), float)[1:]
    kept[:] = 7.0
    assert not parallel._spares
    other = Workspace().array("Z", (ROWS // 2, 2), float)
    assert not np.shares_memory(kept, other)
    assert (kept == 7.0).all()


def test_memory_is_kept_once_the_last_array_in_it_is_gone():
    kept = Workspace().array("Z", (ROWS // 2, 2), float)[1:]
    first = address(kept) - kept.strides[0]
    del kept
    assert use(ROWS) == first


def test_memory_that_became_too_small_is_kept_for_others():
    work = Workspace()
    first = address(work.array("Z", (ROWS,), float))
    work.array("Z", (4 * ROWS,), float)
    assert use(ROWS) == first


def test_little_and_much_memory_is_not_kept():
    use(ROWS // 2 - 1)
    use(parallel.MAX_SPARES_BYTES + 1, np.int8)
    assert not parallel._spares
    two = [Workspace(), Workspace()]
    for work in two:
        work.array("Z", (parallel.MAX_SPARES_BYTES // 3 * 2,), np.int8)
    del work, two
    assert len(parallel._spares) == 1  # both would be too much


def test_a_spare_that_is_far_too_large_is_left_to_others():
    large = use(4 * ROWS)
    assert use(ROWS) != large
    assert use(3 * ROWS) == large

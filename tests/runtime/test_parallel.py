import itertools
import threading

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from clocks import GUARD
from polysift.runtime.parallel import (
    Pool,
    Workspace,
    block_spans,
    shard_spans,
    single_threaded_blas,
    tree_sum,
    usable_jobs,
)


@given(st.integers(1, 20_000_000))
def test_shards_cover_the_rows_once(m):
    spans = shard_spans(m)
    assert spans[0][0] == 0
    assert spans[-1][1] == m
    assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))
    sizes = [stop - start for start, stop in spans]
    assert max(sizes) <= 65536 and max(sizes) - min(sizes) <= 1
    assert len(spans) == 1 or min(sizes) >= 1024


def test_blocks_cover_a_shard():
    assert list(block_spans((5, 20), 6)) == [(5, 11), (11, 17), (17, 20)]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=700))
def test_tree_sum_sums(parts):
    assert tree_sum(iter(parts), lambda a, b: a + b) == sum(parts)


def test_tree_sum_adds_aligned_runs_first():
    tree = tree_sum([str(i) for i in range(18)], lambda a, b: f"({a}+{b})")
    run = "({})"
    for first, last in ((0, 7), (8, 15)):
        text = str(first)
        for i in range(first + 1, last + 1):
            text = f"({text}+{i})"
        assert text in tree
    assert tree.endswith("+(16+17))"), run
    with pytest.raises(ValueError, match="at least one"):
        tree_sum([], lambda a, b: a + b)


def test_pool_keeps_order_and_stops_on_failure():
    with Pool(3) as pool:
        assert list(pool.map(lambda x: x * x, range(50))) == [x * x for x in range(50)]
        with pytest.raises(ZeroDivisionError):
            list(pool.map(lambda x: 1 // (x - 5), range(50)))
        assert {*pool.map(lambda _: threading.get_ident(), range(9), work=10)} == {
            threading.get_ident()
        }


def test_workspace_reuses_and_separates_threads():
    work = Workspace()
    a = work.array("Z", (4, 3), float)
    assert np.shares_memory(a, work.array("Z", (2, 3), float))
    assert work.array("Z", (2, 3), np.float32).dtype == np.float32
    with Pool(2) as pool:
        other = next(pool.map(lambda _: work.array("Z", (4, 3), float), [0]))
    assert not np.shares_memory(work.array("Z", (4, 3), float), other)


def blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_blas_limit_nests_and_ends():
    before = blas_threads()
    with single_threaded_blas():
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_blas_limit_holds_in_any_thread():
    """The thread that set a limit first must not keep others from setting theirs."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        entered, leave, seen = threading.Event(), threading.Event(), []

        def work():
            with single_threaded_blas():
                entered.set()
                leave.wait(GUARD)
                seen.append(set(blas_threads()))
            seen.append(blas_threads())

        thread = threading.Thread(target=work)
        thread.start()
        assert entered.wait(GUARD)
        with single_threaded_blas():  # the first out must not undo it, nor the last one keep it
            pass
        leave.set()
        thread.join()
        assert seen == [{1}, before]
        assert blas_threads() == before


def test_usable_jobs():
    cores = joblib.cpu_count()
    assert usable_jobs(3) == 3
    assert usable_jobs(-1) == usable_jobs(None) == cores
    assert usable_jobs(-cores - 5) == 1


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_one_job_inside_a_joblib_worker(backend):
    inside = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(usable_jobs)(None) for _ in range(2)
    )
    assert inside == [1, 1]

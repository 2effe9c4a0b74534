"""Processes that can be stopped."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from time import process_time

import pytest
from threadpoolctl import threadpool_info

from polysift_paper.studies import worker as studies_worker
from polysift_paper.studies.worker import (
    OverLimitError,
    Worker,
    WorkerError,
    end_at_interrupts,
    ignoring_interrupts,
)


def open_counter(start: int) -> list[int]:
    import numpy as np  # noqa: F401, so that there is a BLAS to count the threads of

    return [start]


def add(counter: list[int], step: int) -> int:
    counter[0] += step
    return counter[0]


def process_of(_counter: list[int]) -> int:
    return os.getpid()


def hang(_counter: list[int]) -> None:
    threading.Event().wait()


def work(_counter: list[int]) -> None:
    while True:
        pass


def sleep(_counter: list[int], seconds: float) -> None:
    threading.Event().wait(seconds)


def work_for(_counter: list[int], seconds: float) -> None:
    until = process_time() + seconds
    while process_time() < until:
        pass


def fail(_counter: list[int]) -> None:
    raise ValueError("no such\n  thing")


def die(_counter: list[int]) -> None:
    os._exit(3)


def threads(_counter: list[int]) -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info()]


def take_memory(_counter: list[int]) -> int:
    import numpy as np

    return np.empty(10**15, dtype=np.int8).size


def alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().split()[2] != "Z"
    except OSError:
        return False


def test_calls_share_what_was_prepared() -> None:
    with Worker(open_counter, 10) as worker:
        assert worker.call(add, 1) == 11
        assert worker.call(add, 2, limit=3600) == 13
        assert worker.call(process_of) != os.getpid()


@pytest.mark.parametrize(("function", "cores"), [(work, 1), (work, None), (hang, None)])
def test_a_call_over_its_limit_is_stopped_and_the_next_begins_anew(
    function: Callable[..., None], cores: int | None
) -> None:
    with Worker(open_counter, 10, threads=cores) as worker:
        first = worker.call(process_of)
        worker.call(add, 1)
        before = worker.seconds
        with pytest.raises(OverLimitError, match="over 0.2 s"):
            worker.call(function, limit=0.2)
        assert worker.seconds == before + 0.2
        assert not alive(first)
        assert worker.call(add, 1) == 11
        assert worker.call(process_of) != first


def test_a_call_on_one_thread_that_waits_for_ever_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies_worker, "HANG_FACTOR", 1.0)
    with Worker(open_counter, 10) as worker, pytest.raises(OverLimitError):
        worker.call(hang, limit=0.2)


def test_time_on_one_thread_is_that_of_the_processor() -> None:
    with Worker(open_counter, 10) as worker:
        worker.call(work_for, 0.3, limit=3600)
        worked = worker.seconds
        worker.call(sleep, 0.3)
        assert worked >= 0.3 and worker.seconds - worked < 0.3


def test_errors_come_back_in_one_line_and_the_process_goes_on() -> None:
    with Worker(open_counter, 10) as worker:
        worker.call(add, 1)
        with pytest.raises(WorkerError, match="^ValueError: no such thing$"):
            worker.call(fail)
        assert worker.call(add, 1) == 12


def test_a_process_that_dies_is_an_error() -> None:
    with Worker(open_counter, 10) as worker:
        with pytest.raises(WorkerError, match="died"):
            worker.call(die)
        assert worker.call(add, 1) == 11


def test_too_much_memory_is_an_error_not_a_kill() -> None:
    with Worker(open_counter, 10) as worker, pytest.raises(WorkerError, match="Memory"):
        worker.call(take_memory)


def test_a_lower_limit_of_the_shell_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    asked: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (10**6, 10**6))  # ulimit -v
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append((which, limits)))
    studies_worker._limit_memory()
    assert asked == [(resource.RLIMIT_AS, (10**6, 10**6))]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals")
def test_ctrl_c_waits_until_a_process_is_ready_for_it() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with ignoring_interrupts():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("ignored", [False, True])
def test_an_ignored_ctrl_c_stays_ignored(ignored: bool) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
        end_at_interrupts()
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert after is (signal.SIG_IGN if ignored else signal.SIG_DFL)


def test_an_error_of_the_preparation_is_an_error_of_the_call() -> None:
    with Worker(fail, 10) as worker, pytest.raises(WorkerError, match="no such thing"):
        worker.call(add, 1)


def test_one_thread_unless_told_otherwise() -> None:
    with Worker(open_counter, 10) as worker:
        assert set(worker.call(threads)) == {1}


def test_the_process_ends_with_its_worker() -> None:
    with Worker(open_counter, 10) as worker:
        process = worker.call(process_of)
        assert alive(process)
    assert not alive(process)

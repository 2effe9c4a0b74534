"""A process that can be stopped: what it runs may not know how to end by itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

from threadpoolctl import threadpool_limits

from polysift.engine.budget import free_memory
from polysift.runtime import clock

MEMORY_SHARE = 0.8
"""How much of the memory that is free a process may take."""

GRACE_SECONDS = 60.0
"""Seconds for a process to end by itself."""


HANG_FACTOR = 100.0
"""After how many times its limit of processor time a call ends that waits and does not work."""

LEAST_WAIT_SECONDS = 0.01

PROCESSOR_CLOCK = 2
"""How Linux marks the clock of a process, CPUCLOCK_SCHED, in the number of a clock."""


def timer(threads: int | None) -> Callable[[], float]:
    """Return the clock of work on so many threads.

    On one thread it is the time of the processor, which hardly depends on what else runs; on more
    it is the time that passes.
    """
    return process_time if threads == 1 else perf_counter


class OverLimitError(RuntimeError):
    """A call took longer than it may."""


class WorkerError(RuntimeError):
    """A call has failed, or its process has died."""


class Worker:
    """Calls functions in a process of its own, within a time limit.

    Libraries written in C cannot be interrupted from Python; a process can be killed. The next call
    then starts another one, which begins with ``prepare`` again.

    Parameters
    ----------
    prepare : callable
        Called first in a new process, without a limit; what it returns is the first argument of
        every call. Like every function that is called, one of a module.
    *args
        Its arguments.
    preload : sequence of str, default=()
        Modules that the calls need, imported once and not for each process, where the system can.
    threads : int, default=1
        Threads of BLAS and OpenMP at most; None is as many as there are cores.

    Attributes
    ----------
    seconds : float
        What the calls have taken, by the clock of ``timer``; one that was stopped counts as its
        limit.
    """

    def __init__(
        self,
        prepare: Callable[..., Any],
        *args: Any,
        preload: Sequence[str] = (),
        threads: int | None = 1,
    ) -> None:
        self._prepare, self._args, self._threads = prepare, args, threads
        self._preload = preload
        self.seconds = 0.0
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def call(self, function: Callable[..., Any], *args: Any, limit: float | None = None) -> Any:
        """Return what a function returns.

        Parameters
        ----------
        function : callable
            Takes what ``prepare`` has returned, and the arguments.
        *args
            Plain values.
        limit : float, optional
            Seconds, by the clock of ``timer`` where the system can do that.

        Raises
        ------
        OverLimitError
            If it took longer. The process is gone.
        WorkerError
            If it failed; the message is that of the error.
        """
        if self._process is None:
            self._start()
        answer, seconds = self._exchange((function, args), limit)
        self.seconds += seconds
        return answer

    def _start(self) -> None:
        context: Any = get_context(_start_method())
        context.set_forkserver_preload(list(self._preload))
        _start_server(context)
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._threads), daemon=True)
        self._process.start()
        theirs.close()  # or the end of the process would not be noticed
        try:
            self._exchange((self._prepare, self._args), None)
        except WorkerError:
            self.stop()
            raise

    def _exchange(self, message: Any, limit: float | None) -> tuple[Any, float]:
        """Return the answer to a message, and the seconds that it took."""
        try:
            self._pipe.send(message)
            if not self._answered(limit):
                raise self._over(limit)
            failed, answer, seconds = self._pipe.recv()
        except (EOFError, ConnectionError):
            self.stop()
            raise WorkerError("the process has died, maybe for want of memory") from None
        if failed:
            self.seconds += seconds
            raise WorkerError(answer)
        return answer, seconds

    def _answered(self, limit: float | None) -> bool:
        """Wait until there is an answer, or the limit is over; return whether there is one."""
        if limit is None or self._threads != 1:
            return self._pipe.poll(limit)
        latest = perf_counter() + HANG_FACTOR * limit
        began = _processor_seconds(self._process.pid)
        while (left := began + limit - _processor_seconds(self._process.pid)) > 0:
            # One thread does not work for longer than what passes.
            if self._pipe.poll(max(left, LEAST_WAIT_SECONDS)):
                return True
            if perf_counter() > latest:
                return False
        return self._pipe.poll()

    def _over(self, limit: float | None) -> OverLimitError:
        """Return what to raise after a call that was stopped."""
        assert limit is not None
        self.stop()
        self.seconds += limit
        return OverLimitError(f"over {limit:g} s")

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join(GRACE_SECONDS)
            self._process = self._pipe = None


def _processor_seconds(process: int) -> float:
    """Return what a process has worked; where the system does not say, the time that passes."""
    if sys.platform != "linux":
        return perf_counter()
    try:
        return time.clock_gettime(~process << 3 | PROCESSOR_CLOCK)
    except OSError:  # it has ended
        return inf


def _start_method() -> str:
    """Return the cheapest way to start many processes from one that may have threads."""
    return "forkserver" if "forkserver" in get_all_start_methods() else "spawn"


def _start_server(context: Any) -> None:
    """Start what forks processes, if need be: Ctrl-C must not end it while it imports."""
    if context.get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        with ignoring_interrupts():
            ensure_running()


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C until they ask for it, where the system can do that.

    While they still import what they need, they would answer it with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # its start, which comes with that of the first process, would end it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_interrupts() -> None:
    """End this process at Ctrl-C without a word, unless the parent process ignores it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _serve(pipe: Connection, threads: int | None) -> None:
    """Answer calls until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and ends this process
    follow_parent()
    _limit_memory()
    state: tuple[Any, ...] = ()
    now = clock.now = timer(threads)  # a search of ours has limits of its own
    with threadpool_limits(limits=threads):
        while True:
            try:
                function, args = pipe.recv()
            except EOFError:
                return
            began = now()
            failed = False
            try:
                answer = function(*state, *args)
            except Exception as error:
                failed, answer = True, " ".join(f"{type(error).__name__}: {error}".split())
            seconds = now() - began
            if not failed and not state:
                state, answer = (answer,), None
            pipe.send((failed, answer, seconds))


def _limit_memory() -> None:
    """Let what asks for more memory than there is fail alone, where the system can do that."""
    try:
        import resource
    except ImportError:
        return
    limit, most = int(MEMORY_SHARE * free_memory()), resource.getrlimit(resource.RLIMIT_AS)[1]
    if most != resource.RLIM_INFINITY:  # ulimit -v: one may not ask for more
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


def follow_parent() -> None:
    """End this process when its parent ends, even in the middle of a call."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)

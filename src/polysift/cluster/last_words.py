"""Last words: what is said when a process ends in the middle of a fit, and cannot say it itself.

Ray ends a process at once, with no exception and no word, when the raylet dies through which it is
connected: Ray's own process on each machine. The system does the same for want of memory. So
another process waits for that, and says what happened and how to go on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DONE = b"done"

WATCHER = f"""
import socket, sys
advice, raylet = sys.argv[1:]
if sys.stdin.buffer.read() != {DONE!r}:  # it ends when the process that writes to it does
    cause = "Ray or the system ended it, such as for want of memory."
    try:
        socket.socket(socket.AF_UNIX).connect(raylet)
    except (AttributeError, OSError):
        cause = "Its raylet is gone, Ray's process on this machine, and Ray ends others with it."
    sys.stderr.write(
        "polysift: the process that worked on the Ray cluster ended without an error of its own. "
        + cause + " " + advice + "\\n"
    )
"""


@contextmanager
def last_words(advice: str, raylet: str) -> Iterator[None]:
    """Have another process write to stderr if this one ends inside without leaving.

    Parameters
    ----------
    advice : str
        How to go on.
    raylet : str
        The socket of the raylet of this machine, which tells whether it still runs.
    """
    command = [sys.executable, "-I", "-S", "-c", WATCHER, advice, raylet]
    # In a session of its own, Ctrl-C does not reach it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as watcher:
        assert watcher.stdin is not None
        try:
            yield
        finally:
            with suppress(OSError):  # someone has ended the watcher
                watcher.stdin.write(DONE)
                watcher.stdin.flush()

"""Errors of the operating system, with the file that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def naming(path: Any) -> Iterator[None]:
    """Name a file in the system's errors that name none: those of reading, writing and syncing."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None or str(path) in str(error):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error

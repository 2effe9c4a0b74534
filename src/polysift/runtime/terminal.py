"""Text for terminals: what comes from data, models and names of files cannot drive them.

A label may hold an escape sequence that clears the screen, or a character that turns the order of
what follows around. Such characters are shown as escapes. Whoever prints is covered: plain prints
by ``EscapingStream`` in the place of standard output and error, rich's consoles by
``safe_console``, whose own styles stay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and newline, and those that change the direction of text."""


def escaped(text: str) -> str:
    """Return text with its control characters as escapes, which JSON reads as well."""
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class EscapingStream:
    """A text stream that writes control characters as escapes.

    Attributes
    ----------
    rich_proxied_file : text stream
        The stream behind it; under this name rich's consoles find it, which escape by themselves.
    """

    def __init__(self, stream: Any) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write text."""
        self.rich_proxied_file.write(escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def escape_output() -> None:
    """Escape what is printed from now on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, EscapingStream):
            setattr(sys, name, EscapingStream(stream))


@contextmanager
def escaping_output() -> Iterator[None]:
    """Escape what is printed in the body."""
    before = sys.stdout, sys.stderr
    escape_output()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def safe_console(*, stderr: bool = False) -> Any:
    """Return a rich console that escapes what it is given; needs rich."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        @property
        def file(self) -> Any:
            # While rich shows a bar it puts a stream of its own before the escaping one, and looks
            # through one of the two only: the codes that move the cursor would be escaped.
            stream: Any = super().file
            while isinstance(stream, EscapingStream):
                stream = stream.rich_proxied_file
            return stream

        @file.setter
        def file(self, stream: Any) -> None:
            Console.file.fset(self, stream)  # type: ignore[attr-defined]

        def render(self, renderable: Any, options: Any = None) -> Iterator[Any]:
            for segment in super().render(renderable, options):
                safe = segment.control or not UNSAFE.search(segment.text)
                yield segment if safe else Segment(escaped(segment.text), segment.style)

    return SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)

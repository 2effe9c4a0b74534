"""Damage to bytes, to ``.npy`` files and to trees of JSON, by a generator of random numbers."""

from __future__ import annotations

import copy
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

INTEGERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1)
INTEGERS += (2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**31), -(2**63), 10**30)
"""Whole numbers at which something overflows, wraps around or ends."""

NUMBERS = ("0", "-0", "1e308", "1e309", "-1e308", "5e-324", "1e-300", "nan", "-inf", "inf")
NUMBERS += (
    "1e",
    "0x10",
    "1_000",
    "٣",
    "1,5",
    "+1",
    " 1",
    "1.",
    ".5",
    "1e300",
    "99999999999999999999",
)
"""Numbers as text that is read differently here and there."""

JUNK: tuple[Any, ...] = (None, True, False, 0, -1, 1, 3, 0.5, -0.0, 1e300, 5e-324, "", "x", "nan")
JUNK += ("\x1b[31mred\x07", "a\nb", "é\u202e", [], {}, [[]], [0], [1, 2, 3], {"a": 1}, *INTEGERS)
"""Values of JSON that should not stand where they are put."""

Step = Callable[[Random, bytes], bytes]


def mutated(
    rng: Random, data: bytes, others: Sequence[bytes] = (), words: Sequence[bytes] = ()
) -> bytes:
    """Return bytes after one to four steps of damage.

    Parameters
    ----------
    rng : Random
        Where chance comes from.
    data : bytes
        What is damaged.
    others : sequence of bytes
        Other inputs of the kind, from which pieces are taken.
    words : sequence of bytes
        What means something in such an input.
    """
    steps: list[Step] = [_cut, _flip, _flip, _set_byte, _remove, _repeat, _swap, _set_integer]
    steps += [_insert_noise, _set_number]
    if others:
        steps.append(lambda rng, data: _spliced(rng, data, rng.choice(others)))
    if words:
        steps += 2 * [lambda rng, data: _inserted(rng, data, rng.choice(words))]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(steps)(rng, data)
    return data


def _span(rng: Random, data: bytes) -> tuple[int, int]:
    """Return the borders of a piece, short ones more often than long ones."""
    first = rng.randrange(len(data) + 1)
    return first, min(len(data), first + rng.randrange(1, 2 ** rng.randrange(1, 11)))


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _flip(rng: Random, data: bytes) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set_byte(rng: Random, data: bytes) -> bytes:
    first = rng.randrange(len(data) + 1)
    return data[:first] + bytes([rng.choice((0, 1, 127, 128, 255))]) + data[first + 1 :]


def _remove(rng: Random, data: bytes) -> bytes:
    first, last = _span(rng, data)
    return data[:first] + data[last:]


def _repeat(rng: Random, data: bytes) -> bytes:
    first, last = _span(rng, data)
    return data[:last] + data[first:last] * rng.choice((1, 1, 1, 30)) + data[last:]


def _swap(rng: Random, data: bytes) -> bytes:
    a, b = _span(rng, data)
    c, d = _span(rng, data)
    if c < b:
        return data
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _set_integer(rng: Random, data: bytes) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    if len(data) < width:
        return data
    number = rng.choice(INTEGERS) % 2 ** (8 * width)
    first = rng.randrange(len(data) - width + 1)
    content = number.to_bytes(width, rng.choice(("little", "big")))
    return data[:first] + content + data[first + width :]


def _insert_noise(rng: Random, data: bytes) -> bytes:
    return _inserted(rng, data, rng.randbytes(rng.randrange(1, 16)))


def _set_number(rng: Random, data: bytes) -> bytes:
    """Replace a number in text."""
    found = list(re.finditer(rb"-?\d+(?:\.\d*)?", data))
    if not found:
        return data
    match = rng.choice(found)
    text = rng.choice(NUMBERS) if rng.random() < 0.5 else str(rng.choice(INTEGERS))
    return data[: match.start()] + text.encode() + data[match.end() :]


def _inserted(rng: Random, data: bytes, word: bytes) -> bytes:
    first = rng.randrange(len(data) + 1)
    return data[:first] + word + data[first:]


def _spliced(rng: Random, data: bytes, other: bytes) -> bytes:
    a, b = _span(rng, data)
    c, d = _span(rng, other)
    return data[:a] + other[c:d] + data[b:]


# Trees of JSON


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value within a tree."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from places(value, (*path, key))


def at(tree: Any, path: Sequence[Any]) -> Any:
    """Return the value of a path."""
    for key in path:
        tree = tree[key]
    return tree


def mutated_tree(rng: Random, tree: Any, junk: Sequence[Any] = ()) -> Any:
    """Return a copy of a tree of JSON with one to three values changed, added or removed."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        paths = list(places(tree))
        if not paths:
            return rng.choice(JUNK)
        *home, key = rng.choice(paths)
        _change(
            rng, at(tree, home), key, [at(tree, rng.choice(paths)), *rng.sample(JUNK, 3), *junk]
        )
    return tree


def _change(rng: Random, inside: Any, key: Any, values: list[Any]) -> None:
    """Change one value of a dict or a list."""
    old, new = inside[key], copy.deepcopy(rng.choice(values))
    how = rng.randrange(7)
    if how == 0:
        del inside[key]
    elif how == 1:
        inside[key] = [copy.deepcopy(old), new]
    elif how == 2 and isinstance(inside, dict):
        inside[rng.choice(("x", "$tuple", "extra_", f"{key}_"))] = new
    elif how == 2:
        inside.insert(key, new)
    elif how == 3 and type(old) in (int, float):
        inside[key] = rng.choice((-old, old + 1, old - 1, old * 2, float(old), str(old), 10**6))
    elif how == 3 and isinstance(old, list):
        inside[key] = rng.choice((old[:-1], old[::-1], old + old[-1:], [old]))
    else:
        inside[key] = new


# .npy


def npy(header: bytes, content: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return an ``.npy`` file of any header, whose length is as it says."""
    form = "<H" if version == (1, 0) else "<I"
    start = 8 + struct.calcsize(form)
    header += b" " * (-(start + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack(form, len(header)) + header + content


def split_npy(data: bytes) -> tuple[bytes, bytes]:
    """Return header and content of an ``.npy`` file of version 1."""
    (length,) = struct.unpack("<H", data[8:10])
    return data[10 : 10 + length].rstrip(), data[10 + length :]


NPY_WORDS = (b"(", b")", b"'", b"[", b"{", b"<U500000000", b"|O", b"True", b"'shape'", b", ", b"#")
NPY_WORDS += (
    b"<f8",
    b">f4",
    b"<c16",
    b"|S0",
    b"<M8[ns]",
    b"|V4",
    b"-1",
    b"9" * 20,
    b"\\",
    b"1e9",
    b"None",
)


def mutated_npy(rng: Random, data: bytes) -> bytes:
    """Return a damaged ``.npy`` file; half of them are whole but for header or content."""
    if rng.random() < 0.3:
        return mutated(rng, data, words=NPY_WORDS)
    header, content = split_npy(data)
    if rng.random() < 0.7:
        header = _header(rng, header)
    if rng.random() < 0.4:
        content = mutated(rng, content)
    return npy(header, content, rng.choice(((1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (9, 0))))


def _header(rng: Random, header: bytes) -> bytes:
    if rng.random() < 0.4:
        return mutated(rng, header, words=NPY_WORDS)
    descr = rng.choice(
        ("<f8", ">f8", "<f4", "<f2", "|b1", "<i8", "|u1", "<c16", "<U3", "<U500000000")
    )
    shape = tuple(
        rng.choice((*INTEGERS, 2, 3, 8, 8, 24)) for _ in range(rng.choice((0, 1, 2, 2, 3, 40)))
    )
    order = rng.choice((True, False, 1, None))
    return f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()

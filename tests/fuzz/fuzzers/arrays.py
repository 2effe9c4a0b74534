"""Arrays: ``.npy`` and ``.npz`` files, beside what numpy reads."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzers.cases import ACCEPTED, REFUSED, Case, Target, require
from fuzzers.mutations import mutated, mutated_npy, npy
from fuzzers.reading import Rows, read

DTYPES = (
    "<f8",
    "<f8",
    "<f8",
    ">f8",
    "<f4",
    "<f2",
    "<i8",
    ">i2",
    "|u1",
    "|b1",
    "<U3",
    "<c16",
    "<M8[s]",
)


def _array(rng: Random, shape: tuple[int, ...] | None = None) -> bytes:
    """Return an ``.npy`` file, sometimes of Fortran order."""
    shape = shape or rng.choice(
        ((8, 3), (8, 3), (8, 3), (1, 1), (3, 0), (0, 3), (24,), (2, 3, 4), ())
    )
    dtype = np.dtype(rng.choice(DTYPES))
    values = np.array([rng.randrange(100) for _ in range(int(np.prod(shape)))])
    array = values.astype(np.int64 if dtype.kind == "M" else float).astype(dtype).reshape(shape)
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if rng.random() < 0.2 else array)
    return file.getvalue()


def _options(rng: Random, columns: Sequence[Any]) -> dict[str, Any]:
    """Return roles of columns; most often there are no weights."""
    return {"target": rng.choice(columns), "weight": rng.choice((*[None] * 20, *columns))}


class NpyTarget(Target):
    """``.npy`` files."""

    name = "npy"
    quick = 150

    def make(self, rng: Random) -> Case:
        """Return an array, damaged more often than not."""
        content = _array(rng)
        if rng.random() < 0.8:
            content = mutated_npy(rng, content)
        return Case({"data.npy": content}, _options(rng, (None, None, 0, 2, -1, "1", 10**30)))

    def usual(self) -> list[dict[str, Any]]:
        """Return files with and without labels."""
        return [{"target": 0}, {}]

    def check(self, case: Case, folder: Path) -> str:
        """Read it; numpy reads the same numbers, or nothing."""
        rows = read(case, folder)
        if rows is None:
            return REFUSED
        (name,) = case.files
        theirs = np.load(folder / name, allow_pickle=False)
        roles = [case.options.get(role) for role in ("target", "weight")]
        used = [int(role) % theirs.shape[1] for role in roles if role is not None]
        theirs = np.delete(theirs, used, axis=1)
        _compare(theirs, rows)
        return ACCEPTED


def _compare(theirs: Any, rows: Rows) -> None:
    with np.errstate(over="ignore"):
        expected = np.asarray(theirs).reshape(rows.X.shape).astype(rows.X.dtype)
    same = np.array_equal(expected, rows.X, equal_nan=True)
    require(same, f"numpy reads other numbers: {expected} there, {rows.X} here")


class NpzTarget(Target):
    """``.npz`` files."""

    name = "npz"
    quick = 120

    def make(self, rng: Random) -> Case:
        """Return a zip of arrays, some of them damaged, and damage some of the zips."""
        members = {"X.npy": _array(rng, (8, 3)), "y.npy": _array(rng, (8,))}
        for name in list(members):
            if rng.random() < 0.3:
                members[name] = mutated_npy(rng, members[name])
        if rng.random() < 0.1:
            odd = ("../x.npy", "/x.npy", ".npy", "X.npy", "a\n.npy", "deep/X.npy")
            members[rng.choice(odd)] = _array(rng)
        if rng.random() < 0.1:
            members.pop(rng.choice(list(members)))
        content = zipped(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
        if rng.random() < 0.4:
            content = mutated(rng, content)
        return Case({"data.npz": content}, _options(rng, (None, None, "y", "X", "x")))

    def check(self, case: Case, folder: Path) -> str:
        """Read it; numpy reads the same numbers, or nothing."""
        rows = read(case, folder)
        if rows is None:
            return REFUSED
        (name,) = case.files
        try:
            with np.load(folder / name, allow_pickle=False) as archive:
                matrices = {key: archive[key] for key in archive.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile):
            return ACCEPTED  # one of its checksums, or an array that is not used
        matrices = {key: value for key, value in matrices.items() if value.ndim >= 2}
        _compare(matrices.get("X", next(iter(matrices.values()))), rows)
        return ACCEPTED

    def forged(self) -> dict[str, Case]:
        """Return archives that cannot be stored small, or that are simplest to read as code."""
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (8, 3), }"
        good = npy(header, bytes(192))
        return {
            "a header that does not end": Case(
                {"data.npz": zipped({"X.npy": npy(header[:-3], bytes(192))})}
            ),
            "a compressed header that does not end": Case(
                {"data.npz": zipped({"X.npy": npy(header[:-3], b"")}, zipfile.ZIP_DEFLATED)}
            ),
            "the same name twice": Case({"data.npz": _twice("X.npy", good)}),
            "eight megabytes of zeros": Case(
                {"data.npz": zipped({"X.npy": npy(header, bytes(8 << 20))}, zipfile.ZIP_DEFLATED)}
            ),
        }


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip, whose bytes depend on its members alone."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return file.getvalue()


def _twice(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as archive:
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()

"""Checkpoints: what a fit has done so far, on disk, whole or not at all.

A checkpoint is a folder. ``fingerprint.json`` says what the fit is of; each ``*.state`` file holds
arrays and a few plain values: the arrays' bytes, a JSON index with their digest, and its length. A
file is written beside its name, flushed to disk and renamed, so that a kill at any moment leaves
the old one or the new one.

What tells one fit from another: the content of arrays, and what the last bit depends on.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import scipy
import sklearn

from polysift.runtime.outputs import array_chunks, replacing
from polysift.runtime.types import FloatArray


def machine_fingerprint() -> dict[str, str]:
    """Return what the last bit depends on besides data and parameters."""
    return {
        "processor": f"{platform.machine()} {_processor()}",
        "polysift": version("polysift"),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": _version_if_installed("numba"),
    }


def _version_if_installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    words = {key.strip(): value.strip() for key, value in fields.items()}
    return " ".join(words.get(key, "?") for key in ("model name", "cpu family", "model"))


def digest(*arrays: Any) -> str:
    """Return a short digest of arrays' contents."""
    total = hashlib.blake2b(digest_size=16)
    for array in arrays:
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


MAGIC = b"polysift-state-2"
LEAST_SECONDS = 2.0
"""The pause between two saves; it grows with the time a save takes, to a tenth of the work."""


class RowBlocks(Protocol):
    """An array whose blocks of rows lie elsewhere, one after the other.

    In a file it looks like any other array.
    """

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    def read(self) -> Iterator[FloatArray]:
        """Yield the blocks."""

    def write(self) -> Iterator[FloatArray]:
        """Yield empty blocks to be filled, each before the next is asked for."""


Into = Callable[[dict[str, Any]], Mapping[str, FloatArray | RowBlocks]]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: of another fit, or damaged.

    Examples
    --------
    >>> import tempfile
    >>> import polysift
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(1_000, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf = polysift.FPCClassifier(degree=2, checkpoint=folder, random_state=0).fit(X, y)
    ...     try:
    ...         clf.set_params(degree=3).fit(X, y)
    ...     except polysift.CheckpointError as error:
    ...         print(str(error).split(":")[1])
     its degree is '2', this fit's is '3'. Use another folder, or remove this one to start anew.
    """


class Checkpoint:
    """A folder of states of one fit.

    Parameters
    ----------
    folder : path
        Created if need be.
    fingerprint : dict
        Plain values that tell this fit from any other.
    """

    def __init__(self, folder: str | Path, fingerprint: dict[str, Any]) -> None:
        self._saved_at, self._cost = perf_counter(), 0.0
        try:
            self.folder = Path(folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / "lock", "w")  # noqa: SIM115 - held until close()
        except (OSError, TypeError) as error:
            raise CheckpointError(
                f"checkpoint={folder!r} is no folder that can be written to: {error}"
            ) from error
        if not _locked(self._lock):
            self._lock.close()
            raise CheckpointError(
                f"The checkpoint {self.folder} is in use by another fit. Wait for it, or give each "
                "fit a folder of its own (a search over parameters cannot share one)."
            )
        mark = json.loads(json.dumps(fingerprint | machine_fingerprint()))
        self._mark = hashlib.blake2b(json.dumps(mark, sort_keys=True).encode()).hexdigest()[:32]
        try:
            self._match(mark)
        except CheckpointError:
            self.close()
            raise

    def close(self) -> None:
        """Let others use the folder; the system does so, too, when the process ends."""
        self._lock.close()

    def due(self) -> bool:
        """Return whether it is time for another save."""
        return perf_counter() - self._saved_at > max(LEAST_SECONDS, 10 * self._cost)

    def path(self, name: str) -> Path:
        """Return the file of a state."""
        return self.folder / f"{name}.state"

    def save(
        self, name: str, arrays: Mapping[str, FloatArray | RowBlocks], values: dict[str, Any]
    ) -> None:
        """Write a state, replacing the one of that name."""
        began = perf_counter()
        write_state(self.path(name), arrays, values | {"fit": self._mark})
        self._saved_at = perf_counter()
        self._cost = self._saved_at - began

    def load(
        self, name: str, into: Into | None = None
    ) -> tuple[dict[str, FloatArray], dict[str, Any]] | None:
        """Return a state, or None where there is none; one that is damaged raises.

        ``into`` is given the plain values, and returns arrays to read those of the same name into.
        """
        path = self.path(name)
        if not path.exists():
            return None
        arrays, values = read_state(path, into)
        if values.get("fit") != self._mark:
            raise CheckpointError(
                f"The checkpoint {path} belongs to another fit; it was not used. Remove the folder "
                f"{self.folder} to start anew."
            )
        return arrays, values

    def drop(self, pattern: str) -> None:
        """Remove states that are no longer needed, by a pattern of their names."""
        for path in self.folder.glob(f"{pattern}.state"):
            path.unlink(missing_ok=True)

    def _match(self, fingerprint: dict[str, Any]) -> None:
        path = self.folder / "fingerprint.json"
        if not path.exists():
            with replacing(path) as partial:
                partial.write_text(json.dumps(fingerprint, indent=1))
            return
        try:
            found = json.loads(path.read_text())
            assert isinstance(found, dict)
        except (ValueError, AssertionError):
            raise CheckpointError(
                f"The checkpoint {self.folder} is damaged: {path.name} is not readable. Remove "
                "the folder to start anew."
            ) from None
        for key in sorted(fingerprint.keys() | found.keys()):
            if fingerprint.get(key) != found.get(key):
                raise CheckpointError(
                    f"The checkpoint {self.folder} belongs to another fit: its {key} is "
                    f"{found.get(key)!r}, this fit's is {fingerprint.get(key)!r}. Use another "
                    "folder, or remove this one to start anew."
                )


def _locked(file: Any) -> bool:
    """Lock an open file for this process, and return whether nobody else holds it."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def stored_seed(folder: Any) -> int | None:
    """Return the seed of the fit a checkpoint belongs to, where there is one."""
    try:
        seed = json.loads((Path(folder) / "fingerprint.json").read_text())["seed"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return seed if isinstance(seed, int) else None


def write_state(
    path: Path, arrays: Mapping[str, FloatArray | RowBlocks], values: dict[str, Any]
) -> None:
    """Write arrays and plain values as one file, atomically."""
    total = hashlib.blake2b(digest_size=16)
    index = []
    with replacing(path) as partial, open(partial, "wb") as file:
        file.write(MAGIC)
        for name, array in arrays.items():
            index.append([name, array.dtype.str, list(array.shape), file.tell()])
            blocks = [array] if isinstance(array, np.ndarray) else array.read()
            for block in blocks:
                for chunk in array_chunks(np.ascontiguousarray(block)):
                    total.update(chunk)
                    file.write(chunk)
        footer = {"arrays": index, "values": values}
        total.update(json.dumps(footer).encode())
        text = json.dumps(footer | {"digest": total.hexdigest()}).encode()
        file.write(text + len(text).to_bytes(8, "little"))


def read_rows(path: Path, name: str, rows: tuple[int, int]) -> FloatArray:
    """Return some rows of an array that this process has written, from first to before last."""
    with open(path, "rb") as file:
        end = file.seek(-8, os.SEEK_END)
        file.seek(end - int.from_bytes(file.read(8), "little"))
        index = json.loads(file.read(os.path.getsize(path) - 8 - file.tell()))["arrays"]
        kind, shape, offset = next(entry[1:] for entry in index if entry[0] == name)
        out = np.empty((rows[1] - rows[0], *shape[1:]), kind)
        file.seek(offset + rows[0] * out.itemsize * int(np.prod(shape[1:])))
        for chunk in array_chunks(out):
            file.readinto(chunk)
    return out


def read_state(
    path: Path, into: Into | None = None
) -> tuple[dict[str, FloatArray], dict[str, Any]]:
    """Read what ``write_state`` wrote; anything else raises ``CheckpointError``."""
    try:
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("it does not begin as it should")
            end = file.seek(-8, os.SEEK_END)
            length = int.from_bytes(file.read(8), "little")
            file.seek(end - length)
            footer = json.loads(file.read(length))
            expected = footer.pop("digest")
            total = hashlib.blake2b(digest_size=16)
            arrays: dict[str, FloatArray] = {}
            given: Mapping[str, FloatArray | RowBlocks]
            given = {} if into is None else into(footer["values"])
            for name, kind, shape, offset in footer["arrays"]:
                dtype = np.dtype(kind)
                size = int(np.prod(shape)) * dtype.itemsize
                if not 0 <= offset <= offset + size <= end:
                    raise ValueError("an array lies outside the file")
                file.seek(offset)
                array = given.get(name)
                if array is None:
                    array = np.empty(shape, dtype)
                elif array.dtype != dtype or list(array.shape) != shape:
                    raise ValueError("an array has another shape")
                blocks = [array] if isinstance(array, np.ndarray) else array.write()
                for block in blocks:
                    for chunk in array_chunks(block):
                        file.readinto(chunk)
                        total.update(chunk)
                if isinstance(array, np.ndarray):
                    arrays[name] = array
            total.update(json.dumps(footer).encode())
        if total.hexdigest() != expected:
            raise ValueError("its checksum is wrong")
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise CheckpointError(
            f"The checkpoint {path} is damaged ({error}); it was not used. Remove the folder "
            f"{path.parent} to start anew."
        ) from error
    return arrays, footer["values"]

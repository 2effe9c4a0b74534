"""Checkpoints: what a fit has done so far, on disk, whole or not at all.

A checkpoint is a folder. ``fingerprint.json`` says what the fit is of: its parameters, the content
of its data, and what the last bit of a model depends on besides. Each ``*.state`` file is an array
file (``runtime.arrays``): arrays and a few plain values with a digest, which replaces the one
before it only once it is on disk, so that a kill at any moment leaves the old one or the new one.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from polysift.runtime import clock
from polysift.runtime.arrays import Into, MalformedError, Storable, read_arrays, write_arrays
from polysift.runtime.locks import open_unlinked, try_lock
from polysift.runtime.outputs import replacing
from polysift.runtime.types import FloatArray

MIN_SECONDS_BETWEEN_SAVES = 2.0
SAVE_COST_MULTIPLE = 10
"""The pause between two saves is at least so many times as long as a save took."""


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
        Plain values that distinguish this fit from any other.
    """

    def __init__(self, folder: str | Path, fingerprint: dict[str, Any]) -> None:
        self._saved_at, self._cost, self._warned = clock.now(), 0.0, False
        try:
            self.folder = Path(folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = self.folder / "lock"
            self._lock = open(lock, "wb", opener=open_unlinked)  # noqa: SIM115 - held until close()
        except (OSError, TypeError) as error:
            raise CheckpointError(
                f"checkpoint={folder!r} is no folder that can be written to: {error}"
            ) from error
        if try_lock(self._lock) is False:
            self._lock.close()
            raise CheckpointError(
                f"The checkpoint {self.folder} is in use by another fit. Wait for it, or give each "
                "fit a folder of its own (a search over parameters cannot share one)."
            )
        plain = json.loads(json.dumps(fingerprint | machine_fingerprint()))
        self._fit = hashlib.blake2b(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]
        try:
            self._match(plain)
        except OSError as error:
            self.close()
            raise CheckpointError(
                f"The checkpoint {self.folder} cannot be written to: {error}"
            ) from error
        except CheckpointError:
            self.close()
            raise

    def close(self) -> None:
        """Let others use the folder; the system does so, too, when the process ends."""
        self._lock.close()

    def due(self) -> bool:
        """Return whether it is time for another save."""
        return clock.now() - self._saved_at > max(
            MIN_SECONDS_BETWEEN_SAVES, SAVE_COST_MULTIPLE * self._cost
        )

    def path(self, name: str) -> Path:
        """Return the file of a state."""
        return self.folder / f"{name}.state"

    def save(self, name: str, arrays: Mapping[str, Storable], values: dict[str, Any]) -> bool:
        """Write a state, replacing the one of that name; return whether it is on disk.

        A disk that is full or fails does not end the fit: the state before stays, a warning says so
        once, and the next save tries again.
        """
        began = clock.now()
        try:
            write_arrays(self.path(name), arrays, values | {"fit": self._fit})
            saved = True
        except OSError as error:
            saved = False
            self._warn(self.path(name), error)
        self._saved_at = clock.now()
        self._cost = self._saved_at - began
        return saved

    def _warn(self, path: Path, error: OSError) -> None:
        if self._warned:
            return
        self._warned = True
        kept = (
            "the state that was saved before stays" if path.exists() else "nothing is saved so far"
        )
        warnings.warn(
            f"The checkpoint {path} could not be written: {error}. The fit goes on without it, and "
            f"the next save tries again; {kept}. Free some space there.",
            RuntimeWarning,
            stacklevel=3,
        )

    def load(
        self, name: str, into: Into | None = None
    ) -> tuple[dict[str, FloatArray], dict[str, Any]] | None:
        """Return a state, or None where there is none; one that is damaged raises.

        ``into`` is given the plain values, and returns arrays to read those of the same name into.
        """
        path = self.path(name)
        if not path.exists():
            return None
        try:
            arrays, values = read_arrays(path, into)
        except (MalformedError, OSError) as error:
            what = f"it {error}" if isinstance(error, MalformedError) else error
            raise CheckpointError(
                f"The checkpoint {path} is damaged ({what}); it was not used. Remove the folder "
                f"{path.parent} to start anew."
            ) from error
        if values.get("fit") != self._fit:
            raise CheckpointError(
                f"The checkpoint {path} belongs to another fit; it was not used. Remove the folder "
                f"{self.folder} to start anew."
            )
        return arrays, values

    @contextmanager
    def using(self, name: str) -> Iterator[None]:
        """Raise CheckpointError where a state holds something else than was saved in it."""
        try:
            yield
        except CheckpointError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint {self.path(name)} is damaged: it does not hold what a fit saves "
                f"there ({type(error).__name__}: {error}). Remove the folder {self.folder} to "
                "start anew."
            ) from error

    def drop(self, pattern: str) -> None:
        """Remove states that are no longer needed, by a pattern of their names."""
        for path in self.folder.glob(f"{pattern}.state"):
            path.unlink(missing_ok=True)

    def _match(self, fingerprint: dict[str, Any]) -> None:
        path = self.folder / "fingerprint.json"
        if not path.exists():
            with replacing(path) as file:
                file.write(json.dumps(fingerprint, indent=1).encode())
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


def stored_seed(folder: Any) -> int | None:
    """Return the seed of the fit a checkpoint belongs to, where there is one."""
    try:
        seed = json.loads((Path(folder) / "fingerprint.json").read_text())["seed"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return seed if isinstance(seed, int) else None

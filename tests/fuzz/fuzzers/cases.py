"""Cases, and what makes and judges them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from scipy.linalg import LinAlgWarning

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
ABOUT = "case.json"
"""The file of a stored case that says what it is of, and its options."""

ACCEPTED, REFUSED = "accepted", "refused"


class Finding(Exception):
    """What must not come of a case."""


@dataclass(frozen=True)
class Case:
    """An input.

    Attributes
    ----------
    files : dict of str to bytes
        The files, by their names in the folder in which the case is run.
    options : dict
        How they are used, as JSON holds it.
    """

    files: dict[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the files into a folder."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class Target:
    """What is fuzzed: a reader, a command.

    Attributes
    ----------
    name : str
        Its name, and that of its folder of the corpus.
    needs : tuple of str
        Packages without which there is nothing to fuzz.
    share : int
        How often its turn comes in a session, beside the others.
    quick : int
        How many cases ``make test`` runs.
    """

    name: str
    needs: tuple[str, ...] = ()
    share = 2
    quick = 100

    def make(self, rng: Random) -> Case:
        """Return a new case; it depends on nothing but the generator."""
        raise NotImplementedError

    def check(self, case: Case, folder: Path) -> str:
        """Try a case, whose files are in the folder, and return ``ACCEPTED`` or ``REFUSED``.

        Raises ``Finding``, or whatever else must not be raised.
        """
        raise NotImplementedError

    def forged(self) -> dict[str, Case]:
        """Return the cases of the corpus that are made by code, by name."""
        return {}

    def of_file(self, path: Path) -> list[Case]:
        """Return the cases of a file of the corpus: one, or one for each of some options."""
        return [Case({path.name: path.read_bytes()}, options) for options in self.usual()]

    def usual(self) -> list[dict[str, Any]]:
        """Return the options with which a file of the corpus is tried."""
        return [{}]

    def available(self) -> bool:
        """Return whether the packages are there."""
        return all(map(find_spec, self.needs))

    def case(self, seed: int, number: int) -> Case:
        """Return the case of a number, which is always the same."""
        return self.make(Random(f"{self.name} {seed} {number}"))

    def corpus(self) -> list[tuple[str, int]]:
        """Return the kept cases: the name of each, and its number among those of the name."""
        kept = CORPUS / self.name
        paths = sorted(kept.iterdir()) if kept.is_dir() else []
        files = [(path.name, k) for path in paths for k in range(len(self.kept(path.name)))]
        return [*files, *((name, 0) for name in self.forged_names())]

    def forged_names(self) -> list[str]:
        """Return the names of ``forged``, which may take time."""
        return list(self.forged())

    def kept(self, name: str) -> list[Case]:
        """Return the cases of a name of the corpus, or of a path."""
        path = CORPUS / self.name / name
        if not path.exists():
            path = Path(name)
        if path.is_dir():
            return [stored(path)]
        return self.of_file(path) if path.is_file() else [self.forged()[name]]


def stored(folder: Path) -> Case:
    """Return a case that was stored in a folder."""
    about = json.loads((folder / ABOUT).read_text())
    paths = [path for path in folder.rglob("*") if path.is_file()]
    own = (ABOUT, "finding.txt")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}
    return Case({k: v for k, v in files.items() if k not in own}, about["options"])


def store(case: Case, target: str, folder: Path, text: str) -> None:
    """Keep a case and what came of it in a folder, as ``stored`` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    case.write(folder)
    about = {"target": target, "options": case.options}
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n")
    (folder / "finding.txt").write_text(text, errors="backslashreplace")


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Raise warnings that no user should see; those on models and fits are none of these."""
    kinds = (RuntimeWarning, DeprecationWarning, FutureWarning, SyntaxWarning, UnicodeWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            warnings.simplefilter("error", kind)
        warnings.simplefilter("ignore", LinAlgWarning)  # it is ours, and a RuntimeWarning
        yield


def require(holds: Any, text: str) -> None:
    """Raise a finding unless something holds."""
    if not holds:
        raise Finding(text)


CONTROL = {*range(32), *range(127, 160)} - {9, 10}
"""What must not reach a terminal from a file: it could move the cursor, or hide what is printed."""


def require_printable(text: str, where: str) -> None:
    """Raise a finding if text would do something to a terminal."""
    found = sorted({character for character in text if ord(character) in CONTROL})
    require(not found, f"{where} holds control characters {found!r}: {text[:300]!r}")

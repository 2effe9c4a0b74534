"""Checkpoints: damaged and forged states, from which a fit goes on or which it refuses."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzers.cases import ACCEPTED, REFUSED, Case, Finding, Target, require, strict_warnings
from fuzzers.mutations import mutated, mutated_tree

FOLDER = "kept"
MAGIC = b"polysift-state-3"
DIGEST, LENGTH = 16, 8
Files = dict[str, bytes]

FITS = ("paper", "converged", "newton", "search")


def _estimator(fit: str) -> Any:
    import polysift

    if fit == "search":
        lists = {"degrees": [1, 2], "n_centers": [4], "scalers": "minmax", "rhos": [None]}
        search = polysift.FPCClassifierCV(**lists, cv=2, solvers=["paper"], random_state=0)
        return search.set_params(checkpoint=FOLDER, n_jobs=1)
    more: dict[str, Any] = {
        "paper": {"max_iter": 3},
        "converged": {"solver": "converged", "max_iter": 6},
        "newton": {"solver": "newton", "calibration": "sigmoid", "max_iter": 6},
    }[fit]
    small = polysift.PAPER | {"degree": 2, "n_centers": 4}
    clf = polysift.FPCClassifier(**small, random_state=0, checkpoint=FOLDER, n_jobs=1)
    return clf.set_params(**more)


def _fitted(fit: str) -> Any:
    """Fit in the current folder, with a save after each step, on any machine the same."""
    from polysift.runtime import checkpoints

    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    kept = checkpoints.Checkpoint.due, checkpoints.machine_fingerprint
    checkpoints.Checkpoint.due = lambda self: True  # type: ignore[method-assign]
    checkpoints.machine_fingerprint = dict  # type: ignore[assignment]
    try:
        return _estimator(fit).fit(X, (X.sum(axis=1) > 1).astype(int))
    finally:
        checkpoints.Checkpoint.due, checkpoints.machine_fingerprint = kept  # type: ignore[method-assign]


@cache
def stages(fit: str) -> list[Files]:
    """Return the folder of a fit after each of its saves."""
    import os

    from polysift.runtime.checkpoints import Checkpoint

    found: list[Files] = []
    save = Checkpoint.save

    def noted(self: Any, *args: Any) -> None:
        save(self, *args)
        files = sorted(Path(FOLDER).iterdir())
        found.append({f"{FOLDER}/{path.name}": path.read_bytes() for path in files})

    before = os.getcwd()
    with tempfile.TemporaryDirectory(dir=before) as folder:
        os.chdir(folder)
        Checkpoint.save = noted  # type: ignore[method-assign]
        try:
            with strict_warnings():
                _fitted(fit)
        finally:
            Checkpoint.save = save  # type: ignore[method-assign]
            os.chdir(before)
    return found


def opened(data: bytes) -> tuple[bytes, Any]:
    """Return the arrays' bytes of a state and its index."""
    length = int.from_bytes(data[-LENGTH:], "little")
    end = len(data) - LENGTH - DIGEST
    return data[: end - length], json.loads(data[end - length : end])


def closed(content: bytes, index: Any) -> bytes:
    """Return a state with right digests, as far as the index says where its arrays are."""
    if isinstance(index, dict) and isinstance(index.get("digest"), str):
        index = index | {"digest": _content_digest(content, index.get("arrays"))}
    text = json.dumps(index).encode()
    digest = hashlib.blake2b(text, digest_size=DIGEST).digest()
    return content + text + digest + len(text).to_bytes(LENGTH, "little")


def _content_digest(content: bytes, arrays: Any) -> str:
    """Return the digest of the arrays in the order of the index, or of what is there."""
    total = hashlib.blake2b(digest_size=DIGEST)
    try:
        for entry in arrays.values():
            size = int(np.prod(entry["shape"])) * np.dtype(entry["dtype"]).itemsize
            total.update(content[entry["offset"] : entry["offset"] + size])
    except Exception:  # of a forged index, and of whatever NumPy makes of its dtypes
        return hashlib.blake2b(content[len(MAGIC) :], digest_size=DIGEST).hexdigest()
    return total.hexdigest()


class CheckpointTarget(Target):
    """Checkpoints."""

    name = "checkpoint"
    quick = 120

    def make(self, rng: Random) -> Case:
        """Return the folder of an interrupted fit, of which one file is damaged."""
        fit = rng.choice(FITS)
        files = dict(rng.choice(stages(fit)))
        name = rng.choice([name for name in sorted(files) if not name.endswith("lock")])
        if not name.endswith(".state"):
            files[name] = _damaged_json(rng, files[name])
        elif rng.random() < 0.25:
            files[name] = mutated(rng, files[name], list(files.values()))
        else:
            content, index = opened(files[name])
            files[name] = closed(content, mutated_tree(rng, index))
        return Case(files, {"fit": fit})

    def check(self, case: Case, folder: Path) -> str:
        """Continue the fit; it is refused with the name of the folder, or gives a model."""
        from polysift import CheckpointError

        try:
            model = _fitted(case.options["fit"])
        except CheckpointError as error:
            require(FOLDER in str(error), f"the message does not name the folder: {error}")
            return REFUSED
        best = getattr(model, "best_estimator_", model)
        if not np.isfinite(best.coef_).all():
            raise Finding("a fit goes on to coefficients that are not finite")
        return ACCEPTED

    def forged_names(self) -> list[str]:
        """Return the names of ``FORGED``."""
        return list(FORGED)

    def forged(self) -> dict[str, Case]:
        """Return states whose digests are right and whose index is not."""
        return {name: _forged(*how) for name, how in FORGED.items()}


def _damaged_json(rng: Random, text: bytes) -> bytes:
    if rng.random() < 0.4:
        return mutated(rng, text)
    return json.dumps(mutated_tree(rng, json.loads(text))).encode()


def _forged(fit: str, state: str, change: Callable[[Any], Any]) -> Case:
    """Return a checkpoint in the middle of a fit whose state has another index."""
    every = [files for files in stages(fit) if f"{FOLDER}/{state}.state" in files]
    files = dict(every[len(every) // 2])
    content, index = opened(files[f"{FOLDER}/{state}.state"])
    files[f"{FOLDER}/{state}.state"] = closed(content, change(index))
    return Case(files, {"fit": fit})


def _without(*path: str) -> Callable[[Any], Any]:
    def change(index: Any) -> Any:
        inside = index
        for key in path[:-1]:
            inside = inside[key]
        del inside[path[-1]]
        return index

    return change


def _with(value: Any, *path: str) -> Callable[[Any], Any]:
    def change(index: Any) -> Any:
        inside = index
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value
        return index

    return change


FORGED: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "no list of arrays": ("paper", "solver", _without("arrays")),
    "no digest": ("paper", "solver", _without("digest")),
    "no values": ("paper", "gram", _without("values")),
    "an index that is a list": ("paper", "gram", lambda index: [index]),
    "no number of shards": ("paper", "gram", _without("values", "shards")),
    "no counts": ("paper", "gram", _without("values", "counts")),
    "no living problems": ("paper", "solver", _without("values", "alive")),
    "an array without an offset": ("paper", "gram", _without("arrays", "G0", "offset")),
    "an array before the file": ("paper", "gram", _with(-8, "arrays", "G0", "offset")),
    "a status that is none": ("converged", "solver", _with(["NONE"], "values", "status")),
    "an array less": ("converged", "solver", _without("arrays", "u-0")),
    "a search without rows": ("search", "search", _without("values", "rows")),
    "a search that has done nothing known": (
        "search",
        "search",
        _with([["x", 1]], "values", "done"),
    ),
}

"""Checkpoints whose checksums are right and whose content is not: always a CheckpointError."""

from __future__ import annotations

import json
import shutil
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from polysift import CheckpointError, FPCClassifierCV
from polysift.runtime import checkpoints
from polysift.runtime.arrays import read_arrays, write_arrays
from problems import noisy_problem, paper_classifier

X, Y = noisy_problem(np.random.default_rng(0), 1500, 2)
FITS = {
    "paper": paper_classifier(2, max_iter=3, tol=1e-300),
    "three classes": paper_classifier(2, max_iter=2, solver="converged", tol=0),
    "newton": paper_classifier(2, solver="newton", max_iter=3, tol=0),
    "sampled": paper_classifier(2, gram="sampled", n_centers=5, tol=1e-300),
    "calibrated": paper_classifier(1, calibration="sigmoid"),
    "search": FPCClassifierCV((1, 2), n_centers=4, scalers="minmax", cv=2, max_iter=(5, 10)),
}
ODD_VALUES = (None, "odd", -7, 0.5, [], {}, [[None]], True)


@pytest.fixture(autouse=True)
def save_always(monkeypatch):
    monkeypatch.setattr(checkpoints.Checkpoint, "due", lambda self: True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fit(name, folder):
    labels = Y if name != "three classes" else Y + (X[:, 0] > 0.5)
    return FITS[name].set_params(checkpoint=folder, random_state=0, n_jobs=1).fit(X, labels)


def without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


def forged_arrays(arrays):
    """Yield arrays with one of them removed, of another shape or of another dtype."""
    for name, array in arrays.items():
        yield without(arrays, name)
        for other in (array[..., :-1], array.astype(np.float32), np.zeros(3), array[None]):
            yield arrays | {name: np.ascontiguousarray(other)}
        yield arrays | {name: np.array(["text"])}


def forged_values(values):
    """Yield plain values with one of them, at any depth, removed or replaced."""
    for key in [key for key in values if key != "fit"]:
        yield without(values, key)
        for path in list(paths(values[key]))[:40]:
            for odd in ODD_VALUES:
                copy = json.loads(json.dumps(values))
                place, last = copy, key
                for step in path:
                    place, last = place[last], step
                if type(place[last]) is not type(odd):
                    place[last] = odd
                    yield copy


def paths(value):
    """Yield the paths to all parts of a plain value."""
    yield ()
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from ((key, *path) for path in paths(part))


@pytest.mark.parametrize("name", FITS)
def test_forged_states_are_refused(name, tmp_path):
    model = fit(name, tmp_path / "whole")
    expected = model.decision_function(X)
    rng = np.random.default_rng(0)
    tried = refused = 0
    for path in sorted((tmp_path / "whole").glob("*.state")):
        arrays, values = read_arrays(path)
        cases = [(a, values) for a in forged_arrays(arrays)]
        cases += [(arrays, v) for v in forged_values(values)]
        for i in rng.permutation(len(cases))[:60]:
            folder = tmp_path / "forged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(tmp_path / "whole", folder)
            write_arrays(folder / path.name, *cases[i])
            tried += 1
            try:
                found = fit(name, folder)
            except CheckpointError:
                refused += 1
            else:  # what is not used any more, or another number of the same kind
                assert np.isfinite(found.decision_function(X)).all()
                assert found.decision_function(X).shape == expected.shape
    assert tried > 50 and refused > tried / 2

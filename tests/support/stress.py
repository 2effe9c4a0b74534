"""The tests once more under other conditions: with another seed, and in the least memory."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps

import numpy as np
import pytest

from polysift.engine import budget
from polysift.engine.backend import LocalBackend

LEAST = budget.Execution(1, 1, spill=True)
"""The execution that takes the least memory."""


def shift_seeds(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Let every generator that is made from an integer be another one, in tests and package."""
    original = np.random.default_rng

    @wraps(original)
    def default_rng(given=None):
        return original([seed, given] if isinstance(given, int | np.integer) else given)

    patch.setattr(np.random, "default_rng", default_rng)


def take_least_memory(patch: pytest.MonkeyPatch) -> None:
    """Let the memory limit of every fit in this process be the smallest that it can do with.

    So it is done by one thread, its features are computed again in each pass, and its state is in
    a temporary file.
    """

    def fit_in(limit, shape, threads, **options):
        least = budget.peak_bytes(shape, LEAST)
        return budget.fit_in(min(limit, least), shape, threads, **options)

    def fit_problems(limit, shape, per_candidate, wanted, threads, **options):
        one = replace(shape, problems=per_candidate)
        limit = min(limit, budget.peak_bytes(one, LEAST))
        return budget.fit_problems(limit, shape, per_candidate, wanted, threads, **options)

    patch.setattr(LocalBackend, "fit_in", staticmethod(fit_in))
    patch.setattr(LocalBackend, "fit_problems", staticmethod(fit_problems))

"""The ladders of the comparison with rivals: for each data set, models of growing cost.

Scalers and degrees of polysift, and the widths of the rivals' kernels, were looked up on a few
thousand rows: for each system one width for all rungs of a data set.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.systems import Params

TREES = (20, 50, 100, 300, 1000)

WIDTHS: dict[str, tuple[float, float, float]] = {
    "magic": (1.0, 1.0, 0.5),
    "skin": (0.5, 30.0, 30.0),
    "covtype_binary": (1.0, 1.0, 1.0),
    "smooth": (2.0, 0.1, 0.05),
}
"""FALKON's sigma relative to the median distance; gamma of Nystroem and RBFSampler times d."""

SIZES = (200, 500, 1000, 2000)


def _ours(scaler: str, *models: tuple[int, int]) -> list[Params]:
    return [{"degree": degree, "n_centers": n, "scaler": scaler} for degree, n in models]


OURS: dict[str, tuple[list[Params], list[Params]]] = {
    "magic": (
        _ours("quantile", (2, 66), (3, 150), (3, 286), (5, 500), (7, 1000)),
        _ours("quantile", (2, 66), (3, 150), (3, 200), (3, 240), (3, 286), (4, 500)),
    ),
    "skin": (
        _ours("standard", (4, 35), (6, 84), (10, 286), (14, 680)),
        _ours("standard", (2, 10), (3, 20), (4, 35), (5, 56), (6, 84), (8, 165)),
    ),
    "covtype_binary": (
        _ours("standard", (2, 300), (3, 600), (4, 1000), (6, 1500), (6, 2000), (6, 3000)),
        _ours("minmax", (3, 200), (3, 300), (3, 400), (3, 600), (3, 1000), (3, 1500)),
    ),
    "smooth": (
        _ours("standard", (2, 100), (2, 231), (3, 500), (3, 1771)),
        _ours("standard", (2, 100), (2, 231), (3, 1000)),
    ),
}
"""The ladders of the paper's solver, and of Newton's method with either tolerance."""


def ladders(data: str, size: str) -> dict[str, list[Params]]:
    """Return the ladder of each system for a data set; in the smallest runs, its first rung."""
    sigma, nystroem, fourier = WIDTHS[data]
    paper, newton = OURS[data]
    found = {
        "paper": paper,
        "newton": newton,
        "rough": newton,
        "falkon": [
            rung | {"n_iter": n_iter}
            for rung in _rungs("n_centers", SIZES, sigma_scale=sigma)
            for n_iter in (10, 20)
        ],
        "nystroem": _rungs("n_components", (50, *SIZES), gamma_scale=nystroem),
        "rbf_sampler": _rungs("n_components", SIZES, gamma_scale=fourier),
        "count_sketch": _rungs("n_components", (50, *SIZES), degree=2),
        "lightgbm": _rungs("n_estimators", TREES),
        "hist_gb": _rungs("max_iter", TREES),
    }
    if size == "tiny":
        return {system: found[system][:1] for system in ("paper", "rbf_sampler", "hist_gb")}
    return {system: ladder[: {"quick": 2, "full": 10}[size]] for system, ladder in found.items()}


def _rungs(name: str, values: Sequence[int], **others: float) -> list[Params]:
    return [{name: value, **others} for value in values]

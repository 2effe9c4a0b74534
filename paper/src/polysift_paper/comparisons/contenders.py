"""The systems that are compared: FPC as the paper runs it, our tuned classifier, the rivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.features.kernels import degree_bound, full_dimension
from polysift.runtime.types import FloatArray
from polysift_paper.algorithm import TEXT, VARIANTS, Variant
from polysift_paper.comparisons.case import Case
from polysift_paper.rivals import METHODS, Method

Params = dict[str, Any]

GRIDS = ("quick", "coarse", "full")
"""How many candidates a method has: a few, the default, the paper's."""

WIDE_FROM_FEATURES = 50
"""From so many features on, polynomials of degree 2 alone have more dimensions than a search tries
by default: few degrees and many centers pay there, and the first iterates are good enough."""

WIDE_CANDIDATES: Params = {"degrees": (1, 2, 3), "solvers": "paper"}
WIDE_CENTERS = (1000, 3000, 10_000)

FOLDS_BELOW_ROWS = 10_000
"""With fewer rows to choose by than that, a single validation part is a matter of luck."""

QUICK_CANDIDATES: Params = {"rhos": (None, 1e-6), "max_iter": (30, 100)}


@dataclass(frozen=True)
class Effort:
    """How far a selection goes.

    Attributes
    ----------
    grid : {"quick", "coarse", "full"}
        How many candidates.
    limit : float or None
        Seconds for a candidate. Where candidates are fitted together, as those of one scaler and
        degree are, it is for all of them.
    threads : int or None
        How many; None is as many as there are cores.
    seed : int
        Of all random numbers.
    """

    grid: str = "coarse"
    limit: float | None = None
    threads: int | None = 1
    seed: int = 0


@dataclass(frozen=True)
class SearchResult:
    """What a search found, and whether it got to its end."""

    params: Params
    finished: bool


def no_centers(_X: FloatArray, _params: Params) -> Params:
    """Return nothing: a system finds its own centers."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A system, and how its parameters are chosen.

    Attributes
    ----------
    name, title : str
        What a user types, and what tables print.
    in_paper : bool
        Whether the paper has it.
    candidates : callable
        Takes the numbers of training rows and of features and one of ``GRIDS``; returns parameters
        to choose from, in the order in which they are tried.
    build : callable
        Takes ``random_state`` and the parameters by name, returns an estimator.
    costs : tuple of str
        Parameters that make a fit slower as they grow: when a candidate was too slow, those that
        have at least as much of each are not tried.
    search : callable
        Chooses by itself, where there are no candidates to try: takes a case and an effort, returns
        what it found.
    centers : callable
        Takes training rows and the parameters, returns the centers among these rows, if it has any.
    whole : bool
        Whether columns are scaled over all parts together.
    """

    name: str
    title: str
    in_paper: bool
    candidates: Callable[[int, int, str], list[Params]] | None = None
    build: Callable[..., Any]
    costs: tuple[str, ...] = ()
    search: Callable[[Case, Effort], SearchResult] | None = None
    centers: Callable[[FloatArray, Params], Params] = no_centers
    whole: bool = False


def contenders() -> dict[str, Contender]:
    """Return all systems by name, in the order of the paper's tables, FPC last, then ours."""
    found = [_rival(method) for method in METHODS.values()]
    inside = [one for one in found if one.in_paper]
    outside = [one for one in found if not one.in_paper]
    fpc = [_fpc(variant) for variant in VARIANTS.values()]
    return {one.name: one for one in (*inside, *fpc, *OURS, *outside)}


def contender(name: str, sizes: Sequence[int] | None = None) -> Contender:
    """Return a system by name; with numbers of centers, FPC chooses among these alone."""
    if name in VARIANTS and sizes:
        search = partial(search_sizes, sizes=sizes, variant=VARIANTS[name])
        return replace(_fpc(VARIANTS[name]), candidates=None, search=search)
    return contenders()[name]


def _rival(method: Method) -> Contender:
    def candidates(_rows: int, _features: int, grid: str) -> list[Params]:
        return [dict(one) for one in getattr(method, grid)]

    return Contender(
        name=method.name,
        title=method.title,
        in_paper=method.in_paper,
        candidates=candidates,
        build=method.build,
        costs=method.costs,
    )


def _fpc(variant: Variant) -> Contender:
    def candidates(rows: int, features: int, _grid: str) -> list[Params]:
        return variant.candidates(rows, features)

    return Contender(
        name=variant.name,
        title=variant.title,
        in_paper=variant is TEXT,
        candidates=candidates,
        build=partial(variant.classifier, n_jobs=1),
        costs=("degree", "n_centers"),
        centers=variant.centers,
        whole=variant.whole,
    )


def build_polysift(random_state: Any = 0, **params: Any) -> FPCClassifier:
    """Return a classifier with the parameters that a search has found."""
    return FPCClassifier(**{"n_jobs": 1, "random_state": random_state, **params})


def search_polysift(case: Case, effort: Effort, scoring: str) -> SearchResult:
    """Return the best parameters on the validation rows, by "accuracy" or "roc_auc".

    With few rows, the best by five folds of the training and validation rows together, which the
    search can do for little more; of models whose accuracy is within one standard error of the
    best, the smallest. The model is fitted to the training rows in any case.
    """
    rows, features = len(case.train), case.X.shape[1]
    wide = features >= WIDE_FROM_FEATURES
    options: Params = dict(QUICK_CANDIDATES) if effort.grid == "quick" else {}
    if wide:
        centers = sorted({min(n, rows) for n in WIDE_CENTERS})
        options |= {**WIDE_CANDIDATES, "n_centers": centers}
    pairs = 2 * max(degree_bound(rows, features), 5)
    small = rows + len(case.validation) < FOLDS_BELOW_ROWS and not wide
    if small and scoring == "accuracy":
        options["one_standard_error"] = True
    return _searched(case, effort, 5 if small else None, pairs, scoring=scoring, **options)


def search_plain(_case: Case, _effort: Effort) -> SearchResult:
    """Return no parameters: a plain fit chooses for itself."""
    return SearchResult({}, True)


def search_sizes(
    case: Case, effort: Effort, sizes: Sequence[int], variant: Variant = TEXT
) -> SearchResult:
    """Return the paper's choice among numbers of centers.

    The paper does not print the degree: it is the least whose polynomials have so many dimensions,
    since with a lower one all these numbers would come to the same. Centers are nested, so that one
    Gram matrix serves all.
    """
    degree = next(s for s in count(1) if full_dimension(s, case.X.shape[1]) >= max(sizes))
    settings = variant.settings
    return _searched(
        case,
        effort,
        None,
        len(sizes),
        degrees=[degree],
        n_centers=sorted(sizes),
        scalers=settings["scaler"],
        rhos=None,
        solvers="paper",
        screen=False,
        **{name: settings[name] for name in ("centers", "alpha", "beta", "tol")},
    )


def _searched(
    case: Case, effort: Effort, cv: int | None, times: int, **options: Any
) -> SearchResult:
    """Search by folds or on the validation rows."""
    both = np.concatenate([case.train, case.validation])
    split = np.arange(len(case.train)), np.arange(len(case.train), len(both))
    search = FPCClassifierCV(
        cv=cv or [split],
        refit=False,
        n_jobs=effort.threads,
        random_state=effort.seed,
        time_limit=None if effort.limit is None else effort.limit * times,
        **options,
    )
    search.fit(*case.of(both))
    return SearchResult(search.best_params_, search.status_ == "finished")


OURS = tuple(
    Contender(name=name, title=title, in_paper=False, build=build_polysift, search=search)
    for name, title, search in (
        ("polysift", "polysift", partial(search_polysift, scoring="accuracy")),
        ("polysift_auc", "polysift (AUC)", partial(search_polysift, scoring="roc_auc")),
        ("polysift_plain", "polysift, plain", search_plain),
    )
)
"""Our classifier: tuned for the accuracy, tuned for the AUC, and with nothing set."""

"""The table of rivals: what each is, how it is built, and the candidates that a search tries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from polysift_paper.rivals import builders

Candidates = tuple[dict[str, Any], ...]

COARSE_EXPONENTS, FULL_EXPONENTS = (-5, -2, 2, 5), range(-5, 6)
"""C and gamma of the kernel SVMs are two to the power of these; the paper's go from -5 to 5."""

COARSE_SIZES, FULL_SIZES = (200, 600, 1000, 2000), range(200, 2001, 200)
"""Numbers of centers or random features; the paper's are 200, 400, ..., 2000."""

LOSS_WEIGHTS = (1.0, 10.0, 100.0)
"""C of PROX-PFGM: the paper names no candidates, and the best of these differs with the data."""

SIGMA_SCALES = (0.25, 0.5, 1.0)
"""Widths of the Gaussian kernel as multiples of the median distance: the literature tunes them."""


@dataclass(frozen=True)
class Method:
    """A rival and its candidates.

    Attributes
    ----------
    name : str
        How code calls it, such as "svm_rbf".
    title : str
        How the tables of the paper call it, such as "SVM-RBF".
    about : str
        A sentence on what it is and where it is from.
    in_paper : bool
        Whether the paper has it.
    build : callable
        ``build(random_state=0, **params)`` returns an estimator that is not fitted.
    coarse : tuple of dict
        The candidates of a search by default, cheap ones first.
    full : tuple of dict
        The candidates of the paper, cheap ones first.
    costs : tuple of str
        The parameters whose growth makes a fit slower, in the order in which candidates are sorted;
        none where that depends on the data.
    quick : tuple of dict
        A few of the coarse candidates, for a fast look.

    Examples
    --------
    >>> from polysift_paper.rivals import METHODS
    >>> falkon = METHODS["falkon"]
    >>> falkon.title, falkon.in_paper, len(falkon.quick) <= len(falkon.coarse) <= len(falkon.full)
    ('FALKON', True, True)
    """

    name: str
    title: str
    about: str
    in_paper: bool
    build: Callable[..., Any]
    coarse: Candidates
    full: Candidates
    costs: tuple[str, ...]
    quick: Candidates


def _grid(**values: Any) -> Candidates:
    """Return all combinations; the last name varies fastest."""
    return tuple(dict(zip(values, row, strict=True)) for row in product(*values.values()))


def _powers(exponents: Iterable[int]) -> tuple[float, ...]:
    """Return powers of two."""
    return tuple(2.0**e for e in exponents)


def _by_size(candidates: Candidates) -> Candidates:
    """Sort by ``C (1 + gamma)^degree``: LIBSVM's steps grow with C times the kernel's values."""
    return tuple(sorted(candidates, key=lambda p: p["C"] * (1.0 + p["gamma"]) ** p["degree"]))


def _kernel_svms() -> list[Method]:
    few, many = _powers(COARSE_EXPONENTS), _powers(FULL_EXPONENTS)
    rbf = Method(
        name="svm_rbf",
        title="SVM-RBF",
        about="Support vector machine with the Gaussian kernel, by LIBSVM (Chang and Lin 2011).",
        in_paper=True,
        build=builders.svm_rbf,
        coarse=_grid(C=few, gamma=few),
        full=_grid(C=many, gamma=many),
        costs=(),
        quick=_grid(C=(4.0, 32.0), gamma=(0.25, 4.0)),
    )
    poly = Method(
        name="svm_poly",
        title="SVM-Poly",
        about="Support vector machine with the kernel (1 + g x.x')^s, by LIBSVM.",
        in_paper=True,
        build=builders.svm_poly,
        coarse=_by_size(_grid(C=few, degree=range(1, 6), gamma=few)),
        full=_by_size(_grid(C=many, degree=range(1, 11), gamma=many)),
        costs=(),
        quick=_by_size(_grid(C=(0.25, 4.0), degree=(2, 3), gamma=(0.25,))),
    )
    return [rbf, poly]


def _linear_and_trees() -> list[Method]:
    trees = range(2, 21, 2)
    return [
        Method(
            name="linear_svm",
            title="linear-SVM",
            about="Linear support vector machine, by LIBLINEAR (Fan et al. 2008) at its defaults.",
            in_paper=True,
            build=builders.linear_svm,
            coarse=_grid(C=(1.0,)),
            full=_grid(C=(1.0,)),
            costs=("C",),
            quick=_grid(C=(1.0,)),
        ),
        Method(
            name="l1_svm",
            title="l1-SVM",
            about="Linear support vector machine with the l1 norm (Zhu et al. 2003), by LIBLINEAR.",
            in_paper=True,
            build=builders.l1_svm,
            coarse=_grid(C=(1.0,)),
            full=_grid(C=(1.0,)),
            costs=("C",),
            quick=_grid(C=(1.0,)),
        ),
        Method(
            name="random_forest",
            title="RF",
            about="Random forest (Breiman 2001) of scikit-learn.",
            in_paper=True,
            build=builders.random_forest,
            coarse=_grid(n_estimators=trees),
            full=_grid(n_estimators=trees),
            costs=("n_estimators",),
            quick=_grid(n_estimators=(10, 20)),
        ),
    ]


def _features() -> list[Method]:
    return [
        Method(
            name="prox_pfgm",
            title="PROX-PFGM",
            about="Feature generating machine on quadratic features (Tan, Tsang and Wang 2014).",
            in_paper=True,
            build=builders.prox_pfgm,
            coarse=_grid(C=LOSS_WEIGHTS),
            full=_grid(C=LOSS_WEIGHTS),
            costs=("C",),
            quick=_grid(C=(10.0,)),
        ),
        Method(
            name="falkon",
            title="FALKON",
            about="Nystrom kernel ridge with a preconditioner (Rudi, Carratino and Rosasco 2017).",
            in_paper=True,
            build=builders.falkon,
            coarse=_grid(n_centers=COARSE_SIZES, sigma_scale=SIGMA_SCALES),
            full=_grid(n_centers=FULL_SIZES, sigma_scale=SIGMA_SCALES),
            costs=("n_centers",),
            quick=_grid(n_centers=(200, 1000), sigma_scale=(0.5, 1.0)),
        ),
        Method(
            name="rr_fourier",
            title="RR-Fourier",
            about="Ridge regression on random Fourier features (Rahimi and Recht 2007).",
            in_paper=True,
            build=builders.rr_fourier,
            coarse=_grid(n_components=COARSE_SIZES, sigma_scale=SIGMA_SCALES),
            full=_grid(n_components=FULL_SIZES, sigma_scale=SIGMA_SCALES),
            costs=("n_components",),
            quick=_grid(n_components=(200, 1000), sigma_scale=(0.5, 1.0)),
        ),
        Method(
            name="tensor_sketch",
            title="TS",
            about="Linear SVM on the tensor sketch of (1 + x.x')^2 (Pham and Pagh 2013).",
            in_paper=True,
            build=builders.tensor_sketch,
            coarse=_grid(n_components=COARSE_SIZES, C=(1.0, 100.0)),
            full=_grid(n_components=FULL_SIZES, C=(1.0, 100.0)),
            costs=("n_components", "C"),
            quick=_grid(n_components=(200, 1000), C=(1.0,)),
        ),
    ]


def _boosting() -> list[Method]:
    grid = ((100, 15), (100, 31), (300, 15), (300, 31))
    candidates = tuple({"n_estimators": n, "num_leaves": leaves} for n, leaves in grid)
    return [
        Method(
            name="lightgbm",
            title="LightGBM",
            about="Gradient boosted trees (Ke et al. 2017), which the paper does not have.",
            in_paper=False,
            build=builders.lightgbm,
            coarse=candidates,
            full=candidates,
            costs=("n_estimators", "num_leaves"),
            quick=candidates[1:2],
        )
    ]


METHODS: dict[str, Method] = {
    method.name: method
    for method in [*_kernel_svms(), *_linear_and_trees(), *_features(), *_boosting()]
}
"""All rivals by name: the nine of the paper in the order of its tables, then LightGBM."""


def make(name: str, *, random_state: Any = 0, **params: Any) -> Any:
    """Build one of the rivals.

    Parameters
    ----------
    name : str
        A key of ``METHODS``.
    random_state : int, RandomState or None, default=0
        The seed of the methods that draw random numbers.
    **params
        The parameters that the method's candidates name.

    Returns
    -------
    Pipeline
        A scikit-learn classifier that scales its columns first.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from polysift_paper.rivals import make
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = make("svm_rbf", C=32.0, gamma=4.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    1.0
    """
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(map(repr, METHODS))}; got {name!r}.")
    build = METHODS[name].build
    known = [key for key in inspect.signature(build).parameters if key != "random_state"]
    unknown = [key for key in params if key not in known]
    if unknown:
        raise TypeError(
            f"The parameters of {name!r} are {', '.join(known)} and random_state; "
            f"got {', '.join(unknown)}."
        )
    return build(random_state=random_state, **params)

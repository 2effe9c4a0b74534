"""The systems that are compared, each with a ladder: models of growing cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from harness.classifiers import paper_classifier

Params = dict[str, Any]


GRAMS = ("exact", "sampled")
"""Ways to the Gram matrix."""


@dataclass(frozen=True)
class System:
    """A way to make a classifier.

    Attributes
    ----------
    name, title : str
        How code and tables call it.
    kind : str
        "polysift", "kernel" (kernels and random features) or "trees".
    build : callable
        ``build(threads, **params)`` returns an estimator.
    size : str
        The parameter that a rung of its ladder raises.
    growth : float
        How time grows with that, roughly: what would take too long is not begun.
    """

    name: str
    title: str
    kind: str
    build: Callable[..., Any]
    size: str
    growth: float


def paper(threads: int, **params: Any) -> Any:
    """Return the paper's solver."""
    return paper_classifier(**{"gram": "auto"} | params, n_jobs=threads, random_state=0)


def converged(threads: int, **params: Any) -> Any:
    """Return the converged solver."""
    return paper_classifier(solver="converged", n_jobs=threads, random_state=0, **params)


def newton(threads: int, **params: Any) -> Any:
    """Return Newton's method to the same minimum."""
    return paper_classifier(solver="newton", n_jobs=threads, random_state=0, **params)


def rough(threads: int, **params: Any) -> Any:
    """Return Newton's method with a tolerance that a part of the rows may meet."""
    return newton(threads, tol=0.1, **params)


def falkon(threads: int, **params: Any) -> Any:
    """Return Nystrom kernel ridge: the package falkon where it is there, else our own."""
    import needs_paper  # noqa: F401
    from polysift_paper.rivals import FalkonClassifier

    return make_pipeline(StandardScaler(), FalkonClassifier(random_state=0, **params))


def nystroem(threads: int, *, gamma_scale: float = 1.0, **params: Any) -> Any:
    """Return LIBLINEAR on Nystroem's features."""
    features = _Widened(Nystroem(random_state=0, **params), gamma_scale)
    return make_pipeline(StandardScaler(), features, LinearSVC(dual="auto", random_state=0))


def rbf_sampler(threads: int, *, gamma_scale: float = 1.0, **params: Any) -> Any:
    """Return ridge regression on random Fourier features."""
    features = _Widened(RBFSampler(random_state=0, **params), gamma_scale)
    return make_pipeline(StandardScaler(), features, RidgeClassifier(alpha=1e-2, copy_X=False))


def sketch(threads: int, **params: Any) -> Any:
    """Return LIBLINEAR on a tensor sketch of the polynomial kernel."""
    features = _Widened(PolynomialCountSketch(coef0=1, random_state=0, **params), 1.0)
    return make_pipeline(StandardScaler(), features, LinearSVC(dual="auto", random_state=0))


def lightgbm(threads: int, **params: Any) -> Any:
    """Return LightGBM with its defaults, but for the number of trees."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=threads, verbose=-1, random_state=0, **params)


def hist_gb(threads: int, **params: Any) -> Any:
    """Return scikit-learn's boosted trees, which take all threads of OpenMP."""
    return HistGradientBoostingClassifier(early_stopping=False, random_state=0, **params)


class _Widened:
    """A feature map whose gamma is a multiple of 1 / d, known when it sees the rows."""

    def __init__(self, features: Any, gamma_scale: float) -> None:
        self.features, self.gamma_scale = features, gamma_scale

    def fit(self, X: Any, y: Any = None) -> _Widened:
        """Learn the features."""
        self.features.set_params(gamma=self.gamma_scale / X.shape[1]).fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the features and return those of the rows."""
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        """Return the features of rows."""
        return self.features.transform(X)


SYSTEMS = {
    system.name: system
    for system in (
        System("paper", "polysift, paper", "polysift", paper, "n_centers", 1.8),
        System("converged", "polysift, converged", "polysift", converged, "n_centers", 1.5),
        System("newton", "polysift, newton", "polysift", newton, "n_centers", 1.5),
        System("rough", "polysift, newton, tol=0.1", "polysift", rough, "n_centers", 1.5),
        System("falkon", "FALKON", "kernel", falkon, "n_centers", 1.2),
        System("nystroem", "Nystroem + LinearSVC", "kernel", nystroem, "n_components", 1.2),
        System("rbf_sampler", "RBFSampler + Ridge", "kernel", rbf_sampler, "n_components", 1.5),
        System("count_sketch", "CountSketch + LinearSVC", "kernel", sketch, "n_components", 1.2),
        System("lightgbm", "LightGBM", "trees", lightgbm, "n_estimators", 1.0),
        System("hist_gb", "HistGradientBoosting", "trees", hist_gb, "max_iter", 1.0),
    )
    if system.name != "lightgbm" or find_spec("lightgbm") is not None
}
"""All systems by name, without those whose package is not there."""

"""The paper's motivation: margins vanish as rows come in, and with them the use of a penalty."""

from __future__ import annotations

import warnings
from math import comb
from typing import Any

import numpy as np
from sklearn.svm import SVC

from polysift.datasets import make_bayes_curve
from polysift.runtime.types import FloatArray, IntArray
from polysift_paper.studies.averages import average, column, exponent, seeds, where
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import Row, Study, Verdict

DEGREE = 9
NOISE = 0.1
TEST_ROWS = 5000

MARGIN_SIZES = (100, 316, 1000, 3162, 10_000)
HARD_C = 1e3
"""C of the SVM whose margin is measured: hardly a row is let inside it."""
SVM_STEPS = 500_000
SOFT_PENALTY = 1e-2
"""The penalty of the SVM inside whose margin, |f(x)| <= 1, rows are counted."""

PENALTY_SIZES = (100, 1000, 10_000)
PENALTIES = (0.0, *(10.0**k for k in range(-8, 1)))
MAX_COMPARED_PENALTY = 1e-3
"""Penalties up to here are compared: much larger ones bias the classifier at any number of rows."""
FADED_SHARE, CHEAP_ERROR = 0.1, 0.002
"""What counts as little: a share of the range at the fewest rows, and a test error."""

MAX_STEPS, CHECK_EVERY, OBJECTIVE_TOL = 4000, 20, 1e-5
LOSS_STEP = 0.1
"""m beta of the ADMM; it decides about speed alone."""


def kernel_features(X: FloatArray, degree: int = DEGREE) -> FloatArray:
    """Return weighted monomials phi(x) with phi(x).phi(z) = (1 + x.z)^degree, for two columns."""
    powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
    weights = [np.sqrt(comb(degree, i) * comb(degree - i, j)) for i, j in powers]
    columns = [X[:, 0] ** i * X[:, 1] ** j for i, j in powers]
    return np.stack(columns, axis=1) * weights


class PenalisedHinge:
    """Minimises ``mean(max(0, 1 - y f(x))) + penalty |f|^2`` over polynomials f.

    It is the SVM of the paper's eq. (1), solved to the end for any penalty, zero included: by an
    ADMM in the basis of left singular vectors of the features, where all directions converge alike
    and the penalty is diagonal. libsvm needs millions of steps for small penalties.

    Parameters
    ----------
    X : ndarray of shape (m, 2)
        The rows.
    y : ndarray of shape (m,)
        Their labels, -1 and 1.
    degree : int
        The degree of the polynomials.
    """

    def __init__(self, X: FloatArray, y: IntArray, degree: int = DEGREE) -> None:
        U, self._sigma, self._Vt = np.linalg.svd(kernel_features(X, degree), full_matrices=False)
        self._Q = np.ascontiguousarray(U * np.sqrt(len(y)))  # so that Q'Q = m I
        self._y, self._degree = y, degree

    def solve(self, penalty: float) -> tuple[FloatArray, float]:
        """Return the coefficients of the weighted monomials, and the objective."""
        Q, y, m = self._Q, self._y, len(self._y)
        ridge = penalty * m / self._sigma**2  # of the coefficients z of Q
        shrink = LOSS_STEP / (LOSS_STEP + 2 * ridge)
        v, q = y.astype(float), np.zeros(m)
        before = np.inf
        for step in range(1, MAX_STEPS + 1):
            z = shrink * (Q.T @ (v - q)) / m
            f = Q @ z
            margins = y * (1.7 * f - 0.7 * v + q)  # over-relaxed
            k = np.clip(1 - margins, 0, 1 / LOSS_STEP)
            v, q = y * (margins + k), -y * k
            if step % CHECK_EVERY == 0:
                objective = float(np.maximum(0, 1 - y * f).mean() + ridge @ z**2)
                if abs(before - objective) <= OBJECTIVE_TOL * objective:
                    break
                before = objective
        return self._Vt.T @ (z * np.sqrt(m) / self._sigma), objective

    def predict(self, X: FloatArray, coefficients: FloatArray) -> IntArray:
        """Return labels of other rows."""
        return np.where(kernel_features(X, self._degree) @ coefficients >= 0, 1, -1)


def cells(runs: int) -> list[Row]:
    """Return a cell for each run, size and half of the study."""
    return [
        {**seed, "part": part, "rows": size}
        for seed in seeds(runs)
        for part, sizes in (("margin", MARGIN_SIZES), ("penalty", PENALTY_SIZES))
        for size in sizes
    ]


def measure(cell: Row) -> list[Row]:
    """Measure a margin, or test errors for all penalties."""
    stream = np.random.RandomState(cell["seed"])
    if cell["part"] == "margin":
        return [_margin(*make_bayes_curve(cell["rows"], noise=0.0, random_state=stream))]
    X, y = make_bayes_curve(cell["rows"], noise=NOISE, random_state=stream)
    X_test, y_test = make_bayes_curve(TEST_ROWS, noise=0.0, random_state=stream)
    problem = PenalisedHinge(X, y)
    rows = []
    for penalty in PENALTIES:
        coefficients, objective = problem.solve(penalty)
        error = float(np.mean(problem.predict(X_test, coefficients) != y_test))
        rows.append({"penalty": penalty, "test_error": error, "objective": objective})
    return rows


def _margin(X: FloatArray, y: IntArray) -> Row:
    svm = SVC(kernel="poly", degree=DEGREE, gamma=1.0, coef0=1.0, C=HARD_C, max_iter=SVM_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cap on its steps; it is counted
        svm.fit(X, y)
    w = svm.dual_coef_[0] @ kernel_features(svm.support_vectors_)
    norm = float(np.linalg.norm(w))
    soft = kernel_features(X) @ PenalisedHinge(X, y).solve(SOFT_PENALTY)[0]
    inside = int(np.sum(np.abs(soft) <= 1))
    return {"margin": 1 / norm, "inside": inside, "capped": bool(svm.fit_status_)}


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each size, and for each size and penalty."""
    margin = average(where(rows, part="margin"), ("part", "rows"), ("margin", "inside", "capped"))
    for entry in margin:
        del entry["capped_spread"]
    penalty = where(rows, part="penalty")
    return margin + average(penalty, ("part", "rows", "penalty"), ("test_error", "objective"))


def draw(summary: list[Row], rows: list[Row]) -> Any:
    """Draw the margin and the rows near the plane by size, and test errors by penalty."""
    figure, (first, second, third) = new_figure(1, 3, width=10.2)
    margin = where(summary, part="margin")
    sizes = column(margin, "rows")
    for ax, name, label, title in (
        (first, "margin", r"margin $1\,/\,\|w\|$", "(a) The margin vanishes"),
        (second, "inside", r"rows with $|f(x)| \leq 1$", "(b) Rows crowd at the plane"),
    ):
        line(ax, sizes, column(margin, name), column(margin, f"{name}_spread"), number=0)
        ax.set(xscale="log", yscale="log")
        name_axes(ax, "rows $m$", label, title)
    for number, size in enumerate(dict.fromkeys(column(where(summary, part="penalty"), "rows"))):
        lines = where(summary, part="penalty", rows=size)
        mean, spread = column(lines, "test_error"), column(lines, "test_error_spread")
        # The position of zero on the axis of logarithms: one decade left of the smallest penalty.
        x = [penalty or PENALTIES[1] / 10 for penalty in column(lines, "penalty")]
        line(third, x, mean, spread, number=number, label=f"$m$ = {size:,}")
    third.set(xscale="log", ylim=(0, None))
    third.set_xticks([1e-9, 1e-6, 1e-3, 1], ["0", "$10^{-6}$", "$10^{-3}$", "1"])
    name_axes(third, r"penalty $\lambda$", "test error", r"(c) $\lambda$ loses its use")
    legend(third)
    return figure


def judge(summary: list[Row], rows: list[Row]) -> Verdict:
    """Fit exponents, and compare the effect of the penalty between sizes."""
    margin = where(summary, part="margin")
    sizes, margins = column(margin, "rows"), column(margin, "margin")
    fall, crowd = (exponent(sizes, column(margin, name)) for name in ("margin", "inside"))
    capped = column(where(rows, part="margin"), "capped")
    effects = [_effect(summary, size) for size in PENALTY_SIZES]
    first, last = effects[0], effects[-1]
    vanishes, linear = margins[-1] < FADED_SHARE * margins[0], 0.8 <= crowd <= 1.2
    useless = last["range"] < FADED_SHARE * first["range"] and last["cost"] < CHEAP_ERROR
    text = (
        f"(a) The margin of an almost hard SVM (C = {HARD_C:g}) on rows without noise falls from "
        f"{margins[0]:.3g} at {sizes[0]} rows to {margins[-1]:.3g} at {sizes[-1]}, like "
        f"m^{fall:.2f}; below a tenth: {_yes(vanishes)}. libsvm hit its cap of {SVM_STEPS} steps "
        f"in {sum(capped)} of {len(capped)} fits. (b) Rows inside the margin of an SVM with "
        f"lambda = {SOFT_PENALTY:g} grow like m^{crowd:.2f}; almost linearly (0.8 to 1.2): "
        f"{_yes(linear)}. (c) Over lambda from 0 to {MAX_COMPARED_PENALTY:g}, with {NOISE:.0%} "
        "noise, the mean test error ranges over "
        + ", ".join(f"{e['low']:.4f} to {e['high']:.4f} at m = {e['rows']}" for e in effects)
        + ". No penalty at all instead of the best one costs "
        + ", ".join(f"{e['cost']:.4f}" for e in effects)
        + f". At {last['rows']} rows the range is below a tenth of that at {first['rows']}, and "
        f"the cost below {CHEAP_ERROR:g}: {_yes(useless)}. A large penalty does harm at any m: "
        "lambda = 1 gives " + ", ".join(f"{e['largest']:.3f}" for e in effects) + "."
    )
    return Verdict(vanishes and linear and useless, text)


def _effect(summary: list[Row], size: int) -> Row:
    """Return the range of the mean test error over the penalties, and the cost of having none."""
    lines = where(summary, part="penalty", rows=size)
    errors = column(lines, "test_error")
    small = [e["test_error"] for e in lines if e["penalty"] <= MAX_COMPARED_PENALTY]
    low, high = min(small), max(small)
    cost = errors[0] - min(errors)
    return {
        "rows": size,
        "low": low,
        "high": high,
        "range": high - low,
        "cost": cost,
        "largest": errors[-1],
    }


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


STUDIES: tuple[Study, ...] = (
    Study(
        name="motivation",
        title="Why no margin: margins and penalties as the data grow",
        figure="Figs. 2 and 4",
        claim=(
            "As the data grow, the number of features near the separating plane increases almost "
            "linearly, so margins become extremely small, and classifiers with different margins, "
            "that is with different penalties lambda, perform alike. Then no penalty is needed."
        ),
        runs=50,
        cells=cells,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)

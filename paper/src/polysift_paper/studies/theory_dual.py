"""Proposition 2: the dual of the problem is a linear programme, solved beside the problem itself.

Of (1/m) sum_i xi_i subject to y_i (A u)_i >= 1 - xi_i and xi_i >= 0 the dual is

    max 1'a   subject to   a + c = 1/m,   A' Diag(y) a = 0,   a >= 0,   c >= 0.

The paper's proposition leaves out the signs of a and c, which its proof has; without them the
maximum is infinite, which is measured, too. A stands for an orthonormal basis of its columns, with
which the linear programmes are well conditioned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from polysift.features.centers import uniform_centers
from polysift.features.kernels import full_dimension
from polysift.losses import HINGE
from polysift.plots.base import STYLES
from polysift.runtime.types import FloatArray
from polysift_paper.studies.averages import average, column, seeds
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import Row, Study, Verdict
from polysift_paper.studies.toy import toy_data

DEGREES = (1, 3, 5, 9)
ROWS = 400
ITERATIONS = 3000
EXACT = 1e-7
"""What rounding of the linear programmes may leave of a gap, or of a product that is zero."""

UNBOUNDED = 3
"""How ``linprog`` says so."""

LEAST, BELOW_LEGEND = 1e-18, 1e-29
"""What stands for zero on a logarithmic axis, and where the axis ends, so that the legend hides
nothing."""


def basis(X: FloatArray, degree: int, seed: int) -> FloatArray:
    """Return an orthonormal basis of the columns of A, times the root of m."""
    centers = uniform_centers(np.zeros(2), np.ones(2), full_dimension(degree, 2), seed)
    U, sigma, _ = np.linalg.svd((1.0 + X @ centers.T) ** degree, full_matrices=False)
    return np.asarray(U[:, sigma > 1e-12 * sigma[0]] * np.sqrt(len(X)))


def measure(cell: Row) -> list[Row]:
    """Solve the problem and its dual for each degree, and compare."""
    X, y = toy_data(cell["seed"])[:2]
    X, y = X[:ROWS], y[:ROWS].astype(float)
    return [{"degree": s, **_compared(basis(X, s, cell["seed"]), y)} for s in DEGREES]


def _compared(Q: FloatArray, y: FloatArray) -> Row:
    m, n = Q.shape
    signed = y[:, None] * Q
    cost = np.concatenate([np.zeros(n), np.full(m, 1.0 / m)])
    free = [(None, None)] * n + [(0, None)] * m
    primal = linprog(cost, -np.hstack([signed, np.eye(m)]), -np.ones(m), bounds=free)
    dual = linprog(-np.ones(m), A_eq=signed.T, b_eq=np.zeros(n), bounds=(0, 1.0 / m))
    printed = linprog(-np.ones(m), A_eq=signed.T, b_eq=np.zeros(n), bounds=(None, None))
    u, xi, a = primal.x[:n], primal.x[n:], dual.x
    slack = signed @ u - 1.0 + xi
    reached, lowest, away = _admm(Q, y)
    return {
        "primal": float(primal.fun),
        "dual": float(-dual.fun),
        "gap": float(abs(primal.fun + dual.fun)),
        "slackness": float(m * max(np.abs(a * slack).max(), np.abs((1.0 / m - a) * xi).max())),
        "unsigned_is_unbounded": bool(printed.status == UNBOUNDED),
        "support": float(np.mean((a > EXACT / m) & (a < (1 - EXACT) / m))),
        "admm_gap": float((reached - primal.fun) / primal.fun),
        "admm_dual_gap": float(abs(lowest - primal.fun) / primal.fun),
        "admm_infeasible": away,
    }


def _admm(Q: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """Run Algorithm 1 with beta = 0.1 / m; return its objective, 1'a of a = -y w, and |A'w|."""
    m, n = Q.shape
    beta, alpha = 0.1 / m, 1e-6 / m
    inverse = np.linalg.inv(beta * Q.T @ Q + alpha * np.eye(n))
    u, v, w = np.zeros(n), y.copy(), np.zeros(m)
    for _ in range(ITERATIONS):
        u = inverse @ (alpha * u + Q.T @ (beta * v - w))
        f = Q @ u
        t = y * (f + w / beta)
        v = y * (t + HINGE.prox_step(t, m * beta))
        w = w + beta * (f - v)
    a = -y * w
    return float(np.maximum(0.0, 1.0 - y * f).mean()), float(a.sum()), float(abs(Q.T @ w).max())


NAMES = (
    "primal",
    "dual",
    "gap",
    "slackness",
    "unsigned_is_unbounded",
    "support",
    "admm_gap",
    "admm_dual_gap",
    "admm_infeasible",
)


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each degree, and the largest gap and product of any run."""
    lines = average(rows, ["degree"], NAMES)
    for entry in lines:
        these = [row for row in rows if row["degree"] == entry["degree"]]
        for name in ("gap", "slackness"):
            entry[f"{name}_max"] = max(column(these, name))
    return lines


def draw(summary: list[Row], rows: list[Row]) -> Any:
    """Draw both optima against each other, and what is not zero that should be."""
    figure, axes = new_figure(1, 2)
    for (colour, marker, _), entry in zip(STYLES, summary, strict=False):
        these = [row for row in rows if row["degree"] == entry["degree"]]
        x, z = column(these, "primal"), column(these, "dual")
        label = f"degree {entry['degree']}"
        axes[0].scatter(x, z, s=22, color=colour, marker=marker, label=label, zorder=3)
    ends = [0.0, 1.1 * max(column(rows, "primal"))]
    axes[0].plot(ends, ends, color="grey", linestyle="--", linewidth=1.0, zorder=1)
    name_axes(axes[0], "optimum of the problem", "optimum of the dual", "(a) Strong duality")
    legend(axes[0], loc="upper left")
    for number, (name, label) in enumerate(
        (
            ("gap_max", "gap of the optima"),
            ("slackness_max", "slackness"),
            ("admm_gap", "ADMM, relative gap"),
            ("admm_dual_gap", "its multipliers, relative gap"),
        )
    ):
        values = [max(value, LEAST) for value in column(summary, name)]
        line(axes[1], column(summary, "degree"), values, number=number, label=label)
    axes[1].set_yscale("log")
    axes[1].set_ylim(BELOW_LEGEND, 1.0)
    name_axes(axes[1], "degree $s$", "should be zero", "(b) What is left")
    legend(axes[1], loc="lower right")
    return figure


def judge(summary: list[Row], rows: list[Row]) -> Verdict:
    """Ask for equal optima and products that are zero; say how near the ADMM comes."""
    gap, slack = max(column(rows, "gap")), max(column(rows, "slackness"))
    near = max(max(abs(row["admm_gap"]), row["admm_dual_gap"]) for row in rows)
    without = np.mean(column(rows, "unsigned_is_unbounded"))
    agrees = gap < EXACT and slack < EXACT
    each = ", ".join(f"{e['primal']:.4f} at degree {e['degree']}" for e in summary)
    text = (
        f"{ROWS} rows of the synthetic problem; both optima on average: {each}. The largest gap "
        f"between the problem and its dual is {gap:.1e} (strong duality: below {EXACT:g}), the "
        f"largest of the products m a_i (y_i f_i - 1 + xi_i) and m c_i xi_i is {slack:.1e} "
        "(complementary slackness). As the proposition is printed, without the signs of a and c "
        f"that its proof has, the maximum is infinite in {without:.0%} of the cases: they belong "
        f"to it. After {ITERATIONS} iterations of Algorithm 1 with beta = 0.1/m, its objective and "
        f"1'a of its multipliers, a = -y w, are within {near:.2%} of the optimum."
    )
    return Verdict(agrees, text)


STUDIES: tuple[Study, ...] = (
    Study(
        name="dual",
        title="The dual is a linear programme",
        figure="Proposition 2",
        claim=(
            "The dual of the hinge problem is the linear programme max 1'a with a + c = 1/m and "
            "A'Diag(y)a = 0 (and, by its proof, a and c not negative), so that both optima are "
            "equal and complementary slackness holds."
        ),
        runs=10,
        cells=seeds,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)

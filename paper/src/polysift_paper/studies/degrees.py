"""Simulation 4: the test error by the kernel's degree, for FPC and for an SVM with that kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from polysift_paper.studies.averages import average, column, seeds, where
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import ONE_RUN, Row, Study, Verdict
from polysift_paper.studies.toy import ROWS, toy_classifier, toy_data

DEGREES = range(1, 21)

FPC, SVM = "FPC", "SVM-Poly"

SVM_RUNS = 50
"""The SVM is repeated so often at most: it takes a hundred times as long as FPC."""

PENALTIES = tuple(10.0**k for k in range(1, -7, -1))
"""The values of lambda among which the best is chosen for each degree."""

SVM_MAX_STEPS = 200_000
"""Where libsvm is stopped: at high degrees and small lambda it would go on for very long."""

PRINTED_DEGREE = 10
"""The degree around which the paper finds the best ones."""

MIN_CORRELATION = 0.5
"""From which correlation on two curves count as similar."""

PRINTED = (0.0115, 0.0124)
"""The paper's test errors at degree 9 (simulation 1)."""


def fit_quietly(model: Any, X: Any, y: Any) -> None:
    """Fit without the warnings that a study counts instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # alpha / beta raised to its floor
        warnings.simplefilter("ignore", ConvergenceWarning)  # libsvm at its cap
        model.fit(X, y)


def error_of(model: Any, X: Any, y: Any) -> float:
    """Return the share of rows that a model gets wrong."""
    return float(np.mean(model.predict(X) != y))


def cells(runs: int, base: int = 0) -> list[Row]:
    """Return one cell per run for FPC, and one per run, degree and lambda for the SVM."""
    fpc = [{**seed, "method": FPC} for seed in seeds(runs, base)]
    svm = [
        {**seed, "method": SVM, "degree": degree, "penalty": penalty}
        for seed in seeds(min(runs, SVM_RUNS), base)
        for degree in DEGREES
        for penalty in PENALTIES
    ]
    return fpc + svm


def measure(cell: Row) -> list[Row]:
    """Return the errors of FPC for all degrees, or those of the SVM for one."""
    X, y, X_test, y_test = toy_data(cell["seed"], cell.get("range"))
    rows = []
    for model in _models(cell):
        fit_quietly(model, X, y)
        rows.append(
            {
                "degree": model.degree,
                "training_error": error_of(model, X, y),
                "test_error": error_of(model, X_test, y_test),
                "altered": _altered(model),
            }
        )
    return rows


def _models(cell: Row) -> list[Any]:
    if cell["method"] == FPC:
        return [toy_classifier(cell["seed"], degree=s, n_centers="auto") for s in DEGREES]
    # libsvm minimises |f|^2 / 2 + C (sum of losses): the paper's objective, over 2 lambda.
    svm = SVC(
        kernel="poly",
        degree=cell["degree"],
        gamma=1.0,
        coef0=1.0,
        C=1 / (2 * cell["penalty"] * ROWS),
        max_iter=SVM_MAX_STEPS,
        cache_size=20,  # megabytes; the whole kernel matrix takes eight
    )
    return [svm]


def _altered(model: Any) -> bool:
    """Return whether rounding raised the paper's alpha / beta = 1, or the cap stopped libsvm."""
    return bool(model.fit_status_) if isinstance(model, SVC) else bool(model.rho_ > 1)


def summarise(rows: list[Row]) -> list[Row]:
    """Return a line per method and degree, with the SVM's best lambda by mean test error."""
    names = ("test_error", "training_error", "altered")
    lines = [
        {**entry, "penalty": None, "altered_all": entry["altered"]}
        for entry in average(where(rows, method=FPC), ("method", "degree"), names)
    ]
    svm = average(where(rows, method=SVM), ("method", "degree", "penalty"), names)
    for degree in DEGREES:
        tried = where(svm, degree=degree)
        if not tried:  # the run was stopped
            continue
        best = min(tried, key=lambda entry: entry["test_error"])
        lines.append({**best, "altered_all": float(np.mean(column(tried, "altered")))})
    return [{name: value for name, value in e.items() if name != "altered_spread"} for e in lines]


def draw(summary: list[Row], _rows: list[Row]) -> Any:
    """Draw both test errors by the degree."""
    figure, ax = new_figure()
    for number, method in enumerate((FPC, SVM)):
        lines = where(summary, method=method)
        if not lines:
            continue
        mean, spread = column(lines, "test_error"), column(lines, "test_error_spread")
        label = f"{method} ({lines[0]['runs']} runs)"
        line(ax, column(lines, "degree"), mean, spread, number=number, label=label)
    ax.set_xticks([1, 5, 10, 15, 20])
    ax.set_yscale("log")  # else degree 1 flattens the minima
    ax.set_ylim(0.5 * min(column(summary, "test_error")), None)
    ax.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
    ax.minorticks_off()
    name_axes(ax, "degree $s$", "test error")
    legend(ax, loc="upper right")
    return figure


def judge(summary: list[Row], _rows: list[Row]) -> Verdict:
    """Compare the best degrees with 10, and the curves with one another."""
    fpc, svm = (where(summary, method=method) for method in (FPC, SVM))
    if len(svm) < len(fpc):
        return Verdict(None, f"{_describe(fpc)} {SVM} was not run to its end, and is not compared.")
    if svm[0]["runs"] < 2:
        return ONE_RUN
    # Logarithms, lest degree 1 alone decide; the offset is half a test row.
    logs = [np.log(np.array(column(lines, "test_error")) + 0.5 / ROWS) for lines in (fpc, svm)]
    likeness = float(np.corrcoef(logs)[0, 1])
    around = all(PRINTED_DEGREE in _near_best(lines) for lines in (fpc, svm))
    low, high = PRINTED
    text = (
        f"{_describe(fpc)} {_describe(svm)} Minima are flat, so a best degree counts as around "
        f"{PRINTED_DEGREE} if {PRINTED_DEGREE} is within a standard error of it: for both that is "
        f"{'so' if around else 'not so'}. The logarithms of the two curves have a correlation of "
        f"{likeness:.2f}; from {MIN_CORRELATION:g} on they count as similar. At degree 9 the test "
        f"error of FPC is {fpc[8]['test_error']:.4f}; the paper has {low:g} to {high:g} there "
        f"(simulation 1), which {_is_reproduced(fpc[8])}. Rounding raised the paper's alpha in "
        f"{np.mean(column(fpc, 'altered')):.0%} of the fits of FPC, at degrees from "
        f"{min((e['degree'] for e in fpc if e['altered']), default='none')} on. The SVM had the "
        f"best of {len(PENALTIES)} lambda, {PENALTIES[-1]:g} to {PENALTIES[0]:g}, by its mean test "
        f"error; libsvm was stopped after {SVM_MAX_STEPS:,} steps in "
        f"{np.mean(column(svm, 'altered_all')):.0%} of all its fits, at degree 20 in "
        f"{svm[-1]['altered_all']:.0%}, and more steps might help it at high degrees."
    )
    return Verdict(around and likeness > MIN_CORRELATION, text)


def _near_best(lines: list[Row]) -> list[int]:
    """Return the degrees whose errors are within a standard error of the smallest."""
    best = min(lines, key=lambda entry: entry["test_error"])
    most = best["test_error"] + best["test_error_spread"] / np.sqrt(best["runs"])
    return [entry["degree"] for entry in lines if entry["test_error"] <= most]


def _describe(lines: list[Row]) -> str:
    """Say where a curve is lowest, and how it runs."""
    best = min(lines, key=lambda entry: entry["test_error"])
    some = ", ".join(f"{lines[s - 1]['test_error']:.4f} at {s}" for s in (1, 5, 10, 15, 20))
    return (
        f"{best['method']} ({best['runs']} runs): smallest test error {best['test_error']:.4f}, at "
        f"degree {best['degree']}; within a standard error of it at "
        f"{', '.join(map(str, _near_best(lines)))}; {some}."
    )


def _is_reproduced(entry: Row) -> str:
    """Say whether the printed errors are within three standard errors of ours."""
    slack = 3 * entry["test_error_spread"] / np.sqrt(entry["runs"])
    same = PRINTED[0] - slack <= entry["test_error"] <= PRINTED[1] + slack
    return "is within three standard errors" if same else "we do not reproduce"


STUDIES: tuple[Study, ...] = (
    Study(
        name="4",
        title="The degree of the kernel",
        figure="Fig. 9",
        claim=(
            "The test errors of FPC and of an SVM with the same kernel (SVM-Poly, with the best "
            "lambda for each degree) have their minima at degrees around 10 and depend on the "
            "degree in similar ways, so that doing without lambda makes the degree no harder to "
            "choose."
        ),
        runs=50,
        cells=cells,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)

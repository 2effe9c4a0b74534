"""The price of a search beside that of plain fits, all measured in one run.

200,000 x 20, degrees 2 to 5, ten numbers of centers up to 1000, three ratios rho, five folds: 600
fits with the paper's solver alone, 2400 with both (the converged one is read off at 30, 100 and
300 iterations). Usage: python benchmarks/grids.py [--rows 200000] [--solver paper|both]
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np

from harness.classifiers import paper_classifier
from polysift import FPCClassifier, FPCClassifierCV

DEGREES = (2, 3, 4, 5)
SIZES = tuple(range(100, 1001, 100))
RHOS = (None, 1e-6, 1e-3)
FOLDS = 5


def problem(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, 20))
    y = (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] > 0.3
    return X, y ^ (rng.random(rows) < 0.1)


def seconds(run) -> float:
    began = perf_counter()
    run()
    return perf_counter() - began


def alone(model: FPCClassifierCV, fits: dict[tuple[str, int], FPCClassifier]) -> float:
    """Return what all candidates would take alone, extrapolated from the measured plain fits.

    The Gram matrix by n^2, a sweep by n, all by the rows of a training part; the iterations are
    those of the plain fit, or max_iter if that is less.
    """
    total = 0.0
    for params in model.cv_results_["params"]:
        fit = fits[params["solver"], params["degree"]]
        relative = params["n_centers"] / fit.n_centers_
        times, iterations = fit.timings_, min(fit.n_iter_, params["max_iter"])
        sweeps = times["sweep"] / fit.n_iter_ * iterations * relative
        total += times["survey"] + times["Gram matrix"] * relative**2 + sweeps
    return total * FOLDS * (1 - 1 / FOLDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--solver", choices=("paper", "both"), default="both")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a plain converged fit may stop at max_iter
    X, y = problem(options.rows)
    plain, fits = {}, {}
    for solver in ("paper",) if options.solver == "paper" else ("paper", "converged"):
        plain[solver] = 0.0
        for degree in DEGREES:
            clf = paper_classifier(degree, SIZES[-1], solver=solver, random_state=0)
            taken = seconds(lambda clf=clf: clf.fit(X, y))
            plain[solver] += taken
            fits[solver, degree] = clf
            print(
                f"plain fit, {solver}, degree {degree}: n = {clf.n_centers_}, {clf.n_iter_} "
                f"iterations, {taken:.1f} s",
                flush=True,
            )
    searches = [("paper",)] if options.solver == "paper" else [("paper",), ("paper", "converged")]
    for solvers in searches:
        model = FPCClassifierCV(
            DEGREES,
            SIZES,
            scalers="minmax",
            rhos=RHOS,
            solvers=solvers,
            cv=FOLDS,
            refit=False,
            random_state=0,
        )
        taken = seconds(lambda model=model: model.fit(X, y))
        reference = sum(plain[solver] for solver in solvers)
        phases = ", ".join(f"{k} {v:.1f}" for k, v in model.timings_.items())
        by_fits = alone(model, fits)
        print(
            f"search, {' and '.join(solvers)}: {len(model.cv_results_['params'])} candidates x "
            f"{FOLDS} folds in {taken:.1f} s ({phases})\n"
            f"  {taken / reference:.2f} of the plain fits of the largest n, one per degree and "
            f"solver ({reference:.1f} s)\n"
            f"  alone, by these fits: {by_fits:.0f} s, {by_fits / taken:.0f} times as long "
            f"(time_saved_ says {model.time_saved_ + taken:.0f} s)\n"
            f"  best: {model.best_params_}, {model.best_score_:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

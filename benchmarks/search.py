"""The price of a search beside that of plain fits, all measured in one run.

200,000 x 20, degrees 2 to 5, ten numbers of centers up to 1000, three ratios rho, five folds: 600
fits with the paper's solver alone, 2400 with both (the converged one is read off at 30, 100 and
300 iterations). Usage: python benchmarks/search.py [--rows 200000] [--solver paper|both]
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--solver", choices=("paper", "both"), default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a plain converged fit may stop at max_iter
    X, y = problem(options.rows)
    plain = {}
    solvers = ("paper",) if options.solver == "paper" else ("paper", "converged")
    for solver in solvers:
        plain[solver] = 0.0
        for degree in DEGREES:
            clf = FPCClassifier(degree, SIZES[-1], solver=solver, random_state=0)
            taken = seconds(lambda clf=clf: clf.fit(X, y))
            plain[solver] += taken
            print(
                f"plain fit, {solver}, degree {degree}: n = {clf.n_centers_}, {clf.n_iter_} "
                f"iterations, {taken:.1f} s",
                flush=True,
            )
    searches = {"paper": ("paper",), "both": ("paper", "converged")}
    for name, chosen in searches.items():
        if options.solver not in (None, name):
            continue
        model = FPCClassifierCV(
            DEGREES,
            SIZES,
            scalers="minmax",
            rhos=RHOS,
            solvers=chosen,
            cv=FOLDS,
            refit=False,
            random_state=0,
        )
        taken = seconds(lambda model=model: model.fit(X, y))
        reference = sum(plain[solver] for solver in chosen)
        phases = ", ".join(f"{k} {v:.1f}" for k, v in model.timings_.items())
        candidates = len(model.cv_results_["params"])
        print(
            f"search, {' and '.join(chosen)}: {candidates} candidates x {FOLDS} folds in "
            f"{taken:.1f} s ({phases}); {taken / reference:.2f} of the plain fits of the largest "
            f"n, one per degree and solver ({reference:.1f} s); alone they would take about "
            f"{model.time_saved_ + taken:.0f} s, {(model.time_saved_ + taken) / taken:.0f} times "
            f"as long; best: {model.best_params_}, {model.best_score_:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

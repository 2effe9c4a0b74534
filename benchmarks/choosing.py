"""What degree, centers, scaler and solver do to accuracy, one at a time, on real data.

Nothing is left to the automatic choice: the other parameters are the paper's. Half of the rows are
for training, the other half for testing; means over three seeded splits. docs/choosing.md has some
of the figures. Data are found as by polysift.datasets.load; covtype_binary counts with 20,000 of
its rows.
Usage: python benchmarks/choosing.py [degree] [centers] [scaler] [solver] [--splits 3]
       [--only magic,htru2]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from sklearn.metrics import roc_auc_score

from harness.classifiers import paper_classifier
from polysift.datasets import load

SETS = ("occupancy", "htru2", "magic", "credit_default", "covtype_binary")
WIDE = "musk2"  # for the section on centers alone
ROWS = 20_000
Fit = Callable[..., tuple[float, float, float]]


def fitter(name: str, splits: int) -> Fit:
    """Return a function from parameters to mean test accuracy, AUC and iterations of a fit."""
    data = load(name)
    X, y = data.X, data.y
    parts = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(y))
        rows = order[: ROWS if name == "covtype_binary" else len(y)]
        parts.append((rows[: len(rows) // 2], rows[len(rows) // 2 :]))

    def fit(**params: object) -> tuple[float, float, float]:
        found = []
        for seed, (train, test) in enumerate(parts):
            clf = paper_classifier(**params, random_state=seed).fit(X[train], y[train])
            auc = roc_auc_score(y[test], clf.decision_function(X[test]))
            found.append((100 * clf.score(X[test], y[test]), auc, clf.n_iter_))
        return tuple(np.mean(found, axis=0))

    return fit


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    lines = [heads, ["---"] * len(heads), *rows]
    print(f"\n{title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)


def degree(fits: dict[str, Fit]) -> None:
    degrees = 1, 2, 3, 4, 5, 6, 8
    for solver, most in (("paper", 1000), ("newton", 200)):
        rows = []
        for name, fit in fits.items():
            scores = [
                fit(degree=s, n_centers=most, scaler="quantile", solver=solver)[0] for s in degrees
            ]
            best = max(scores)
            rows.append([name, *(f"**{x:.2f}**" if x == best else f"{x:.2f}" for x in scores)])
        title = f"Test accuracy (%) by degree; solver {solver}, at most {most} centers, quantile"
        table(title, ["data", *map(str, degrees)], rows)


def centers(fits: dict[str, Fit]) -> None:
    numbers = 50, 200, 800
    rows = []
    for name, fit in fits.items():
        for scaler in ("minmax", "standard"):
            cells = []
            for scheme in ("random", "uniform"):
                params = {"degree": 4, "centers": scheme, "scaler": scaler}
                cells += [f"{fit(n_centers=n, **params)[0]:.2f}" for n in numbers]
            rows.append([name, scaler, *cells])
    title = "Test accuracy (%) by the number of centers and where they are; degree 4, solver paper"
    heads = [f"{scheme}, {n}" for scheme in ("random rows", "uniform") for n in numbers]
    table(title, ["data", "scaler", *heads], rows)


def scaler(fits: dict[str, Fit]) -> None:
    rows = []
    for name, fit in fits.items():
        for solver in ("paper", "newton"):
            cells = []
            for which in ("minmax", "standard", "quantile"):
                accuracy, auc, _ = fit(degree=3, n_centers=200, scaler=which, solver=solver)
                cells.append(f"{accuracy:.2f}, {auc:.3f}")
            rows.append([name, solver, *cells])
    title = "Test accuracy (%), AUC by the scaler; degree 3, at most 200 centers"
    table(title, ["data", "solver", "minmax", "standard", "quantile"], rows)


def solver(fits: dict[str, Fit]) -> None:
    rows = []
    ways = [{"rho": rho} for rho in (None, 1e-6, 1e-3)]
    ways += [{"solver": which} for which in ("converged", "newton")]
    for name, fit in fits.items():
        for way in ways:
            accuracy, auc, iterations = fit(degree=3, n_centers=400, scaler="quantile", **way)
            what = way.get("solver", f"paper, rho={way.get('rho')}")
            rows.append([name, what, f"{accuracy:.2f}", f"{auc:.3f}", f"{iterations:.0f}"])
    title = "Solvers; degree 3, at most 400 centers, quantile scaling"
    table(title, ["data", "solver", "test accuracy (%)", "AUC", "passes"], rows)


SECTIONS = {f.__name__: f for f in (degree, centers, scaler, solver)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; by default all")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", default=",".join((*SETS, WIDE)), help="data sets, by commas")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")  # of a floor on rho, and of fits that end at max_iter
    for section in arguments.sections or SECTIONS:
        names = [name for name in arguments.only.split(",") if section == "centers" or name != WIDE]
        began = perf_counter()
        SECTIONS[section]({name: fitter(name, arguments.splits) for name in names})
        print(f"\n({perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()

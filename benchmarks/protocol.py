"""What would have to change in the paper's protocol to get the figures that it prints for FPC.

Seeded splits of 50 % training, 25 % validation and 25 % test rows, uniform centers, min-max
scaling, five iterations, as in `polysift reproduce uci`. Prints the mean test accuracy of the
degree chosen on the validation rows, among those up to s_max and among those up to 8, for several
alpha; beyond s_max there are at most 1500 centers. Data are found as by polysift.datasets.load.
Usage: python benchmarks/protocol.py [--splits 3] [--only magic,htru2]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import needs_paper  # noqa: F401 - before imports from polysift_paper
from polysift import degree_bound
from polysift.datasets import UCI
from polysift.features.kernels import full_dimension
from polysift_paper.comparisons.case import Case, open_case
from polysift_paper.comparisons.contenders import build_fpc
from polysift_paper.comparisons.printed import printed

ALPHAS = (1.0, 1e-2, 1e-4)
MAX_DEGREE, MAX_CENTERS = 8, 1500


def scores(case: Case, degree: int, alpha: float, within: bool, seed: int) -> tuple[float, float]:
    """Return the validation and test accuracy of one model."""
    rows, features = len(case.train), case.X.shape[1]
    n = min(full_dimension(degree, features), rows if within else min(rows, MAX_CENTERS))
    model = build_fpc(seed, degree=degree, n_centers=n, alpha=alpha).fit(*case.of(case.train))
    return model.score(*case.of(case.validation)), model.score(*case.of(case.test))


def lines(name: str, splits: int) -> list[str]:
    found: dict[tuple[float, str], list[float]] = {}
    for seed in range(splits):
        case = open_case(name, seed)
        bound = degree_bound(len(case.train), case.X.shape[1])
        for alpha in ALPHAS:
            judged = [
                scores(case, degree, alpha, degree <= bound, seed)
                for degree in range(1, max(bound, MAX_DEGREE) + 1)
            ]
            for word, tried in (("s_max", judged[:bound]), (str(MAX_DEGREE), judged)):
                best = max(tried, key=lambda pair: pair[0])  # of equals, the smaller degree
                found.setdefault((alpha, word), []).append(best[1])
    paper = printed("accuracy", name, "fpc")
    assert paper is not None
    return [
        f"| {name} | {paper.text} | {alpha:g} | {bound if word == 's_max' else word} | "
        f"{100 * np.mean(values):.2f} +- {100 * np.std(values):.2f} |"
        for (alpha, word), values in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", default=",".join(UCI), help="data sets, separated by commas")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # rho is at its floor
    print("| data | FPC in the paper | alpha | degrees up to | here |\n|---|---|---|---|---|")
    for name in options.only.split(","):
        print(*lines(name, options.splits), sep="\n", flush=True)


if __name__ == "__main__":
    main()

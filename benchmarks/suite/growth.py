"""How the time of a fit grows with rows m, centers n, features d and classes K, one at a time.

The paper's solver, five iterations, float32 rows. The exponent is the slope of log time over the
upper half of the range: what is small pays for other things than arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import needs_paper  # noqa: F401 - before imports from polysift_paper
from harness.classifiers import paper_classifier
from harness.figures import lines_of, panels
from harness.kernels import warm_up
from harness.report import Column, Report, Row, Table
from harness.run import Run
from harness.timing import say, seconds_of
from polysift_paper.studies.averages import exponent

BASE = {"m": 100_000, "n": 400, "d": 20, "K": 2}
DEGREE = 3

RANGES = {
    "m": (10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000),
    "n": (100, 200, 400, 800, 1600),
    "d": (14, 28, 56, 112, 224, 448, 896),
    "K": (2, 4, 8, 16, 32, 64),
}
"""What varies; the others stay as in ``BASE``. 400 centers need 14 features or more."""

MEANINGS = {"m": "rows", "n": "centers", "d": "features", "K": "classes"}

PHASES = {"seconds": "fit", "Gram matrix": "Gram", "sweep": "four sweeps", "survey": "survey"}

COLUMNS = (
    Column("grows", "what grows"),
    Column("value", "to", ","),
    Column("seconds", "fit, s", ".3f"),
    Column("survey", "survey", ".3f"),
    Column("Gram matrix", "Gram", ".3f"),
    Column("sweep", "sweeps", ".3f"),
)

EXPONENTS = (
    Column("grows", "what grows"),
    Column("from", "from", ","),
    Column("to", "to", ","),
    *(Column(phase, label, ".2f") for phase, label in PHASES.items()),
)


def measure(run: Run) -> Report:
    """Fit over the four ranges."""
    rows: list[Row] = []
    for name, values in RANGES.items():
        for value in values[: run.pick(3, len(values), len(values))]:
            shape = {**BASE, name: value}
            shape["m"] = _rows(run, shape["m"])
            rows.append({"grows": name, "value": shape[name]} | _fit(run, **shape))
            say(f"{name} = {shape[name]}: {rows[-1]['seconds']:.2f} s")
    slopes = [_slopes(name, _of(rows, name)) for name in RANGES]
    base = ", ".join(f"{name} = {value:,}" for name, value in BASE.items() if name != "m")
    title = f"Growth about m = {_rows(run, BASE['m']):,}, {base}, degree {DEGREE}"
    tables = [
        Table("exponents", "Exponents over the upper half of each range", slopes, EXPONENTS),
        Table("", title, rows, COLUMNS),
    ]
    return Report(tables, pictures={} if run.size == "tiny" else {"": _picture(rows, slopes)})


def _rows(run: Run, m: int) -> int:
    return m // run.pick(50, 8, 1)


def _fit(run: Run, m: int, n: int, d: int, K: int) -> Row:
    """Return the best times of some fits, of each phase by itself."""
    rng = np.random.default_rng(0)
    X = rng.random((m, d), dtype=np.float32)
    y = (K * (X[:, 0] + X[:, 1] ** 2) / 2).astype(int) % K
    model = paper_classifier(DEGREE, n, max_iter=5, tol=0.0, n_jobs=run.threads, random_state=0)
    warm_up(model, X, y)
    found: list[Row] = []
    for _ in range(run.pick(1, 2, 3)):
        taken = seconds_of(lambda: model.fit(X, y))
        found.append({"seconds": taken} | model.timings_)
    return {phase: min(row[phase] for row in found) for phase in PHASES}


def _of(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["grows"] == name]


def _slopes(name: str, rows: list[Row]) -> Row:
    upper = rows[len(rows) // 2 :] if len(rows) > 3 else rows[1:]
    at = [row["value"] for row in upper]
    found: Row = {"grows": name, "from": at[0], "to": at[-1]}
    return found | {p: exponent(at, [row[p] for row in upper]) for p in PHASES}


def _picture(rows: list[Row], slopes: list[Row]) -> Any:
    content = {
        f"time ~ {slope['grows']}^{slope['seconds']:.2f} from {slope['from']:,} on": lines_of(
            _of(rows, slope["grows"]), "value", PHASES
        )
        for slope in slopes
    }
    across = [f"{MEANINGS[slope['grows']]} {slope['grows']}" for slope in slopes]
    return panels(content, across, "seconds")

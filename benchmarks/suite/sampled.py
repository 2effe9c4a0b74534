"""The sampled Gram matrix against the exact one, and what the centers that it allows for buy.

First drawn rows of eight features: where the exact one would take too long, both are compared on
fewer rows, and its time is extrapolated, since all of its phases but the factor grow with the rows.
Then covtype_binary, half for training, beside kernels, random features and boosted trees.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from harness.cells import climb, in_own_process, store
from harness.figures import curves, lines_of, panels
from harness.problems import halves, smooth
from harness.report import Column, Report, Row, Table
from harness.run import Run
from harness.systems import GRAMS, SYSTEMS, Params
from harness.timing import bare_gram, best_times, say
from polysift.datasets import available

FEATURES, DEGREE = 8, 8
"""So many polynomials of degree 8 in 8 variables: 12,870."""

LEAST_ROWS = 24
"""Rows per center; with fewer, polysift does not take a sample."""

GROWING = ("survey", "Gram matrix", "sweep")
"""The phases of an exact fit that grow with the rows."""

SAMPLED_GROWTH = 1.3
"""Roughly the exponent of a sampled fit's time in n."""

REAL = "covtype_binary"
FIVE: Params = {"max_iter": 5, "tol": 0.0, "scaler": "standard"}
"""The paper's solver, with all of its five iterations."""

RIVALS: dict[str, list[Params]] = {
    "falkon": [{"n_centers": n} for n in (1000, 2000, 5000)],
    "nystroem": [{"n_components": n} for n in (50, 200)],
    "rbf_sampler": [{"n_components": n} for n in (500, 1000, 2000)],
    "lightgbm": [{"n_estimators": n} for n in (100, 300)],
    "hist_gb": [{"max_iter": n} for n in (100, 300)],
}

DRAWN_COLUMNS = (
    Column("n", "n", ","),
    Column("rows", "rows", ","),
    Column("gram", "Gram matrix"),
    Column("seconds", "seconds", ",.1f"),
    Column("objective", "objective", ".5f"),
    Column("training_error", "training error", ".2%"),
    Column("accuracy", "test accuracy", ".2%"),
    Column("products", "products"),
    Column("megabytes", "memory, MB", ",.0f"),
    Column("remark", "remark"),
)

REAL_COLUMNS = (
    Column("title", "system"),
    Column("params", "model"),
    Column("seconds", "seconds", ",.1f"),
    Column("accuracy", "test accuracy", ".2%"),
    Column("megabytes", "memory, MB", ",.0f"),
    Column("products", "products"),
    Column("status", "remark"),
)


def measure(run: Run) -> Report:
    """Compare on drawn rows, then on real ones."""
    drawn = _drawn(run)
    report = Report([drawn])
    if run.size == "tiny":
        return report
    report.pictures["drawn"] = _picture(drawn)
    if not available(REAL):
        report.notes = [f"{REAL} is not at hand: set POLYSIFT_DATA to a folder that has it."]
        return report
    real = _real(run)
    report.tables.append(real)
    content = {REAL: curves(real.rows)}
    report.pictures["covtype"] = panels(content, ["seconds to fit"], "test accuracy (%)", log=False)
    return report


def _picture(drawn: Table) -> Any:
    """Draw the time over the number of centers, for all rows."""
    m = max(row["rows"] for row in drawn.rows)
    whole = [row for row in drawn.rows if row["rows"] == m and "seconds" in row]
    lines = {
        gram: lines_of([row for row in whole if row["gram"] == gram], "n", {"seconds": gram})[gram]
        for gram in GRAMS
    }
    return panels({drawn.title: lines}, ["centers n"], "seconds")


def _drawn(run: Run) -> Table:
    m = run.pick(3_000, 100_000, 2_000_000)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        problem = smooth(m, FEATURES, test=run.pick(500, 50_000, 100_000))
        folder = store(Path(name) / "drawn", problem)
        for n in run.pick((30,), (500, 1000, 3000), (1000, 3000, 8000)):
            rows += _at(run, folder, n, m, _affordable(run, n, m))
    title = f"{m:,} x {FEATURES} in float32, degree {DEGREE}, five iterations"
    return Table("drawn", title, rows, DRAWN_COLUMNS)


def _affordable(run: Run, n: int, m: int) -> int:
    """Return the rows whose exact Gram matrix takes no longer than it may."""
    bare, products = bare_gram(n, run.threads, size=run.pick(2**16, 2**22, 2**23))
    speed = products / best_times({"bare": bare}, 2)["bare"]
    return int(min(m, run.pick(1.0, 8.0, 35.0) * speed / n**2))


def _at(run: Run, folder: Path, n: int, m: int, fewer: int) -> list[Row]:
    """Fit both ways to as many rows as the exact one can have, and the sampled one to all."""
    rows = [exact := _cell(run, folder, n, fewer, "exact")]
    if LEAST_ROWS * n <= fewer < m:
        rows.append(_cell(run, folder, n, fewer, "sampled"))
    if fewer < m and "seconds" in exact:
        growing = sum(exact[f"{phase} seconds"] for phase in GROWING)
        rows.append(
            {
                "n": n,
                "rows": m,
                "gram": "exact",
                "seconds": exact["seconds"] + growing * (m / fewer - 1),
                "remark": f"extrapolated from {fewer:,} rows",
            }
        )
    return [*rows, _cell(run, folder, n, m, "sampled")]


def _cell(run: Run, folder: Path, n: int, rows: int, gram: str) -> Row:
    params = {"degree": DEGREE, "n_centers": n, "gram": gram, **FIVE}
    limit = run.pick(60.0, 60.0, 500.0)
    found = in_own_process(folder, "paper", params, run.threads, limit, rows)
    say(f"n = {n:,}, {rows:,} rows, {gram}: {found.get('seconds', np.nan):.1f} s")
    remark = None if "seconds" in found else found["status"]
    return {"n": n, "rows": rows, "gram": gram} | found | {"remark": remark}


def _real(run: Run) -> Table:
    """Fit large models to half of covtype_binary, and rivals beside them."""
    limit = run.pick(20.0, 20.0, 400.0)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        problem = halves(REAL, run.pick(500, 20_000, None))
        folder = store(Path(name) / "real", problem)
        for gram in GRAMS:
            for solver in ("paper", "converged") if gram == "sampled" else ("paper",):
                most = 10_000 if (gram, solver) == ("sampled", "paper") else 2000
                sizes = run.pick((), (1000, 2000), (2000, 5000, 10_000))
                ladder = [_model(n, gram, solver) for n in sizes if n <= most]
                growth = SAMPLED_GROWTH if gram == "sampled" else None
                found = climb(folder, solver, ladder, run.threads, limit, growth)
                rows += [{"title": f"{SYSTEMS[solver].title}, {gram}"} | row for row in found]
        for system, ladder in RIVALS.items():
            if system in SYSTEMS:
                rungs = ladder[: run.pick(0, 1, 5)]
                rows += climb(folder, system, rungs, run.threads, 20.0)
    lines = [{"title": SYSTEMS[row["system"]].title} | row for row in rows]
    m, d = problem.X.shape
    title = f"{REAL}, {m:,} x {d}, judged on the other half"
    return Table("covtype", title, lines, REAL_COLUMNS)


def _model(n: int, gram: str, solver: str) -> Params:
    more = FIVE if solver == "paper" else {"scaler": "standard", "max_iter": 100}
    return {"degree": 6, "n_centers": n, "gram": gram, **more}

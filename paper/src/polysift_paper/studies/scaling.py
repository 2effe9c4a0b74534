"""Study 8: time and memory of training, by the number of rows and of centers."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from polysift.runtime.memory import MemoryMeter
from polysift_paper.studies.averages import average, column, exponent, seeds, where
from polysift_paper.studies.pictures import legend, line, name_axes, new_figure
from polysift_paper.studies.study import Row, Study, Verdict

FEATURES = 8
DEGREE = 5
ITERATIONS = 5
"""Always that many, so that cells differ in size alone."""

ROW_COUNTS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000)
FIXED_CENTERS = 100
CENTER_COUNTS = (50, 100, 200, 400, 800)
FIXED_ROWS = 200_000

MAX_RUNS = 2
"""However many runs are asked for: time and memory hardly vary."""

FITTED_FROM_ROWS, FITTED_FROM_CENTERS = 100_000, 100
"""Rows and centers from which on exponents are fitted: below, overhead is much of the time."""

CHUNK_ROWS = 1_000_000
STATE_BYTES_PER_ROW = 8
"""Bytes that the solver keeps per row: one float64 (see the page on numerics)."""

CHILD = "import sys; from polysift_paper.studies.scaling import child; child(sys.argv[1])"


def problem(rows: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int8]]:
    """Draw uniform rows in float32, and labels of a curved boundary with a tenth of them wrong.

    It works in chunks: what is measured later is the largest size of the process.
    """
    stream = np.random.default_rng(seed)
    X = np.empty((rows, FEATURES), dtype=np.float32)
    y = np.empty(rows, dtype=np.int8)
    for start in range(0, rows, CHUNK_ROWS):
        part = X[start : start + CHUNK_ROWS]
        stream.random(out=part, dtype=np.float32)
        curve = np.sin(3 * part[:, 0]) + part[:, 1] * part[:, 2] + part[:, 3:].mean(axis=1) ** 2
        flipped = stream.random(len(part), dtype=np.float32) < 0.1
        y[start : start + CHUNK_ROWS] = np.where((curve > 1.2) ^ flipped, 1, -1)
    return X, y


def child(text: str) -> None:
    """Measure one fit in this process, and print the outcome."""
    from polysift_paper.algorithm import paper_classifier

    cell = json.loads(text)
    settings = {"max_iter": ITERATIONS, "tol": 0.0, "random_state": cell["seed"]}
    model = paper_classifier(degree=DEGREE, n_centers=cell["centers"], **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a floor on rho, which changes nothing of the cost
        model.fit(*problem(2000, 0))  # loads libraries
        X, y = problem(cell["rows"], cell["seed"])
        meter, start = MemoryMeter(), perf_counter()
        model.fit(X, y)
        seconds = perf_counter() - start
    grown, size = meter.growth(), X.nbytes + y.nbytes
    print(json.dumps({"seconds": seconds, "memory": grown, "input": size}))


def cells(runs: int) -> list[Row]:
    """Return a cell for each repetition and size."""
    sizes = [("rows", rows, FIXED_CENTERS) for rows in ROW_COUNTS]
    sizes += [("centers", FIXED_ROWS, centers) for centers in CENTER_COUNTS]
    return [
        {**seed, "varied": varied, "rows": rows, "centers": centers}
        for seed in seeds(min(runs, MAX_RUNS))
        for varied, rows, centers in sizes
    ]


def measure(cell: Row) -> list[Row]:
    """Fit in a process of its own, on all cores."""
    command = [sys.executable, "-c", CHILD, json.dumps(cell)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"A fit has failed: {done.stderr.strip() or done.returncode}")
    return [json.loads(done.stdout)]


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each size; memory is None where the system does not tell."""
    by = ("varied", "rows", "centers")
    lines = average(rows, by, ("seconds", "input"))
    for entry in lines:
        known = [row["memory"] for row in where(rows, **{name: entry[name] for name in by})]
        entry["memory"] = None if None in known else float(np.mean(known))
        del entry["input_spread"]
    return lines


def draw(summary: list[Row], rows: list[Row]) -> Any:
    """Draw time and memory by rows, and by centers, with the slopes to compare with."""
    figure, axes = new_figure(2, 2, width=7.2)
    (time_by_rows, memory_by_rows), (time_by_centers, memory_by_centers) = axes
    by_rows, by_centers = where(summary, varied="rows"), where(summary, varied="centers")
    _draw_time(time_by_rows, by_rows, "rows", (1,))
    name_axes(time_by_rows, "rows $m$", "seconds", f"(a) Time, $n$ = {FIXED_CENTERS}")
    _draw_memory(memory_by_rows, by_rows, "rows")
    name_axes(memory_by_rows, "rows $m$", "MB", f"(b) Memory, $n$ = {FIXED_CENTERS}")
    _draw_time(time_by_centers, by_centers, "centers", (1, 2))
    name_axes(time_by_centers, "centers $n$", "seconds", f"(c) Time, $m$ = {FIXED_ROWS:,}")
    _draw_memory(memory_by_centers, by_centers, "centers")
    name_axes(memory_by_centers, "centers $n$", "MB", f"(d) Memory, $m$ = {FIXED_ROWS:,}")
    for ax in (time_by_rows, memory_by_rows, time_by_centers, memory_by_centers):
        ax.set(xscale="log", yscale="log")
        ax.set_ylim(top=20 * ax.get_ylim()[1])  # room for the legend above the lines
        legend(ax, loc="upper left")
    sizes = column(by_centers, "centers")
    for ax in (time_by_centers, memory_by_centers):
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
    return figure


def _draw_time(ax: Any, entries: list[Row], varied: str, slopes: tuple[int, ...]) -> None:
    sizes, seconds = column(entries, varied), column(entries, "seconds")
    line(ax, sizes, seconds, number=0, label="measured")
    for slope in slopes:
        _guide(ax, sizes, seconds, slope, f"slope {slope}")


def _draw_memory(ax: Any, entries: list[Row], varied: str) -> None:
    known = [entry for entry in entries if entry["memory"] is not None]
    grown = [entry["memory"] / 1e6 for entry in known]
    line(ax, column(known, varied), grown, number=0, label="beside the input")
    sizes = column(entries, varied)
    line(ax, sizes, [entry["input"] / 1e6 for entry in entries], number=1, label="input")
    features = [entry["rows"] * entry["centers"] * 4 / 1e6 for entry in entries]
    ax.plot(sizes, features, color="#777777", linestyle=":", label="feature matrix")


def _guide(ax: Any, x: list[float], y: list[float], slope: int, label: str) -> None:
    """Draw a power of x through the middle of the points."""
    middle = np.exp(np.mean(np.log(y)) - slope * np.mean(np.log(x)))
    dash = ":" if slope == 1 else "-."
    ax.plot(
        x, middle * np.asarray(x) ** slope, color="#777777", linestyle=dash, zorder=1, label=label
    )


def judge(summary: list[Row], rows: list[Row]) -> Verdict:
    """Fit exponents of time, and the memory that each row takes."""
    by_rows = [
        entry for entry in where(summary, varied="rows") if entry["rows"] >= FITTED_FROM_ROWS
    ]
    by_centers = [
        e for e in where(summary, varied="centers") if e["centers"] >= FITTED_FROM_CENTERS
    ]
    in_rows = exponent(column(by_rows, "rows"), column(by_rows, "seconds"))
    in_centers = exponent(column(by_centers, "centers"), column(by_centers, "seconds"))
    most = by_rows[-1]
    linear, between = 0.85 <= in_rows <= 1.15, 0.85 <= in_centers <= 2.15
    text = (
        f"With {FIXED_CENTERS} centers time grows like m^{in_rows:.2f} from {by_rows[0]['rows']} "
        f"rows ({by_rows[0]['seconds']:.2f} s) to {most['rows']} ({most['seconds']:.1f} s); "
        f"linear (0.85 to 1.15): {'yes' if linear else 'no'}. With {FIXED_ROWS} rows it grows like "
        f"n^{in_centers:.2f} from {by_centers[0]['centers']} centers "
        f"({by_centers[0]['seconds']:.2f} s) to {by_centers[-1]['centers']} "
        f"({by_centers[-1]['seconds']:.1f} s); between n and n^2: {'yes' if between else 'no'}. "
    )
    known = [entry for entry in by_rows if entry["memory"] is not None]
    small = True
    if len(known) > 1:
        per_row, constant = np.polyfit(column(known, "rows"), column(known, "memory"), 1)
        small = per_row < 4 * STATE_BYTES_PER_ROW
        text += (
            f"Beside the input it takes {constant / 1e6:.0f} MB and {per_row:.1f} bytes per row "
            f"({known[-1]['memory'] / 1e6:.0f} MB at {known[-1]['rows']} rows, whose input has "
            f"{known[-1]['input'] / 1e6:.0f} MB and whose feature matrix would have "
            f"{known[-1]['rows'] * FIXED_CENTERS * 4 / 1e6:.0f}); the state of the solver alone is "
            f"{STATE_BYTES_PER_ROW} bytes per row. Below {4 * STATE_BYTES_PER_ROW} bytes per row: "
            f"{'yes' if small else 'no'}. "
        )
        grown = [entry for entry in by_centers if entry["memory"] is not None]
        if len(grown) > 1:
            power = exponent(column(grown, "centers"), column(grown, "memory"))
            text += (
                f"With the centers it grows like n^{power:.2f}, to "
                f"{grown[-1]['memory'] / 1e6:.0f} MB at {grown[-1]['centers']}. "
            )
    else:
        text += "This system does not tell how much memory was used. "
    text += f"{ITERATIONS} iterations, all cores, at most {MAX_RUNS} repetitions."
    return Verdict(linear and between and small, text)


STUDIES: tuple[Study, ...] = (
    Study(
        name="8",
        title="Time and memory as rows and centers grow",
        figure="",
        claim=(
            "Training takes O(m n (n + T)) time for T iterations: linear in the rows, and between "
            "linear and quadratic in the centers. Beside the input, memory is constant but for a "
            "few bytes per row: the m x n feature matrix is never held."
        ),
        runs=MAX_RUNS,
        cells=cells,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
        parallel=False,
    ),
)

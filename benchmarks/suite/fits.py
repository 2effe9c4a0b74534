"""Whole fits at the shapes of SUSY and HIGGS, float32 rows in memory.

The lower bound is the time of m n^2 at the speed of a bare float64 ``A.T @ A``, measured before and
after each fit. Five iterations, no tolerance: a survey, a Gram pass and four sweeps.
"""

from __future__ import annotations

from harness.classifiers import paper_classifier
from harness.kernels import warm_up
from harness.problems import published_shape
from harness.report import Column, Report, Row, Table, Target
from harness.run import Run
from harness.systems import GRAMS
from harness.timing import bare_gram, say, seconds_of
from polysift import FPCClassifier

SHAPES = {
    # rows, features, degree, centers, target
    "SUSY": (4_000_000, 8, 6, 1600, 1.4),
    "HIGGS": (10_000_000, 21, 3, 400, 2.2),
}

COLUMNS = (
    Column("shape", "shape"),
    Column("gram", "Gram matrix"),
    Column("rows", "rows", ","),
    Column("seconds", "seconds", ".2f"),
    Column("survey", "survey", ".2f"),
    Column("sample", "sample", ".2f"),
    Column("Gram matrix", "Gram", ".2f"),
    Column("product", "products", ".2f"),
    Column("sweep", "sweeps", ".2f"),
    Column("bound", "lower bound", ".2f"),
    Column("ratio", "ratio", ".2f"),
    Column("training_error", "training error", ".2%"),
)


def measure(run: Run) -> Report:
    """Fit both shapes, in each way that there is."""
    scale = run.scale or run.pick(1 / 2000, 1 / 40, 1 / 4)
    rows: list[Row] = []
    for name, (m, d, degree, n, aim) in SHAPES.items():
        shape = (m, d, degree, n // run.pick(8, 1, 1), aim)
        rows += _compare(run, name, shape, scale)
    aims = {name: shape[-1] for name, shape in SHAPES.items()}
    targets = [
        Target(
            f"fit / lower bound, {row['shape']}'s shape", row["ratio"], aims[row["shape"]], False
        )
        for row in rows
        if row["gram"] == "exact"
    ]
    notes = [f"Rows: {scale:.3g} of the published numbers; time is proportional to them."]
    if scale == 1:
        notes = []
    table = Table("", f"Whole fits on {run.threads} threads, in seconds", rows, COLUMNS)
    return Report([table], targets, notes)


def _compare(
    run: Run, name: str, shape: tuple[int, int, int, int, float], scale: float
) -> list[Row]:
    m, d, degree, n, _ = shape
    m = int(scale * m)
    problem = published_shape(m, d)
    bare, products = bare_gram(n, run.threads, size=run.pick(2**18, 2**23, 2**25))
    fits: dict[str, list[Row]] = {gram: [] for gram in GRAMS}
    bare_times = []
    for gram in GRAMS:
        warm_up(_model(run, degree, n, gram), problem.X, problem.y)
    for _ in range(run.pick(1, 2, 2)):
        for gram in GRAMS:
            bare_times += [seconds_of(bare) for _ in range(3)]
            model = _model(run, degree, n, gram)
            taken = seconds_of(lambda model=model: model.fit(problem.X, problem.y))
            fits[gram].append({"seconds": taken, "model": model})
            bare_times.append(seconds_of(bare))
            say(f"{name}, {gram}: {taken:.1f} s")
    bound = m * n * n * min(bare_times) / products
    about = {"shape": name, "rows": m, "d": d, "degree": degree, "n": n, "bound": bound}
    return [about | {"gram": gram} | _row(own, bound) for gram, own in fits.items()]


def _model(run: Run, degree: int, n: int, gram: str) -> FPCClassifier:
    return paper_classifier(
        degree, n, max_iter=5, tol=0.0, n_jobs=run.threads, random_state=0, gram=gram
    )


def _row(fits: list[Row], bound: float) -> Row:
    """Return the figures of the fastest fit."""
    best = min(fits, key=lambda fit: fit["seconds"])
    model = best["model"]
    phases = {phase: value for phase, value in model.timings_.items() if phase != "total"}
    error = model.history_["training_error"]
    return phases | {
        "seconds": best["seconds"],
        "ratio": best["seconds"] / bound,
        "training_error": float(error[error == error][-1]),  # the last may be NaN: not computed
    }

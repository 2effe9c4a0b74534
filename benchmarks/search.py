"""The price of a search with nothing set, what it finds over time, and how it ends.

``--rows`` x 20: seconds of a plain fit and of a search, their ratio, scores on rows held out. With
``--rivals`` also the best score over time of scikit-learn's HalvingRandomSearchCV over the same
space and of Optuna with LightGBM, where they are installed, for as many seconds; ``--picture``
draws it. ``--limits`` says how these time limits are kept at each number of rows. ``--ends N``
ends a search of ``--end-rows`` N times by a time limit and N times by Ctrl-C, at random moments of
its first ``--within`` seconds, and ``--kills N`` ends ``polysift tune`` by SIGTERM and SIGKILL, at
random moments of a whole run; both say what was left. ``--data [TABLE ...]`` compares plain and
tuned on all tables of ``POLYSIFT_DATA`` or on some, three splits each, and goes on with what is in
``--out``.

Usage: python benchmarks/search.py [--rows 20000 100000 --rivals] [--picture search.png]
       [--limits 2 5 10] [--ends 20] [--kills 20] [--data magic --out docs/results/search]
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from sklearn.model_selection import StratifiedKFold

import polysift
from harness.table_data import read_split, table_files
from polysift import FPCClassifier, FPCClassifierCV

PATIENCE = 2.0
"""How often the time of a search a rival may take."""

TEST_ROWS, END_ROWS = 20_000, 60_000
MOST_ROWS, SPLITS = 30_000, 3
"""Of a table."""

TABLES_HEAD = (
    *("table", "split", "rows", "plain", "tuned", "plain_seconds", "tuned_seconds"),
    "rival_chosen",
)
Curve = list[tuple[float, float]]


def problem(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 20))
    f = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] ** 2
    f += 0.3 * X[:, 5:10].sum(axis=1) - 0.5
    return X, (f + 0.5 * rng.normal(size=rows) > 0).astype(int)


def timed(model, X, y) -> float:
    began = perf_counter()
    model.fit(X, y)
    return perf_counter() - began


def timed_twice(model, X, y) -> tuple[float, float]:
    """Return the seconds of a fit, and those of all processors, which other work disturbs less."""
    began = process_time()
    return timed(model, X, y), process_time() - began


def price(rows: int, rivals: bool) -> tuple[str, dict[str, Curve]]:
    """Return a line on a plain fit and a search, and the scores over time."""
    X, y = problem(rows)
    X_test, y_test = problem(TEST_ROWS, seed=1)
    plain = FPCClassifier(random_state=0)
    search = FPCClassifierCV(random_state=0)
    seconds, processor = zip(*(timed_twice(model, X, y) for model in (plain, search)), strict=True)
    scores = plain.score(X_test, y_test), search.score(X_test, y_test)
    points = [tuple(point) for point in search.scores_over_time_.tolist()]
    curves = {"polysift": [*points, (seconds[1], float(search.best_score_))]}
    if rivals:
        curves |= {
            "HalvingRandomSearchCV, same space": halving(X, y, seconds[1]),
            "Optuna, LightGBM": optuna_lightgbm(X, y, seconds[1]),
        }
    line = (
        f"{rows:,} x 20: plain {seconds[0]:.1f} s, search {seconds[1]:.1f} s, ratio "
        f"{seconds[1] / seconds[0]:.2f} (of all processors {processor[0]:.1f} s, "
        f"{processor[1]:.1f} s, {processor[1] / processor[0]:.2f}); test accuracy "
        f"{scores[0]:.4f} and {scores[1]:.4f}; "
        f"first score after {search.scores_over_time_[0, 0]:.1f} s"
    )
    for name, curve in curves.items():
        line += "".join(f"\n  {name}: {score:.4f} after {at:.1f} s" for at, score in curve[-1:])
    return line, {name: curve for name, curve in curves.items() if curve}


def halving(X, y, seconds: float) -> Curve:
    """Return the best mean score of scikit-learn's search over the same space, over time.

    It has one when it is done; it is ended, and has none, after ``PATIENCE`` times the seconds.
    """
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV

    space = {
        "kernel": ["spline", "polynomial"],
        "degree": [1, 2, 3, 4],
        "rho": ["auto", 1e-6, 1e-4, 1e-2],
    }
    found = HalvingRandomSearchCV(
        FPCClassifier(random_state=0, n_centers=1000),
        space,
        n_candidates=20,
        min_resources=min(5000, len(y) // 2),
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        random_state=0,
        error_score="raise",
    )

    def end(*_) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * seconds)
    try:
        return [(timed(found, X, y), float(found.best_score_))]
    except TimeoutError:
        print(f"HalvingRandomSearchCV was not done after {PATIENCE * seconds:.0f} s", flush=True)
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def optuna_lightgbm(X, y, seconds: float) -> Curve:
    """Return the best mean score of LightGBM by Optuna for so many seconds; [] without them."""
    try:
        import lightgbm
        import optuna
    except ImportError:
        return []
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))

    def objective(trial) -> float:
        model = lightgbm.LGBMClassifier(
            n_estimators=trial.suggest_int("n_estimators", 50, 800, log=True),
            learning_rate=trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            num_leaves=trial.suggest_int("num_leaves", 8, 256, log=True),
            min_child_samples=trial.suggest_int("min_child_samples", 5, 100, log=True),
            subsample=trial.suggest_float("subsample", 0.5, 1.0),
            subsample_freq=1,
            verbose=-1,
        )
        return float(np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]))

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    began, curve = perf_counter(), []

    def note(study, trial) -> None:
        curve.append((perf_counter() - began, study.best_value))

    study.optimize(objective, timeout=seconds, callbacks=[note])
    return curve


def ends(rows: int, count: int, within: float) -> Iterator[str]:
    """End searches at random moments; yield a line on each kind."""
    X, y = problem(rows)
    rng = np.random.default_rng(0)
    for kind in ("time limit", "Ctrl-C"):
        models, tiny, samples, late = 0, 0, 0, []
        for moment in rng.uniform(0.05, within, count):
            search = FPCClassifierCV(random_state=0)
            timer = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGINT))
            if kind == "time limit":
                search.set_params(time_limit=float(moment))
            else:
                timer.start()
            began = perf_counter()
            search.fit(X, y)
            late.append(perf_counter() - began - moment)
            timer.cancel()
            models += loads_and_predicts(search, X)
            tiny += search.n_refit_rows_ <= 2000
            samples += 2000 < search.n_refit_rows_ < rows
        yield (
            f"{kind} at {count} moments within {within:g} s, {rows:,} rows: {models} models that "
            f"load and predict, {tiny} of them of 2,000 rows and {samples} of a larger sample; "
            f"late by {np.median(late):.1f} s in the median, {max(late):.1f} s at most"
        )


def loads_and_predicts(search: FPCClassifierCV, X: np.ndarray) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.polysift"
        polysift.save(search, file)
        same = polysift.load(file).predict(X[:1000]) == search.predict(X[:1000])
    return bool(same.all())


def kills(rows: int, count: int) -> Iterator[str]:
    """Kill ``polysift tune`` at random moments of its run; yield a line on each signal."""
    X, y = problem(rows)
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "rows.npz", Path(folder) / "model.polysift"
        np.savez(table, X=X, y=y)
        command = [sys.executable, "-m", "polysift", "tune", str(table), "-o", str(model), "--json"]
        began = perf_counter()
        with tuning(command) as process:
            process.stderr.readline()
            first = perf_counter() - began
        whole = perf_counter() - began
        yield (
            f"polysift tune of {rows:,} rows takes {whole:.1f} s with the start of Python; its "
            f"first model is there after {first:.1f} s, of which the rows were read at the end"
        )
        for sent in (signal.SIGTERM, signal.SIGKILL):
            loaded, done, few, none = 0, 0, 0, []
            for moment in rng.uniform(0, whole, count):
                model.unlink(missing_ok=True)
                with tuning(command) as process:
                    try:
                        process.wait(moment)
                    except subprocess.TimeoutExpired:
                        process.send_signal(sent)
                    process.communicate()
                done += process.returncode == 0
                if model.exists():
                    found = polysift.load(model)
                    loaded += len(found.predict(X[:1000])) == 1000
                    few += found.n_refit_rows_ <= 2000
                else:
                    none.append(moment)
            when = f" ({', '.join(f'{moment:.1f}' for moment in sorted(none))} s)" if none else ""
            yield (
                f"{sent.name} at {count} moments of that: {loaded} models that load and predict, "
                f"{few} of them of 2,000 rows; {len(none)} times there was none yet{when}; "
                f"{done} were done before"
            )


def tuning(command: list[str]) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def limits(rows: int, seconds: Sequence[float]) -> Iterator[str]:
    """Yield a line on how each time limit was kept, the refit included."""
    X, y = problem(rows)
    X_test, y_test = problem(TEST_ROWS, seed=1)
    for limit in seconds:
        search = FPCClassifierCV(random_state=0, time_limit=limit)
        taken = timed(search, X, y)
        verdict = "kept" if taken <= limit + max(2.0, 0.2 * limit) else "MISSED"
        yield (
            f"{rows:,} rows, time limit {limit:g} s: {taken:.1f} s, {verdict}; {search.status_}, "
            f"model of {search.n_refit_rows_:,} rows, test accuracy "
            f"{search.score(X_test, y_test):.4f}"
        )


def compared(table: str, path: Path, folder: Path) -> str:
    """Return a line on plain and tuned on a table, over three splits; those done are read."""
    for split in range(SPLITS):
        if any((row["table"], row["split"]) == (table, str(split)) for row in results(folder)):
            continue
        rows = read_split(str(path), split, MOST_ROWS)
        models = FPCClassifier(random_state=split), FPCClassifierCV(random_state=split)
        seconds = [f"{timed(model, rows.X, rows.y):.2f}" for model in models]
        scores = [model.score(rows.X_test, rows.y_test) for model in models]
        chosen = models[1].best_params_["kernel"] != "auto"
        add_result(folder, [table, split, len(rows.y), *scores, *seconds, chosen])
    own = [row for row in results(folder) if row["table"] == table]
    plain, tuned = (np.array([float(row[name]) for row in own]) for name in ("plain", "tuned"))
    spread, behind = plain.std(ddof=1), plain.mean() - tuned.mean()
    worse = " WORSE by more than half a deviation" if behind > spread / 2 else ""
    return f"{table}: plain {plain.mean():.4f} +- {spread:.4f}, tuned {tuned.mean():.4f}{worse}"


def results(folder: Path) -> list[dict[str, str]]:
    file = folder / "tables.csv"
    if not file.exists():
        return []
    with file.open() as lines:
        return list(csv.DictReader(lines))


def add_result(folder: Path, line: Sequence[object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tables.csv"
    new = not file.exists()
    with file.open("a", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerows([TABLES_HEAD, line] if new else [line])


def draw(curves: dict[str, dict[str, Curve]], path: str) -> None:
    """Draw the best scores over time, a panel for each number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(curves), 4.2), layout="constrained")
    for ax, (title, lines) in zip(
        np.atleast_1d(figure.subplots(1, len(curves))), curves.items(), strict=True
    ):
        for name, curve in lines.items():
            x, score = zip(*curve, strict=True)
            ax.step(x, score, where="post", marker="o", label=name)
        ax.set(title=title, xlabel="seconds", ylabel="best cross-validated accuracy so far")
        ax.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--picture")
    parser.add_argument("--limits", type=float, nargs="*", default=[])
    parser.add_argument("--ends", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--end-rows", type=int, default=END_ROWS)
    parser.add_argument("--within", type=float, default=20.0)
    parser.add_argument("--data", nargs="*", metavar="TABLE")
    parser.add_argument("--out", type=Path, default=Path("search"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # searches that are ended warn
    curves = {}
    if options.limits:
        for rows in options.rows:
            for line in limits(rows, options.limits):
                print(line, flush=True)
    for rows in [] if options.limits else options.rows:
        line, curves[f"{rows:,} rows"] = price(rows, options.rivals)
        print(line, flush=True)
    if options.picture:
        draw(curves, options.picture)
    for line in ends(options.end_rows, options.ends, options.within) if options.ends else ():
        print(line, flush=True)
    for line in kills(options.end_rows, options.kills) if options.kills else ():
        print(line, flush=True)
    for table, path in sorted(table_files().items(), key=lambda item: item[1].stat().st_size):
        if options.data is not None and (not options.data or table in options.data):
            print(compared(table, path, options.out), flush=True)


if __name__ == "__main__":
    main()

"""The price of a search with nothing set, what it finds over time, and how it ends.

``--rows`` x 20: seconds of a plain fit and of a search, their ratio, scores on rows held out. With
``--rivals`` also the best score over time of scikit-learn's HalvingRandomSearchCV over the same
space and of Optuna with LightGBM, where they are installed, for as many seconds; ``--picture``
draws it. ``--ends N`` ends a search N times by a time limit and N times by Ctrl-C, at random
moments of its first ``--within`` seconds, and says what was left. ``--data NAME ...`` compares
plain and tuned on sets of ``POLYSIFT_DATA``, three splits each.

Usage: python benchmarks/search.py [--rows 20000 100000] [--picture search.png] [--ends 20]
       [--data magic]
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

import polysift
from polysift import FPCClassifier, FPCClassifierCV

TEST_ROWS = 20_000
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


def price(rows: int, rivals: bool) -> tuple[str, dict[str, Curve]]:
    """Return a line on a plain fit and a search, and the scores over time."""
    X, y = problem(rows)
    X_test, y_test = problem(TEST_ROWS, seed=1)
    plain = FPCClassifier(random_state=0)
    search = FPCClassifierCV(random_state=0)
    seconds = timed(plain, X, y), timed(search, X, y)
    scores = plain.score(X_test, y_test), search.score(X_test, y_test)
    curves = {"polysift": [tuple(point) for point in search.scores_over_time_.tolist()]}
    if rivals:
        curves |= {
            "HalvingRandomSearchCV, same space": halving(X, y, seconds[1]),
            "Optuna, LightGBM": optuna_lightgbm(X, y, seconds[1]),
        }
    line = (
        f"{rows:,} x 20: plain {seconds[0]:.1f} s, search {seconds[1]:.1f} s, ratio "
        f"{seconds[1] / seconds[0]:.2f}; test accuracy {scores[0]:.4f} and {scores[1]:.4f}; "
        f"first score after {search.scores_over_time_[0, 0]:.1f} s"
    )
    return line, {name: curve for name, curve in curves.items() if curve}


def halving(X, y, seconds: float) -> Curve:
    """Return the best mean score of scikit-learn's search over the same space, over time."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV

    space = {
        "kernel": ["spline", "polynomial"],
        "degree": [1, 2, 3, 4],
        "rho": ["auto", 1e-6, 1e-4, 1e-2],
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    found = HalvingRandomSearchCV(
        FPCClassifier(random_state=0, n_centers=2000),
        space,
        n_candidates=20,
        min_resources=min(5000, len(y) // 2),
        cv=folds,
        random_state=0,
    )
    return [(timed(found, X, y), float(found.best_score_))]


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


def ends(rows: int, count: int, within: float) -> list[str]:
    """End searches at random moments; return a line on each kind."""
    X, y = problem(rows)
    rng, lines = np.random.default_rng(0), []
    for kind in ("time limit", "Ctrl-C"):
        models, errors, late, samples = 0, 0, [], 0
        for moment in rng.uniform(0.5, within, count):
            search = FPCClassifierCV(random_state=0)
            timer = threading.Timer(moment, os.kill, (os.getpid(), signal.SIGINT))
            if kind == "time limit":
                search.set_params(time_limit=float(moment))
            else:
                timer.start()
            began = perf_counter()
            try:
                search.fit(X, y)
            except (TimeoutError, KeyboardInterrupt):
                errors += 1
                continue
            finally:
                timer.cancel()
            late.append(perf_counter() - began - moment)
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "model.polysift"
                polysift.save(search, file)
                same = polysift.load(file).predict(X[:1000]) == search.predict(X[:1000])
            models += bool(same.all())
            samples += search.n_refit_rows_ < rows
        lines.append(
            f"{kind} at {count} moments within {within:g} s, {rows:,} rows: {models} models that "
            f"load and predict ({samples} of a sample), {errors} before the first model; "
            f"at most {max(late, default=0.0):.1f} s late"
        )
    return lines


def compared(name: str) -> str:
    """Return a line on plain and tuned on a set, over three splits."""
    from polysift import datasets

    X, y = getattr(datasets, f"load_{name}")()
    scores = []
    for seed in range(3):
        train, test = train_test_split(
            np.arange(len(y)), test_size=0.25, random_state=seed, stratify=y
        )
        models = FPCClassifier(random_state=seed), FPCClassifierCV(random_state=seed)
        scores.append([m.fit(X[train], y[train]).score(X[test], y[test]) for m in models])
    (plain, tuned), (spread, _) = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1)
    worse = " WORSE by more than half a deviation" if plain - tuned > spread / 2 else ""
    return f"{name}: plain {plain:.4f} +- {spread:.4f}, tuned {tuned:.4f}{worse}"


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
    parser.add_argument("--rows", type=int, nargs="*", default=[20_000, 100_000])
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--picture")
    parser.add_argument("--ends", type=int, default=0)
    parser.add_argument("--within", type=float, default=20.0)
    parser.add_argument("--data", nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # searches that are ended warn
    curves = {}
    for rows in options.rows:
        line, curves[f"{rows:,} rows"] = price(rows, options.rivals)
        print(line, flush=True)
    if options.picture:
        draw(curves, options.picture)
    if options.ends:
        for line in ends(20_000, options.ends, options.within):
            print(line, flush=True)
    for name in options.data:
        print(compared(name), flush=True)


if __name__ == "__main__":
    main()

"""``compare``: plain and tuned fits beside other classifiers, on the same folds of a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from polysift.data.kinds import CATEGORY, DATE, NUMBER
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.reporting.comparison_result import Comparison, ModelResult
from polysift.reporting.rivals import Frames, few_levels, hist_gb, lightgbm, logistic, plain, raw
from polysift.runtime import clock
from polysift.runtime.parameters import check_integer, check_real, check_seed
from polysift.runtime.progress import Monitor
from polysift.training.metrics import Influence, RowScores, influences, rarest_class

MOST_ROWS = 50_000
"""The rows that are compared on by default."""


@dataclass(frozen=True)
class Contender:
    """A classifier that is compared.

    Attributes
    ----------
    title : str
        How tables call it.
    package : str
        The module that must be there.
    build : callable
        ``build(threads, seed)`` returns an estimator.
    frames : callable
        Makes of the frames of a fold what the estimator takes; before the clock starts.
    """

    title: str
    package: str
    build: Callable[[int | None, int], Any]
    frames: Callable[[Any, Any], Frames] = plain


def _plain_fit(threads: int | None, seed: int) -> Any:
    return FPCClassifier(n_jobs=threads, random_state=seed)


def _tuned(threads: int | None, seed: int) -> Any:
    return FPCClassifierCV(calibration="sigmoid", n_jobs=threads, random_state=seed)


OURS = "polysift"
CONTENDERS = {
    OURS: Contender("polysift", "polysift", _plain_fit, raw),
    "tuned": Contender("polysift, tuned", "polysift", _tuned, raw),
    "logistic": Contender("logistic regression", "sklearn", logistic),
    "lightgbm": Contender("LightGBM", "lightgbm", lightgbm),
    "hist_gb": Contender("HistGradientBoosting", "sklearn", hist_gb, few_levels),
}
"""What can be compared, by name."""


def compare(
    X: Any,
    y: Any = None,
    *,
    models: Sequence[str] | None = None,
    cv: int = 5,
    max_rows: int | None = MOST_ROWS,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> Comparison:
    """Compare plain and tuned fits with other classifiers' defaults, on the same folds.

    Each takes the table as suits it: boosted trees take categories and missing values as they are,
    logistic regression has numbers imputed and standardised and categories one-hot. Needs pandas.

    Parameters
    ----------
    X : DataFrame, array or DataSource of shape (m, d)
        The rows.
    y : array-like of shape (m,), optional
        The labels, where X is not a source.
    models : sequence of str, default=None
        Which to compare: "polysift" (a plain fit), "tuned" (``FPCClassifierCV`` with
        probabilities, which takes longest), "logistic", "lightgbm" and "hist_gb". None is all that
        are installed.
    cv : int, default=5
        The number of folds, stratified and shuffled by the seed.
    max_rows : int, default=50000
        The most rows, drawn at random; None is all.
    time_limit : float, default=None
        Seconds after which no further fold is begun. Only folds that every model has finished
        count; without a single one it is an error.
    n_jobs : int, default=None
        Threads of the models that have any.
    random_state : int, default=0
        The seed of rows, folds and models.
    verbose : int, default=0
        Whether to show progress.

    Returns
    -------
    Comparison
        The figures of each model with their intervals, its time, and a verdict.

    Examples
    --------
    >>> from polysift import compare
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(600, noise=0.1, random_state=0)
    >>> found = compare(X, y, models=["polysift", "logistic"], cv=2)
    >>> [model.title for model in found.models]
    ['polysift', 'logistic regression']
    """
    names = _checked(models)
    folds, seed = check_integer("cv", cv, least=2), check_seed(random_state)
    if time_limit is not None:
        check_real("time_limit", time_limit, positive=True)
    frame, labels = _table(X, y)
    frame, labels = _drawn(frame, labels, max_rows, seed)
    classes, codes = np.unique(labels, return_inverse=True)
    _check_classes(classes, codes, folds)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed % 2**32)
    rare = rarest_class(np.bincount(codes).astype(float))
    began = clock.now()
    done: list[list[tuple[RowScores, float, float]]] = []
    with (
        Monitor(show=bool(verbose)) as monitor,
        monitor.task("comparison", folds * len(names), "fits") as count,
    ):
        for train, test in splitter.split(frame, codes):
            if done and time_limit is not None and clock.now() - began > time_limit:
                break
            parts = (
                frame.iloc[train].reset_index(drop=True),
                frame.iloc[test].reset_index(drop=True),
            )
            results = []
            for name in names:
                if not done and time_limit is not None and clock.now() - began > time_limit:
                    raise TimeoutError(
                        f"time_limit={time_limit:g} s struck before every model had finished the "
                        "first fold. Raise it, lower max_rows, or compare fewer models."
                    )
                results.append(_scored(name, parts, codes[train], codes[test], n_jobs, seed))
                count(1)
            done.append(results)
    return Comparison(
        rows=len(codes),
        classes=classes,
        class_counts=np.bincount(codes).astype(float),
        folds=len(done),
        asked_folds=folds,
        models=tuple(
            _joined(name, [fold[i] for fold in done], len(classes), rare)
            for i, name in enumerate(names)
        ),
    )


def _checked(models: Sequence[str] | None) -> list[str]:
    if models is None:
        return [
            name
            for name, contender in CONTENDERS.items()
            if find_spec(contender.package) is not None
        ]
    if isinstance(models, str) or not models:
        raise ValueError(f"models must be a list of {', '.join(CONTENDERS)}; got {models!r}.")
    for name in models:
        if name not in CONTENDERS:
            raise ValueError(f"models must be among {', '.join(CONTENDERS)}; got {name!r}.")
        if find_spec(CONTENDERS[name].package) is None:
            package = CONTENDERS[name].package
            raise ImportError(f"models={name!r} needs {package}: pip install {package}.")
    return list(dict.fromkeys([OURS, *models]))


def _table(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows as a frame, and the labels."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("compare needs pandas: pip install pandas.") from None
    if isinstance(X, DataSource):
        if not X.has_labels:
            raise ValueError("The source has no labels: open_data(..., target=...) names them.")
        return _frame(X)
    if y is None:
        raise ValueError("y is missing: pass the labels, or a source that has them.")
    if hasattr(X, "tocsr"):
        raise TypeError("X is sparse; compare takes frames, dense arrays and sources.")
    frame = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    frame.columns = [str(name) for name in frame.columns]
    labels = np.asarray(y)
    if len(labels) != len(frame):
        raise ValueError(f"X has {len(frame)} rows, but y has {len(labels)} labels.")
    return frame, labels


def _frame(source: DataSource) -> tuple[Any, Any]:
    """Return a source as a frame with its words and dates, and its labels."""
    import pandas as pd

    names = source.names or tuple(f"x{j}" for j in range(source.n_features))
    kinds = [NUMBER] * len(names) if source.types is None else [t.kind for t in source.types]
    blocks, labels = [], []
    for _, part in source.parts():
        rows, words = source.rows(part), source.words(part)
        if hasattr(rows, "toarray"):
            raise TypeError("The source is sparse; compare takes dense tables.")
        block = {}
        for j, name in enumerate(names):
            column = pd.Series(rows[:, j])
            if kinds[j] == CATEGORY:
                known = words.get(j, {})
                column = column.map(lambda v, known=known: known.get(v)).astype(object)
            elif kinds[j] == DATE:
                column = pd.to_datetime(column, unit="s", utc=True)
            block[name] = column
        blocks.append(pd.DataFrame(block))
        labels.append(source.labels(part))
    return pd.concat(blocks, ignore_index=True), np.concatenate(labels)


def _drawn(frame: Any, labels: Any, most: int | None, seed: int) -> tuple[Any, Any]:
    if most is None or len(labels) <= check_integer("max_rows", most):
        return frame, labels
    chosen = np.sort(np.random.default_rng(seed).permutation(len(labels))[:most])
    return frame.iloc[chosen].reset_index(drop=True), labels[chosen]


def _check_classes(classes: Any, codes: Any, folds: int) -> None:
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes[0]!r}; there is nothing to compare.")
    counts = np.bincount(codes)
    if counts.min() < folds:
        raise ValueError(
            f"Class {classes[counts.argmin()]} has {counts.min()} rows only, fewer than cv={folds} "
            "folds. Lower cv, join rare classes, or raise max_rows."
        )


def _scored(
    name: str, parts: Frames, y: Any, y_test: Any, threads: int | None, seed: int
) -> tuple[RowScores, float, float]:
    """Return the scored rows of a fold, and the seconds of the fit and of the prediction."""
    contender = CONTENDERS[name]
    X, X_test = contender.frames(*parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of others' methods; our own are those of a plain fit
        model = contender.build(threads, seed)
        start = clock.now()
        model.fit(X, y)
        fitted = clock.now()
        p = np.asarray(model.predict_proba(X_test), dtype=float)
        seconds = fitted - start, clock.now() - fitted
        predicted = np.asarray(model.predict(X_test)).astype(int)
    scores = p[:, 1:] if p.shape[1] == 2 else p
    return RowScores(y_test, predicted, scores, p, None, p.shape[1]), *seconds


def _joined(
    name: str, folds: list[tuple[RowScores, float, float]], n_classes: int, rare: int
) -> ModelResult:
    """Return the figures of a model: the mean over the folds, with the influences of all rows."""
    found = [influences(rows, rare) for rows, _, _ in folds]
    k, joined = len(found), {}
    for figure in found[0]:
        parts = [each[figure] for each in found]
        joined[figure] = Influence(
            float(np.mean([part.value for part in parts])),
            np.concatenate([part.rows for part in parts]) / k,
            float(sum(part.count for part in parts)),
        )
    fit, predict = (float(np.mean([fold[i] for fold in folds])) for i in (1, 2))
    times = [seconds for _, seconds, _ in folds]
    span = (min(times), max(times))
    return ModelResult(name, CONTENDERS[name].title, joined, fit, predict, span)

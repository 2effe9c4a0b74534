"""Scorers of scikit-learn on scores that are there already."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from polysift import FPCClassifierCV
from polysift.selection.scoring import HeldOutScorer, check_scorer
from polysift.training.calibration import cross_fitted
from problems import noisy_problem, paper_classifier

M, SPLITS = 90, 3
CELLS = np.arange(M) % SPLITS
GRID = {"degree": [2, 3], "n_centers": [4, 8]}


def problem(classes=2):
    """Return scores (M, K), class numbers and weights."""
    rng = np.random.default_rng(classes)
    codes = rng.integers(0, classes, M)
    columns = 1 if classes == 2 else classes
    target = codes[:, None] == (1 if classes == 2 else np.arange(classes))
    return rng.normal(size=(M, columns)) + 1.5 * target, codes, rng.integers(0, 3, M).astype(float)


def held_out(scoring, scores, codes, classes, weights=None, fold_parts=CELLS, kind="sigmoid"):
    scorer = HeldOutScorer(check_scorer(scoring), codes, np.asarray(classes), weights, [kind])
    return scorer(scores, fold_parts, SPLITS)


def metric_by_split(metric, truth, values, weights=None):
    rows = [np.flatnonzero(split == CELLS) for split in range(SPLITS)]
    if weights is None:
        return [metric(truth[r], values[r]) for r in rows]
    return [metric(truth[r], values[r], sample_weight=weights[r]) for r in rows]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "f1", "precision"])
def test_scorers_on_classes(name, weighted):
    scores, codes, w = problem()
    weights = w if weighted else None
    metric = {
        "accuracy": metrics.accuracy_score,
        "balanced_accuracy": metrics.balanced_accuracy_score,
        "f1": metrics.f1_score,
        "precision": metrics.precision_score,
    }[name]
    expected = metric_by_split(metric, codes, (scores[:, 0] >= 0).astype(int), weights)
    np.testing.assert_allclose(held_out(name, scores, codes, [0, 1], weights), expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_scorers_on_scores(name, weighted):
    scores, codes, w = problem()
    weights = w if weighted else None
    metric = getattr(metrics, f"{name}_score")
    expected = metric_by_split(metric, codes, scores[:, 0], weights)
    np.testing.assert_allclose(held_out(name, scores, codes, [0, 1], weights), expected)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scorers_on_probabilities_are_cross_fitted(kind, classes):
    scores, codes, _ = problem(classes)
    p = cross_fitted(kind, scores, codes, classes, None, CELLS)
    names = np.array(["a", "b", "c"])[:classes]
    found = held_out("neg_log_loss", scores, codes, names, kind=kind)
    expected = metric_by_split(metrics.log_loss, names[codes], p)
    np.testing.assert_allclose(-found, expected)


def test_brier_score():
    scores, codes, w = problem()
    p = cross_fitted("sigmoid", scores, codes, 2, w, CELLS)[:, 1]
    found = held_out("neg_brier_score", scores, codes, [0, 1], w)
    expected = metric_by_split(metrics.brier_score_loss, codes, p, w)
    np.testing.assert_allclose(-found, expected)


def test_roc_auc_of_many_classes():
    scores, codes, _ = problem(3)
    p = cross_fitted("sigmoid", scores, codes, 3, None, CELLS)
    expected = metric_by_split(
        lambda y, p: metrics.roc_auc_score(y, p, multi_class="ovr"), codes, p
    )
    np.testing.assert_allclose(held_out("roc_auc_ovr", scores, codes, [0, 1, 2]), expected)


def test_accuracy_of_many_classes_is_that_of_the_highest_score():
    scores, codes, w = problem(3)
    expected = metric_by_split(metrics.accuracy_score, codes, scores.argmax(axis=1), w)
    np.testing.assert_allclose(held_out(None, scores, codes, [0, 1, 2], w), expected)


def test_a_score_of_zero_counts_as_the_second_class_as_in_predict():
    found = held_out(None, np.zeros((M, 1)), np.ones(M, dtype=int), [0, 1])
    np.testing.assert_array_equal(found, 1.0)


def test_rows_of_weight_zero_and_rows_in_no_test_part_do_not_count():
    scores, codes, _ = problem()
    weights = (np.arange(M) >= 30).astype(float)
    fold_parts = np.where(np.arange(M) >= 60, SPLITS, CELLS)  # those learn in all splits
    for scoring in (None, "balanced_accuracy", "neg_log_loss"):
        found = held_out(scoring, scores, codes, [0, 1], weights, fold_parts)
        kept = slice(30, 60)
        expected = held_out(scoring, scores[kept], codes[kept], [0, 1], None, CELLS[kept])
        np.testing.assert_allclose(found, expected)
        hidden = np.where((weights > 0)[:, None] & (fold_parts < SPLITS)[:, None], scores, np.nan)
        np.testing.assert_array_equal(
            held_out(scoring, hidden, codes, [0, 1], weights, fold_parts), found
        )


def test_scorers_that_were_made_and_callables():
    scores, codes, w = problem()
    twice = make_scorer(metrics.fbeta_score, beta=2)
    expected = metric_by_split(
        lambda y, p, **w: metrics.fbeta_score(y, p, beta=2, **w), codes, scores[:, 0] >= 0, w
    )
    np.testing.assert_allclose(held_out(twice, scores, codes, [0, 1], w), expected)

    def mean_score(estimator, X, y):
        assert X.shape == (len(y), 1) and estimator.classes_.tolist() == [0, 1]
        return estimator.decision_function(X).mean()

    expected = [scores[(split == CELLS) & (w > 0)].mean() for split in range(SPLITS)]
    np.testing.assert_allclose(held_out(mean_score, scores, codes, [0, 1], w), expected)


def test_a_callable_that_takes_weights_is_given_them():
    scores, codes, w = problem()

    def weighted(estimator, X, y, sample_weight=None):
        return metrics.accuracy_score(y, estimator.predict(X), sample_weight=sample_weight)

    expected = held_out(None, scores, codes, [0, 1], w)
    np.testing.assert_allclose(held_out(weighted, scores, codes, [0, 1], w), expected)


def test_probabilities_are_made_once_for_all_splits(monkeypatch):
    from polysift.selection import scoring as scoring_module

    calls = []
    monkeypatch.setattr(
        scoring_module, "cross_fitted", lambda *a: calls.append(1) or cross_fitted(*a)
    )
    scores, codes, _ = problem()
    held_out("neg_log_loss", scores, codes, [0, 1])
    held_out("roc_auc", scores, codes, [0, 1])
    assert len(calls) == 1


def test_a_score_that_is_not_finite_names_the_split():
    codes = np.where(CELLS == 1, 0, np.arange(M) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        with pytest.raises(ValueError, match="gives nan .* split 1 of cv. It has one class only"):
            held_out("roc_auc", np.zeros((M, 1)), codes, [0, 1])
    with pytest.raises(ValueError, match="gives inf on the test part of split 0"):
        held_out(lambda e, X, y: np.inf, np.zeros((M, 1)), CELLS % 2, [0, 1])


@pytest.mark.parametrize("value", [{"a": 1.0}, "good", None], ids=repr)
def test_what_is_no_score_names_scoring(value):
    with pytest.raises((TypeError, ValueError), match="scor"):
        held_out(lambda e, X, y: value, np.zeros((M, 1)), CELLS % 2, [0, 1])


def test_accuracy_needs_no_scorer():
    assert check_scorer(None) is None and check_scorer("accuracy") is None
    assert check_scorer("roc_auc") is not None


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        (
            "acuracy",
            "scoring='acuracy' is not a scorer.*'accuracy', 'balanced_accuracy', 'roc_auc'",
        ),
        (metrics.accuracy_score, "scoring=accuracy_score is a metric, not a scorer: .*make_scorer"),
        (metrics.roc_auc_score, "scoring=roc_auc_score is a metric"),
        (3, "scoring must be"),
    ],
)
def test_what_is_no_scorer(scoring, message):
    with pytest.raises(ValueError, match=message):
        check_scorer(scoring)
    with pytest.raises(ValueError, match=message):
        FPCClassifierCV(scoring=scoring).fit([[0.0], [1.0]], [0, 1])


def search(X, y, scoring, **changes):
    C = np.random.default_rng(1).random((8, 3))
    settings = {"solvers": "paper", "rhos": 1e-4, "cv": SPLITS, "screen": False} | changes
    made = FPCClassifierCV(
        GRID["degree"], GRID["n_centers"], C, scalers=None, scoring=scoring, **settings
    )
    return made.fit(X, y)


def data(classes=2):
    X, y = noisy_problem(np.random.default_rng(0), 300, 3)
    return X, (y > 0).astype(int) + (X[:, 0] > 0.6 if classes == 3 else 0)


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "accuracy",
        "balanced_accuracy",
        "f1",
        "roc_auc",
        "average_precision",
        make_scorer(metrics.fbeta_score, beta=2),
        lambda estimator, X, y: metrics.hinge_loss(y, estimator.decision_function(X)),
    ],
    ids=lambda scoring: str(scoring).split(" at ")[0],
)
def test_a_search_scores_as_scikit_learn_does(scoring):
    X, y = data()
    found = search(X, y, scoring).cv_results_
    centers = np.random.default_rng(1).random((8, 3))
    plain = paper_classifier(centers=centers, scaler=None, rho=1e-4)
    theirs = GridSearchCV(plain, GRID, scoring=scoring, cv=SPLITS, refit=False).fit(X, y)
    for split in range(SPLITS):
        name = f"split{split}_test_score"
        np.testing.assert_allclose(found[name], theirs.cv_results_[name], atol=1e-9)


@pytest.mark.parametrize(("scoring", "classes"), [("neg_log_loss", 2), ("roc_auc_ovr", 3)])
def test_a_search_by_probabilities(scoring, classes):
    """Against scores of plain fits, made probabilities by the other folds."""
    X, y = data(classes)
    found = search(X, y, scoring).cv_results_
    centers = np.random.default_rng(1).random((8, 3))
    folds = list(StratifiedKFold(SPLITS).split(X, y))
    for i, params in enumerate(found["params"]):
        scores, fold_parts = (
            np.empty((len(y), 1 if classes == 2 else classes)),
            np.empty(len(y), int),
        )
        for k, (train, test) in enumerate(folds):
            plain = paper_classifier(**params | {"centers": centers}).fit(X[train], y[train])
            scores[test], fold_parts[test] = (
                plain.decision_function(X[test]).reshape(len(test), -1),
                k,
            )
        p = cross_fitted("sigmoid", scores, y, classes, None, fold_parts)
        for k, (_, test) in enumerate(folds):
            if scoring == "neg_log_loss":
                expected = -metrics.log_loss(y[test], p[test])
            else:
                expected = metrics.roc_auc_score(y[test], p[test], multi_class="ovr")
            assert found[f"split{k}_test_score"][i] == pytest.approx(expected, abs=1e-7)


def test_calibration_says_how_probabilities_are_made():
    X, y = data()
    sigmoid = search(X, y, "neg_brier_score", calibration="sigmoid").cv_results_
    isotonic = search(X, y, "neg_brier_score", calibration="isotonic").cv_results_
    default = search(X, y, "neg_brier_score").cv_results_
    np.testing.assert_array_equal(default["mean_test_score"], sigmoid["mean_test_score"])
    assert (isotonic["mean_test_score"] != sigmoid["mean_test_score"]).all()


@pytest.mark.parametrize("scoring", [None, "roc_auc", "balanced_accuracy", "neg_log_loss"])
def test_text_labels_are_scored(scoring):
    X, y = data()
    names = np.array(["no", "yes"])[y]
    found = search(X, names, scoring)
    expected = search(X, y, scoring)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert set(found.predict(X)) <= {"no", "yes"}


@pytest.mark.parametrize("scoring", ["f1", "average_precision", "neg_brier_score"])
def test_scorers_that_ask_for_a_positive_class_say_so(scoring):
    X, y = data()
    names = np.array(["no", "yes"])[y]
    with pytest.raises(ValueError, match="pos_label"):
        search(X, names, scoring)
    positive = make_scorer(metrics.f1_score, pos_label="yes")
    expected = search(X, y, "f1").best_score_
    assert search(X, names, positive).best_score_ == expected


def test_the_score_of_a_search_is_by_its_scorer():
    X, y = data()
    w = np.random.default_rng(0).random(len(y))
    for scoring in (None, "roc_auc", "f1"):
        found = search(X, y, scoring)
        scorer = get_scorer(scoring or "accuracy")
        assert found.score(X, y) == scorer(found.best_estimator_, X, y)
        expected = scorer(found.best_estimator_, X, y, sample_weight=w)
        assert found.score(X, y, w) == pytest.approx(expected, abs=1e-12)

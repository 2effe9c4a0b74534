"""Figures against scikit-learn's, and their intervals against the bootstrap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
    roc_curve,
)

from polysift.training.evaluation import roc_points
from polysift.training.metrics import (
    METRICS,
    RowScores,
    estimates,
    influences,
    is_unbalanced,
    rarest_class,
    variance,
)


def scored(rng, m: int, n_classes: int, *, weighted: bool = False) -> RowScores:
    """Return rows whose scores say something of their classes, with ties."""
    codes = rng.integers(0, n_classes, m)
    scores = rng.normal(size=(m, 1 if n_classes == 2 else n_classes)).round(1)
    if n_classes == 2:
        scores[:, 0] += codes
        predicted = (scores[:, 0] >= 0).astype(int)
        p = 1 / (1 + np.exp(-scores))
        p = np.hstack([1 - p, p])
    else:
        scores[np.arange(m), codes] += 1
        predicted = scores.argmax(axis=1)
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
    weights = rng.integers(0, 4, m).astype(float) if weighted else None
    return RowScores(codes, predicted, scores, p, weights, n_classes)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_figures_are_those_of_scikit_learn(rng, n_classes, weighted):
    rows = scored(rng, 300, n_classes, weighted=weighted)
    found = {name: e.value for name, e in estimates(rows, 1).items()}
    y, given = rows.codes, {"sample_weight": rows.weights}
    classes = [1] if n_classes == 2 else range(n_classes)
    columns = list(zip(classes, rows.scores.T, strict=True))
    expected = {
        "accuracy": accuracy_score(y, rows.predicted, **given),
        "balanced_accuracy": balanced_accuracy_score(y, rows.predicted, **given),
        "roc_auc": np.mean([roc_auc_score(y == k, s, **given) for k, s in columns]),
        "average_precision": np.mean(
            [average_precision_score(y == k, s, **given) for k, s in columns]
        ),
        "log_loss": log_loss(y, rows.probabilities, **given),
    }
    if n_classes == 2:
        expected["brier_score"] = brier_score_loss(y, rows.probabilities[:, 1], **given)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("n_classes", [2, 4])
def test_influences_are_derivatives(rng, n_classes):
    rows = scored(rng, 100, n_classes, weighted=True)
    weights = rows.weights + 1
    rows = replace(rows, weights=weights)
    found = influences(rows, 1)
    for i in range(0, 100, 17):
        moved = weights.copy()
        moved[i] += 1e-6
        other = influences(replace(rows, weights=moved), 1)
        for name in METRICS:
            slope = (other[name].value - found[name].value) / 1e-6
            assert slope == pytest.approx(found[name].rows[i], abs=1e-7), name


def test_the_variance_is_that_of_the_bootstrap(rng):
    rows = scored(rng, 300, 2)
    found = influences(rows, 1)
    drawn: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(400):
        counts = rng.poisson(1.0, 300).astype(float)
        for name, again in influences(replace(rows, weights=counts), 1).items():
            drawn[name].append(again.value)
    for name in METRICS:
        expected = variance(found[name].rows, None) ** 0.5
        assert np.std(drawn[name]) == pytest.approx(expected, rel=0.2), name


def test_a_weight_of_two_is_the_row_twice(rng):
    rows = scored(rng, 200, 4, weighted=True)
    at = np.repeat(np.arange(200), rows.weights.astype(int))
    twice = RowScores(
        rows.codes[at], rows.predicted[at], rows.scores[at], rows.probabilities[at], None, 4
    )
    for name, e in estimates(twice).items():
        assert e.to_list() == pytest.approx(estimates(rows)[name].to_list(), abs=1e-12), name


def test_intervals_hold_the_truth_in_95_of_100_cases(rng):
    truth = {name: e.value for name, e in estimates(scored(rng, 200_000, 2), 1).items()}
    inside = dict.fromkeys(truth, 0)
    for _ in range(200):
        for name, e in estimates(scored(rng, 200, 2), 1).items():
            inside[name] += e.low <= truth[name] <= e.high
    assert all(180 <= count <= 199 for count in inside.values()), inside


def test_no_errors_is_no_certainty(rng):
    codes = np.repeat([0, 1], [190, 10])
    rows = RowScores(codes, codes, codes[:, None] - 0.5, None, None, 2)
    found = estimates(rows)
    assert all(e.value == e.high == 1.0 for e in found.values())
    assert found["accuracy"].low == pytest.approx(1 / (1 + 1.96**2 / 200), abs=1e-4)
    assert found["roc_auc"].low < 0.75, "the rare class has ten rows"


def test_rows_of_unknown_classes_count_nowhere(rng):
    rows = scored(rng, 100, 2)
    odd = replace(rows, codes=np.where(np.arange(100) < 30, -1, rows.codes))
    known = replace(
        rows,
        **{
            name: getattr(rows, name)[30:]
            for name in ("codes", "predicted", "scores", "probabilities")
        },
    )
    assert {n: e.value for n, e in estimates(odd).items()} == pytest.approx(
        {n: e.value for n, e in estimates(known).items()}
    )
    assert estimates(replace(rows, codes=np.full(100, -1))) == {}


def test_what_is_unbalanced():
    assert is_unbalanced(np.array([90.0, 10.0])) and not is_unbalanced(np.array([60.0, 40.0]))
    assert is_unbalanced(np.array([50.0, 45.0, 5.0])) and not is_unbalanced(np.ones(10))
    assert not is_unbalanced(np.array([5.0, 0.0]))
    assert rarest_class(np.array([3.0, 0.0, 1.0, 2.0])) == 2
    assert rarest_class(np.array([2.0, 2.0])) == 1


@pytest.mark.parametrize("case", range(40))
def test_corners_of_a_roc_curve_are_those_of_scikit_learn(case):
    rng = np.random.default_rng(case)
    m = int(rng.integers(2, 60))
    scores, positive = np.round(rng.normal(size=m), case % 3), np.arange(m) % 2 == 0
    weights = [np.ones(m), rng.random(m), rng.integers(0, 3, m) + 0.0][case % 3]
    weights[:2] = 1.0  # of both classes
    expected = roc_curve(positive, scores, sample_weight=weights)[:2]
    for own, other in zip(roc_points(positive, scores, weights), expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-13)

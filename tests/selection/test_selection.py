"""The choice among candidates, on rows made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from polysift import FPCClassifierCV
from polysift.selection.candidates import Row, choose, ranks, standard_error
from searching import fold_scores, problem


def row(scores, n=10, degree=2, max_iter=5, finished=True):
    params = {"n_centers": n, "degree": degree, "max_iter": max_iter, "solver": "paper"}
    scores = np.array(scores, dtype=float)
    return Row(params, scores, iterations=5.0, complete=finished, finished=finished)


def test_the_mean_is_over_the_splits_that_were_run():
    assert row([0.5, 0.7]).mean == pytest.approx(0.6)
    assert row([0.5, np.nan]).mean == 0.5
    assert np.isnan(row([np.nan, np.nan], finished=False).mean)


def test_the_highest_mean_is_chosen_among_those_that_are_finished():
    rows = [row([0.5, 0.7]), row([0.9, 0.9], finished=False), row([0.6, 0.7])]
    assert choose(rows) == 2
    assert choose([row([0.9, 0.9], finished=False)]) is None
    assert choose([]) is None


@pytest.mark.parametrize("smaller", [{"n": 5}, {"degree": 1}, {"max_iter": 3}])
def test_of_equals_the_smallest_is_chosen(smaller):
    assert choose([row([0.7, 0.7]), row([0.7, 0.7], **smaller), row([0.7, 0.7])]) == 1


def test_centers_count_before_the_degree_and_the_degree_before_iterations():
    small, low, short = row([0.7], n=5, degree=9), row([0.7], degree=1, max_iter=99), row([0.7])
    assert choose([short, low, small]) == 2
    assert choose([short, low]) == 1


def test_negative_scores_are_scores():
    assert choose([row([-0.7, -0.5]), row([-0.4, -0.5]), row([-1.0, 0.0])]) == 1


def test_the_standard_error_is_that_of_the_mean():
    scores = np.array([0.6, 0.7, 0.9, 0.5])
    expected = scores.std(ddof=1) / 2
    assert standard_error(row(scores), None) == pytest.approx(expected)
    assert standard_error(row([0.7, 0.7]), None) == 0.0
    assert standard_error(row([0.7]), None) == np.inf
    assert standard_error(row([0.8]), 100.0) == pytest.approx(np.sqrt(0.8 * 0.2 / 100))
    assert standard_error(row([1.0]), 100.0) == 0.0


def test_one_standard_error_picks_the_smallest_within():
    best = row([0.7, 0.8, 0.9], n=40)  # 0.8, give or take 0.058
    within = row([0.75, 0.75, 0.75], n=20)
    below = row([0.74, 0.74, 0.74], n=10)
    rows = [below, within, best]
    assert choose(rows) == 2
    assert choose(rows, one_standard_error=True) == 1
    unfinished = row([0.79, 0.79, 0.79], n=5, finished=False)
    assert choose([*rows, unfinished], one_standard_error=True) == 1


def test_one_standard_error_of_equal_size_picks_the_better():
    rows = [row([0.7, 0.8, 0.9], n=40), row([0.77] * 3), row([0.78] * 3), row([0.76] * 3)]
    assert choose(rows, one_standard_error=True) == 2


def test_one_standard_error_on_a_single_part_goes_by_its_rows():
    rows = [row([0.8], n=40), row([0.77], n=20)]
    assert choose(rows, one_standard_error=True, validation_rows=100.0) == 1
    assert choose(rows, one_standard_error=True, validation_rows=10_000.0) == 0


def test_one_standard_error_without_spread_picks_the_best():
    rows = [row([0.8, 0.8], n=40), row([0.79, 0.79], n=20)]
    assert choose(rows, one_standard_error=True) == 0


def test_ranks_share_positions_and_put_the_unfinished_last():
    rows = [
        row([0.7]),
        row([0.9], finished=False),
        row([0.8]),
        row([0.8]),
        row([np.nan], finished=False),
        row([0.6]),
    ]
    assert ranks(rows).tolist() == [3, 5, 1, 1, 6, 4]
    assert ranks(rows).dtype == np.int32


@pytest.mark.parametrize("seed", range(4))
def test_a_rival_is_chosen_only_if_it_is_clearly_ahead_of_a_plain_fit(seed):
    X, y = problem(300, seed=seed)
    search = FPCClassifierCV(random_state=0).fit(X, y)
    results, scores = search.cv_results_, fold_scores(search.cv_results_)
    (plain,) = np.flatnonzero(results["automatic"] & (results["param_rho"] == "auto"))
    ahead = scores - scores[plain]
    errors = np.std(ahead, axis=1, ddof=1) / np.sqrt(ahead.shape[1])
    best = int(np.argmin(results["rank_test_score"]))
    if search.best_index_ == plain:
        assert ahead[best].mean() <= errors[best]
    else:
        assert ahead[search.best_index_].mean() >= errors[search.best_index_]

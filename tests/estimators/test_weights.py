"""The rule of sample weights: whole numbers are multiplicities, any others are relative."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from clusters import Shaky
from oracles import kernel, lemma_1
from polysift import FeatureOverflowError, FPCClassifier, FPCClassifierCV, open_data
from polysift.cluster.backend import ClusterBackend
from polysift.datasets import make_bayes_curve
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")

ROWS = 3000
FACTORS = [1 / ROWS, 1e-8, 1e-300, 1e-310, 1e5 / 3, 1e300]

MODELS = {
    "paper": paper_classifier(3),
    "standard": paper_classifier(3, scaler="standard"),
    "quantile": paper_classifier(3, scaler="quantile"),
    "converged": paper_classifier(3, solver="converged", max_iter=20, tol=0),
    "newton": paper_classifier(2, solver="newton", max_iter=10, tol=0),
    "sampled": paper_classifier(2, gram="sampled"),
    "balanced": paper_classifier(3, class_weight="balanced"),
    "classes": paper_classifier(3, class_weight={-1: 0.3}),
    "sigmoid": paper_classifier(3, calibration="sigmoid"),
    "isotonic": paper_classifier(3, calibration="isotonic"),
}


class Opening:
    """An engine: a backend that is there already."""

    def __init__(self, backend):
        self.backend = backend

    def open(self):
        """Return the backend."""
        return self.backend


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X, y = noisy_problem(rng, ROWS, 3)
    return X, y, rng.uniform(0.2, 3.0, ROWS)


def fitted(model, X, y, weights):
    """Return a fitted clone; ``max_iter`` ends some of them on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).set_params(random_state=0).fit(X, y, weights)


@pytest.mark.parametrize("name", MODELS)
def test_a_constant_factor_changes_nothing_but_rounding(rows, name):
    X, y, weights = rows
    expected = fitted(MODELS[name], X, y, weights)
    for factor in FACTORS:
        found = fitted(MODELS[name], X, y, weights * factor)
        np.testing.assert_allclose(
            found.decision_function(X), expected.decision_function(X), rtol=1e-5, atol=1e-5
        )
        assert found.training_summary_["class_counts"].sum() == pytest.approx(ROWS)
        if MODELS[name].calibration:
            np.testing.assert_allclose(
                found.predict_proba(X), expected.predict_proba(X), rtol=1e-4, atol=1e-5
            )


def test_a_start_on_a_subsample_takes_relative_weights():
    rng = np.random.default_rng(2)
    X, y = noisy_problem(rng, 40_000, 2)
    weights, model = rng.uniform(0.2, 3.0, len(y)), paper_classifier(2, solver="newton", max_iter=3)
    one, other = (fitted(model, X, y, weights * factor) for factor in (1.0, 1e-9))
    assert one.n_iter_ == other.n_iter_
    scores = (clf.decision_function(X) for clf in (one, other))
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("constant", [1 / ROWS, 1e-8, 0.5, 1e-320, 1e300])
def test_constant_weights_are_no_weights(constant):
    X, y = make_bayes_curve(ROWS, noise=0.1, random_state=0)
    model = paper_classifier(5, random_state=0)
    plain = model.fit(X, y).decision_function(X)
    weighted = model.fit(X, y, np.full(ROWS, constant)).decision_function(X)
    np.testing.assert_allclose(weighted, plain, rtol=1e-6, atol=1e-6)


def test_rows_of_weight_zero_do_not_count_in_the_mean(rows):
    X, y, weights = rows
    more = np.vstack([X, X[:500] + 9.0])
    padded = fitted(MODELS["paper"], more, np.append(y, y[:500]), np.append(weights, np.zeros(500)))
    expected = fitted(MODELS["paper"], X, y, weights).decision_function(X)
    np.testing.assert_allclose(padded.decision_function(X), expected, rtol=1e-7, atol=1e-8)


def test_a_row_of_tiny_weight_beside_others_stays(rows):
    X, y, weights = rows
    few = np.where(np.arange(ROWS) < 40, 1e-320, weights * 1e200)
    labels = np.where(np.arange(ROWS) < 3, 7, y)  # a class of tiny weights alone
    assert fitted(MODELS["paper"], X, labels, few).classes_.tolist() == [-1, 1, 7]


def test_whole_numbers_are_multiplicities_whatever_their_type(rows):
    X, y, _ = rows
    counts = np.random.default_rng(0).integers(0, 4, ROWS)
    kinds = [fitted(MODELS["paper"], X, y, counts.astype(t)) for t in (np.uint8, np.float32, float)]
    doubled = fitted(MODELS["paper"], X, y, 2 * counts)
    for one in kinds:
        np.testing.assert_array_equal(one.coef_, kinds[0].coef_)
    assert kinds[0].training_summary_["class_counts"].sum() == counts.sum()
    assert not np.allclose(doubled.coef_, kinds[0].coef_, rtol=1e-9)  # alpha is absolute


def test_beta_makes_other_weights_absolute():
    rng = np.random.default_rng(3)
    X, y = noisy_problem(rng, 200, 2)
    weights, C = rng.uniform(0.05, 0.2, 200), rng.random((6, 2))
    A, m, total = kernel(X, C, 2), 200, weights.sum()
    u, v, q, G = np.zeros(6), y.astype(float), np.zeros(m), A.T @ (weights[:, None] * A)
    for _ in range(5):  # Algorithm 1 with alpha = beta = 1, where row i counts weights[i] times
        u = np.linalg.solve(G + np.eye(6), u + A.T @ (weights * (v - q)))
        v = lemma_1(y, A @ u + q, total)
        q = q + A @ u - v
    given = {"centers": C, "scaler": None, "tol": 0}
    absolute = paper_classifier(2, beta=weights.mean(), **given).fit(X, y, weights)
    np.testing.assert_allclose(absolute.coef_[0], u, rtol=1e-8)
    relative = paper_classifier(2, **given).fit(X, y, weights)
    assert not np.allclose(relative.coef_[0], u, rtol=1e-2)


def test_balanced_classes_weigh_the_same_with_any_weights(rows):
    X, y, weights = rows
    positive = (y > 0).astype(int)
    for own, mean in ((weights, weights.mean()), (np.ceil(weights), 1.0), (np.ones(ROWS), 1.0)):
        counts = np.bincount(positive, own)
        each = own / mean * (counts.sum() / 2 / counts)[positive]
        by_hand = paper_classifier(3, beta=each.mean())  # as absolute weights
        found = fitted(MODELS["balanced"], X, y, own).decision_function(X)
        expected = fitted(by_hand, X, y, each).decision_function(X)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_files_threads_and_workers_divide_by_the_same_bits(tmp_path):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    X, y = noisy_problem(rng, 40_000, 2)
    weights = rng.uniform(0.0, 1e-6, len(y))
    weights[::7] = 0.0
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, w=weights)
    for name, lo, hi in (("1", 0, 13), ("2", 13, 30_001), ("3", 30_001, 40_000)):
        frame[lo:hi].to_parquet(tmp_path / f"{name}.parquet")
    source = open_data(str(tmp_path / "*.parquet"), target="y", weight="w")
    model = paper_classifier(2, random_state=0, n_jobs=1)
    expected = model.fit(frame[["a", "b"]], y, weights).coef_
    workers = Opening(ClusterBackend(Shaky(seed=1)))
    for more in ({"n_jobs": 2}, {"memory_limit": "40MB"}, {"engine": workers}):
        found = clone(model).set_params(**more).fit(source)
        np.testing.assert_array_equal(found.coef_, expected, err_msg=str(more))


def test_a_search_takes_relative_weights(rows):
    X, y, weights = rows
    search = FPCClassifierCV(
        (1, 3), n_centers=8, scalers="minmax", cv=3, calibration="sigmoid", random_state=0
    )
    found = [clone(search).fit(X, y, weights * factor) for factor in (1.0, 1e-9)]
    scores = [one.cv_results_["mean_test_score"] for one in found]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-3)
    best = [dict(one.best_params_) for one in found]
    np.testing.assert_allclose(*(params.pop("rho") for params in best), rtol=1e-9)
    assert best[0] == best[1]
    np.testing.assert_allclose(*(one.predict_proba(X) for one in found), rtol=1e-4, atol=1e-5)


def test_folds_divide_by_the_mean_of_the_whole_table(rows):
    X, y, weights = rows
    first = np.arange(ROWS) < 500
    weights = np.where(first, 1e-3, 1.0) * weights  # the fold's own mean is another
    split = np.flatnonzero(first), np.flatnonzero(~first)
    given = {"centers": X[:10], "scaler": None, "tol": 0}
    search = FPCClassifierCV(
        2,
        **{"centers": X[:10], "scalers": None, "tol": 0},
        solvers="paper",
        rhos=None,
        cv=[split],
        scoring="roc_auc",
        refit=False,
        random_state=0,
    ).fit(X, y, weights)
    ratio = weights[first].mean() / weights.mean()
    alone = paper_classifier(2, beta=ratio, **given).fit(X[first], y[first], weights[first])
    test = X[~first], y[~first], weights[~first]
    expected = roc_auc_score(test[1], alone.decision_function(test[0]), sample_weight=test[2])
    assert search.best_score_ == pytest.approx(expected, rel=1e-9)
    relative = paper_classifier(2, **given).fit(X[first], y[first], weights[first])
    other = roc_auc_score(test[1], relative.decision_function(test[0]), sample_weight=test[2])
    assert other != pytest.approx(expected, rel=1e-5)


def test_weights_that_sum_beyond_float64_are_refused_by_name(rows):
    X, y, _ = rows
    with pytest.raises(FeatureOverflowError, match="sum of sample_weight overflows"):
        fitted(MODELS["paper"], X, y, np.full(ROWS, 1.5e308))
    heavy = paper_classifier(3, class_weight={-1: 1e300})
    with pytest.raises(ValueError, match=r"class_weight must .* 1e-15 to 1e\+15; got .*1e\+300"):
        fitted(heavy, X, y, None)
    faint = np.where(y > 0, 1e-30, 1.0)
    with pytest.raises(ValueError, match=r"cannot balance class 1: .* is 1\.\d+e-30 of the whole"):
        fitted(MODELS["balanced"], X, y, faint)


@pytest.mark.parametrize(
    "params",
    [
        {"calibration": "sigmoid", "solver": "paper"},
        {"calibration": "isotonic"},
        {"calibration": "sigmoid", "threshold": "balanced"},
        {"calibration": "sigmoid", "max_levels": 4},
    ],
    ids=["paper", "isotonic", "threshold", "encoded"],
)
def test_a_table_of_frequencies_is_the_table_of_its_rows(params):
    """Rows that repeat so often that none is held out of the training for a calibration."""
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(
        {
            "job": np.repeat(["clerk", "nurse", "driver", "cook", "guard", "smith"], 8),
            "age": np.tile(np.repeat([20, 30, 40, 50], 2), 6),
        }
    )
    y = np.tile(["no", "yes"], 24)
    share = 1 / (1 + np.exp(-rng.normal(size=24)))
    counts = rng.binomial(40, np.stack([1 - share, share], 1)).reshape(-1)
    model = FPCClassifier(random_state=0, **params)
    weighted = fitted(model, cells, y, counts)
    rows = rng.permutation(np.arange(48).repeat(counts))
    repeated = fitted(model, cells.iloc[rows], y[rows], None)
    np.testing.assert_allclose(
        weighted.predict_proba(cells), repeated.predict_proba(cells), rtol=1e-5, atol=1e-6
    )
    assert (weighted.predict(cells) == repeated.predict(cells)).all()
    if weighted.calibration_report_ is not None:
        for name in ("brier_score", "log_loss"):
            expected = pytest.approx(repeated.calibration_report_[name], rel=1e-5)
            assert weighted.calibration_report_[name] == expected

"""Leave-one-out scores against fits without the row, and what a fit says of rows not seen."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.linalg

from polysift import FPCClassifier, FPCClassifierCV, load, open_data, save
from polysift.estimators.headline import headline, held_out_evaluation
from polysift.reporting.evaluation import evaluate
from polysift.solvers.factor import Factor
from polysift.solvers.leave_one_out import LeaveOneOut
from polysift.training.held_out import LEAVE_ONE_OUT, OUT_OF_FOLD
from polysift.training.holdout import held_out_parts
from problems import noisy_problem, optional, paper_classifier


def test_least_squares_without_a_row_is_exact(rng):
    A, y = rng.normal(size=(40, 6)), rng.choice([-1.0, 1.0], (40, 2))
    weights, rho = rng.integers(1, 4, 40).astype(float), 0.7

    def ridge(w):
        return np.linalg.solve(A.T @ (w[:, None] * A) + rho * np.eye(6), A.T @ (w[:, None] * y))

    G = A.T @ (weights[:, None] * A) + rho * np.eye(6)
    factor = Factor(scipy.linalg.cho_factor(G), rho, 0.0, False)
    left_out = np.minimum(weights, 1.5)
    found = LeaveOneOut(factor, ridge(weights)).margins(A, y, left_out)
    for i in range(40):
        w = weights.copy()
        w[i] -= left_out[i]
        np.testing.assert_allclose(found[i], y[i] * (A[i] @ ridge(w)), rtol=1e-9)


class TestPlainFit:
    def test_labels_that_mean_nothing(self, rng):
        X, y = rng.random((1500, 4)), rng.integers(0, 2, 1500)
        clf = FPCClassifier(6, n_centers=300, rho=1e-9, kernel="polynomial", random_state=0)
        found = clf.fit(X, y).held_out_
        assert found["method"] == LEAVE_ONE_OUT and found["rows"] == 1500
        accuracy, low, high = found["figures"]["accuracy"]
        assert found["training"]["accuracy"] > 0.58 and low < accuracy < high
        assert abs(accuracy - 0.5) < 2 * (high - low) / 2  # in one of 20 runs beyond the interval
        assert found["training"]["accuracy"] == pytest.approx(clf.score(X, y), abs=1e-12)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_it_is_near_what_other_rows_show(self, rng, classes):
        X = rng.random((6000, 3))
        y = np.digitize(X[:, 0] + rng.normal(0, 0.15, 6000), np.linspace(0, 1, classes + 1)[1:-1])
        clf = FPCClassifier(random_state=0).fit(X[:3000], y[:3000])
        test = evaluate(clf, X[3000:], y[3000:])
        for name, (value, low, high) in clf.held_out_["figures"].items():
            reach = high - low  # twice the half-width: the other rows vary, too
            assert abs(test.value(name) - value) < reach, name

    def test_same_bits_for_threads_and_order_does_not_matter(self, rng):
        X, y = noisy_problem(rng, 3000, 3)
        one, two = (FPCClassifier(random_state=0, n_jobs=j).fit(X, y).held_out_ for j in (1, 2))
        assert one["figures"] == two["figures"] and one["training"] == two["training"]
        order = rng.permutation(3000)
        again = FPCClassifier(random_state=0).fit(X[order], y[order]).held_out_
        assert again["figures"]["accuracy"] == pytest.approx(one["figures"]["accuracy"], abs=1e-3)

    def test_a_weight_of_two_is_the_row_twice(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        weights = rng.integers(1, 3, 300)
        given = {"degree": 3, "n_centers": 20, "random_state": 0}
        at = np.repeat(np.arange(300), weights)
        heavy = paper_classifier(**given).fit(X, y, weights.astype(float)).held_out_
        twice = paper_classifier(**given).fit(X[at], y[at]).held_out_
        for name, values in twice["figures"].items():
            assert values == pytest.approx(heavy["figures"][name], abs=1e-9)

    def test_where_nothing_is_known(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        clf = FPCClassifier(2, n_centers=10, solver="newton", random_state=0).fit(X, y)
        assert not hasattr(clf, "held_out_") and headline(clf) is None
        assert repr(clf).endswith("  # held out: not known")
        assert "<b>Held out</b>: not known; calibration=" in clf._repr_html_()
        clf = FPCClassifier(2, n_centers=10, random_state=0, warm_start=True).fit(X, y)
        assert clf.held_out_["rows"] == 300
        assert not hasattr(clf.fit(X, y), "held_out_"), "a warm start has seen them before"

    def test_in_a_file(self, rng, tmp_path):
        X, y = noisy_problem(rng, 300, 2)
        clf = FPCClassifier(random_state=0).fit(X, y)
        save(clf, tmp_path / "m.polysift")
        method, found = held_out_evaluation(load(tmp_path / "m.polysift"))
        assert method == LEAVE_ONE_OUT
        assert found.figures == held_out_evaluation(clf)[1].figures
        np.testing.assert_array_equal(found.confusion, clf.held_out_["confusion"])
        assert found.roc[0][0] == "1" and found.reliability is not None

    def test_of_a_small_fit_is_found_when_it_is_asked_for(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        clf = FPCClassifier(random_state=0).fit(X, y)
        assert "held_out_" not in vars(clf) and "_unscored" in vars(clf)
        copied = pickle.loads(pickle.dumps(FPCClassifier(random_state=0).fit(X, y)))
        assert "held_out_" in vars(copied) and "_unscored" not in vars(copied)
        assert clf.held_out_["figures"] == copied.held_out_["figures"]
        assert "_unscored" not in vars(clf), "the rows are not kept any longer"
        with pytest.raises(AttributeError, match=r"'FPCClassifier' object has no attribute 'held_"):
            _ = FPCClassifier().held_out_

    def test_what_would_keep_many_numbers_is_found_in_the_fit(self, rng):
        X, y = noisy_problem(rng, 3600, 300)
        clf = paper_classifier(1, n_centers=5, random_state=0).fit(X, y)
        assert clf.held_out_["rows"] == 3600
        assert "leave-one-out" in clf.timings_ and "_unscored" not in vars(clf)


def test_out_of_fold_with_a_calibration(rng):
    X, y = noisy_problem(rng, 400, 2)
    clf = paper_classifier(2, calibration="sigmoid", random_state=0).fit(X, y)
    found = clf.held_out_
    assert found["method"] == OUT_OF_FOLD and found["rows"] == 400
    for name in ("log_loss", "brier_score"):
        assert found["figures"][name][0] == pytest.approx(clf.calibration_report_[name])
    assert found["training"]["accuracy"] == pytest.approx(clf.score(X, y), abs=0.02)


class TestHeadline:
    def test_of_a_classifier(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        clf = FPCClassifier(random_state=0)
        assert repr(clf) == "FPCClassifier(random_state=0)"
        clf.fit(X, y)
        found = headline(clf)
        assert str(found).endswith("; estimated from leave-one-out scores of 300 training rows")
        assert repr(clf) == f"FPCClassifier(random_state=0)  # held out: {found.first()}"
        bundle = clf._repr_mimebundle_()
        assert "<b>Held out</b>: accuracy" in bundle["text/html"]
        assert "<b>Held out</b>: accuracy" in clf._repr_html_()
        gap = clf.held_out_["training"]["log_loss"] - found.figures["log_loss"].value
        assert found.gap("log_loss") == -gap, "positive where training is better"

    def test_unbalanced_classes(self, rng):
        X, y = noisy_problem(rng, 600, 2)
        rare = np.flatnonzero(y == 1)[: 600 // 20]
        keep = np.sort(np.append(np.flatnonzero(y == -1), rare))
        clf = FPCClassifier(random_state=0).fit(X[keep], y[keep])
        first = list(headline(clf).figures)
        assert first[:3] == ["balanced_accuracy", "roc_auc", "average_precision"]
        assert clf.held_out_["rare_class"] == 1

    def test_of_a_search(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        search = FPCClassifierCV([1, 2], solvers="paper", scalers="minmax", random_state=0)
        search.fit(X, y)
        found = headline(search)
        estimate = found.figures["accuracy"]
        assert estimate.value == pytest.approx(search.best_score_)
        assert estimate.low < estimate.value < estimate.high
        assert found.source.startswith("out of fold, 300 training rows; the mean over 5 splits, ")
        stored = search.best_estimator_.held_out_["figures"]["accuracy"][0]
        assert stored == pytest.approx(estimate.value)
        search = FPCClassifierCV(2, cv=0.3, solvers="paper", scoring="roc_auc").fit(X, y)
        found = headline(search)
        assert next(iter(found.figures)) == "roc_auc"
        assert found.figures["roc_auc"].value == pytest.approx(search.best_score_)
        assert found.figures["roc_auc"].low < search.best_score_, "by the rows of the one part"
        assert found.source.startswith("out of fold, 90 training rows; the mean over one ")

    def test_of_a_search_by_several_scores(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        several = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"}
        search = FPCClassifierCV(2, n_centers=10, random_state=0, **several).fit(X, y)
        found = headline(search)
        assert [*found.figures][:2] == ["f1_macro", "accuracy"]
        assert found.figures["f1_macro"].value == pytest.approx(search.best_score_)

    def test_a_search_without_refit_has_its_score_alone(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        search = FPCClassifierCV(2, n_centers=10, refit=False, random_state=0).fit(X, y)
        assert [*headline(search).figures] == ["accuracy"]


class TestHoldout:
    def test_both_parts(self, rng):
        X, y = noisy_problem(rng, 2000, 2)
        pd = optional("pandas")
        source = open_data(pd.DataFrame(X, columns=["a", "b"]).assign(y=y), target="y")
        training, held_out = held_out_parts(source, 0.25, 7)
        masks = [
            np.concatenate([rows.weights(part) for _, part in rows.parts()])
            for rows in (training, held_out)
        ]
        np.testing.assert_array_equal(masks[0] + masks[1], 1.0)
        assert training.n_kept + held_out.n_kept == 2000 and 400 < held_out.n_kept < 600
        clf = paper_classifier(2, random_state=0).fit(training)
        kept, X = masks[0] > 0, pd.DataFrame(X, columns=["a", "b"])
        plain = paper_classifier(2, random_state=0).fit(X[kept], y[kept])
        np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=1e-9)
        assert evaluate(clf, held_out).accuracy == pytest.approx(plain.score(X[~kept], y[~kept]))

    def test_shares_that_cannot_be(self, rng):
        X, y = noisy_problem(rng, 20, 2)
        pd = optional("pandas")
        source = open_data(pd.DataFrame(X, columns=["a", "b"]).assign(y=y), target="y")
        for share in (0.0, 1.0, -1, float("nan")):
            with pytest.raises(ValueError, match="holdout"):
                held_out_parts(source, share, 0)
        with pytest.raises(ValueError, match="leaves none"):
            held_out_parts(source, 1e-9, 1)

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, log_loss

from polysift.training.calibration import (
    CALIBRATIONS,
    IsotonicCalibrator,
    SigmoidCalibrator,
    assess,
    calibrator_from_dict,
    cross_fitted,
    learn_calibrator,
)

both_kinds = pytest.mark.parametrize("kind", CALIBRATIONS)
class_counts = pytest.mark.parametrize("n_classes", [2, 3, 10])


def problem(rng, m, n_classes):
    """Return scores (m, K), rounded so that some are tied, and classes they tell something of."""
    codes = rng.integers(0, n_classes, m)
    codes[:n_classes] = np.arange(n_classes)
    ideal = 2.0 * (codes[:, None] == np.arange(n_classes)) - 1
    scores = (ideal[:, 1:] if n_classes == 2 else ideal) + rng.normal(0, 1.2, (m, 1))
    return np.round(scores + rng.normal(0, 0.5, scores.shape), 2), codes


class Scores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows are their own scores."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else X

    def predict(self, X):
        raise AssertionError("a calibrator needs scores")


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear to accept sample_weight")
@both_kinds
@class_counts
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_sklearn(rng, kind, n_classes, weighted):
    scores, codes = problem(rng, 600, n_classes)
    weights = rng.random(600) * 3 if weighted else None
    model = FrozenEstimator(Scores().fit(scores, codes))
    theirs = CalibratedClassifierCV(model, method=kind).fit(scores, codes, sample_weight=weights)
    ours = learn_calibrator(kind, scores, codes, n_classes, weights)
    new = np.vstack([scores, 5 * scores, rng.normal(size=scores.shape)])
    close = {"atol": 1e-5 if kind == "sigmoid" else 1e-15}
    np.testing.assert_allclose(ours.probabilities(new), theirs.predict_proba(new), **close)


@both_kinds
@class_counts
def test_rows_are_distributions(rng, kind, n_classes):
    scores, codes = problem(rng, 300, n_classes)
    p = learn_calibrator(kind, scores, codes, n_classes).probabilities(10 * scores)
    assert p.shape == (300, n_classes)
    assert (p >= 0).all() and (p <= 1).all()
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-14)


@both_kinds
def test_more_score_is_more_probability(rng, kind):
    scores, codes = problem(rng, 400, 2)
    line = np.linspace(-6, 6, 2001)[:, None]
    p = learn_calibrator(kind, scores, codes, 2).probabilities(line)
    assert (np.diff(p[:, 1]) >= 0).all() and p[-1, 1] > 0.9 and p[0, 1] < 0.1
    np.testing.assert_array_equal(p[:, 0], 1 - p[:, 1])


def test_all_zero_becomes_uniform_and_nan_stays():
    calibrator = IsotonicCalibrator(
        np.array([0.0, 1, 0, 1, 0, 1]), np.array([0.0, 1, 0, 1, 0, 1]), np.array([2, 2, 2])
    )
    p = calibrator.probabilities(np.array([[-1.0, 0, -2], [0.5, 0.5, 7], [np.nan, 0, 0]]))
    np.testing.assert_array_equal(p[:2], [[1 / 3, 1 / 3, 1 / 3], [0.25, 0.25, 0.5]])
    assert np.isnan(p[2]).all()


def test_rounding_does_not_leave_the_unit_interval():
    # np.interp gives 1 + 2e-16 here.
    thresholds, values = (
        np.array([-0.8838649893705114, 1e-20]),
        np.array([0.06682395283994927, 1.0]),
    )
    p = IsotonicCalibrator(thresholds, values, np.array([2])).probabilities(np.zeros((1, 1)))
    np.testing.assert_array_equal(p, [[0, 1]])


@both_kinds
@class_counts
def test_weights_are_multiplicities(rng, kind, n_classes):
    scores, codes = problem(rng, 200, n_classes)
    counts = rng.integers(0, 4, 200)
    weighted = learn_calibrator(kind, scores, codes, n_classes, counts.astype(float))
    repeated = learn_calibrator(kind, scores.repeat(counts, 0), codes.repeat(counts), n_classes)
    p, q = weighted.probabilities(scores), repeated.probabilities(scores)
    np.testing.assert_allclose(p, q, atol=1e-12)


@both_kinds
def test_absent_rows_are_not_there(rng, kind):
    scores, codes = problem(rng, 200, 3)
    absent = rng.random(200) < 0.3
    weights = np.where(absent, 0.0, 1.0)
    expected = learn_calibrator(kind, scores[~absent], codes[~absent], 3).probabilities(scores)
    scores_there = np.where(absent[:, None], 1e9, scores)
    for given in [
        (np.where(absent, -1, codes).astype(np.int8), None),
        (codes, weights),
        (np.where(absent, -1, codes), weights),
    ]:
        found = learn_calibrator(kind, scores_there, given[0], 3, given[1])
        np.testing.assert_array_equal(found.probabilities(scores), expected)


@both_kinds
def test_separable(kind):
    scores = np.linspace(-1, 1, 100)[:, None]
    codes = (scores[:, 0] > 0).astype(int)
    p = learn_calibrator(kind, scores, codes, 2).probabilities(scores)
    assert np.isfinite(p).all()
    assert p[codes == 1, 1].min() > 0.5 > p[codes == 0, 1].max()
    if kind == "sigmoid":  # the targets of Platt, 51/52, keep it off the ends
        assert 0.95 < p[-10:, 1].mean() < 1


@both_kinds
@pytest.mark.parametrize("value", [0.0, 3.7, -1e8 / 3])
def test_constant_scores(kind, value):
    codes = np.repeat([0, 1], [300, 100])
    calibrator = learn_calibrator(kind, np.full((400, 1), value), codes, 2)
    p = calibrator.probabilities(np.array([[value], [value + 1]]))[:, 1]
    expected = 0.25
    if kind == "sigmoid":
        expected = (300 / 302 + 100 * 101 / 102) / 400
        np.testing.assert_array_equal(calibrator.slope, 0)
    np.testing.assert_allclose(p, expected, rtol=1e-12)


@both_kinds
@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e150])
def test_scale_of_the_scores_does_not_matter(rng, kind, scale):
    scores, codes = problem(rng, 500, 2)
    p = learn_calibrator(kind, scores, codes, 2).probabilities(scores)
    q = learn_calibrator(kind, scale * scores, codes, 2).probabilities(scale * scores)
    np.testing.assert_allclose(q, p, atol=1e-9)


def test_sigmoid_is_the_optimum_wherever_the_scores_lie(rng):
    """The gradient is zero: also for scores far from zero, or far from each other."""
    scores, codes = problem(rng, 500, 2)
    first = np.arange(500) < 2
    far = np.where(first, [1e8, -1e3] + [0] * 498, scores[:, 0])[:, None]
    # The last one needs halved steps: one of two rows of a class far away from all others.
    rare = np.where(first, [1e3, 2] + [0] * 498, scores[:, 0])[:, None], first.astype(int)
    cases = [(x, codes) for x in (scores, scores + 1e6, far, -far, np.sinh(20 * scores))]
    for x, y in [*cases, rare]:
        targets = np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / (502 - y.sum()))
        p = learn_calibrator("sigmoid", x, y, 2).probabilities(x)[:, 1]
        assert abs(np.sum(p - targets)) < 1e-6
        assert abs(np.sum((p - targets) * x[:, 0])) < 1e-6 * np.abs(x).max()


@both_kinds
@class_counts
def test_round_trip_is_exact(rng, kind, n_classes, tmp_path):
    scores, codes = problem(rng, 300, n_classes)
    calibrator = learn_calibrator(kind, scores, codes, n_classes)
    np.savez(tmp_path / "c.npz", **calibrator.to_dict())
    with np.load(tmp_path / "c.npz", allow_pickle=False) as stored:
        fields = {**stored, "kind": str(stored["kind"])}
    again = calibrator_from_dict(fields)
    assert type(again) is type(calibrator) and again.kind == kind
    expected = calibrator.probabilities(3 * scores)
    np.testing.assert_array_equal(again.probabilities(3 * scores), expected)
    fortran, block = np.asfortranarray(3 * scores), (3 * scores)[5:6]
    np.testing.assert_array_equal(again.probabilities(fortran), expected)
    np.testing.assert_array_equal(again.probabilities(block), expected[5:6])
    assert again.probabilities(scores[:0]).shape == (0, n_classes)


def test_arrays_are_what_an_export_needs(rng):
    scores, codes = problem(rng, 300, 3)
    sigmoid = learn_calibrator("sigmoid", scores, codes, 3)
    assert isinstance(sigmoid, SigmoidCalibrator)
    assert sigmoid.slope.shape == sigmoid.intercept.shape == (3,)
    odds = expit(sigmoid.slope * scores + sigmoid.intercept)
    np.testing.assert_array_equal(
        sigmoid.probabilities(scores), odds / odds.sum(axis=1, keepdims=True)
    )
    isotonic = learn_calibrator("isotonic", scores, codes, 3)
    assert isinstance(isotonic, IsotonicCalibrator)
    assert isotonic.thresholds.shape == isotonic.values.shape == (isotonic.counts.sum(),)
    for x in np.split(isotonic.thresholds, np.cumsum(isotonic.counts)[:-1]):
        assert (np.diff(x) > 0).all()


@both_kinds
def test_cross_fitting_learns_on_the_other_folds(rng, kind):
    scores, codes = problem(rng, 300, 3)
    folds, weights = rng.integers(-1, 4, 300), rng.integers(0, 3, 300).astype(float)
    p = cross_fitted(kind, scores, codes, 3, weights, folds)
    assert np.isnan(p[folds < 0]).all() and np.isfinite(p[folds >= 0]).all()
    for fold in range(4):
        own, others = folds == fold, (folds >= 0) & (folds != fold)
        learned = learn_calibrator(kind, scores[others], codes[others], 3, weights[others])
        np.testing.assert_array_equal(p[own], learned.probabilities(scores[own]))


@both_kinds
def test_cross_fitting_does_not_leak(rng, kind):
    scores, codes = problem(rng, 300, 2)
    folds = rng.integers(-1, 3, 300)
    p = cross_fitted(kind, scores, codes, 2, None, folds)
    own = folds == 1
    changed = cross_fitted(kind, scores, np.where(own, 1 - codes, codes), 2, None, folds)
    np.testing.assert_array_equal(changed[own], p[own])
    assert (changed[folds == 0] != p[folds == 0]).any(), "they do matter to the others"
    outside = np.where(folds < 0, 1 - codes, codes), 2, None, folds
    np.testing.assert_array_equal(cross_fitted(kind, scores, *outside), p)


@both_kinds
def test_one_fold_is_cut_by_class(rng, kind):
    scores, codes = problem(rng, 200, 2)
    weights = (rng.random(200) < 0.8).astype(float)
    folds = np.where(rng.random(200) < 0.5, 3, -1)
    turns = folds.copy()
    for code in (0, 1):  # the second class goes on where the first ended
        rows = np.flatnonzero((folds == 3) & (codes == code) & (weights > 0))
        begun = 0 if code == 0 else np.sum((folds == 3) & (codes == 0) & (weights > 0))
        turns[rows] = (np.arange(len(rows)) + begun) % 5
    there = (folds == 3) & (weights > 0)
    p = cross_fitted(kind, scores, codes, 2, weights, folds)
    expected = cross_fitted(kind, scores[there], codes[there], 2, None, turns[there])
    np.testing.assert_array_equal(p[there], expected)
    assert np.isfinite(p[folds == 3]).all() and np.isnan(p[folds < 0]).all()
    assert set(folds) == {-1, 3}, "the argument stays as it is"


@both_kinds
@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_class(rng, kind, n_classes):
    scores, codes = problem(rng, 200, n_classes)
    folds = np.where(codes == 1, 0, np.arange(200) % 2)  # fold 0's calibrator never sees class 1
    p = cross_fitted(kind, scores, codes, n_classes, None, folds)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-14)
    own, others = folds == 0, folds == 1
    calibrator = learn_calibrator(kind, scores[others], codes[others], n_classes)
    np.testing.assert_array_equal(calibrator.probabilities(scores[own]), p[own])
    column = calibrator.positive(scores)[:, 0 if n_classes == 2 else 1]
    expected = 1 / (others.sum() + 2) if kind == "sigmoid" else 0
    np.testing.assert_allclose(column, expected, rtol=1e-12)


@both_kinds
@pytest.mark.parametrize("m", [0, 1, 2])
def test_hardly_any_rows(kind, m):
    p = cross_fitted(kind, np.ones((m, 1)), np.arange(m), 2, None, np.zeros(m, dtype=int))
    assert p.shape == (m, 2)
    if m == 1:
        np.testing.assert_array_equal(p, [[0.5, 0.5]])


def test_assess_two_classes(rng):
    scores, codes = problem(rng, 500, 2)
    weights = rng.random(500)
    p = learn_calibrator("isotonic", scores, codes, 2).probabilities(scores)
    p[:3] = [[0, 1], [1, 0], [0, 1]]
    codes[:3] = [0, 1, 1]  # clipped, not infinite
    found = assess(p, codes, weights)
    brier = brier_score_loss(codes, p[:, 1], sample_weight=weights)
    assert found["brier_score"] == pytest.approx(brier, rel=1e-12)
    assert found["log_loss"] == pytest.approx(log_loss(codes, p, sample_weight=weights), rel=1e-12)


def test_assess_many_classes(rng):
    scores, codes = problem(rng, 500, 4)
    p = learn_calibrator("sigmoid", scores, codes, 4).probabilities(scores)
    found = assess(p, codes)
    assert found["log_loss"] == pytest.approx(log_loss(codes, p), rel=1e-12)
    squares = np.sum((p - np.eye(4)[codes]) ** 2, axis=1)
    assert found["brier_score"] == pytest.approx(squares.mean() / 2, rel=1e-12)
    bins = found["reliability"]
    hits = np.average(bins["observed"], weights=bins["weight"])
    assert hits == pytest.approx(np.mean(p.argmax(1) == codes))
    assert np.average(bins["predicted"], weights=bins["weight"]) == pytest.approx(p.max(1).mean())


def test_assess_leaves_out_what_is_unknown(rng):
    scores, codes = problem(rng, 400, 3)
    weights = rng.integers(1, 3, 400).astype(float)
    p = learn_calibrator("sigmoid", scores, codes, 3).probabilities(scores)
    given = p.copy(), codes.copy(), weights.copy()
    given[0][:50] = np.nan
    given[1][50:100] = -1
    given[2][100:150] = 0
    assert_same(assess(*given), assess(p[150:], codes[150:], weights[150:]))
    counts = weights[150:].astype(int)
    repeated = assess(p[150:].repeat(counts, 0), codes[150:].repeat(counts))
    assert_same(assess(*given), repeated, rtol=1e-12)
    with pytest.raises(ValueError, match="no row has a probability"):
        assess(np.full((3, 2), np.nan), np.zeros(3, dtype=int))


def assert_same(a, b, rtol=0.0):
    for name in ("brier_score", "log_loss"):
        np.testing.assert_allclose(a[name], b[name], rtol=rtol)
    for name, array in a["reliability"].items():
        np.testing.assert_allclose(array, b["reliability"][name], rtol=rtol)


def test_reliability_bins(rng):
    p = rng.permutation(np.linspace(0.05, 0.95, 1000))
    codes = (rng.random(1000) < p**2).astype(int)
    bins = assess(np.column_stack([1 - p, p]), codes)["reliability"]
    np.testing.assert_array_equal(bins["weight"], np.full(10, 100))
    order = np.argsort(p).reshape(10, 100)
    np.testing.assert_allclose(bins["predicted"], p[order].mean(1))
    np.testing.assert_allclose(bins["observed"], codes[order].mean(1))
    tied = np.repeat([0.2, 0.9], [700, 300])  # equal probabilities stay together
    bins = assess(np.column_stack([1 - tied, tied]), codes, n_bins=5)["reliability"]
    np.testing.assert_allclose(bins["predicted"], [0.2, 0.9])
    np.testing.assert_allclose(bins["observed"], [codes[:700].mean(), codes[700:].mean()])
    np.testing.assert_array_equal(bins["weight"], [700, 300])


def test_scores_that_rounding_tells_apart_are_equal():
    scores = np.array([0.3, 0.3 + 1e-16, 0.3 - 1e-16, 0.7, 0.7 + 1e-15, 0.3])[:, np.newaxis]
    codes = np.array([0, 1, 0, 1, 0, 0])
    found = learn_calibrator("isotonic", scores, codes, 2).probabilities(scores)[:, 1]
    np.testing.assert_allclose(found, [0.25, 0.25, 0.25, 0.5, 0.5, 0.25], rtol=1e-12)

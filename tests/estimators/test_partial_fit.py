"""Learning batch by batch."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import log_loss

import polysift
from mixed_tables import mixed_table
from polysift import FPCClassifier
from polysift.persistence.validation import check_attributes
from polysift.runtime.arrays import InvalidFieldError
from problems import noisy_problem, paper_classifier

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")


def solvers(**params):
    return [
        paper_classifier(3, 30, random_state=0, **params),
        FPCClassifier(degree=2, n_centers=30, random_state=0, solver="lbfgs", **params),
    ]


def by_batches(clf, X, y, size, classes=None, weights=None):
    classes = np.unique(y) if classes is None else classes
    for lo in range(0, len(y), size):
        own = None if weights is None else weights[lo : lo + size]
        clf.partial_fit(X[lo : lo + size], y[lo : lo + size], classes, own)
    return clf


def with_map_of(clf, X, y):
    """Return a classifier that has the feature map of all rows, and no sums."""
    return clone(clf).fit(X, y)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_single_batch_is_the_first_iterate_of_a_fit(rng, kind, n_classes):
    X = rng.random((400, 3))
    y = np.digitize(X[:, 0] + X[:, 1], np.linspace(0.6, 1.4, n_classes)[1:])
    clf = solvers()[kind]
    first = clone(clf).set_params(max_iter=1).fit(X, y)
    batch = clone(clf).partial_fit(X, y, np.unique(y))
    np.testing.assert_array_equal(batch.coef_, first.coef_)
    np.testing.assert_array_equal(batch.predict(X), first.predict(X))
    assert batch.rho_ == first.rho_ and batch.status_ == "partial"
    assert batch.solver_ == first.solver_ == ("paper", "lbfgs")[kind]


@pytest.mark.parametrize(("rho", "atol"), [(1e-4, 1e-9), ("auto", 1e-5)])
def test_the_first_iterate_does_not_depend_on_batches(rng, rho, atol):
    X, y = noisy_problem(rng, 1_000, 3)
    clf = paper_classifier(3, 30, rho=rho, alpha=None, beta=None, random_state=0)
    first = clone(clf).set_params(max_iter=1).fit(X, y)
    counts = first.training_summary_["class_counts"]
    order = rng.permutation(1_000)
    for size, rows in ((1_000, order), (300, np.arange(1_000)), (50, order)):
        batches = by_batches(with_map_of(clf, X, y), X[rows], y[rows], size)
        assert batches.rho_ == pytest.approx(first.rho_, rel=1e-10)
        np.testing.assert_allclose(
            batches.decision_function(X), first.decision_function(X), rtol=0, atol=atol
        )
        assert batches.training_summary_["rows"] == 1_000
        np.testing.assert_array_equal(batches.training_summary_["class_counts"], counts)


def test_the_scale_of_batches_is_near_that_of_all_rows(rng):
    X, y = noisy_problem(rng, 4_000, 3)
    clf = solvers()[1]
    first = clone(clf).set_params(max_iter=1).fit(X, y)
    batches = by_batches(with_map_of(clf, X, y), X, y, 200)
    np.testing.assert_array_equal(batches.predict(X), first.predict(X))
    assert np.linalg.norm(batches.coef_) == pytest.approx(np.linalg.norm(first.coef_), rel=0.1)
    losses = [log_loss(y, model.predict_proba(X)) for model in (batches, first)]
    assert losses[0] < losses[1] + 0.002


def test_nothing_set_and_the_map_of_the_first_batch(rng):
    X, y = noisy_problem(rng, 4_000, 3, noise=0.05)
    clf = by_batches(FPCClassifier(random_state=0), X[:3_000], y[:3_000], 500)
    whole = FPCClassifier(random_state=0).fit(X[:3_000], y[:3_000])
    assert clf.score(X[3_000:], y[3_000:]) > whole.score(X[3_000:], y[3_000:]) - 0.02
    assert clf.n_centers_ <= 250 and clf.training_summary_["rows"] == 3_000
    assert clf.selection_["rows"] <= 500


@pytest.mark.parametrize("kind", [0, 1])
def test_weights_are_multiplicities(rng, kind):
    X, y = noisy_problem(rng, 300, 2)
    weights = rng.integers(0, 4, 300).astype(float)
    known = [with_map_of(solvers()[kind], X, y) for _ in range(2)]
    weighted = by_batches(known[0], X, y, 100, weights=weights)
    repeated = known[1]
    for lo in range(0, 300, 100):
        rows = np.repeat(np.arange(lo, lo + 100), weights[lo : lo + 100].astype(int))
        repeated.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=0, atol=1e-8
    )
    halves = by_batches(with_map_of(solvers()[kind], X, y), X, y, 100, weights=weights / 2)
    assert halves.partial_sums_["weight"] == weights.sum() / 2


def test_weights_of_classes(rng):
    X, y = noisy_problem(rng, 400, 2)
    clf = paper_classifier(2, 15, class_weight={-1: 3.0}, random_state=0)
    first = clone(clf).set_params(max_iter=1).fit(X, y)
    batches = by_batches(with_map_of(clf, X, y), X, y, 150)
    np.testing.assert_allclose(
        batches.decision_function(X), first.decision_function(X), rtol=0, atol=1e-9
    )


def test_batches_that_lack_classes(rng):
    X = rng.random((600, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.3, 0.6])]
    clf = solvers()[0]
    first = clone(clf).set_params(max_iter=1).fit(X, y)
    order = np.argsort(y, kind="stable")  # each batch has one or two classes
    batches = by_batches(with_map_of(clf, X, y), X[order], y[order], 150)
    np.testing.assert_allclose(
        batches.decision_function(X), first.decision_function(X), rtol=0, atol=1e-9
    )
    alone = clone(clf).partial_fit(X[y == "a"], y[y == "a"], ["c", "a", "b"])
    assert list(alone.classes_) == ["a", "b", "c"]
    assert set(alone.predict(X)) == {"a"}


@pytest.mark.parametrize("convert", [sp.csr_array, lambda X: X.astype(np.float32)])
def test_sparse_and_single_precision(rng, convert):
    X, y = noisy_problem(rng, 400, 3)
    X[X < 0.3] = 0.0
    rows = convert(X)
    clf = paper_classifier(2, random_state=0)
    first = clone(clf).set_params(max_iter=1).fit(rows, y)
    batches = by_batches(with_map_of(clf, rows, y), rows, y, 130)
    np.testing.assert_allclose(
        batches.decision_function(rows), first.decision_function(rows), rtol=0, atol=1e-3
    )


@pytest.mark.usefixtures("threaded")
def test_the_same_bits_for_any_number_of_threads():
    X, y = noisy_problem(np.random.default_rng(0), 40_000, 3)
    made = [
        by_batches(clone(solvers()[1]).set_params(n_jobs=n), X, y, 20_000).coef_ for n in (1, 2)
    ]
    np.testing.assert_array_equal(*made)


@pytest.mark.needs("pandas")
def test_a_table_keeps_the_kinds_of_its_first_batch_also_from_a_file(tmp_path):
    frame, y = mixed_table(600)
    clf = FPCClassifier(n_centers=40, max_levels=20, random_state=0)
    clf.partial_fit(frame[:300], y[:300], ["no", "yes"])
    kinds = list(clf.column_kinds_)
    polysift.save(clf, tmp_path / "half.polysift")
    again = polysift.load(tmp_path / "half.polysift")
    rest = frame[300:].assign(unit="inch", city="Atlantis", age=40.0)  # new, and constant
    for model in (clf, again):
        model.partial_fit(rest, y[300:])
    assert list(clf.column_kinds_) == kinds
    np.testing.assert_array_equal(again.coef_, clf.coef_)
    polysift.save(clf, tmp_path / "whole.polysift")
    whole = polysift.load(tmp_path / "whole.polysift")
    np.testing.assert_array_equal(whole.predict_proba(frame), clf.predict_proba(frame))
    assert polysift.load(tmp_path / "whole.polysift").training_summary_["rows"] == 600


def test_files(rng, tmp_path):
    X, y = noisy_problem(rng, 200, 2)
    clf = paper_classifier(2, random_state=0)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    source = polysift.open_data(tmp_path / "rows.npy", target=2)
    clf.partial_fit(source, classes=[-1, 1])
    expected = paper_classifier(2, random_state=0).partial_fit(X, y, [-1, 1])
    np.testing.assert_array_equal(clf.coef_, expected.coef_)


def test_a_batch_that_fails_leaves_the_model_as_it_was(rng):
    X, y = noisy_problem(rng, 100, 2)
    clf = paper_classifier(2, random_state=0)
    for classes in (None, [1], [[1, 2]]):
        with pytest.raises(ValueError, match="classes|y should be a 1d array"):
            clf.partial_fit(X, y, classes)
    assert not hasattr(clf, "n_features_in_")
    clf.partial_fit(X, y, [-1, 1])
    before = {**vars(clf)}
    with pytest.raises(ValueError, match="y holds 7, which is not one of the classes -1, 1"):
        clf.partial_fit(X, np.where(y == 1, 7, -1))
    with pytest.raises(ValueError, match="X has 1 features, but FPCClassifier is expecting 2"):
        clf.partial_fit(X[:, :1], y)
    with pytest.raises(ValueError, match="classes=.* are not those of the batches before"):
        clf.partial_fit(X, y, [-1, 1, 2])
    assert all(vars(clf)[name] is value for name, value in before.items())


def test_what_cannot_be_learned_by_batches(rng):
    X, y = noisy_problem(rng, 100, 2)
    for params, why in (
        ({"class_weight": "balanced"}, "class_weight='balanced' cannot.*Pass a dict"),
        ({"gram": "sampled"}, "gram='sampled' cannot go"),
        ({"checkpoint": "folder"}, "checkpoint='folder' cannot go.*Save the model"),
    ):
        with pytest.raises(ValueError, match=why):
            paper_classifier(2, **params).partial_fit(X, y, [-1, 1])
    with pytest.raises(AttributeError, match="no partial_fit with calibration='sigmoid'.*folds"):
        paper_classifier(2, calibration="sigmoid").partial_fit(X, y, [-1, 1])
    with pytest.raises(AttributeError, match="no partial_fit with solver='newton'.*or 'lbfgs'"):
        paper_classifier(2, solver="newton").partial_fit(X, y, [-1, 1])
    clf = paper_classifier(2).partial_fit(X, y, [-1, 1]).set_params(degree=3)
    with pytest.raises(ValueError, match="partial_fit goes on with degree=2, but now degree is 3"):
        clf.partial_fit(X, y)
    assert hasattr(clf, "partial_sums_")
    assert not hasattr(FPCClassifier(n_centers=9).fit(X, y).partial_fit(X, y), "held_out_")
    assert not hasattr(clf.fit(X, y), "partial_sums_")


def test_sums_from_a_file_are_checked(rng):
    X, y = noisy_problem(rng, 100, 2)
    clf = paper_classifier(2, 5, random_state=0).partial_fit(X, y, [-1, 1])
    sound = {**vars(clf)}
    check_attributes("FPCClassifier", sound)
    for name, value in (
        ("gram", np.eye(4)),
        ("labels", np.full((5, 1), np.nan)),
        ("slopes", np.zeros(3)),
        ("weight", -1.0),
    ):
        forged = {**sound, "partial_sums_": {**clf.partial_sums_, name: value}}
        with pytest.raises(InvalidFieldError):
            check_attributes("FPCClassifier", forged)

"""Decision thresholds: learned from out-of-fold scores, and kept wherever a model goes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

import polysift
from polysift import FPCClassifier
from polysift.training.thresholds import check_threshold, learn_thresholds
from problems import paper_classifier
from searching import problem


def scored(m=3000, classes=2, seed=0):
    """Return scores that are shifted against the best thresholds, codes and folds."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.9, 0.1] if classes == 2 else [0.8, 0.15, 0.05])
    codes = rng.choice(classes, m, p=shares)
    if classes == 2:
        scores = (rng.normal(size=m) + 2.0 * codes - 2.5)[:, np.newaxis]
    else:
        scores = rng.normal(size=(m, 3)) + 2.0 * np.eye(3)[codes] + np.log(shares)
    return scores, codes, rng.integers(0, 5, m)


def codes_of(scores):
    return (scores[:, 0] >= 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


MEASURES = {
    "accuracy": accuracy_score,
    "f1": lambda y, p: f1_score(y, p, average="binary" if y.max() == 1 else "macro"),
    "balanced": balanced_accuracy_score,
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MEASURES)
def test_thresholds_are_nearly_the_best(name, classes):
    scores, codes, folds = scored(classes=classes)
    found = learn_thresholds(check_threshold(name), scores, codes, np.arange(classes), None, folds)
    measure = MEASURES[name]
    reached = measure(codes, codes_of(scores - found.values))
    assert found.report["before"] == pytest.approx(measure(codes, codes_of(scores)))
    assert found.report["before"] <= found.report["after"] <= reached + 0.01
    if classes == 2:  # every threshold that there is
        best = max(measure(codes, codes_of(scores - t)) for t in np.unique(scores))
        assert reached > best - 0.01


def test_costs_move_the_threshold_by_their_ratio():
    scores, codes, folds = scored()
    classes = np.arange(2)
    cheap, dear = (
        learn_thresholds(check_threshold(costs), scores, codes, classes, None, folds)
        for costs in ([[0, 1], [1, 0]], [[0, 1], [50, 0]])
    )
    assert dear.values[0] < cheap.values[0]
    predicted = codes_of(scores - dear.values)
    cost = 50 * np.sum((codes == 1) & (predicted == 0)) + np.sum((codes == 0) & (predicted == 1))
    assert -dear.report["after"] >= cost / len(codes) - 1e-9
    accuracy = learn_thresholds(check_threshold("accuracy"), scores, codes, classes, None, folds)
    assert accuracy.values == pytest.approx(cheap.values), "equal costs are the accuracy"


def test_weights_are_multiplicities_and_rows_of_no_fold_do_not_count():
    scores, codes, folds = scored(800)
    counts = np.random.default_rng(1).integers(0, 3, 800)
    again = np.repeat(np.arange(800), counts)
    classes, threshold = np.arange(2), check_threshold("f1")
    found = learn_thresholds(threshold, scores, codes, classes, counts.astype(float), folds)
    expected = learn_thresholds(threshold, scores[again], codes[again], classes, None, folds[again])
    assert found.report["before"] == pytest.approx(expected.report["before"])
    assert found.values == pytest.approx(expected.values, abs=0.1)  # cuts are at quantiles
    more = np.vstack([scores, np.full((50, 1), 1e9)])
    labels, apart = np.append(codes, np.zeros(50, int)), np.append(folds, np.full(50, -1))
    weights = np.append(counts, np.ones(50)).astype(float)
    same = learn_thresholds(threshold, more, labels, classes, weights, apart)
    np.testing.assert_array_equal(same.values, found.values)


def test_thresholds_that_do_not_help_on_rows_held_out_are_not_taken():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)  # nothing to learn
    found = learn_thresholds(
        check_threshold("accuracy"), scores, codes, np.arange(2), None, np.arange(60) % 5
    )
    assert found.report["after"] >= found.report["before"]
    assert found.report["after"] > found.report["before"] or not found.values.any()


@pytest.mark.parametrize("value", ["roc", 3, [[0, 1]], [[0, np.nan], [1, 0]], {"a": 1}], ids=repr)
def test_what_is_no_threshold(value):
    with pytest.raises(
        ValueError, match="threshold must be 'accuracy', 'f1', 'balanced', None, or"
    ):
        check_threshold(value)


def rare(classes=2):
    X, y = problem(900, classes=classes)
    keep = (y == 1) | (np.arange(900) % 6 == 0)
    return X[keep], np.where(y[keep] == 1, "common", np.where(y[keep] == -1, "rare", "third"))


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_keeps_its_thresholds_wherever_it_goes(tmp_path, classes):
    X, y = rare(classes)
    clf = paper_classifier(2, threshold="balanced", random_state=0).fit(X, y)
    assert clf.decision_thresholds_.shape == (1 if classes == 2 else 3,)
    assert clf.threshold_report_["after"] > clf.threshold_report_["before"]
    plain = paper_classifier(2, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=1e-9)
    predicted = clf.predict(X)
    assert (predicted != plain.predict(X)).any()
    assert balanced_accuracy_score(y, predicted) > balanced_accuracy_score(y, plain.predict(X))
    assert clf.score(X, y) == pytest.approx(accuracy_score(y, predicted))
    polysift.save(clf, tmp_path / "model.polysift")
    again = polysift.load(tmp_path / "model.polysift")
    np.testing.assert_array_equal(again.predict(X), predicted)
    assert again.threshold == "balanced"
    clf.predict_to(X, tmp_path / "out.csv")
    written = np.loadtxt(tmp_path / "out.csv", dtype=str, delimiter=",", skiprows=1)[:, 0]
    np.testing.assert_array_equal([word.strip('"') for word in written], predicted)
    clf.set_params(threshold=None).fit(X, y)
    assert not hasattr(clf, "decision_thresholds_")


@pytest.mark.needs("onnxruntime")
@pytest.mark.parametrize("classes", [2, 3])
def test_thresholds_in_onnx(classes):
    import onnxruntime

    X, y = rare(classes)
    clf = paper_classifier(2, threshold="balanced", random_state=0).fit(X, y)
    session = onnxruntime.InferenceSession(polysift.to_onnx(clf).SerializeToString())
    label, score = session.run(["label", "score"], {"X": X})
    np.testing.assert_array_equal(label, clf.predict(X))
    np.testing.assert_allclose(score, clf.decision_function(X), atol=1e-9)


def test_a_classifier_refuses_costs_of_other_classes():
    X, y = rare()
    with pytest.raises(ValueError, match=r"each class, in the order 'common', 'rare'; got.*3, 3"):
        FPCClassifier(threshold=np.ones((3, 3))).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=True cannot go with threshold"):
        FPCClassifier(threshold="f1", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="threshold='f1' cannot go with partial_fit"):
        paper_classifier(threshold="f1").partial_fit(X, y, classes=["common", "rare"])

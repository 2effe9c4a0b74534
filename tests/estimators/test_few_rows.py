"""A few plain rows are scored without a source, to the bits of the ordinary way."""

import gc

import numpy as np
import pytest

from polysift import FPCClassifier
from polysift.data.inputs import rows_source
from polysift.estimators import few_rows
from polysift.estimators.few_rows import few_plain_scores
from polysift.estimators.fitted import scores_by_shard
from polysift.runtime.errors import FeatureOverflowError
from problems import paper_classifier

RNG = np.random.default_rng(27)
ROWS = RNG.normal(size=(400, 7))
LABELS = np.digitize(ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2], [-0.5, 0.5])
GAPS = np.where(RNG.random(ROWS.shape) < 0.1, np.nan, ROWS)
SOME_CONSTANT = ROWS * (np.arange(7) != 3)
NEW = 2.0 * RNG.normal(size=(40, 7))

MODELS = {
    "auto": lambda: FPCClassifier(random_state=0).fit(ROWS, LABELS > 0),
    "three classes": lambda: FPCClassifier(n_centers=60, random_state=0).fit(ROWS, LABELS),
    "missing values": lambda: FPCClassifier(n_centers=60, random_state=0).fit(GAPS, LABELS),
    "a constant column": lambda: FPCClassifier(n_centers=60).fit(SOME_CONSTANT, LABELS),
    "quantiles": lambda: FPCClassifier(3, 61, scaler="quantile").fit(ROWS, LABELS > 1),
    "paper": lambda: paper_classifier(3, random_state=0).fit(ROWS, LABELS > 1),
    "calibrated": lambda: paper_classifier(2, calibration="isotonic").fit(ROWS, LABELS),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def ordinary_scores(model, X):
    found = {}
    for _ in scores_by_shard(model, rows_source(model, X, reset=False), _keeper(found)):
        pass
    return np.concatenate([found[span] for span in sorted(found)])


def _keeper(found):
    def keep(span, part, scores):
        found[span] = scores

    return keep


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 17, 40])
def test_same_bits_as_the_ordinary_way(model, rows):
    wide = np.repeat(NEW[:rows], 2, axis=1)
    for X in (
        NEW[:rows],
        np.asfortranarray(NEW[:rows]),
        wide[:, ::2],
        NEW[:rows].astype(np.float32),
        ROWS[:rows],  # knots of splines and quantiles
    ):
        found = few_plain_scores(model, X)
        np.testing.assert_array_equal(found, ordinary_scores(model, X))
        shown = model.decision_function(X)
        np.testing.assert_array_equal(shown, found[:, 0] if found.shape[1] == 1 else found)


def test_classes_and_probabilities_follow(model, monkeypatch):
    X = NEW[:3]
    quick = model.predict(X), getattr(model, "predict_proba", model.predict)(X)
    monkeypatch.setattr(few_rows, "MAX_FEATURES", 0)
    assert few_plain_scores(model, X) is None
    slow = model.predict(X), getattr(model, "predict_proba", model.predict)(X)
    for one, other in zip(quick, slow, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_not_plain_goes_the_ordinary_way(model):
    many = np.zeros((few_rows.MAX_FEATURES // model.n_centers_ + 1, 7))
    inexact = np.where(np.eye(1, 7) > 0, np.nan, NEW[:1])
    others = [many, inexact, NEW[:1].tolist(), NEW[:1].astype(int), NEW[:1, :6], NEW[0], NEW[:0]]
    for X in [*others, np.ma.masked_array(NEW[:1])]:
        assert few_plain_scores(model, X) is None
    with pytest.raises(ValueError, match="contains infinity in column 2"):
        model.predict(np.where(np.arange(7) == 2, np.inf, NEW[:1]))
    with pytest.raises(ValueError, match="X has 6 features"):
        model.predict(NEW[:1, :6])
    model.set_params(n_jobs=0)
    with pytest.raises(ValueError, match="n_jobs must be"):
        model.predict(NEW[:1])
    model.set_params(n_jobs=None)


def test_categories_go_the_ordinary_way():
    codes = np.column_stack([ROWS[:, :2], LABELS])
    made = FPCClassifier(n_centers=40, columns={2: "category"}).fit(codes, LABELS > 0)
    assert few_plain_scores(made, codes[:1]) is None
    assert made.predict(codes[:1]) == [LABELS[0] > 0]


def test_overflow_is_named():
    made = paper_classifier(3, scaler=None).fit(ROWS, LABELS > 1)
    with pytest.raises(FeatureOverflowError, match="row 1"):
        made.predict(np.vstack([NEW[:1], 1e150 * NEW[:1]]))


def test_another_fit_is_seen_and_nothing_outlives_a_model():
    made = FPCClassifier(n_centers=30, random_state=0).fit(ROWS, LABELS > 0)
    first = made.decision_function(NEW[:1])
    made.fit(ROWS[:, ::-1], LABELS > 0)
    second = made.decision_function(NEW[:1])
    assert first != second
    np.testing.assert_array_equal(second, ordinary_scores(made, NEW[:1])[:, 0])
    made.degree_ += 1
    np.testing.assert_array_equal(
        made.decision_function(NEW[:1]), ordinary_scores(made, NEW[:1])[:, 0]
    )
    gc.collect()
    kept = len(few_rows._prepared)
    del made
    gc.collect()
    assert len(few_rows._prepared) == kept - 1

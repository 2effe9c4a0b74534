"""Splits, and the rounds in which one pass serves many of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from polysift.training.folds import Round, make_rounds, scored_rows, stratified_folds

M = 60
CODES = (np.arange(M) % 3 == 0).astype(np.int8)
CLASSES = np.array(["no", "yes"])


def rounds(cv, codes=CODES, weights=None, **options):
    return make_rounds(cv, codes, weights, CLASSES, **options)


def parts(made):
    """Return training and test rows of each split, as a round has them."""
    for round_ in made:
        for split in range(round_.n_splits):
            learned = (round_.fold_parts >= 0) & (round_.fold_parts != split)
            yield np.flatnonzero(learned), np.flatnonzero(round_.fold_parts == split)


SPLITTERS = {
    "k folds": (KFold(4), 1),
    "shuffled": (StratifiedKFold(3, shuffle=True, random_state=1), 1),
    "repeated": (RepeatedKFold(n_splits=2, n_repeats=3, random_state=0), 3),
    "stratified again": (
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        2,
    ),
    "random parts": (ShuffleSplit(3, test_size=0.4, train_size=0.3, random_state=0), 3),
    "one part": (StratifiedShuffleSplit(1, test_size=0.25, random_state=0), 1),
    "rows that always learn": (PredefinedSplit(np.repeat([-1, 0, 1], 20)), 1),
    "in order of time": (TimeSeriesSplit(4), 4),
    "one by one": (LeaveOneOut(), 1),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_rounds_hold_the_splits_of_scikit_learn(name):
    cv, n_rounds = SPLITTERS[name]
    given = list(cv.split(np.empty((M, 0)), CODES))
    made = rounds(cv)
    assert len(made) == n_rounds
    found = list(parts(made))
    assert len(found) == len(given)
    for (train, test), (expected_train, expected_test) in zip(found, given, strict=True):
        np.testing.assert_array_equal(train, np.sort(expected_train))
        np.testing.assert_array_equal(test, np.sort(expected_test))


def test_a_splitter_is_asked_with_labels_and_groups():
    groups = np.arange(M) % 7
    found = list(parts(rounds(GroupKFold(3), groups=groups)))
    for train, test in found:
        assert not set(groups[train]) & set(groups[test])
    expected = StratifiedKFold(4).split(np.empty((M, 0)), CODES)
    for (_, test), (_, known) in zip(parts(rounds(StratifiedKFold(4))), expected, strict=True):
        np.testing.assert_array_equal(test, known)


def test_folds_that_partition_the_rows_have_no_other_cell():
    (folds,) = rounds(KFold(3))
    assert folds.n_splits == folds.n_fold_parts == 3 and folds.complete
    (part,) = rounds(0.25)
    assert part.n_splits == 1 and part.n_fold_parts == 2 and part.complete
    (partial, *_) = rounds(TimeSeriesSplit(2))
    assert not partial.complete


def test_a_number_means_stratified_folds():
    for cv in (4, np.int64(4)):
        (made,) = rounds(cv)
        for _, test in parts([made]):
            assert len(test) == 15 and CODES[test].sum() == 5
    (default,) = rounds(None)
    assert default.n_splits == 5


def test_a_share_means_one_stratified_part_which_the_seed_decides():
    (made,) = rounds(0.25, seed=3)
    ((train, test),) = parts([made])
    assert len(test) == 15 and CODES[test].sum() == 5 and len(train) == 45
    np.testing.assert_array_equal(made.fold_parts, rounds(0.25, seed=3)[0].fold_parts)
    assert (made.fold_parts != rounds(0.25, seed=4)[0].fold_parts).any()
    assert rounds(np.float32(0.25), seed=2**40)[0].n_splits == 1


def test_pairs_masks_and_generators_serve():
    test = np.arange(M) < 20
    train = ~test
    made = [
        rounds([(train, test)])[0],
        rounds([(np.flatnonzero(train), np.flatnonzero(test))])[0],
        rounds([(np.flatnonzero(train).tolist(), np.flatnonzero(test).tolist())])[0],
        rounds(pair for pair in [(train, test)])[0],
    ]
    for round_ in made:
        np.testing.assert_array_equal(round_.fold_parts, np.where(test, 0, 1))


def test_rows_of_weight_zero_are_in_no_part():
    weights = np.ones(M)
    weights[5:25] = 0
    kept = np.flatnonzero(weights)
    (made,) = rounds(3, weights=weights)
    assert (made.fold_parts[5:25] == -1).all()
    (plain,) = rounds(3, codes=CODES[kept])
    np.testing.assert_array_equal(made.fold_parts[kept], plain.fold_parts)
    for train, test in parts(rounds(KFold(3), weights=weights)):
        assert (weights[train] > 0).all() and (weights[test] > 0).all()


def test_a_row_of_weight_zero_may_have_no_class():
    codes, weights = CODES.copy(), np.ones(M)
    codes[7], weights[7] = -1, 0
    (made,) = rounds(3, codes=codes, weights=weights)
    assert made.fold_parts[7] == -1 and (np.delete(made.fold_parts, 7) >= 0).all()


def test_a_splitter_does_not_see_a_row_without_a_class():
    codes, weights = CODES.copy(), np.ones(M)
    codes[7], weights[7] = -1, 0
    (made,) = rounds(StratifiedKFold(3), codes=codes, weights=weights)
    assert made.fold_parts[7] == -1 and made.n_splits == 3 and made.complete


def test_a_round_is_complete_without_rows_of_weight_zero():
    """So that the refit can use its Gram matrices, and calibration its folds."""
    weights = np.append(np.ones(M - 1), 0)
    assert rounds(3, weights=weights)[0].complete


@pytest.mark.parametrize(
    "cv", [1, 0, -3, 1.0, 1.5, 0.0, -0.5, float("nan"), True, "5", type], ids=repr
)
def test_what_is_no_cv(cv):
    with pytest.raises(ValueError, match="^cv must be a number of folds"):
        rounds(cv)


def test_fewer_rows_than_folds():
    with pytest.raises(ValueError, match="cv=61 folds need at least 61 rows; got 60. Set cv to 60"):
        rounds(61)
    weights = np.append(np.ones(4), np.zeros(M - 4))
    with pytest.raises(ValueError, match="cv=5 folds need at least 5 rows; got 4"):
        rounds(5, weights=weights)


def test_rare_classes():
    codes = (np.arange(M) == 0).astype(int)
    message = r"cannot hold every class: class 'yes' has 1 row\(s\) only. Lower cv"
    with pytest.raises(ValueError, match=f"cv=3 folds {message}"):
        rounds(3, codes=codes)
    with pytest.raises(ValueError, match=f"A validation part {message}"):
        rounds(0.3, codes=codes)
    with pytest.raises(ValueError, match=r"cv=5 folds cannot hold every class: class 'no' has 3"):
        rounds(5, codes=np.array([0, 0, 0, 1, 1, 1, 1]))


@pytest.mark.parametrize("cv", [3, 0.3])
def test_the_only_row_of_a_class_is_in_every_training_part(cv):
    codes = np.append(np.arange(M - 1) % 2, 2)
    (made,) = rounds(cv, codes=codes)
    assert made.fold_parts[-1] == made.n_splits and made.complete


def test_a_class_with_fewer_rows_than_folds_is_what_scikit_learn_warns_of():
    codes = (np.arange(M) < 3).astype(int)
    with pytest.warns(UserWarning, match="least populated class in y has only 3 members"):
        (made,) = rounds(5, codes=codes)
    assert all(codes[train].any() for train, _ in parts([made]))


def test_parts_with_one_class_only():
    codes = np.repeat([0, 1], 30)
    with pytest.raises(
        ValueError, match="training part of split 0 of cv holds one class only, 'yes'.*stratified"
    ):
        rounds(KFold(2), codes=codes)
    three = np.repeat([0, 1, 2], 20)
    with pytest.raises(ValueError, match="training part of split 0 of cv lacks class 'a'"):
        make_rounds(KFold(3), three, None, np.array(["a", "b", "c"]))
    weights = np.where((CODES == 1) & (np.arange(M) >= 20), 0.0, 1.0)
    with pytest.raises(ValueError, match="split 0 of cv holds one class only, 'no'"):
        rounds(KFold(3), weights=weights)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((np.arange(40), np.arange(39, 60)), "training and test parts of split 0 of cv share rows"),
        ((np.arange(40), np.arange(50, 61)), "cv names row 60, but there are 60 rows"),
        ((np.arange(40), np.arange(-3, 0)), "cv must yield pairs of arrays of row numbers"),
        ((np.arange(40), np.array([50.0])), "cv must yield pairs of arrays of row numbers"),
        ((np.arange(40), np.array([[50], [51]])), "cv must yield pairs of arrays of row numbers"),
        ((np.arange(40), np.zeros(60, dtype=bool)), "test part of split 0 of cv is empty"),
        ((np.zeros(60, dtype=bool), np.arange(40)), "training part of split 0 of cv is empty"),
    ],
)
def test_pairs_that_are_wrong(pair, message):
    with pytest.raises(ValueError, match=message):
        rounds([pair])


def test_no_split_at_all():
    with pytest.raises(ValueError, match=r"cv=\[\] yields no split"):
        rounds([])
    with pytest.raises(ValueError, match="groups"):
        rounds(GroupKFold(3))


@pytest.mark.parametrize("cv", [[1, 2, 3], [[1, 2, 3]], 0.001, 0.999], ids=repr)
def test_other_mistakes_name_cv_too(cv):
    with pytest.raises(ValueError, match=r"\bcv\b"):
        rounds(cv)


def test_rows_named_twice_are_refused():
    train = np.append(np.arange(40), np.arange(40))
    with pytest.raises(ValueError, match="cv"):
        rounds([(train, np.arange(40, 60))])


HASHES = np.random.default_rng(0).integers(0, 2**64, M, dtype=np.uint64)


def test_stratified_folds_for_calibration():
    made = stratified_folds(CODES, None, HASHES, 5)
    assert isinstance(made, Round) and made.n_splits == made.n_fold_parts == 5
    for _, test in parts([made]):
        assert len(test) == 12 and CODES[test].sum() == 4
    weights = np.append(np.zeros(10), np.ones(M - 10))
    weighted = stratified_folds(CODES, weights, HASHES, 5)
    assert (weighted.fold_parts[:10] == -1).all()
    np.testing.assert_array_equal(
        weighted.fold_parts[10:], stratified_folds(CODES[10:], None, HASHES[10:], 5).fold_parts
    )


def test_folds_depend_on_the_content_of_rows():
    made = stratified_folds(CODES, None, HASHES, 5).fold_parts
    order = np.random.default_rng(1).permutation(M)
    other = stratified_folds(CODES[order], None, HASHES[order], 5).fold_parts
    np.testing.assert_array_equal(other, made[order])
    weights = np.arange(M) % 4
    weighted = stratified_folds(CODES, weights, HASHES, 5).fold_parts
    repeated = stratified_folds(CODES.repeat(weights), None, HASHES.repeat(weights), 5).fold_parts
    np.testing.assert_array_equal(repeated, weighted.repeat(weights))


def test_of_few_distinct_rows_none_is_held_out():
    """Folds share the weight of each, whether it is repeated or weighted."""
    codes = np.repeat([0, 1], 3)
    hashes = np.tile(np.arange(3), 2).astype(np.uint64)
    weights = np.array([3, 20, 0, 7, 11, 5])
    scores = np.arange(6.0)[:, np.newaxis]

    def shared(repeats, order):
        w = None if repeats is None else weights[order]
        rows = np.arange(6).repeat(weights) if repeats is None else np.arange(6)
        rows = np.random.default_rng(order).permutation(rows) if repeats is None else rows[order]
        made = stratified_folds(codes[rows], w, hashes[rows], 5)
        assert made.n_splits == 0 and made.complete
        found = scored_rows(made, scores[rows], codes[rows], w, 5)
        return np.histogram2d(found[0][:, 0], found[3], (6, 5), weights=found[2])[0]

    weighted = shared(weights, np.arange(6))
    np.testing.assert_array_equal(weighted.sum(axis=1), weights)
    assert np.ptp(weighted, axis=1).max() <= 1
    np.testing.assert_array_equal(weighted, shared(weights, np.array([3, 1, 0, 5, 2, 4])))
    for order in range(2):
        np.testing.assert_array_equal(weighted, shared(None, order))


def test_relative_weights_are_shared_too():
    weights = np.random.default_rng(0).exponential(20.0, 8)
    made = stratified_folds(np.arange(8) % 2, weights, np.arange(8).astype(np.uint64), 5)
    scores = np.arange(8.0)[:, np.newaxis]
    found, _, w, folds = scored_rows(made, scores, np.arange(8) % 2, weights, 5)
    np.testing.assert_allclose(np.bincount(found[:, 0].astype(int), w), weights)
    assert np.ptp(np.bincount(folds, w)) <= 1.0 + 1e-9


def test_a_class_rarer_than_the_folds_is_dealt_out():
    codes = np.append(np.zeros(20, dtype=int), [1, 1, 1])
    hashes = np.random.default_rng(0).integers(0, 2**64, 23, dtype=np.uint64)
    made = stratified_folds(codes, None, hashes, 5)
    assert sorted(made.fold_parts[codes == 1]) == [0, 1, 2]
    np.testing.assert_array_equal(np.bincount(made.fold_parts[codes == 0]), [4] * 5)

"""What needs none of scikit-learn's checks is what they would pass on, without a word."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets

from polysift import PolynomialKernelMap
from polysift.data import inputs
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")

X, Y = noisy_problem(np.random.default_rng(0), 60, 3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
BROKEN = np.where(X > 0.95, np.nan, X)


def outcome(work):
    """Return what came of it, and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = work()
        except (TypeError, ValueError) as error:
            result = type(error), str(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


def both_ways(monkeypatch, work):
    """Check that the outcome is the same with all checks; return it."""
    quick = outcome(work)
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "_needs_no_check", lambda *_: False)
        whole = outcome(work)
    np.testing.assert_equal(quick, whole)
    return quick


ROWS = {
    "float64": X,
    "float32": X.astype(np.float32),
    "fortran": np.asfortranarray(X),
    "other bytes": X.astype(X.dtype.newbyteorder()),
    "integers": (10 * X).astype(int),
    "broken": BROKEN,
    "one-dimensional": X[:, 0],
    "three-dimensional": X[None],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "complex": X + 0j,
    "frame": FRAME,
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_to_learn_from(monkeypatch, name):
    def fit():
        model = paper_classifier(2, random_state=0).fit(ROWS[name], Y)
        return model.coef_, model.n_features_in_, getattr(model, "feature_names_in_", None)

    both_ways(monkeypatch, fit)
    both_ways(monkeypatch, lambda: PolynomialKernelMap(2, random_state=0).fit_transform(ROWS[name]))


LABELS = {
    "integers": Y,
    "floats": Y.astype(float),
    "booleans": Y > 0,
    "text": np.where(Y > 0, "yes", "no"),
    "large": Y.astype(np.uint64) * np.uint64(2**62),
    "close to each other and large": (Y > 0) + np.uint64(2**63),
    "half": Y / 2,
    "missing": np.where(X[:, 0] > 0.9, np.nan, Y),
    "infinite": np.where(X[:, 0] > 0.9, np.inf, Y),
    "short": Y[:-1],
    "a column": Y[:, None],
    "two columns": np.column_stack([Y, Y]),
    "nearly as many as rows": np.arange(60) // 1.5 // 1,
    "half as many as rows": np.arange(60) // 2,
    "a number": 3,
    "none": None,
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_to_learn_from(monkeypatch, name):
    def fit():
        model = paper_classifier(1, random_state=0).fit(X, LABELS[name])
        return model.classes_, model.coef_

    _, said = both_ways(monkeypatch, fit)
    if name == "nearly as many as rows":  # only newer versions of scikit-learn warn of it
        assert bool(said) == bool(outcome(lambda: check_classification_targets(LABELS[name]))[1])
    else:
        assert bool(said) == (name == "a column")


@pytest.mark.parametrize("known", ["names", "no names"])
@pytest.mark.parametrize("name", [*ROWS, "wide", "one row"])
def test_rows_to_predict(monkeypatch, name, known):
    rows = (ROWS | {"wide": np.hstack([X, X]), "one row": X[:1]})[name]
    model = paper_classifier(2, random_state=0).fit(FRAME if known == "names" else X, Y)
    before = model.__dict__.copy()
    _, said = both_ways(monkeypatch, lambda: (model.predict(rows), model.decision_function(rows)))
    assert model.__dict__ == before
    if name == "one row":
        assert bool(said) == (known == "names")


def test_names_are_forgotten_with_the_next_fit():
    model = paper_classifier(2, random_state=0).fit(FRAME, Y)
    model.fit(X[:, :2], Y)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 2
    assert model.predict(X[:1, :2]).shape == (1,)


def test_what_is_changed_by_hand_counts_at_once():
    model = paper_classifier(2, random_state=0).fit(X, np.digitize(X[:, 0], [0.3, 0.6]))
    before = model.decision_function(X[:2])
    model.coef_[1] *= 2.0
    after = model.decision_function(X[:2])
    np.testing.assert_allclose(after[:, 1], 2 * before[:, 1], rtol=1e-12)
    model.centers_[:] = 0.0
    np.testing.assert_allclose(*model.decision_function(X[:2]), rtol=1e-12)


def test_plain_arrays_are_not_checked(monkeypatch):
    monkeypatch.delattr(inputs, "validate_data")
    for rows in (X, X.astype(np.float32)):
        for labels in (Y, Y > 0, Y.astype(float)):
            model = paper_classifier(2, random_state=0).fit(rows, labels)
            model.predict(rows[:1])
    with pytest.raises(NameError, match="validate_data"):
        model.predict(rows.tolist())


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("kind", ["Table", "RecordBatch"])
def test_arrow_tables_with_a_column_that_is_no_number(kind):
    pa = pytest.importorskip("pyarrow")
    numbers = [0.0, 1.0, 2.0, 3.0]
    words = pa.array(["a", "b", "a", "c"])
    make = getattr(pa, kind).from_pydict
    clf = paper_classifier(degree=1).fit(make({"n": numbers, "other": numbers}), [0, 1, 0, 1])
    times = pa.array([1, 2, 3, 4], pa.timestamp("s"))
    for column in (words, words.dictionary_encode(), times):
        X = make({"n": numbers, "other": column})
        kinds = paper_classifier().fit(X, [0, 1, 0, 1]).column_kinds_.tolist()
        assert kinds == ["number", "date" if column is times else "category"]
        with pytest.raises(ValueError, match=r"column 'other'.*number"):
            clf.predict(X)


def test_sparse_rows_are_numbers(rng):
    X = rng.integers(0, 3, (60, 2)).astype(float)
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="X is sparse, and columns that are no numbers"):
        paper_classifier(1, columns={0: "category"}).fit(sp.csr_array(X), y)
    clf = paper_classifier(1, columns={0: "category"}).fit(X, y)
    with pytest.raises(ValueError, match="need dense rows"):
        clf.predict(sp.csr_array(X))

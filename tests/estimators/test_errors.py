"""Every foreseeable mistake gets a message that names the culprit and the remedy."""

import numpy as np
import pytest
import scipy.sparse as sp

from polysift import PolynomialKernelMap
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")
pl = optional("polars")

RNG = np.random.default_rng(0)
X, Y = noisy_problem(RNG, 60, 3)
FRAME = pd.DataFrame(X, columns=["age", "income", "height"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 0}, r"degree must be an integer of at least 1; got 0\."),
        ({"degree": 2.5}, r"got 2\.5\. Use degree=2 or degree=3\."),
        ({"degree": "3"}, "degree must be an integer"),
        ({"degree": True}, "degree must be an integer"),
        ({"n_centers": 0}, 'n_centers must be an integer of at least 1; got 0. Or use n_centers="'),
        ({"n_centers": "all"}, "n_centers must be"),
        ({"centers": "grid"}, "centers must be one of 'auto', 'uniform', 'first', 'random'; got"),
        ({"centers": np.ones((4, 2))}, r"centers must have shape \(n, 3\).*got shape \(4, 2\)"),
        ({"centers": np.ones(3)}, r"centers must have shape \(n, 3\)"),
        ({"centers": [["a", "b", "c"]]}, "centers must be"),
        ({"centers": np.full((2, 3), np.nan)}, "centers must be finite"),
        ({"scaler": "robust"}, "scaler must be one of 'minmax', 'symmetric', 'standard', 'q"),
        ({"solver": "exact"}, "solver must be one of 'auto', .*'newton'; got 'exact'"),
        ({"rho": -1e-9}, "rho must be a number of at least 0; got -1e-09"),
        ({"rho": np.nan}, "rho must be"),
        ({"alpha": 0}, "alpha must be a positive number; got 0"),
        ({"alpha": "1"}, "alpha must be a positive number; got '1'"),
        ({"rho": "none"}, "rho must be"),
        ({"kernel": "gauss"}, "kernel must be"),
        ({"beta": -1}, "beta must be a positive number; got -1"),
        ({"tol": -1}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"class_weight": "even"}, "class_weight must be one of 'balanced'"),
        ({"class_weight": {2: 1.0}}, "class_weight names 2, which is not a class of y"),
        ({"class_weight": {1: -1.0}}, "class_weight must hold positive numbers"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "x"}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        paper_classifier(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    "parameters", [{"degree": 0}, {"n_centers": 0}, {"scaler": 1}, {"centers": np.ones((1, 9))}]
)
def test_the_transformer_checks_too(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PolynomialKernelMap(**parameters).fit(X)


def test_one_class_only():
    with pytest.raises(ValueError, match="at least two classes; got one class only, .*1"):
        paper_classifier().fit(X, np.ones(60, dtype=int))
    with pytest.raises(ValueError, match="weight zero do not count"):
        paper_classifier().fit(X, Y, sample_weight=(Y == 1) * 1.0)


@pytest.mark.parametrize(
    ("form", "value", "word"),
    [
        *((form, np.inf, "infinity") for form in ("frame", "polars", "array", "float32")),
        *(("sparse", *given) for given in ((np.nan, "NaN"), (np.inf, "infinity"))),
    ],
)
def test_values_that_are_not_finite(value, word, form):
    broken = FRAME.copy()
    broken.iloc[17, 1] = value
    rows = {
        "frame": broken,
        "polars": pl.from_pandas(broken),
        "array": broken.to_numpy(),
        "float32": broken.to_numpy(dtype=np.float32),
        "sparse": sp.csr_array(broken.to_numpy()),
    }[form]
    column = "column 'income'" if form in ("frame", "polars") else "column 1"
    with pytest.raises(ValueError, match=f"{word} in {column}, first in row 17"):
        paper_classifier().fit(rows, Y)
    fitted = paper_classifier().fit(FRAME if "column '" in column else X, Y)
    with pytest.raises(ValueError, match=f"{word} in {column}, first in row 17"):
        fitted.predict(rows)


def test_the_row_is_counted_through_all_shards():
    many = np.random.default_rng(0).random((20_000, 2))
    many[15_123, 0] = np.inf
    with pytest.raises(ValueError, match="row 15123"):
        paper_classifier().fit(many, np.arange(20_000) % 2)


@pytest.mark.parametrize(
    "column",
    [
        ["Rome", "Oslo"] * 30,
        pd.Categorical(["a", "b"] * 30),
        pd.date_range("2024-01-01", periods=60),
        pd.array(["x", "y"] * 30, dtype="string"),
    ],
)
def test_a_model_of_numbers_refuses_other_columns(column):
    clf = paper_classifier().fit(FRAME.assign(city=np.arange(60.0) ** 2), Y)
    for frame in (FRAME.assign(city=column), pl.from_pandas(FRAME.assign(city=column))):
        with pytest.raises(ValueError, match=r"column 'city'.*number"):
            clf.predict(frame)


def test_fewer_features_at_prediction():
    clf = paper_classifier().fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but FPCClassifier is expecting 3"):
        clf.predict(X[:, :2])


def test_weights():
    weights = np.ones(60)
    weights[4] = -2
    with pytest.raises(ValueError, match="sample_weight must not be negative; got -2.0 in row 4"):
        paper_classifier().fit(X, Y, weights)
    with pytest.raises(ValueError, match="sample_weight is zero for all rows"):
        paper_classifier().fit(X, Y, np.zeros(60))
    with pytest.raises(ValueError, match="NaN"):
        paper_classifier().fit(X, Y, np.full(60, np.nan))
    with pytest.raises(ValueError, match="inconsistent|shape"):
        paper_classifier().fit(X, Y, np.ones(59))


def test_empty_input():
    with pytest.raises(ValueError, match="0 sample"):
        paper_classifier().fit(np.empty((0, 3)), [])
    with pytest.raises(ValueError, match="0 feature"):
        paper_classifier().fit(np.empty((5, 0)), [0, 1, 0, 1, 0])


def test_sparse_with_the_quantile_scaler():
    with pytest.raises(ValueError, match="scaler='quantile' needs dense rows"):
        paper_classifier(scaler="quantile").fit(sp.csr_array(X), Y)
    fitted = paper_classifier(scaler="quantile").fit(X, Y)
    with pytest.raises(ValueError, match="scaler='quantile' needs dense rows"):
        fitted.predict(sp.csr_array(X))


def test_overflow_is_found_before_the_gram_matrix():
    large = 1e9 * X
    with pytest.raises(ValueError, match=r"degree=20 overflows float64.*'standard'"):
        paper_classifier(20, 10, centers="random", scaler=None).fit(large, Y)
    with pytest.raises(ValueError, match="overflows float32.*Pass X as float64"):
        paper_classifier(3, scaler=None).fit(large.astype(np.float32), Y)
    assert np.isfinite(paper_classifier(20, rho=1e-10).fit(large, Y).coef_).all()
    with pytest.raises(ValueError, match=r"magnitude 1e\+200 in column 0"):
        paper_classifier().fit(np.where(np.arange(3) == 0, 1e200, X), Y)


def test_a_failed_fit_leaves_the_old_model(rng):
    clf = paper_classifier(random_state=0).fit(X, Y)
    before = clf.decision_function(X)
    broken = X.copy()
    broken[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clf.fit(broken, Y)
    np.testing.assert_array_equal(clf.decision_function(X), before)

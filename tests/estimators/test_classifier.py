"""What FPCClassifier promises: attributes, inputs, weights, warm starts, warnings, persistence."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oracles import algorithm_1, kernel
from polysift import FPCClassifier
from polysift.datasets import make_bayes_curve
from polysift.solvers.result import HISTORY_COLUMNS
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")
pl = optional("polars")
skops_io = optional("skops.io")


@pytest.fixture
def moons():
    return make_moons(800, noise=0.2, random_state=0)


@pytest.fixture
def blobs():
    return make_blobs(900, centers=4, n_features=3, cluster_std=2.0, random_state=1)


def test_fitted_attributes(moons):
    X, y = moons
    clf = paper_classifier(degree=4, random_state=5).fit(X, y)
    np.testing.assert_array_equal(clf.classes_, [0, 1])
    assert clf.n_centers_ == 15 and clf.centers_.shape == (15, 2)
    assert clf.coef_.shape == (1, 15)
    assert clf.degree_ == 4 and clf.rho_ == 1.0 and clf.random_state_ == 5
    assert clf.n_features_in_ == 2 and not hasattr(clf, "feature_names_in_")
    assert clf.status_ == "tolerance" and "H-norm" in clf.status_message_
    assert set(clf.history_) == set(HISTORY_COLUMNS)
    assert all(len(column) == clf.n_iter_ for column in clf.history_.values())
    assert clf.score(X, y) > 0.85
    assert clf.history_["training_error"][-1] == pytest.approx(1 - clf.score(X, y))
    assert not hasattr(clf, "predict_proba")


@pytest.mark.parametrize("degree", [1, 3])
def test_paper_mode_is_algorithm_1(rng, degree):
    X, y = noisy_problem(rng, 3000, 3)
    C = rng.random((4, 3))
    clf = paper_classifier(degree, centers=C, scaler=None, alpha=2.0, beta=0.3, max_iter=4, tol=0)
    scores = clf.fit(X, y).decision_function(X)
    u = algorithm_1(kernel(X, C, degree), y, 2.0, 0.3, 4)[-1][0]
    np.testing.assert_allclose(scores, kernel(X, C, degree) @ u, rtol=1e-8, atol=1e-8)
    assert clf.n_iter_ == 4 and clf.status_ == "max_iter"


def test_paper_mode_defaults_and_silence(moons):
    X, y = moons
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = paper_classifier(max_iter=1).fit(X, y)
        assert clf.status_ == "max_iter" and clf.n_iter_ == 1
        assert paper_classifier(tol=0).fit(X, y).n_iter_ == 5


def test_converged_mode_warns_when_it_stops_early(moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="Raise max_iter") as caught:
        clf = paper_classifier(solver="converged", max_iter=20).fit(X, y)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert clf.status_ == "max_iter" and clf.n_iter_ == 20
    full = paper_classifier(solver="converged", max_iter=3000, random_state=0).fit(X, y)
    assert full.status_ == "converged"
    paper = paper_classifier(random_state=0).fit(X, y)
    assert full.history_["objective"][-1] < 0.8 * paper.history_["objective"][-1]


def test_multiclass_is_one_vs_rest(blobs):
    X, y = blobs
    clf = paper_classifier(2, random_state=0, tol=0).fit(X, y)
    scores = clf.decision_function(X)
    assert scores.shape == (900, 4) and clf.coef_.shape == (4, 10)
    np.testing.assert_array_equal(clf.predict(X), scores.argmax(1))
    for k in range(4):
        binary = paper_classifier(2, random_state=0, tol=0).fit(X, y == k)
        np.testing.assert_allclose(binary.decision_function(X), scores[:, k], atol=1e-9)
    traced = paper_classifier(2, random_state=0).fit(X, y)
    assert traced.history_["training_error"][-1] == pytest.approx(1 - traced.score(X, y))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array([7, 3]),
        pd.Categorical.from_codes([0, 1], ["b", "a"]),
    ],
)
def test_labels_of_any_type(moons, labels):
    X, y = moons
    named = labels[y]
    clf = paper_classifier(4).fit(X, named)
    assert set(clf.predict(X[:50])) <= set(labels)
    assert clf.score(X, named) > 0.85


def test_a_score_of_zero_is_the_positive_class(moons):
    X, y = moons
    clf = paper_classifier().fit(X, y)
    clf.coef_ = np.zeros_like(clf.coef_)
    assert (clf.predict(X) == clf.classes_[1]).all()


@pytest.mark.parametrize("solver", ["paper", "converged"])
@pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile", None])
def test_weights_are_multiplicities(rng, solver, scaler):
    X, y = noisy_problem(rng, 500, 3)
    counts = rng.integers(0, 4, 500)
    make = clone(
        paper_classifier(2, scaler=scaler, solver=solver, max_iter=20, tol=0, random_state=0)
    )
    make.set_params(centers="random", n_centers=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = clone(make).fit(X, y, sample_weight=counts)
        repeated = clone(make).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.centers_, repeated.centers_, atol=1e-14)
    expected = repeated.decision_function(X)
    np.testing.assert_allclose(weighted.decision_function(X), expected, rtol=1e-6, atol=1e-7)


def test_rows_of_weight_zero_count_nowhere(rng):
    X, y = noisy_problem(rng, 300, 2)
    far = np.vstack([X, np.full((5, 2), 1e6)])
    labels = np.append(y, [5, 5, 5, 6, 6])
    weights = np.append(np.ones(300), np.zeros(5))
    clf = paper_classifier(random_state=0).fit(far, labels, sample_weight=weights)
    np.testing.assert_array_equal(clf.classes_, [-1, 1])
    expected = paper_classifier(random_state=0).fit(X, y).decision_function(X)
    np.testing.assert_allclose(clf.decision_function(X), expected, rtol=1e-9, atol=1e-12)


def test_class_weight(rng):
    X, y = noisy_problem(rng, 600, 2)
    keep = (y == 1) | (rng.random(600) < 0.3)
    X, y = X[keep], y[keep]
    by_dict = paper_classifier(random_state=0, class_weight={-1: 3.0}).fit(X, y)
    by_rows = paper_classifier(random_state=0).fit(X, y, np.where(y == -1, 3.0, 1.0))
    np.testing.assert_array_equal(by_dict.coef_, by_rows.coef_)
    balanced = paper_classifier(random_state=0, class_weight="balanced").fit(X, y)
    factors = len(y) / (2 * np.array([np.sum(y == -1), np.sum(y == 1)]))
    expected = paper_classifier(random_state=0).fit(X, y, factors[(y > 0).astype(int)])
    np.testing.assert_allclose(balanced.coef_, expected.coef_, rtol=1e-9)
    plain = paper_classifier(random_state=0).fit(X, y)
    assert (balanced.predict(X) == -1).sum() > (plain.predict(X) == -1).sum()


def inputs(X):
    """Return the same rows in every form that must give the same model."""
    yield "fortran", np.asfortranarray(X)
    yield "list", X.tolist()
    yield "csr_array", sp.csr_array(X)
    yield "csr_matrix", sp.csr_matrix(X)
    yield "csc_array", sp.csc_array(X)
    yield "coo_array", sp.coo_array(X)
    names = [f"c{j}" for j in range(X.shape[1])]
    yield "pandas", pd.DataFrame(X, columns=names)
    yield "polars", pl.DataFrame(X, schema=names)
    frozen = X.copy()
    frozen.setflags(write=False)
    yield "read-only", frozen


@pytest.mark.parametrize("scaler", ["minmax", "standard", None])
def test_every_form_of_input_gives_the_same_model(rng, scaler):
    X, y = noisy_problem(rng, 2500, 5)
    X = X * (rng.random(X.shape) < 0.5)
    # Rounding differences of sparse products must stay small: rho keeps the problem well posed.
    make = paper_classifier(2, 15, centers="random", scaler=scaler, rho=1e-6, random_state=0)
    plain = clone(make).fit(X, y)
    expected = plain.decision_function(X)
    for form, same in inputs(X):
        clf = clone(make).fit(same, y)
        np.testing.assert_allclose(clf.centers_, plain.centers_, atol=1e-14, err_msg=form)
        scores = clf.decision_function(same)
        np.testing.assert_allclose(scores, expected, atol=1e-8, err_msg=form)
        if not sp.issparse(same):
            np.testing.assert_array_equal(clf.coef_, plain.coef_, err_msg=form)


def test_memory_maps_are_read_in_place(rng, tmp_path):
    X, y = noisy_problem(rng, 3000, 4)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    clf = paper_classifier(random_state=0).fit(mapped, y)
    np.testing.assert_array_equal(clf.coef_, paper_classifier(random_state=0).fit(X, y).coef_)
    np.testing.assert_array_equal(clf.predict(mapped), clf.predict(X))


def test_sparse_with_duplicates_is_summed_and_left_alone(rng):
    X, y = noisy_problem(rng, 200, 3)
    _rows, columns = np.indices(X.shape).reshape(2, -1)
    doubled = sp.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.repeat(columns, 2), np.arange(0, 2 * X.size + 1, 6)),
        shape=X.shape,
    )
    assert doubled.nnz == 2 * X.size
    clf = paper_classifier(2, 5, centers="random", random_state=0).fit(doubled, y)
    assert doubled.nnz == 2 * X.size
    expected = paper_classifier(2, 5, centers="random", random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), expected.decision_function(X), atol=1e-9)


def test_float32_is_worked_in_float32(rng):
    X, y = noisy_problem(rng, 4000, 4, noise=0.1)
    double = paper_classifier(3, random_state=0).fit(X, y)
    single = paper_classifier(3, random_state=0).fit(X.astype(np.float32), y)
    assert single.centers_.dtype == single.coef_.dtype == np.float64
    a, b = double.decision_function(X), single.decision_function(X.astype(np.float32))
    assert b.dtype == np.float64
    assert np.abs(a - b).max() < 1e-3
    assert (single.predict(X) == double.predict(X)).mean() > 0.999


def test_frames_are_float32_only_if_every_column_is(rng):
    from polysift.data.inputs import rows_source

    frame = pd.DataFrame({"a": np.float32([1, 2]), "b": np.float32([3, 4])})
    assert rows_source(paper_classifier(), frame, reset=True).dtype == np.float32
    mixed = frame.assign(b=np.int8([3, 4]))
    assert rows_source(paper_classifier(), mixed, reset=True).dtype == np.float64
    for extra in (True, 2, 3.5):
        assert (
            rows_source(paper_classifier(), frame.assign(c=extra), reset=True).dtype == np.float64
        )
    nullable = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [0.5, 1.5]})
    assert rows_source(paper_classifier(), nullable, reset=True).dtype == np.float64
    objects = pd.DataFrame({"a": np.array([1, 2.5], dtype=object)})
    assert rows_source(paper_classifier(), objects, reset=True).dtype == np.float64
    polars = pl.DataFrame({"a": [1.0, 2.0], "b": [True, False]})
    assert rows_source(paper_classifier(), polars, reset=True).dtype == np.float64


def test_feature_names_are_kept_and_checked(rng):
    X, y = noisy_problem(rng, 200, 3)
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    for make in (pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)):
        clf = paper_classifier().fit(make(X, columns=["x", "y", "z"]), y)
        assert clf.feature_names_in_.tolist() == ["x", "y", "z"]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["z", "y", "x"]])


@pytest.mark.parametrize("solver", ["paper", "converged"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.usefixtures("threaded")
def test_the_model_is_the_same_bit_for_bit_for_any_number_of_threads(solver, n_classes, dtype):
    rng = np.random.default_rng(3)
    m = 40_000  # 20 shards
    X, _ = noisy_problem(rng, m, 6)
    y = rng.integers(0, n_classes, m)
    weights = rng.random(m)
    models = []
    for n_jobs in (1, 2, 4):
        clf = paper_classifier(
            3, 60, solver=solver, n_jobs=n_jobs, max_iter=4, tol=0, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(clf.fit(X.astype(dtype), y, weights))
    for other in models[1:]:
        np.testing.assert_array_equal(other.coef_, models[0].coef_)
        np.testing.assert_array_equal(other.centers_, models[0].centers_)
        scores = other.decision_function(X.astype(dtype))
        np.testing.assert_array_equal(scores, models[0].decision_function(X.astype(dtype)))


@pytest.mark.parametrize("scaler", ["standard", "quantile"])
@pytest.mark.usefixtures("threaded")
def test_scalers_too_do_not_depend_on_threads(rng, scaler):
    X, y = noisy_problem(rng, 40_000, 5)
    one, four = (
        paper_classifier(2, scaler=scaler, n_jobs=j, random_state=0).fit(X, y) for j in (1, 4)
    )
    np.testing.assert_array_equal(one.coef_, four.coef_)


def test_prediction_does_not_depend_on_company(moons):
    X, y = moons
    clf = paper_classifier(5).fit(X, y)
    whole = clf.decision_function(X)
    alone = np.concatenate([clf.decision_function(X[i : i + 1]) for i in range(0, 800, 97)])
    np.testing.assert_allclose(alone, whole[::97], rtol=1e-9, atol=1e-11)


def test_floor_warns_once_with_the_remedy(rng):
    X, y = noisy_problem(rng, 300, 40)
    with pytest.warns(LinAlgWarning, match="rho=") as caught:
        clf = paper_classifier(8, 100, random_state=0).fit(X, y)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert clf.rho_ > 1
    remedy = float(str(caught[0].message).split("set rho=")[1].split(" ")[0])
    again = paper_classifier(8, 100, random_state=0, rho=remedy).fit(X, y)  # warnings are errors
    assert again.rho_ >= clf.rho_


def test_warm_start_goes_on(moons):
    X, y = moons
    clf = paper_classifier(4, solver="converged", warm_start=True, max_iter=30, random_state=0)
    with pytest.warns(ConvergenceWarning):
        clf.fit(X, y)
    before, centers = clf.history_["objective"][-1], clf.centers_
    with pytest.warns(ConvergenceWarning):
        clf.set_params(max_iter=200).fit(X, y)
    assert clf.history_["objective"][-1] < before
    np.testing.assert_array_equal(clf.centers_, centers)
    cold = paper_classifier(4, solver="converged", max_iter=30, random_state=0)
    with pytest.warns(ConvergenceWarning):
        cold.fit(X, y)
    first = clf.history_["objective"][0]
    assert abs(first - before) < abs(first - cold.history_["objective"][0])


def test_warm_start_refuses_what_does_not_fit(moons):
    X, y = moons
    clf = paper_classifier(2, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="degree=2, but now degree is 3"):
        clone(clf).set_params(degree=2).fit(X, y).set_params(degree=3).fit(X, y)
    with pytest.raises(ValueError, match="classes="):
        clf.fit(X, y + 1)
    with pytest.raises(ValueError, match="scaler='minmax'"):
        clf.set_params(scaler=None).fit(X, y)


def test_verbose_writes_to_standard_error(moons, capsys):
    X, y = moons
    paper_classifier(verbose=1, max_iter=3, tol=1e-300).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("objective") == 3
    paper_classifier().fit(X, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("labels", [np.array([0, 1]), np.array(["no", "yes"])])
@pytest.mark.parametrize("scaler", ["minmax", "quantile"])
def test_pickle_joblib_and_skops(moons, tmp_path, labels, scaler):
    X, y = moons
    clf = paper_classifier(4, scaler=scaler).fit(pd.DataFrame(X, columns=["a", "b"]), labels[y])
    frame = pd.DataFrame(X, columns=["a", "b"])
    expected = clf.decision_function(frame)
    joblib.dump(clf, tmp_path / "model.joblib")
    stored = skops_io.dumps(clf)
    untrusted = skops_io.get_untrusted_types(data=stored)
    assert untrusted == ["polysift.estimators.classifier.FPCClassifier"], (
        "plain arrays and scalars only"
    )
    for copy in (
        pickle.loads(pickle.dumps(clf)),
        joblib.load(tmp_path / "model.joblib"),
        skops_io.loads(stored, trusted=untrusted),
    ):
        np.testing.assert_array_equal(copy.decision_function(frame), expected)
        np.testing.assert_array_equal(copy.predict(frame), clf.predict(frame))
        pd.testing.assert_frame_equal(pd.DataFrame(copy.history_), pd.DataFrame(clf.history_))


def test_fitted_attributes_are_plain(moons):
    clf = paper_classifier().fit(*moons)
    plain = (np.ndarray, str, int, float, bool, type(None))

    def check(value):
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                check(inner)
        else:
            assert type(value) in plain, value

    for value in clf.__getstate__().values():
        check(value)


def test_random_state(moons):
    X, y = moons
    drawn = paper_classifier().fit(X, y)
    again = paper_classifier(random_state=drawn.random_state_).fit(X, y)
    np.testing.assert_array_equal(drawn.coef_, again.coef_)
    for state in (np.random.RandomState(1), np.random.default_rng(1)):
        assert isinstance(paper_classifier(random_state=state).fit(X, y).random_state_, int)


def test_it_lives_in_pipelines_and_searches(moons):
    X, y = moons
    pipeline = make_pipeline(StandardScaler(), paper_classifier(4, scaler=None, random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.85
    X, y = make_bayes_curve(3000, noise=0.0, random_state=0)
    search = GridSearchCV(paper_classifier(random_state=0), {"degree": [1, 6]}, n_jobs=2, cv=3)
    assert search.fit(X, y).best_params_ == {"degree": 6}
    assert (
        repr(FPCClassifier(degree=6, random_state=0)) == "FPCClassifier(degree=6, random_state=0)"
    )

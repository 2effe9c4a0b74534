"""What scikit-learn's tools do with our estimators, beyond its own checks."""

import pickle
from email.message import Message
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polysift import FPCClassifier, FPCClassifierCV, PolynomialKernelMap
from polysift.estimators import conventions
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")
pl = optional("polars")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def documented(monkeypatch):
    """Let the installed package have an address of its documentation."""
    about = Message()
    about["Project-URL"] = "Source, https://example.org/source"
    about["Project-URL"] = "Documentation, https://example.org/docs/"
    monkeypatch.setattr(conventions, "metadata", lambda name: about)
    conventions.doc_link_template.cache_clear()
    yield "https://example.org/docs/api/generated/polysift."
    conventions.doc_link_template.cache_clear()


@pytest.mark.parametrize("kind", [FPCClassifier, FPCClassifierCV, PolynomialKernelMap])
def test_the_html_representation_links_to_the_page_of_a_class(documented, kind):
    page = make_pipeline(StandardScaler(), kind())._repr_html_()
    assert f'href="{documented}{kind.__name__}.html"' in page


def test_without_an_address_there_is_no_link(monkeypatch):
    monkeypatch.setattr(conventions, "metadata", lambda name: Message())
    conventions.doc_link_template.cache_clear()
    assert FPCClassifier()._get_doc_link() == ""
    assert "polysift.FPCClassifier.html" not in FPCClassifier()._repr_html_()
    conventions.doc_link_template.cache_clear()


def test_a_class_of_a_user_has_no_page_of_ours(documented):
    class Mine(FPCClassifier):
        pass

    assert Mine()._get_doc_link() == ""


@pytest.mark.parametrize("name", ["rows.csv", Path("rows.csv")])
def test_the_name_of_a_file_is_no_rows(name, rng):
    X, y = noisy_problem(rng, 100, 2)
    for act in (FPCClassifier().fit, FPCClassifierCV().fit, FPCClassifier().plan):
        with pytest.raises(TypeError, match=r"open_data\('rows.csv', target=...\) in its place"):
            act(name)
    clf = paper_classifier(2).fit(X, y)
    mapping = PolynomialKernelMap(2).fit(X)
    for act in (clf.predict, clf.decision_function, mapping.transform, PolynomialKernelMap().fit):
        with pytest.raises(TypeError, match=r"open_data\('rows.csv'\) in its place"):
            act(name)


def test_a_method_that_is_missing_says_what_to_set():
    for model, what in (
        (paper_classifier(), 'set calibration="sigmoid" or "isotonic", or loss="logistic"'),
        (FPCClassifierCV(solvers="paper"), 'set calibration="sigmoid" or "isotonic", and fit'),
        (FPCClassifierCV(calibration="sigmoid", refit=False), "Set refit=True"),
    ):
        with pytest.raises(AttributeError, match=what) as found:
            model.predict_proba(np.eye(2))
        assert found.value.__cause__ is None and found.value.__context__ is None
        with pytest.raises(AttributeError, match=what):
            type(model).predict_proba(model, np.eye(2))
        assert not hasattr(model, "predict_proba")


def test_a_method_that_may_be_missing_is_one_like_others(rng):
    X, y = noisy_problem(rng, 200, 2)
    clf = paper_classifier(2, calibration="sigmoid").fit(X, y)
    expected = clf.predict_proba(X)
    np.testing.assert_array_equal(FPCClassifier.predict_proba(clf, X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf.predict_proba))(X), expected)
    assert FPCClassifier.predict_proba.__doc__.startswith("Return the probability of each class")


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_pipeline_and_a_search(rng):
    X, y = noisy_problem(rng, 300, 2)
    weights = rng.integers(0, 3, len(y)).astype(float)
    model = paper_classifier(2, random_state=0)
    alone = clone(model).fit(StandardScaler().fit(X, None, weights).transform(X), y, weights)
    scaler = StandardScaler().set_fit_request(sample_weight=True)
    asking = clone(model).set_fit_request(sample_weight=True)
    piped = make_pipeline(scaler, asking).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(piped[-1].coef_, alone.coef_)

    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    grid = GridSearchCV(asking, {"degree": [1, 2]}, cv=2, scoring=scorer)
    grid.fit(X, y, sample_weight=weights)
    best = clone(model).set_params(**grid.best_params_).fit(X, y, weights)
    np.testing.assert_array_equal(grid.best_estimator_.coef_, best.coef_)

    asking = asking.set_score_request(sample_weight=True)
    own = GridSearchCV(asking, {"degree": [2]}, cv=2).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(
        own.cv_results_["split0_test_score"], grid.cv_results_["split0_test_score"][[1]]
    )
    mapping = PolynomialKernelMap(2, random_state=0).set_fit_request(sample_weight=True)
    ridge = RidgeClassifier().set_fit_request(sample_weight=True)
    weighted = make_pipeline(mapping, ridge).fit(X, y, sample_weight=weights)
    kept = weights > 0
    np.testing.assert_array_equal(
        weighted[0].centers_, clone(mapping).fit(X[kept], None, weights[kept]).centers_
    )


@pytest.mark.usefixtures("routing")
def test_what_is_not_asked_for_is_refused(rng):
    X, y = noisy_problem(rng, 60, 2)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        make_pipeline(paper_classifier(2)).fit(X, y, sample_weight=np.ones(60))


@pytest.mark.usefixtures("routing")
def test_groups_are_routed_to_a_search(rng):
    X, y = noisy_problem(rng, 200, 2)
    groups = np.arange(200) // 10
    search = FPCClassifierCV(
        degrees=(1, 2), scalers=("minmax",), n_centers=6, cv=GroupKFold(3), random_state=0
    )
    asking = clone(search).set_fit_request(groups=True)
    found = cross_validate(
        asking, X, y, cv=GroupKFold(2), params={"groups": groups}, return_indices=True
    )
    train, test = (found["indices"][part][0] for part in ("train", "test"))
    alone = clone(search).fit(X[train], y[train], groups=groups[train])
    assert found["test_score"][0] == alone.score(X[test], y[test])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_output_as_frames(rng, kind):
    package = {"pandas": pd, "polars": pl}[kind]
    frame = package.DataFrame({"a": rng.random(40), "b": rng.random(40), "word": ["x", "y"] * 20})
    if kind == "pandas":
        frame.index = np.arange(100, 140)
    plain = PolynomialKernelMap(2, 5, random_state=0).fit(frame)
    framed = clone(plain).set_output(transform=kind).fit(frame)
    found = framed.transform(frame)
    assert isinstance(found, package.DataFrame)
    np.testing.assert_array_equal(found.to_numpy(), plain.transform(frame))
    assert list(found.columns) == list(framed.get_feature_names_out())
    assert list(found.columns) == [f"polynomialkernelmap{j}" for j in range(5)]
    if kind == "pandas":
        assert found.index.equals(frame.index)
    with sklearn.config_context(transform_output=kind):
        beside = make_column_transformer(
            (PolynomialKernelMap(2, 4, random_state=0), ["a", "word"]), ("passthrough", ["b"])
        )
        both = beside.fit_transform(frame)
    assert isinstance(both, package.DataFrame) and both.shape == (40, 5)
    assert both.columns[0] == "polynomialkernelmap__polynomialkernelmap0"


@pytest.mark.needs("pandas")
def test_a_classifier_takes_the_frames_of_steps_before_it(rng):
    X, y = noisy_problem(rng, 200, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    steps = ColumnTransformer([("s", StandardScaler(), ["c", "a"])], remainder="drop")
    model = make_pipeline(steps, paper_classifier(2, random_state=0)).set_output(transform="pandas")
    model.fit(frame, y)
    assert list(model[-1].feature_names_in_) == ["s__c", "s__a"]
    np.testing.assert_array_equal(model.predict(frame[["c", "b", "a"]]), model.predict(frame))

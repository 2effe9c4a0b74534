import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from oracles import kernel
from polysift import PolynomialKernelMap
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_are_the_kernel(rng, dtype):
    X = rng.random((20_000, 3)).astype(dtype)
    model = PolynomialKernelMap(3, scaler=None, random_state=0).fit(X)
    Z = model.transform(X)
    assert Z.dtype == dtype and Z.shape == (20_000, 20)
    np.testing.assert_allclose(Z, kernel(X.astype(float), model.centers_, 3), rtol=1e-5)
    if dtype == np.float64:
        np.testing.assert_allclose(Z, kernel(X, model.centers_, 3), rtol=1e-13)
    sparse = model.transform(sp.csr_array(X))
    np.testing.assert_allclose(sparse, Z, rtol=1e-5)


@pytest.mark.needs("pandas")
def test_names_and_frames(rng):
    X = rng.random((50, 2))
    model = PolynomialKernelMap(2, random_state=0).set_output(transform="pandas")
    frame = model.fit_transform(X)
    assert isinstance(frame, pd.DataFrame) and frame.shape == (50, 6)
    assert model.get_feature_names_out()[0] == "polynomialkernelmap0"


def test_any_linear_model_can_sit_on_it(rng):
    X, y = noisy_problem(rng, 2000, 2, noise=0.0)
    linear = LogisticRegression(C=1e4, max_iter=10_000)
    assert linear.fit(X, y).score(X, y) < 0.9
    model = make_pipeline(
        PolynomialKernelMap(5, scaler="standard", random_state=0),
        LogisticRegression(max_iter=10_000),
    )
    assert model.fit(X, y).score(X, y) > 0.95


def test_it_is_the_map_of_the_classifier(rng):
    X, y = noisy_problem(rng, 500, 3)
    clf = paper_classifier(2, 7, scaler="quantile", random_state=3).fit(X, y)
    model = PolynomialKernelMap(2, 7, scaler="quantile", random_state=3).fit(X)
    np.testing.assert_array_equal(clf.centers_, model.centers_)
    scores = model.transform(X) @ clf.coef_[0]
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=1e-10, atol=1e-12)

"""scikit-learn's own estimator checks, without expected failures."""

import pytest
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from polysift import FPCClassifier, PolynomialKernelMap
from problems import paper_classifier

pytestmark = [
    # The checks fit tiny and odd data on purpose; what the estimator then says is tested elsewhere.
    pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"),
    pytest.mark.filterwarnings(f"ignore::{LinAlgWarning.__module__}.LinAlgWarning"),
    # scikit-learn's checks touch its own deprecations.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@parametrize_with_checks(
    [
        FPCClassifier(),
        paper_classifier(),
        paper_classifier(solver="converged"),
        PolynomialKernelMap(),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)

"""One function per rival: parameters in, a scikit-learn pipeline out.

All begin with the scaling of the paper, each column to [0, 1] by its range in the training rows;
a constant column becomes 0. They are plain functions of this module, so that they can be pickled.
"""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from polysift_paper.rivals.falkon import FalkonClassifier
from polysift_paper.rivals.linear_svm import NewtonLinearSVC, QuietLinearSVC
from polysift_paper.rivals.prox_pfgm import ProxPFGMClassifier
from polysift_paper.rivals.random_features import MedianFourierFeatures, QuickCountSketch

SVM_CACHE_MB = 1000
"""What LIBSVM may keep of kernel values; more than its default of 200 saves time."""


def _scaled(*steps: Any) -> Pipeline:
    """Return a pipeline that scales columns to [0, 1] first."""
    return make_pipeline(MinMaxScaler(), *steps)


def svm_rbf(*, random_state: Any = 0, C: float = 1.0, gamma: float = 1.0) -> Pipeline:
    """Return LIBSVM with the kernel ``exp(-gamma |x - x'|^2)``, which draws no random numbers."""
    return _scaled(SVC(kernel="rbf", C=C, gamma=gamma, cache_size=SVM_CACHE_MB))


def svm_poly(
    *, random_state: Any = 0, C: float = 1.0, gamma: float = 1.0, degree: int = 3
) -> Pipeline:
    """Return LIBSVM with the kernel ``(1 + gamma x.x')^degree``, which draws no random numbers."""
    svm = SVC(kernel="poly", C=C, gamma=gamma, degree=degree, coef0=1.0, cache_size=SVM_CACHE_MB)
    return _scaled(svm)


def linear_svm(*, random_state: Any = 0, C: float = 1.0) -> Pipeline:
    """Return LIBLINEAR's default problem: squared hinge loss and squared norm.

    Its default solver works on the dual; scikit-learn takes the primal where there are more rows
    than columns, which has the same minimum and gets there sooner. There is an intercept, which
    LIBLINEAR's own commands leave out unless they are asked for one.
    """
    return _scaled(QuietLinearSVC(C=C, dual="auto", random_state=random_state))


def l1_svm(*, random_state: Any = 0, C: float = 1.0) -> Pipeline:
    """Return LIBLINEAR with the squared hinge loss and the sum of absolute weights."""
    return _scaled(QuietLinearSVC(penalty="l1", C=C, dual=False, random_state=random_state))


def random_forest(*, random_state: Any = 0, n_estimators: int = 20) -> Pipeline:
    """Return a random forest on one thread."""
    return _scaled(
        RandomForestClassifier(n_estimators=n_estimators, n_jobs=1, random_state=random_state)
    )


def prox_pfgm(
    *, random_state: Any = 0, C: float = 10.0, n_features_per_round: int = 50
) -> Pipeline:
    """Return the feature generating machine, which draws no random numbers."""
    return _scaled(ProxPFGMClassifier(C=C, n_features_per_round=n_features_per_round))


def falkon(
    *,
    random_state: Any = 0,
    n_centers: int = 1000,
    sigma_scale: float = 1.0,
    penalty: float = 1e-6,
) -> Pipeline:
    """Return Nystrom kernel ridge with the FALKON preconditioner."""
    return _scaled(
        FalkonClassifier(
            n_centers=n_centers,
            sigma_scale=sigma_scale,
            penalty=penalty,
            random_state=random_state,
        )
    )


def rr_fourier(
    *,
    random_state: Any = 0,
    n_components: int = 1000,
    sigma_scale: float = 1.0,
    alpha: float = 1e-2,
) -> Pipeline:
    """Return ridge regression on random Fourier features."""
    features = MedianFourierFeatures(n_components, sigma_scale, random_state)
    # Nobody else holds the features: to centre a copy would double the memory.
    return _scaled(features, RidgeClassifier(alpha=alpha, copy_X=False))


def tensor_sketch(*, random_state: Any = 0, n_components: int = 1000, C: float = 1.0) -> Pipeline:
    """Return a linear SVM on the tensor sketch of the kernel ``(1 + x.x')^2``.

    LIBLINEAR's problem is solved by Newton's method, which on thousands of dense columns takes
    seconds where LIBLINEAR takes minutes.
    """
    sketch = QuickCountSketch(
        degree=2, gamma=1.0, coef0=1, n_components=n_components, random_state=random_state
    )
    return _scaled(sketch, NewtonLinearSVC(C=C))


def lightgbm(*, random_state: Any = 0, n_estimators: int = 100, num_leaves: int = 31) -> Pipeline:
    """Return gradient boosted trees on one thread."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        raise ImportError(
            'The rival "lightgbm" needs the package lightgbm, which is not installed. Install it '
            "with: pip install lightgbm"
        ) from None
    return _scaled(
        LGBMClassifier(
            n_estimators=n_estimators,
            num_leaves=num_leaves,
            n_jobs=1,
            verbose=-1,
            deterministic=True,
            force_row_wise=True,
            random_state=random_state,
        )
    )

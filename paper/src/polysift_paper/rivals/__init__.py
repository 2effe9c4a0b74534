"""The methods that the paper compares with, and LightGBM, as scikit-learn classifiers.

=================  ==========================================================
Name               What it is
=================  ==========================================================
``svm_rbf``        support vector machine, Gaussian kernel (LIBSVM)
``svm_poly``       support vector machine, polynomial kernel (LIBSVM)
``linear_svm``     linear support vector machine (LIBLINEAR)
``l1_svm``         linear support vector machine, l1 norm (LIBLINEAR)
``random_forest``  random forest
``prox_pfgm``      feature generating machine, :class:`ProxPFGMClassifier`
``falkon``         Nystrom kernel ridge, :class:`FalkonClassifier`
``rr_fourier``     ridge regression on random Fourier features
``tensor_sketch``  linear support vector machine on a tensor sketch
``lightgbm``       gradient boosted trees; not in the paper
=================  ==========================================================

``make(name, **params)`` builds one, and ``METHODS[name]`` holds its candidates for a search.
"""

from __future__ import annotations

from polysift_paper.rivals.falkon import FalkonClassifier
from polysift_paper.rivals.methods import METHODS, Method, make
from polysift_paper.rivals.prox_pfgm import ProxPFGMClassifier

__all__ = ["METHODS", "FalkonClassifier", "Method", "ProxPFGMClassifier", "make"]

"""The error for numbers that are too large for their type."""

from __future__ import annotations


class FeatureOverflowError(ValueError, FloatingPointError):
    """Features, sums over them, or coefficients are too large for their type.

    It is raised while a model is fitted, and for rows that lie too far from the training data. In a
    search, candidates that overflow are left out: their ``status`` is "overflow".

    Examples
    --------
    >>> import polysift
    >>> clf = polysift.FPCClassifier(**polysift.PAPER | {"degree": 20, "scaler": None})
    >>> try:
    ...     clf.fit([[1e9], [2e9]], [0, 1])
    ... except polysift.FeatureOverflowError as error:
    ...     print(str(error).split(":")[0])
    degree=20 overflows float64
    """

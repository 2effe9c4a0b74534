"""The classifier behind what a user passes: a fitted classifier, or a search with its best one."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV


def check_type(does: str, estimator: Any, *kinds: type) -> None:
    """Raise unless an estimator is of one of these kinds; ``does`` begins the message."""
    if isinstance(estimator, kinds):
        return
    hint = " Of a pipeline pass its last step, pipeline[-1]." if hasattr(estimator, "steps") else ""
    is_class = isinstance(estimator, type)
    came = f"the class {estimator.__name__}" if is_class else type(estimator).__name__
    expected = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{does} a fitted {expected}; got {came}.{hint}")


def classifier_of(does: str, estimator: Any) -> FPCClassifier:
    """Return a fitted classifier: the given one, or the best of a search.

    ``does`` is who needs it for what, such as "to_onnx exports".
    """
    check_type(does, estimator, FPCClassifier, FPCClassifierCV)
    if isinstance(estimator, FPCClassifier):
        check_is_fitted(estimator, "coef_")
        return estimator
    check_is_fitted(estimator, "classes_")
    if not hasattr(estimator, "best_estimator_"):
        raise ValueError(
            f"{does} the refitted classifier of a search, but refit=False made none. Set "
            "refit=True, or fit FPCClassifier(**search.best_params_) and pass that."
        )
    return estimator.best_estimator_

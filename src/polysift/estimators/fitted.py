"""From a training run to a classifier's fitted attributes, and whether to go on from them.

scikit-learn's fit callbacks (1.9 and newer); with older versions there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # scikit-learn ships no types, and a method keeps its own

    class CallbackSupportMixin:
        """What estimators with callbacks inherit."""

    def with_callbacks(method: Method) -> Method:
        """Return the method, which then reports to callbacks."""
        return method

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Nothing to support."""

        def with_callbacks(method: Method) -> Method:
            """Return the method as it is."""
            return method


import numpy as np

from polysift.features.feature_map import FeatureMap
from polysift.runtime.checkpoints import digest
from polysift.runtime.types import FloatArray
from polysift.training.fit import Trained

Method = TypeVar("Method", bound=Callable[..., Any])


__all__ = ["FRAMES", "CallbackSupportMixin", "FitTasks", "with_callbacks"]


FRAMES = 0 if with_callbacks.__module__ == __name__ else 1
"""How many frames the decorator puts between a method and its caller."""


class FitTasks:
    """Tells an estimator's callbacks of the fit and of its iterations.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted.
    max_iter : int
        The most iterations there can be.
    X, y : object
        What ``fit`` was given.
    """

    def __init__(self, estimator: Any, max_iter: int, X: Any, y: Any) -> None:
        self._arguments = {"estimator": estimator, "X": X, "y": y}
        self._watched = bool(getattr(estimator, "_skl_callbacks", None))
        self._root: Any = None
        self._task: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=max_iter)
            self._root.call_on_fit_task_begin(**self._arguments)

    def begin_iteration(self) -> None:
        """Report that an iteration begins."""
        if self._root is not None:
            self._task = self._root.subcontext(task_name="iteration")
            self._task.call_on_fit_task_begin(**self._arguments)

    def end_iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report that it has ended; ``attributes`` makes the fitted attributes. True means stop."""
        if self._task is None:
            return False
        made = attributes() if self._watched else None
        task, self._task = self._task, None
        return bool(task.call_on_fit_task_end(**self._arguments, reconstruction_attributes=made))

    def end(self) -> None:
        """Report the end of the fit, and of an iteration that was cut short."""
        if self._root is not None:
            if self._task is not None:
                self._task.call_on_fit_task_end(**self._arguments)
            self._root.call_on_fit_task_end(**self._arguments)


def fitted_attributes(trained: Trained) -> dict[str, Any]:
    """Return what a training run has made, under the names of a classifier's attributes."""
    result = trained.result
    made = _prediction_attributes(trained.feature_map, trained.classes, result.u)
    made |= {
        "timings_": trained.timings,
        "training_summary_": trained.summary,
        "rho_": float(result.rho),
        "n_iter_": result.n_iter,
        "status_": result.status.word,
        "status_message_": result.status.value,
        "history_": result.history,
        "gram_": "exact" if result.products is None else "sampled",
        "n_products_": result.products or 0,
    }
    if trained.calibration is not None:
        made["calibrator_"] = trained.calibration.calibrator.to_dict()
        made["calibration_report_"] = trained.calibration.report
    return made


def _prediction_attributes(feature_map: FeatureMap, classes: Any, u: FloatArray) -> dict[str, Any]:
    """Return the fitted attributes that prediction needs."""
    return {
        "classes_": classes,
        "coef_": np.ascontiguousarray(u.T),
        "centers_": feature_map.centers,
        "n_centers_": feature_map.n_centers,
        "degree_": feature_map.degree,
        "scaler_": feature_map.scaler.to_dict(),
    }


class CallbackHook:
    """Tells callbacks of iterations, each with a model as it is then."""

    def __init__(self, tasks: FitTasks, feature_map: FeatureMap, classes: Any) -> None:
        self._tasks, self._feature_map, self._classes = tasks, feature_map, classes

    def begin(self) -> None:
        """Report that an iteration begins."""
        self._tasks.begin_iteration()

    def end(self, u: FloatArray) -> bool:
        """Report that it has ended with these coefficients; true means stop."""
        return self._tasks.end_iteration(
            lambda: _prediction_attributes(self._feature_map, self._classes, u)
        )


def map_params(model: Any) -> dict[str, Any]:
    """Return the parameters of a classifier that its feature map depends on, as plain values."""
    params = {name: getattr(model, name) for name in ("degree", "n_centers", "scaler")}
    given = None if isinstance(model.centers, str) else digest(np.asarray(model.centers, float))
    return params | {"centers": model.centers if given is None else f"given ({given})"}


def check_warm_start(model: Any, classes: Any) -> None:
    """Raise if a fitted classifier cannot go on with its parameters and classes as they are now."""
    current = map_params(model) | {"classes": list(classes)}
    for name, before in (model._map_params | {"classes": list(model.classes_)}).items():
        if current[name] != before:
            raise ValueError(
                f"warm_start=True goes on with {name}={before!r}, but now {name} is "
                f"{current[name]!r}. Set warm_start=False to start anew."
            )

"""From a training run to a classifier's fitted attributes, and whether to go on from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.callbacks import FitTasks
from polysift.features.feature_map import FeatureMap
from polysift.runtime.fingerprint import digest
from polysift.runtime.types import FloatArray
from polysift.training.fit import Trained


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

"""The fitted state of a classifier, and scikit-learn's callbacks, which see it during a fit.

The first part sets the fitted attributes from a training run, and reads from them what prediction
and a warm start need. The second reports the iterations of a fit to callbacks, which scikit-learn
has from version 1.9; with older versions there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError

from polysift.data.labels import codes_among
from polysift.data.source import DataSource
from polysift.engine.sums import predicted_codes
from polysift.estimators.prediction import score_shards
from polysift.features.feature_map import FeatureMap
from polysift.features.survey import checked_labels, checked_weights
from polysift.features.tables import stored_scaler
from polysift.losses import gives_probabilities
from polysift.runtime.checkpoints import digest
from polysift.runtime.parallel import MIN_THREADED_FEATURES, Span, usable_jobs
from polysift.runtime.parameters import check_n_jobs
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray, IntArray
from polysift.training.calibration import Calibrator, SigmoidCalibrator, calibrator_from_dict
from polysift.training.fit import Trained

Method = TypeVar("Method", bound=Callable[..., Any])
R = TypeVar("R")

if TYPE_CHECKING:  # scikit-learn ships no types, and a method keeps its own

    class CallbackSupportMixin:
        """Base of estimators with callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method, decorated to report to callbacks."""
        return method

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """There are no callbacks to support."""

        def with_callbacks(method: Method) -> Method:
            """Return the method as it is."""
            return method


FRAMES = 0 if with_callbacks.__module__ == __name__ else 1
"""The number of frames that the decorator puts between a method and its caller."""


OPTIONAL_ATTRIBUTES = (
    "calibrator_",
    "calibration_report_",
    "decision_thresholds_",
    "threshold_report_",
    "selection_",
    "held_out_",
    "_unscored",
    "partial_sums_",
)
"""Fitted attributes that not every fit sets, so that those of an earlier one must go."""


def set_fitted_attributes(model: Any, trained: Trained, seed: int) -> None:
    """Set the fitted attributes of a classifier to those of a training run."""
    made = fitted_attributes(trained) | {"random_state_": seed, "_map_params": map_params(model)}
    if trained.calibration is None and gives_probabilities(model):
        K = trained.result.u.shape[1]
        made["calibrator_"] = SigmoidCalibrator(np.ones(K), np.zeros(K)).to_dict()
    for name in OPTIONAL_ATTRIBUTES:
        model.__dict__.pop(name, None)
    for name, value in made.items():
        setattr(model, name, value)


def fitted_attributes(trained: Trained) -> dict[str, Any]:
    """Return the results of a training run under the names of a classifier's attributes."""
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
        "kernel_": "spline" if trained.feature_map.kernel.ranks else "polynomial",
        "solver_": result.solver,
        "gram_": "exact" if result.products is None else "sampled",
        "n_products_": result.products or 0,
    }
    if trained.columns is not None:
        made["column_kinds_"] = np.array(trained.columns.kinds, dtype=object)
        made["column_notes_"] = list(trained.notes)
        made["column_ranges_"] = trained.columns.ranges
        made["unseen_shares_"] = trained.columns.unseen
    if trained.selection is not None:
        made["selection_"] = trained.selection
    if trained.held_out is not None:
        made["held_out_"] = trained.held_out
    if trained.unscored is not None:
        made["_unscored"] = trained.unscored
    if trained.calibration is not None:
        made["calibrator_"] = trained.calibration.calibrator.to_dict()
        made["calibration_report_"] = trained.calibration.report
    if trained.thresholds is not None:
        made["decision_thresholds_"] = trained.thresholds.values
        made["threshold_report_"] = trained.thresholds.report
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


def feature_map_of(model: Any) -> FeatureMap:
    """Return the feature map of a fitted classifier or transformer."""
    return FeatureMap(stored_scaler(model.scaler_), model.centers_, model.degree_)


def kernel_of(model: Any) -> str:
    """Return the kernel of a fitted classifier or transformer: "polynomial" or "spline"."""
    return "polynomial" if model.scaler_.get("spline") is None else "spline"


def scores_by_shard(
    model: Any,
    source: DataSource,
    finish: Callable[[Span, Any, FloatArray], R],
    *,
    show: bool = False,
) -> Generator[R]:
    """Yield ``finish(span, part, scores)`` of a fitted classifier, shard by shard.

    Whoever may stop before its end closes it, as ``score_shards``. ``show`` is whether to show
    progress.
    """
    n_jobs = check_n_jobs(model.n_jobs)
    # Counting the cores would take longer than little work.
    small = source.n_rows * model.n_centers_ < MIN_THREADED_FEATURES
    n_threads = 1 if small else usable_jobs(n_jobs)
    results = score_shards(source, feature_map_of(model), model.coef_, n_threads, finish)
    if not show:
        yield from results
        return
    counts = (end - start for start, end in source.shards())
    with closing(results), Monitor(show=True) as monitor:
        yield from monitor.watch("prediction", source.n_rows, zip(counts, results, strict=True))


def decided_codes(model: Any, scores: FloatArray) -> IntArray:
    """Return the class of each row of scores (m, K), by the model's decision thresholds."""
    return predicted_codes(scores - getattr(model, "decision_thresholds_", 0.0))


def is_calibrated(estimator: Any) -> bool:
    """Return True if there are probabilities, by calibration or with the loss; else raise."""
    if estimator.calibration is None and not gives_probabilities(estimator):
        hint = ","
        if hasattr(estimator, "loss"):
            hint = ', or loss="logistic" with a solver other than "paper",'
        raise AttributeError(
            f"{type(estimator).__name__} has predict_proba only with calibration: set "
            f'calibration="sigmoid" or "isotonic"{hint} and fit.'
        )
    return True


def calibrator_of(model: Any) -> Calibrator:
    """Return the calibrator of a fitted classifier."""
    found = stored_calibrator(model)
    if found is None:
        loss = model.calibration is None and gives_probabilities(model)
        what = "loss" if loss else "calibration"  # of a search, whose model has none
        raise NotFittedError(
            f"{what} was set after fit. Fit again to learn how scores become probabilities."
        )
    return found


def stored_calibrator(model: Any) -> Calibrator | None:
    """Return the calibrator of a fitted classifier, or None if it has no probabilities."""
    wanted = model.calibration is not None or gives_probabilities(model)
    known = wanted and hasattr(model, "calibrator_")
    return calibrator_from_dict(model.calibrator_) if known else None


def streamed_accuracy(model: Any, source: DataSource) -> float:
    """Return the accuracy of a fitted classifier on a source, which is read shard by shard."""

    def count(span: Span, part: Any, scores: FloatArray) -> tuple[float, float]:
        labels = checked_labels(source, span[0], part)
        right = decided_codes(model, scores) == codes_among(labels, model.classes_, source.target)
        weights = checked_weights(source, span[0], source.weights(part))
        if weights is None:
            return float(np.sum(right)), float(len(right))
        return float(weights @ right), float(weights.sum())

    right, total = np.sum(list(scores_by_shard(model, source, count)), axis=0)
    if total == 0:
        raise ValueError("All weights are zero: the accuracy is not defined.")
    return float(right / total)


def map_params(model: Any) -> dict[str, Any]:
    """Return the parameters of a classifier that its feature map depends on, as plain values."""
    names = ("degree", "n_centers", "scaler", "columns", "max_levels", "kernel")
    params = {name: getattr(model, name) for name in names}
    given = None if isinstance(model.centers, str) else digest(np.asarray(model.centers, float))
    return params | {"centers": model.centers if given is None else f"given ({given})"}


def check_warm_start(model: Any, classes: Any, by: str = "warm_start=True") -> None:
    """Raise if a warm start is impossible: if the feature map or the classes have changed.

    ``by`` is what asks for it.
    """
    anew = "Set warm_start=False" if by == "warm_start=True" else "Clone the model"
    current = map_params(model) | {"classes": list(classes)}
    for name, before in (model._map_params | {"classes": list(model.classes_)}).items():
        if current[name] != before:
            raise ValueError(
                f"{by} goes on with {name}={before!r}, but now {name} is "
                f"{current[name]!r}. {anew} to start anew."
            )


class FitTasks:
    """Reports a fit and its parts, such as iterations, to the callbacks of an estimator.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    parts : int
        The maximum number of parts.
    X, y : object
        The arguments of ``fit``.
    name : str
        What a part is called.
    """

    def __init__(self, estimator: Any, parts: int, X: Any, y: Any, name: str = "iteration") -> None:
        self._name = name
        self._arguments = {"estimator": estimator, "X": X, "y": y}
        self._watched = bool(getattr(estimator, "_skl_callbacks", None))
        self._root: Any = None
        self._task: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=parts)
            self._root.call_on_fit_task_begin(**self._arguments)

    def begin_part(self) -> None:
        """Report the begin of a part."""
        if self._root is not None:
            self._task = self._root.subcontext(task_name=self._name)
            self._task.call_on_fit_task_begin(**self._arguments)

    def end_part(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report the end of a part; return whether a callback wants to stop the fit.

        ``attributes`` makes the fitted attributes at that moment.
        """
        if self._task is None:
            return False
        made = attributes() if self._watched else None
        task, self._task = self._task, None
        return bool(task.call_on_fit_task_end(**self._arguments, reconstruction_attributes=made))

    def end(self) -> None:
        """Report the end of the fit, and of a part that was not finished."""
        if self._root is not None:
            if self._task is not None:
                self._task.call_on_fit_task_end(**self._arguments)
            self._root.call_on_fit_task_end(**self._arguments)


class CallbackHook:
    """Reports iterations to callbacks, each with the fitted attributes of that iteration."""

    def __init__(self, tasks: FitTasks, feature_map: FeatureMap, classes: Any) -> None:
        self._tasks, self._feature_map, self._classes = tasks, feature_map, classes

    def begin(self) -> None:
        """Report the begin of an iteration."""
        self._tasks.begin_part()

    def end(self, u: FloatArray) -> bool:
        """Report the end of an iteration with its coefficients; return whether to stop."""
        return self._tasks.end_part(
            lambda: _prediction_attributes(self._feature_map, self._classes, u)
        )

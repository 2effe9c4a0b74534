"""scikit-learn's fit callbacks (1.9 and newer); with older versions there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]


class FitTasks:
    """Tells an estimator's callbacks of the fit and of its iterations.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted.
    max_iter : int
        The most iterations there can be.
    """

    def __init__(self, estimator: Any, max_iter: int, X: Any, y: Any) -> None:
        self._estimator, self._X, self._y = estimator, X, y
        self._root: Any = None
        self._left = max_iter
        if hasattr(estimator, "_init_callback_context"):
            self._root = estimator._init_callback_context(max_subtasks=max_iter)
            self._root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
            self._begin_iteration()

    def iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report an iteration; ``attributes`` makes the fitted attributes. True means stop."""
        if self._root is None:
            return False
        stop = self._task.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            y=self._y,
            reconstruction_attributes=attributes() if self._watched() else None,
        )
        self._left -= 1
        if not stop and self._left:
            self._begin_iteration()
        return bool(stop)

    def end(self) -> None:
        """Report the end of the fit."""
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator, X=self._X, y=self._y)

    def _begin_iteration(self) -> None:
        self._task = self._root.subcontext(task_name="iteration")
        self._task.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)

    def _watched(self) -> bool:
        return bool(getattr(self._estimator, "_skl_callbacks", None))

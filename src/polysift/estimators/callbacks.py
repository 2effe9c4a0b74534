"""scikit-learn's fit callbacks (1.9 and newer); with older versions there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

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

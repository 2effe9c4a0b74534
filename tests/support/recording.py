"""A callback that records."""

from __future__ import annotations


class Recorder:
    """Counts tasks and stops after some iterations."""

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended, self.scores = stop_after, [], [], []
        self.set_up = self.torn_down = 0

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, **kwargs):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, X=None, y=None):
        self.ended.append(context.task_name)
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and self.ended.count("iteration") >= self.stop_after

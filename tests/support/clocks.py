"""A clock that tests set, and rates that they give, so that no outcome hangs on speed."""

from __future__ import annotations

from polysift.runtime import clock
from polysift.training import plan

GUARD = 1800
"""Seconds after which what hangs is given up; so many that no loaded machine needs them."""


class Clock:
    """The time as the package sees it: it stands still, but for what a test adds.

    ``tick`` is the number of seconds that pass at each look at it.
    """

    def __init__(self, monkeypatch):
        self.now, self.tick = 1000.0, 0.0
        monkeypatch.setattr(clock, "now", self._look)

    def _look(self):
        self.now += self.tick
        return self.now

    def after(self, monkeypatch, owner, name, seconds, when=lambda *_: True):
        """Let so many seconds pass after each call of a method, or after those that are chosen."""
        method = getattr(owner, name)

        def slow(this, *args):
            value = method(this, *args)
            if when(this, *args):
                self.now += seconds
            return value

        monkeypatch.setattr(owner, name, slow)


def give_rates(monkeypatch, survey=1e-8, gram=1e-6, sweep=1e-7, reading=0.0):
    """Let forecasts take these seconds per row, and these for reading, for what they measured."""
    monkeypatch.setattr(plan, "_seconds_per_row", lambda *_: (survey, gram, sweep))
    monkeypatch.setattr(plan, "_reading_seconds", lambda _: reading)

"""The clock: the one place where the package reads the time.

Time limits, timings, forecasts and the pauses between saves all ask ``now``, as ``clock.now()``, so
that a test can give them another time by replacing it here.
"""

from __future__ import annotations

from time import perf_counter


def now() -> float:
    """Return seconds since some moment in the past; they never go back."""
    return perf_counter()

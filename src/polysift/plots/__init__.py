"""Displays in the manner of scikit-learn: of searches, convergence, probabilities, importances.

matplotlib is imported when a display is drawn; the rest of the package works without it.
"""

from polysift.plots.convergence import ConvergenceDisplay
from polysift.plots.importance import ImportanceDisplay
from polysift.plots.reliability import ReliabilityDisplay
from polysift.plots.search import SearchCurveDisplay

__all__ = ["ConvergenceDisplay", "ImportanceDisplay", "ReliabilityDisplay", "SearchCurveDisplay"]

"""Displays in scikit-learn's manner: how a search, a fit and its probabilities turned out.

matplotlib is imported when the first is drawn: the package works without it.
"""

from polysift.plots.convergence import ConvergenceDisplay
from polysift.plots.importance import ImportanceDisplay
from polysift.plots.reliability import ReliabilityDisplay
from polysift.plots.search import SearchCurveDisplay

__all__ = ["ConvergenceDisplay", "ImportanceDisplay", "ReliabilityDisplay", "SearchCurveDisplay"]

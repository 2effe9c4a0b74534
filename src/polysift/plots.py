"""Displays in scikit-learn's manner: how a search, a fit and its probabilities turned out.

matplotlib is imported when the first is drawn: the package works without it.
"""

from polysift._convergence_display import ConvergenceDisplay
from polysift._importance_display import ImportanceDisplay
from polysift._reliability_display import ReliabilityDisplay
from polysift._search_display import SearchCurveDisplay

__all__ = ["ConvergenceDisplay", "ImportanceDisplay", "ReliabilityDisplay", "SearchCurveDisplay"]

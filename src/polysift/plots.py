"""Displays in scikit-learn's manner: how a search, a fit and its probabilities turned out.

matplotlib is imported when the first is drawn: the package works without it.
"""

from polysift._model_displays import ConvergenceDisplay, ReliabilityDisplay
from polysift._search_display import SearchCurveDisplay

__all__ = ["ConvergenceDisplay", "ReliabilityDisplay", "SearchCurveDisplay"]

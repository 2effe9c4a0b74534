"""The names of the solvers, where the command line finds them without importing the solvers."""

from __future__ import annotations

SOLVERS = ("auto", "paper", "lbfgs", "minimum", "converged", "newton")
"""What the parameter ``solver`` takes."""

"""The names of the solvers, where the command line finds them without importing the solvers."""

from __future__ import annotations

SOLVERS = ("paper", "converged", "newton")
"""What the parameter ``solver`` takes."""

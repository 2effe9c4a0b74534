"""The paper's theorems, each with a measured picture; ``docs/theory.md`` explains them."""

from __future__ import annotations

from polysift.experiments._study import Study
from polysift.experiments._theory_convergence import CONVERGENCE
from polysift.experiments._theory_rank import RANK
from polysift.experiments._theory_rate import RATE

STUDIES: tuple[Study, ...] = (RANK, CONVERGENCE, RATE)

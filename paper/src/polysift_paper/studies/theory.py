"""The paper's theorems, each with a measured picture; ``docs/theory.md`` explains them."""

from __future__ import annotations

from polysift_paper.studies.study import Study
from polysift_paper.studies.theory_convergence import CONVERGENCE
from polysift_paper.studies.theory_rank import RANK
from polysift_paper.studies.theory_rate import RATE

STUDIES: tuple[Study, ...] = (RANK, CONVERGENCE, RATE)

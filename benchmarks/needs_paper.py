"""Exits where polysift-paper is not installed, and says how to install it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

if find_spec("polysift_paper") is None:
    sys.exit(
        "This benchmark needs polysift-paper: the rivals and the experiments of the paper. Install "
        "it: pip install polysift-paper (in a checkout: pip install ./paper)"
    )

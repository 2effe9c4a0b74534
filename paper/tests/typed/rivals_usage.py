"""The public names of ``polysift_paper.rivals`` as a user's type checker sees them; never run."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

from polysift_paper import rivals


def compare() -> None:
    assert_type(rivals.FalkonClassifier().fit(np.eye(3), [0, 1, 1]), rivals.FalkonClassifier)
    assert_type(rivals.ProxPFGMClassifier().fit(np.eye(3), [0, 1, 1]), rivals.ProxPFGMClassifier)
    assert_type(rivals.METHODS["falkon"], rivals.Method)
    assert_type(rivals.make("falkon", n_centers=100), Any)

"""Margins of rows by a least-squares fit without them, from the fit with them.

The first iterate of every solver is the ridge regression u = (G + rho I)^-1 A'y. Without row i its
margin t_i = y_i a_i'u would be, exactly,

    (t_i - h_i) / (1 - h_i),   h_i = a_i'(G + rho I)^-1 a_i,

where h_i is the leverage of the row. The few iterations of the ADMM hardly move from there. The
steps of L-BFGS do; with the scale of least loss the start is a model of the same kind, a little
worse as a rule, so that its leave-one-out scores say a little less than the model deserves. (A step
of Newton's method on the loss without the row, the usual approximation, is exact at a minimum. Here
it is too strict by far where the loss of most rows is small.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polysift.losses import Loss
from polysift.runtime.types import FloatArray
from polysift.solvers.factor import Factor

MAX_LEVERAGE = 0.999
"""The largest leverage that is counted with: at 1 a row's score is its own label."""


@dataclass(frozen=True)
class LeaveOneOut:
    """What is needed to take a row's own influence out of its margin.

    Attributes
    ----------
    factor : Factor
        The factor of G + rho I.
    u : ndarray of shape (n, K)
        The coefficients of the ridge regression.
    loss : Loss or None
        The loss by which its scores are scaled; None leaves them as they are.
    """

    factor: Factor
    u: FloatArray
    loss: Loss | None = None

    def margins(self, features: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the margins (k, K) of rows without themselves, not scaled.

        Parameters
        ----------
        features : ndarray of shape (k, n)
            The features of rows.
        y : ndarray of shape (k, K)
            Their labels, +1 and -1.
        weights : ndarray of shape (k,)
            The weight of each that is left out.
        """
        R, lower = self.factor.cholesky
        z = scipy.linalg.solve_triangular(
            R, features.T, trans=0 if lower else 1, lower=lower, check_finite=False
        )
        h = np.minimum(weights * np.einsum("nk,nk->k", z, z), MAX_LEVERAGE)[:, None]
        return np.asarray((y * (features @ self.u) - h) / (1.0 - h))

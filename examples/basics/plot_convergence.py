"""
Convergence: the paper's solver, the converged one, and Newton's method
=======================================================================

The paper stops after a few iterations, close to a ridge regression on the labels. That is fast, and
often all one needs. ``solver="converged"`` and ``solver="newton"`` go on to the minimum of the
hinge loss.
"""

# %%
# Rows with a boundary of degree 2 in six columns, so that degree 3 is more than enough.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from polysift import PAPER, FPCClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(12_000, 6))
side = X[:, 0] * X[:, 1] + X[:, 2] ** 2 - X[:, 3] - 0.5
y = np.where(side + 0.3 * rng.normal(size=len(X)) > 0, "above", "below")
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

given = PAPER | {"scaler": "standard", "beta": None, "random_state": 0}
models = {
    solver: FPCClassifier(**given | {"solver": solver}).fit(X, y)
    for solver in ("paper", "converged", "newton")
}

# %%
# ``status_message_`` says why each stopped, and ``history_`` holds a row for each iteration.

for solver, clf in models.items():
    objective, accuracy = clf.history_["objective"][-1], clf.score(X_test, y_test)
    print(f"{solver:>9}: {clf.n_iter_:3} iterations, hinge loss {objective:.4f}, {accuracy:.1%}")
    print(f"           {clf.status_message_}")

# %%
# Each iteration is one pass over the rows. Newton's method needs the fewest to get close; a step
# that does not improve is not taken, so its line may rise for a moment.

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for solver, clf in models.items():
    objective = clf.history_["objective"]
    ax.plot(np.arange(1, len(objective) + 1), objective, marker="o", markersize=3, label=solver)
ax.set(xscale="log", xlabel="passes over the rows", ylabel="hinge loss on the training rows")
ax.grid(alpha=0.3)
ax.legend(title="solver")
plt.show()

# %%
# :class:`~polysift.plots.ConvergenceDisplay` draws one fit with its residuals.

from polysift.plots import ConvergenceDisplay

ConvergenceDisplay.from_estimator(models["converged"])
plt.show()

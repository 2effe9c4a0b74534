"""
Probabilities one can rely on
=============================

A score says which class; a calibrated model says how sure it is. With ``calibration`` a fit learns
the map from score to probability, from scores of rows that the model did not see.
"""

# %%
# Rows whose true probability is known: it changes slowly across the plane.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import brier_score_loss

from polysift import PAPER, FPCClassifier
from polysift.plots import ReliabilityDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(40_000, 2))
truth = 1 / (1 + np.exp(-2 * (X[:, 0] ** 2 + X[:, 1] - 1)))
y = (rng.random(len(X)) < truth).astype(int)
X, X_test = X[:20_000], X[20_000:]
y, y_test, truth_test = y[:20_000], y[20_000:], truth[20_000:]

models = {
    method: FPCClassifier(**PAPER | {"degree": 4}, calibration=method, random_state=0).fit(X, y)
    for method in ("sigmoid", "isotonic")
}
print(f"the truth: Brier score {brier_score_loss(y_test, truth_test):.4f}")
for method, clf in models.items():
    brier = brier_score_loss(y_test, clf.predict_proba(X_test)[:, 1])
    print(
        f"{method}: {brier:.4f} on test rows, {clf.calibration_report_['brier_score']:.4f} foretold"
    )

# %%
# The foretold score needs no test rows: it comes from cross-fitting within the training rows, and
# so does the curve on the left. On the right is scikit-learn's, on test rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
ReliabilityDisplay.from_estimator(models["isotonic"], ax=left)
for method, clf in models.items():
    CalibrationDisplay.from_estimator(clf, X_test, y_test, n_bins=15, ax=right, name=method)
right.set_title("On test rows")
plt.show()

# %%
# Against the true probability of each test row:

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, (method, clf) in zip(axes, models.items(), strict=True):
    ax.scatter(truth_test[::20], clf.predict_proba(X_test[::20])[:, 1], s=5, alpha=0.5)
    ax.plot([0, 1], [0, 1], color="black", linestyle="--")
    ax.set(title=method, xlabel="true probability", aspect="equal")
axes[0].set_ylabel("predicted probability")
plt.show()

"""
Outliers, and what the scaler does about them
=============================================

A polynomial needs columns of moderate size, so a scaler is part of the model. The paper's, min-max,
goes by the smallest and largest value: a single outlier squeezes all other rows together.
"quantile" goes by ranks, and does not mind.
"""

# %%
# A clean problem, then the same with a few absurd values in one column, as broken sensors write
# them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from polysift import PAPER, FPCClassifier


def draw_rows(m, seed, outliers):
    """Draw m rows; some have a value of a thousand or so in their first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    y = np.where(np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=m) > X[:, 1], 1, -1)
    X[:outliers, 0] = 1000 * rng.random(outliers)
    return X, y


X_test, y_test = draw_rows(20_000, 1, outliers=0)
scalers = ("minmax", "standard", "quantile")
newton = PAPER | {"degree": 5, "solver": "newton"}
models = {
    (scaler, outliers): FPCClassifier(**newton | {"scaler": scaler}, random_state=0).fit(
        *draw_rows(20_000, 0, outliers)
    )
    for scaler in scalers
    for outliers in (0, 20)
}
for scaler in scalers:
    clean, broken = (models[scaler, n].score(X_test, y_test) for n in (0, 20))
    print(f"{scaler:>8}: {clean:.1%}; with 20 outliers in 20,000 rows {broken:.1%}")

# %%
# The boundaries, without outliers above, with them below. Squeezed into a sliver of [0, 1], rows
# look alike to min-max. "standard" clips at four standard deviations, and so loses less.

figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained", sharex=True, sharey=True)
for row, outliers in zip(axes, (0, 20), strict=True):
    for ax, scaler in zip(row, scalers, strict=True):
        clf = models[scaler, outliers]
        DecisionBoundaryDisplay.from_estimator(
            clf, X_test, ax=ax, response_method="predict", alpha=0.3, cmap="coolwarm", eps=0
        )
        ax.scatter(*X_test[:400].T, c=y_test[:400], s=4, cmap="coolwarm")
        ax.set(title=f"{scaler}, {outliers} outliers: {clf.score(X_test, y_test):.1%}")
        ax.set(xlim=(-3, 3), ylim=(-3, 3), xlabel="", ylabel="")
plt.show()

"""
Decision boundaries by degree and centers
=========================================

A model's boundary is the zero of a polynomial, so the degree says how much it can bend. The data
are the paper's: the unit square, cut by a curve, with a tenth of the labels reversed.
"""

# %%
# Three degrees, each with as many centers as polynomials of that degree need, C(s+2, s). Degree 1
# is a straight line; degree 3 has the shape; degree 9 lies on the true curve.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from polysift import PAPER, FPCClassifier
from polysift.datasets import bayes_curve, make_bayes_curve

X, y = make_bayes_curve(20_000, noise=0.1, random_state=0)
X_test, y_test = make_bayes_curve(20_000, noise=0.0, random_state=1)


def draw(clf, ax, title):
    """Draw what a classifier learned, with some rows and the true curve."""
    DecisionBoundaryDisplay.from_estimator(
        clf, X, ax=ax, response_method="predict", alpha=0.25, cmap="coolwarm", eps=0
    )
    ax.scatter(*X[:300].T, c=y[:300], s=6, cmap="coolwarm")
    t = np.linspace(0, 1, 200)
    ax.plot(t, bayes_curve(t), color="black", linestyle="--", label="truth")
    accuracy = clf.score(X_test, y_test)
    ax.set(
        title=f"{title}\naccuracy {accuracy:.3f}", xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1)
    )


figure, axes = plt.subplots(1, 3, figsize=(10, 4), layout="constrained")
for ax, degree in zip(axes, (1, 3, 9), strict=True):
    clf = FPCClassifier(**PAPER | {"degree": degree}, random_state=0).fit(X, y)
    draw(clf, ax, f"degree {degree}, {clf.n_centers_} centers")
axes[0].legend(loc="upper right")
plt.show()

# %%
# At one degree, fewer centers make a smaller model that bends less freely. It is also how to pay
# less: a fit costs about rows x centers².

figure, axes = plt.subplots(1, 3, figsize=(10, 4), layout="constrained")
for ax, n_centers in zip(axes, (5, 15, 55), strict=True):
    clf = FPCClassifier(**PAPER | {"degree": 9, "n_centers": n_centers}, random_state=0).fit(X, y)
    draw(clf, ax, f"degree 9, {n_centers} centers")
plt.show()

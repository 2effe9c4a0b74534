"""
What a model has learned, exactly
=================================

A model is a polynomial, so questions about it have exact answers: which features and pairs carry
its score, what each feature adds for one row, in which direction the score grows.
"""

# %%
# Six columns, of which four matter: two by their product, one by its square, one as it is.

import matplotlib.pyplot as plt
import numpy as np

from polysift import PAPER, FPCClassifier, explain
from polysift.plots import ImportanceDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(10_000, 6))
stress = X[:, 0] * X[:, 1] + X[:, 2] ** 2 - X[:, 3] - 0.5
y = np.where(stress + 0.3 * rng.normal(size=len(X)) > 0, "failed", "fine")
clf = FPCClassifier(
    **PAPER | {"degree": 2, "scaler": "standard", "solver": "newton"}, random_state=0
).fit(X, y)

found = explain(clf, X)
print(found)

# %%
# The shares of the score's variance say so, too: x0 and x1 matter as a pair only.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
ImportanceDisplay.from_estimator(clf, X, ax=left)
ImportanceDisplay.from_estimator(clf, X, of="pairs", top=6, ax=right)
plt.show()

# %%
# For one row: what each feature adds to the score of the average row, by Shapley values. They add
# up to the row's score. A score above zero speaks for the second class.

row = X[:1]
parts, base, score = found.attributions(row)[0], found.base_score(), clf.decision_function(row)[0]
print(f"base {float(base):.3f} + parts {parts.sum():.3f} = score {score:.3f}")

order = np.argsort(-abs(parts))
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
colours = np.where(parts[order] > 0, "tab:blue", "tab:orange")
ax.barh([f"x{k} = {row[0, k]:.2f}" for k in order], parts[order], color=colours)
ax.axvline(0, color="black", linewidth=0.8)
ax.set(
    xlabel=f"adds to the score of {clf.classes_[1]!s}", title=f"predicted: {clf.predict(row)[0]}"
)
ax.invert_yaxis()
plt.show()

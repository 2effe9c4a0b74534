"""
Unbalanced classes: weights and thresholds
==========================================

Where one row in fifty is what one looks for, the most accurate model may miss most of them.
Two remedies: weigh the classes in the fit, or move the threshold after it.
"""

# %%
# A rare class in a ring around the origin, with overlap.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import (
    PrecisionRecallDisplay,
    balanced_accuracy_score,
    precision_score,
    recall_score,
)
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from polysift import PAPER, FPCClassifier


def draw_rows(m, seed):
    """Draw m rows, of which one in fifty is positive."""
    rng = np.random.default_rng(seed)
    y = (rng.random(m) < 0.02).astype(int)
    angle, X = rng.uniform(0, 2 * np.pi, m), rng.normal(size=(m, 2))
    ring = 3.2 * np.c_[np.cos(angle), np.sin(angle)] + 0.35 * rng.normal(size=(m, 2))
    return np.where(y[:, None] == 1, ring, X), y


X, y = draw_rows(30_000, 0)
X_test, y_test = draw_rows(30_000, 1)

given = PAPER | {"degree": 4, "scaler": "standard", "random_state": 0}
plain = FPCClassifier(**given).fit(X, y)
weighted = FPCClassifier(**given, class_weight="balanced").fit(X, y)

# %%
# scikit-learn moves thresholds: to a value of one's own, or to the one that is best by some score
# in cross-validation. Both leave the model itself as it is.

tuned = TunedThresholdClassifierCV(plain, scoring="balanced_accuracy", cv=3).fit(X, y)
careful = FixedThresholdClassifier(
    FPCClassifier(**given, calibration="isotonic"), threshold=0.2
).fit(X, y)

models = {
    "plain": plain,
    'class_weight="balanced"': weighted,
    "threshold by balanced accuracy": tuned,
    "probability above 0.2": careful,
}
print(f"{'':>30}  found  right when it says so  balanced accuracy")
for name, model in models.items():
    found = model.predict(X_test)
    recall, precision = recall_score(y_test, found), precision_score(y_test, found, zero_division=0)
    both = balanced_accuracy_score(y_test, found)
    print(f"{name:>30}  {recall:5.1%}  {precision:21.1%}  {both:17.1%}")

# %%
# The plain model ranks the rows about as well as the weighted one: what differs is where the line
# is drawn.

figure, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
markers = iter("ovs^")
for name in ("plain", 'class_weight="balanced"'):
    PrecisionRecallDisplay.from_estimator(models[name], X_test, y_test, ax=ax, name=name)
for name, model in models.items():
    found = model.predict(X_test)
    point = recall_score(y_test, found), precision_score(y_test, found, zero_division=1)
    ax.plot(*point, next(markers), color="black", markersize=8, label=name)
ax.legend(loc="lower left", fontsize=9)
plt.show()

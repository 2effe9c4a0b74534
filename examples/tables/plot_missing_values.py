"""
Cells that are empty
====================

A missing value has its place in the kernel: it adds nothing, and that it is missing may count as
well. Here more and more cells of a table are emptied at random, in training and test rows
alike, and nothing is imputed.
"""

# %%
# Both methods take missing values as they are, and all their parameters by default.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score

from polysift import FPCClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
shares = (0.0, 0.3, 0.6, 0.8)
found = {"polysift": [], "boosted trees": []}
for share in shares:
    empty = np.random.default_rng(0).random(X.shape) < share
    holed = X.mask(empty)
    for name, model in (
        ("polysift", FPCClassifier(random_state=0)),
        ("boosted trees", HistGradientBoostingClassifier(random_state=0)),
    ):
        found[name].append(cross_val_score(model, holed, y, scoring="roc_auc", cv=3).mean())
    print(f"{share:4.0%} empty: " + ", ".join(f"{k} {v[-1]:.3f}" for k, v in found.items()))

# %%
# Area under the ROC curve, mean of three folds.

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), marker in zip(found.items(), "os", strict=True):
    ax.plot(shares, values, marker=marker, label=name)
ax.set(xlabel="share of empty cells", ylabel="area under ROC")
ax.xaxis.set_major_formatter("{x:.0%}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

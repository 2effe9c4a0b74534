"""
Against an RBF SVM and boosted trees, on growing data
=====================================================

A kernel SVM's time grows about with the square of the rows, that of polysift in proportion to
them. Boosted trees are fast, too; which of the two is more accurate depends on the boundary.
"""

# %%
# Two problems of six columns. In the smooth one the boundary is curved. In the other it consists of
# thresholds, which is what trees are made of, and what polynomials find hard.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polysift import PAPER, FPCClassifier


def draw_rows(m, seed, kind):
    """Draw rows with a smooth boundary, or one made of thresholds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 6))
    if kind == "smooth":
        score = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] - X[:, 4] ** 2 + X[:, 5] + 0.5
    else:
        score = (X[:, :3] > 0.3).sum(axis=1) + (X[:, 3:] > -0.3).sum(axis=1) % 2 - 1.5
    return X, score + 0.3 * rng.normal(size=m) > 0


systems = {
    "polysift, degree 3": FPCClassifier(
        **PAPER | {"scaler": "standard", "solver": "newton"}, n_jobs=1, random_state=0
    ),
    "SVM, Gaussian kernel": make_pipeline(StandardScaler(), SVC()),
    "boosted trees": LGBMClassifier(n_jobs=1, verbose=-1, random_state=0),
}
sizes = dict.fromkeys(systems, (1000, 3000, 10_000, 30_000))
sizes["SVM, Gaussian kernel"] = (1000, 3000, 10_000)  # more would take long

for system in systems.values():  # the first fit may compile or load something
    system.fit(*draw_rows(8000, 2, "smooth"))
found = {}
for kind in ("smooth", "thresholds"):
    X_test, y_test = draw_rows(2_000, 1, kind)
    for name, system in systems.items():
        for m in sizes[name]:
            X, y = draw_rows(m, 0, kind)
            start = perf_counter()
            system.fit(X, y)
            found[kind, name, m] = perf_counter() - start, system.score(X_test, y_test)

# %%
# All run on one thread. Time depends on the machine, so look at the slopes; parameters
# are near the defaults, so look at the pattern of the accuracies, not at their decimals.
# :doc:`/performance/README` has careful measurements. On the smooth boundary polysift and the SVM
# are ahead; where thresholds decide, nothing here comes near to trees.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for name in systems:
    m = sizes[name]
    axes[0].loglog(m, [found["smooth", name, k][0] for k in m], marker="o", label=name)
    for ax, kind in zip(axes[1:], ("smooth", "thresholds"), strict=True):
        ax.semilogx(m, [found[kind, name, k][1] for k in m], marker="o")
axes[0].set(title="Training time, smooth", ylabel="seconds")
axes[1].set(title="Test accuracy, smooth boundary", ylim=(0.7, 1))
axes[2].set(title="Test accuracy, thresholds", ylim=(0.7, 1))
for ax in axes:
    ax.set_xlabel("training rows")
    ax.grid(alpha=0.3)
axes[0].legend()
plt.show()

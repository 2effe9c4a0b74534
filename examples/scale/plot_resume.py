"""
Stopping, and going on from a checkpoint
========================================

A long fit should survive whatever happens to it. With ``checkpoint`` its state is saved every few
seconds; after a crash, a kill or a time limit the same call goes on, and ends in the identical
model.
"""

# %%
# The model that a fit makes when nothing disturbs it.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from polysift import PAPER, FPCClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(30_000, 5))
y = np.where(X[:, 0] * X[:, 1] - X[:, 2] + 0.5 * rng.normal(size=len(X)) > 0, 1, -1)
params = PAPER | {"scaler": "standard", "solver": "converged", "beta": None, "random_state": 0}
undisturbed = FPCClassifier(**params).fit(X, y)
print(undisturbed.n_iter_, "iterations:", undisturbed.status_message_)

# %%
# Now with a limit of time that strikes on the way. What comes back is a model that can be used, the
# latest one.

folder = Path(tempfile.mkdtemp()) / "run"
seconds = undisturbed.timings_["total"]
clf = FPCClassifier(**params, checkpoint=folder, time_limit=0.5 * seconds).fit(X, y)
stopped = clf.history_["objective"]
print(clf.n_iter_, "iterations:", clf.status_, "- accuracy", round(clf.score(X, y), 4))

# %%
# The same call without the limit goes on from there. The coefficients are equal to the last bit.

clf.set_params(time_limit=None).fit(X, y)
print(clf.n_iter_, "iterations:", clf.status_)
print("identical:", np.array_equal(clf.coef_, undisturbed.coef_))

# %%
# The history is one, too: what was done before the stop is not done again.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(np.arange(1, clf.n_iter_ + 1), clf.history_["objective"], label="the whole fit")
ax.plot(np.arange(1, len(stopped) + 1), stopped, linewidth=5, alpha=0.4, label="before the stop")
ax.axvline(len(stopped), color="black", linestyle=":", label="time limit")
ax.set(xlabel="iterations", ylabel="hinge loss", xscale="log")
ax.legend()
plt.show()

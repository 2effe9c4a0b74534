"""
A table that has changed since
==============================

A model keeps the ranges of its columns and the levels of its words. :func:`~polysift.drift` holds
new rows against them: which columns leave the range, bring words that were never seen, or
lack more values than before.
"""

# %%
# A model of last month's rows; this month one sensor fails half of the time, another was
# replaced by one with another scale, and there is a new maker.

import matplotlib.pyplot as plt

from polysift import FPCClassifier, drift
from polysift.datasets import make_machines

X, y = make_machines(6_000, random_state=0)
clf = FPCClassifier(random_state=0).fit(X[:4_000], y[:4_000])

new = X[4_000:].copy()
new.loc[new.index[::2], "heat"] = None
new["load"] = 3 * new["load"] + 2
new["maker"] = new["maker"].where(new["maker"] != "Brix", "Zenith")

before, after = drift(clf, X[4_000:]), drift(clf, new)
print(after)

# %%
# What it means: the accuracy falls, and the shares say which columns to look at first. Drawn is the
# largest of the shares beyond the range, of unseen words, and of values missing beyond those then.

print(f"accuracy on rows as they were: {clf.score(X[4_000:], y[4_000:]):.3f}")
print(f"accuracy now: {clf.score(new, y[4_000:]):.3f}")

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
names = [column.name for column in after.columns]
for shift, label, found in ((-0.2, "as they were", before), (0.2, "now", after)):
    places = [k + shift for k in range(len(names))]
    ax.barh(places, [column.excess for column in found.columns], height=0.38, label=label)
ax.set(yticks=range(len(names)), yticklabels=names, xlabel="share of odd cells")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

"""
Rows from Parquet files, within a memory budget
===============================================

Rows need not fit in memory: a fit reads files from start to end, once to look at them, once for
the Gram matrix, and once per iteration. ``plan`` says beforehand what that will cost.
"""

# %%
# Some files to train on, 240,000 rows in three of them.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import polysift

folder = Path(tempfile.mkdtemp())
for part in range(4):
    rng = np.random.default_rng(part)
    X = rng.normal(size=(80_000, 8)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) - X[:, 3] ** 2 + 1
    table = {f"x{k}": X[:, k] for k in range(8)} | {"label": np.where(score > 0, "yes", "no")}
    pq.write_table(pa.table(table), folder / f"{'test' if part == 3 else f'part-{part}'}.parquet")

# %%
# A source takes the place of X and y. The budget counts what the fit allocates beside its input.

source = polysift.open_data(folder / "part-*.parquet", target="label")
clf = polysift.FPCClassifier(
    **polysift.PAPER | {"degree": 4, "n_centers": 300, "scaler": "standard"},
    memory_limit="150MB",
    random_state=0,
)
forecast = clf.plan(source)  # prints it, and returns it

# %%
# The features alone, 240,000 x 300 in float32, would take 288 MB. They are computed a block at a
# time and dropped.

clf.fit(source)
test = polysift.open_data(folder / "test.parquet", target="label")
print(f"test accuracy {clf.score(test):.3f} after {clf.timings_['total']:.1f} s")

# %%
# Forecast and fit, phase by phase. The forecast counts iterations at most, and the stopping rule
# may strike earlier.

phases = list(forecast.seconds_by_phase)
place = np.arange(len(phases))
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.barh(place - 0.2, list(forecast.seconds_by_phase.values()), 0.4, label="forecast")
ax.barh(place + 0.2, [clf.timings_.get(name, 0) for name in phases], 0.4, label="measured")
ax.set(yticks=place, yticklabels=phases, xlabel="seconds")
ax.invert_yaxis()
ax.legend()
plt.show()

# %%
# Predictions are streamed to a file in the same way.

clf.predict_to(test, folder / "predictions.parquet")
print(pq.read_table(folder / "predictions.parquet").slice(0, 3).to_pylist())

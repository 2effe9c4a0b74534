"""
Serving with ONNX: the same scores elsewhere
============================================

A model goes into an ONNX graph with its scaler, kernel, labels and probabilities. Any runtime that
knows the standard operators serves it, without polysift, without Python.
"""

# %%
# A calibrated model of scikit-learn's breast cancer data.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import polysift

data = load_breast_cancer()
names = data.target_names[data.target]
X, X_test, y, y_test = train_test_split(data.data, names, stratify=names, random_state=0)

clf = polysift.FPCClassifier(
    **polysift.PAPER | {"degree": 2, "scaler": "quantile", "rho": 1e-4},
    calibration="sigmoid",
    random_state=0,
).fit(X, y)
print(f"test accuracy {clf.score(X_test, y_test):.3f}")

# %%
# Export, and run what was exported.

path = Path(tempfile.mkdtemp()) / "model.onnx"
polysift.to_onnx(clf, path)
session = onnxruntime.InferenceSession(path)
label, score, probabilities = session.run(
    ["label", "score", "probabilities"], {"X": X_test.astype(np.float64)}
)
print("inputs: ", [(one.name, one.type, one.shape) for one in session.get_inputs()])
print("outputs:", [(one.name, one.type, one.shape) for one in session.get_outputs()])

# %%
# The labels are equal; scores differ by rounding only, and so do probabilities.

ours = clf.decision_function(X_test)
score = np.asarray(score).reshape(ours.shape)
print("labels equal:", bool((np.asarray(label) == clf.predict(X_test)).all()))
print(f"scores: at most {abs(score - ours).max():.0e} apart")
print(f"probabilities: at most {abs(probabilities - clf.predict_proba(X_test)).max():.0e} apart")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for one in clf.classes_:
    left.scatter(ours[y_test == one], score[y_test == one], s=14, label=one)
left.axline((0, 0), slope=1, color="black", linewidth=0.8)
left.set(xlabel="score in Python", ylabel="score in onnxruntime", title=f"{len(ours)} test rows")
left.legend(title="truth")
right.scatter(ours, abs(score - ours), s=14, color="tab:gray")
right.set(xlabel="score in Python", ylabel="difference", title="Rounding")
plt.show()

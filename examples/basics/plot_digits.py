"""
Many classes: handwritten digits
================================

More than two classes are learned one against the rest, all at once: they share the features, the
Gram matrix and its factor, so ten classes cost little more than two.
"""

# %%
# scikit-learn's 1,797 digits have 8 x 8 pixels. With 64 columns there are far more polynomials than
# rows; rows of the data serve as centers by default.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from polysift import PAPER, FPCClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

for degree in (1, 2, 3, 4):
    clf = FPCClassifier(**PAPER | {"degree": degree, "rho": 1e-6}, random_state=0).fit(X, y)
    print(
        f"degree {degree}: {clf.n_centers_} centers, test accuracy {clf.score(X_test, y_test):.3f}"
    )

# %%
# ``rho`` damps the steps. With as many centers as rows that is what keeps a model from learning
# noise by heart. The confusion matrix shows the few errors that are left.

clf = FPCClassifier(**PAPER | {"rho": 1e-6}, random_state=0).fit(X, y)
figure, ax = plt.subplots(figsize=(6, 5.2), layout="constrained")
ConfusionMatrixDisplay.from_estimator(clf, X_test, y_test, ax=ax, cmap="Blues", colorbar=False)
ax.set_title(f"{clf.score(X_test, y_test):.1%} of {len(y_test)} digits are right")
plt.show()

# %%
# A row whose two largest scores are close is one to look at. These are the eight closest calls.

top = np.sort(clf.decision_function(X_test), axis=1)
doubtful = np.argsort(top[:, -1] - top[:, -2])[:8]
figure, axes = plt.subplots(1, 8, figsize=(10, 2), layout="constrained")
for ax, row in zip(axes, doubtful, strict=True):
    ax.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    ax.set_axis_off()
    ax.set_title(f"{clf.predict(X_test[row : row + 1])[0]}, is {y_test[row]}", fontsize=9)
plt.show()

"""
A raw table, with nothing prepared
==================================

Readings of machines, and whether a machine failed on the next day: numbers with gaps, words of a
few and of hundreds of levels, truth values, times, a number of the row that means nothing.
:class:`~polysift.FPCClassifier` takes the frame as it is. Beside it stands what one writes with
scikit-learn for the same: a pipeline that knows the columns.
"""

# %%
# The table, and what its columns are taken for.

import matplotlib.pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from polysift import FPCClassifier
from polysift.datasets import make_machines

X, y = make_machines(12_000, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

clf = FPCClassifier(random_state=0).fit(X_train, y_train)
for name, kind in zip(clf.feature_names_in_, clf.column_kinds_, strict=True):
    print(f"{name:>8}: {kind}")
print(*clf.column_notes_, sep="\n")

# %%
# The same task for a linear model and for boosted trees, each behind its own preparation.

numbers, words = ["load", "heat", "shake", "speed"], ["machine", "maker", "guarded"]
linear = make_pipeline(
    make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=10), words),
    ),
    LogisticRegression(max_iter=1_000),
)
codes = OrdinalEncoder(
    handle_unknown="use_encoded_value", unknown_value=-1, max_categories=200, min_frequency=1
)
trees = make_pipeline(
    make_column_transformer((codes, words), ("passthrough", numbers)),
    HistGradientBoostingClassifier(categorical_features=[0, 1, 2], random_state=0),
)

models = {"logistic regression": linear, "boosted trees": trees, "polysift": clf}
scores = {}
for name, model in models.items():
    if model is not clf:
        model.fit(X_train, y_train)
    loss = log_loss(y_test, model.predict_proba(X_test), labels=clf.classes_)
    scores[name] = model.score(X_test, y_test), loss
    print(f"{name:>20}: accuracy {scores[name][0]:.3f}, log loss {loss:.3f}")

# %%
# Accuracy to the right is better, log loss to the left.

figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained", sharey=True)
for ax, which, title in zip(axes, (0, 1), ("accuracy", "log loss"), strict=True):
    values = [scores[name][which] for name in models]
    bars = ax.barh([*models], values, color=["#999999", "#999999", "#0072b2"])
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(title=title, xlim=(0, 1.18 * max(values)))
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

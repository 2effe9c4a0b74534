"""
Choosing parameters, and what the search saw
============================================

:class:`~polysift.FPCClassifierCV` tries scalers, degrees, numbers of centers, ratios, solvers and
numbers of iterations by cross-validation. All of them share their passes over the data, so that
hundreds of candidates cost about as much as some fits.
"""

# %%
# Nothing need be given. Here the list of degrees is shorter than by default.

import matplotlib.pyplot as plt
from sklearn.base import clone

from polysift import FPCClassifierCV
from polysift.datasets import make_bayes_curve
from polysift.plots import SearchCurveDisplay

X, y = make_bayes_curve(3_000, noise=0.1, random_state=0)
search = FPCClassifierCV(degrees=range(1, 8), cv=3, random_state=0).fit(X, y)

print(len(search.cv_results_["params"]), "candidates,", search.n_splits_, "folds")
print("best:", search.best_params_)
print(f"accuracy of rows not seen: {search.best_score_:.4f} (a tenth of the labels is wrong)")

# %%
# The best mean score at each degree and each number of centers, whatever the other parameters. An
# open marker means that all candidates there were left behind early.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
SearchCurveDisplay.from_estimator(search, "degree", by="solver", ax=left)
SearchCurveDisplay.from_estimator(search, "n_centers", by="scaler", ax=right)
plt.show()

# %%
# Where many candidates are about as good, ``one_standard_error=True`` takes the smallest of them.

small = clone(search).set_params(one_standard_error=True).fit(X, y)
X_test, y_test = make_bayes_curve(20_000, noise=0.0, random_state=1)
for name, model in (("best", search), ("smallest", small)):
    params, accuracy = model.best_params_, model.score(X_test, y_test)
    print(
        f"{name:>8}: degree {params['degree']}, {params['n_centers']} centers, test {accuracy:.4f}"
    )

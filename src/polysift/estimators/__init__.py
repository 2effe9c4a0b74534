"""The public estimators, in the manner of scikit-learn, and prediction."""

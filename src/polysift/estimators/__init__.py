"""The classes that a user meets, in the manner of scikit-learn, and prediction."""

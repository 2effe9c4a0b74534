"""What a fitted model says: monomials, importance, Shapley values, gradients."""

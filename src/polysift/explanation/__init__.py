"""What a fitted model has learned: its polynomial, importances, Shapley values, gradients."""

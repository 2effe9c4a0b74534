"""How good a model is, and one HTML page about it."""

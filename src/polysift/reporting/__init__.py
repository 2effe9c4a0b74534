"""Evaluation of a model on labelled rows, and the HTML report."""

"""Evaluation of a model on labelled rows, drift, comparisons, and the HTML report.

``evaluation`` computes the figures. ``comparison`` compares rows with the training rows, and
``drift`` is what comes of it. ``compare`` fits other classifiers (``rivals``) to the same folds;
``comparison_result`` is what comes of that. ``report`` puts the page together from sections on
``quality``, ``columns``, ``training`` and the ``model``; ``case`` is what a report is about,
``figures`` are its pictures, ``page`` has the pieces of HTML, and ``style`` the style sheet, beside
which nothing is loaded.
"""

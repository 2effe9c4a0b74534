"""Evaluation of a model on labelled rows, and the HTML report.

``evaluation`` computes the figures. ``report`` puts the page together from sections on ``quality``,
``training`` and the ``model``; ``case`` is what a report is about, ``figures`` are its pictures,
``page`` has the pieces of HTML, and ``style`` the style sheet, beside which nothing is loaded.
"""

"""One fit, from checked parameters to a result.

``job`` turns the parameters of a classifier into a ``Job``, and its result into warnings; ``plan``
decides how the job is executed and forecasts its cost; ``fit`` runs it. ``preparation`` surveys the
rows and finds what their columns are, ``stored_rows`` keeps what was read of files, and
``target_folds`` lets labels stand for levels. ``folds`` arranges splits of the rows so that one
pass serves many, and ``calibration`` makes probabilities of held-out scores.
"""

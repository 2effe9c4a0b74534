"""The methods that find the coefficients, and the loop that runs them.

They see an engine, never rows. ``loop`` reads beside Algorithm 1 of the paper; ``solver`` says what
a solver and its settings are, and ``admm`` and ``newton`` (one ``newton_column`` per label column)
are the two. ``factor`` is the Cholesky factor of the u-step. ``starts`` has ``solve`` and the start
with all rows; ``conjugate_gradients`` does with a sampled Gram matrix, and ``subsample`` begins
Newton's method on some of the rows. ``result`` is what comes out, and ``names``
lists the solvers.
"""

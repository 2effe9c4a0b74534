"""From a row to its features ``((1 + z.c_j)^s)_j``, z the scaled row and c_j the centers.

``survey`` collects what must be known of the rows in one pass: ``statistics`` of the columns, from
which ``scalers`` are learned, and candidates for ``centers``. ``feature_map`` learns and applies
the map, with the powers of ``kernels``; ``monomials`` writes its scores as polynomials.
"""

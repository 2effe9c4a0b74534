"""What a fitted model has learned: its polynomial, importances, Shapley values, gradients.

``explain`` makes an ``Explanation`` (``explanation``), whose ``tables`` are features, pairs and
terms in order of importance. ``reference`` has the marginals of the reference rows, ``variances``
shares a polynomial's variance among features and pairs, and ``attributions`` has exact Shapley
values and gradients, straight from the centers.
"""

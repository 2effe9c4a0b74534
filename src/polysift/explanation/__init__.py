"""What a fitted model has learned: its polynomial, importances, Shapley values, gradients.

``explain`` makes an ``Explanation`` (``explanation``), whose ``tables`` are features, pairs and
terms in order of importance. ``parts`` has what each column adds to the base of the kernel, and
``score`` the score as a function of coordinates; ``reference`` has the marginals of the reference
rows, ``variances`` shares a polynomial's variance among features and pairs, ``attributions`` has
exact Shapley values and gradients, straight from the centers, and ``levels`` those of the levels of
categories.
"""

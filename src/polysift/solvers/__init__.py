"""The solvers that compute the coefficients, and the loop that runs them.

They use an engine, and never see rows. ``loop`` reads beside Algorithm 1 of the paper.
"""

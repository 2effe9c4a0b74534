"""The methods that find the coefficients, and the loop that runs them.

They see an engine, never rows. ``loop`` reads beside Algorithm 1 of the paper.
"""

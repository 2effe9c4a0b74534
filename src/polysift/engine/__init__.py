"""Passes over the rows on one machine.

A solver asks an ``Engine`` for sums over all rows, and never sees a row. A ``Backend`` opens
engines, here or on a cluster.
"""

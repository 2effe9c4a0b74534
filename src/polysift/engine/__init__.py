"""Passes over the rows on one machine.

A solver asks an ``engine`` for sums over all rows, and never sees a row. ``local`` is the engine by
threads over shards: ``shards`` has what is done to one shard, with the ``shard_features`` of its
rows, ``row_updates`` what a sweep does to the state of a row, ``sums`` what is added up, and
``compiled`` the same in ``compiled_loops``, of rows that ``compiled_features`` scales. ``problems``
are what one sweep advances together, ``sampling`` draws rows that stand for all, ``budget`` says
how a fit is executed within a memory limit, and a ``backend`` opens engines, here or on a cluster.
"""

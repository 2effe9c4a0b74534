"""The choice of parameters: candidates, compared by successive halving on rows held out.

``job`` turns the parameters of a search into a ``SearchJob``, and ``search`` runs it as a ``race``
over ``levels`` of ever more rows: a ``stage`` for each of the ``variants``, in which ``halving``
compares ``candidates`` by their ``scoring``, and the ``refit`` of the best one to all rows. Ended
too early, it has a ``last_resort``.
"""

"""The choice of parameters: candidates, compared by successive halving on rows held out.

``job`` turns the parameters of a search into a ``SearchJob``, and ``search`` runs it: a ``stage``
for each scaler and degree, in which ``halving`` compares ``candidates`` by their ``scoring``, and
the refit of the best one to all rows.
"""

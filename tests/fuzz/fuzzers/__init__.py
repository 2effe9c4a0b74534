"""Fuzzers: made-up and damaged inputs, and what must hold for whatever comes of them.

``mutations`` damages bytes and trees of JSON. A ``cases.Target`` makes cases from a generator of
random numbers and says what may come of one; ``models``, ``checkpoints``, ``texts``, ``arrays``,
``tables`` and ``commands`` hold the targets, and ``table`` lists them. ``child`` runs cases in a
process with bounded memory and time, and ``session`` many of them, until a time is over.
"""

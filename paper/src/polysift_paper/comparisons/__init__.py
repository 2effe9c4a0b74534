"""The paper's tables on real data, beside the printed figures.

``plan`` says which systems (``contenders``) run on which data sets (``case``), and ``trial`` runs
one of them; ``summary`` averages the rows. ``tables``, ``verdicts`` and ``figures`` compare with
what is ``printed``; ``results`` and ``page`` write the files. ``sensitivity`` is Appendix F.
"""

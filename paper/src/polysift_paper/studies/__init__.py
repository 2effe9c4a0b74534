"""The paper's simulations and theorems.

A ``study.Study`` is a claim with cells to run, what to measure in each, a summary, a figure and a
verdict; a module with a tuple ``STUDIES`` holds those of one subject, and ``simulations`` lists the
modules. ``runner`` runs cells over processes (``worker`` is one that can be stopped), ``results``
writes the files of a study, ``page`` a page about several.
"""

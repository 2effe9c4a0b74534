"""What every room stands on: threads, memory, progress, checkpoints, output files.

Nothing here knows of rows, kernels or models.
"""

"""What every room uses: threads, memory, progress, checkpoints, output files.

Nothing here knows of rows, kernels or models. ``clock`` is where all rooms read the time;
``parallel`` has shards, threads, tree sums and scratch memory; ``outputs`` writes files and folders
that appear only when complete, and ``locks`` tells which of the incomplete ones are abandoned;
``failures`` names the file in errors of the system; ``terminal`` shows text that others wrote;
``checkpoints`` saves the state of interrupted work; ``parameters`` checks what a user passes.
"""

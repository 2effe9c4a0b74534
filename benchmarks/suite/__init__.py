"""The sections of the benchmark suite; ``benchmarks/run.py`` runs them."""

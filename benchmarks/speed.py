"""Speed of the engine's two verbs, as ratios to plain NumPy measured in the same run.

The Gram pass is compared with one large ``A.T @ A`` (same n and threads, no features to compute);
the sweep with its own arithmetic on one thread and with a sweep over features held in memory.
Usage: python benchmarks/speed.py [--quick]
"""

from __future__ import annotations

import argparse
import platform

import joblib
import numpy as np

from common import bare_gram, best_time
from polysift._data import ArraySource, TrainingSet
from polysift._engine import LocalEngine
from polysift._feature_map import FeatureMap, MapSpec, build_feature_map
from polysift._lanes import Lane
from polysift._parallel import Pool, single_threaded_blas
from polysift._survey import survey

SHAPES = [(1_000_000, 2, 9, 55), (300_000, 8, 6, 500), (100_000, 22, 2, 276), (50_000, 22, 3, 1000)]


def learn(source: ArraySource, degree: int, n: int, pool: Pool) -> FeatureMap:
    spec = MapSpec(degree, n, "uniform", "minmax", 0)
    return build_feature_map(
        spec, survey(source, spec.questions(source.n_features, labels=False), pool), source.dtype
    )


def measure(m: int, d: int, degree: int, n: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((m, d), dtype=dtype)
    source = ArraySource(X)
    data = TrainingSet(source, rng.integers(0, 2, m).astype(np.int8), 2)
    u = 1e-3 * rng.normal(size=(n, 1))
    lane = Lane(n, gamma=0.1, relax=1.7)
    bare = bare_gram(n)
    sweeps = {}
    for threads in (1, joblib.cpu_count()):
        with single_threaded_blas(), Pool(threads) as pool:
            engine = LocalEngine(data, learn(source, degree, n, pool), pool)
            engine.begin(1)
            sweeps[threads] = m * n / best_time(lambda e=engine: e.sweep([lane], u))
    with single_threaded_blas(), Pool(joblib.cpu_count()) as pool:
        engine = LocalEngine(data, learn(source, degree, n, pool), pool)
        gram = m * n * n / best_time(engine.gram, 2)
    many = max(sweeps)
    print(
        f"{m:>8} {d:>4} {degree:>7} {n:>5}  {dtype} {gram / 1e9:>7.0f} {gram / bare:>7.2f} "
        f"{sweeps[many] / 1e9:>9.2f} {sweeps[many] / sweeps[1]:>9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first shape only")
    options = parser.parse_args()
    print(f"{platform.machine()}, {joblib.cpu_count()} cores, numpy {np.__version__}")
    print("    rows    d  degree     n  dtype      Gram            sweep  ")
    print("                                     GFLOP/s /A.T@A  1e9 f/s  /1 thread")
    for shape in SHAPES[:1] if options.quick else SHAPES:
        for dtype in ("float64", "float32"):
            measure(*shape, dtype)


if __name__ == "__main__":
    main()

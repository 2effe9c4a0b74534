"""A model on paper: what fits on clusters that were not at hand would take, by rates measured here.

By default it prints the model with the rates kept in this file; ``--rates`` measures those of this
machine first: what one core and the driver do in a second.
Usage: python benchmarks/distributed_model.py [--rates] [--quick] [--repeat N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import ray

from common import best_time
from distributed import DEGREE, FEATURES, WORKERS, make_rows, size_of, write_files
from polysift import RayCluster, open_data
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import Partition, cut_into_partitions, partition_sizes
from polysift.cluster.scheduler import Scheduler
from polysift.cluster.tasks import survey_partition
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate
from polysift.engine.sums import GramSums
from polysift.features.feature_map import MapSpec, build_feature_map
from polysift.features.survey import survey
from polysift.runtime.parallel import Pool, TreeSum, partial_sums, shard_spans, single_threaded_blas
from polysift.runtime.progress import Monitor
from polysift.solvers.factor import Ridge, factorise


@dataclass
class Rates:
    """What one core does in a second, and what the driver does; by n where there are two."""

    gram: dict[int, float]
    """m n^2 per second of a Gram matrix."""
    sweep: dict[int, float]
    """Feature evaluations per second of a sweep."""
    decode: float
    """Rows of Parquet per second, with 21 float32 features and a label."""
    survey: dict[int, float]
    """Rows per second of a survey, read from Parquet."""
    cholesky: float
    """n^3 / 3 per second."""
    row_bytes: float
    """Bytes of a row in Parquet."""
    tasks: float
    """Tasks per second that the driver submits and collects."""
    puts: float
    """Partitions per second that the driver cuts and sends."""
    intake: dict[int, float]
    """Bytes per second of partial sums that the driver takes from the store and adds up."""
    merges: dict[int, float]
    """Surveys per second that the driver merges."""
    survey_bytes: dict[int, float]
    """Bytes of the survey of a partition."""
    sweep_bytes: dict[int, float]
    """Bytes of the sums of a partition's sweep."""
    task_bytes: float
    """Bytes of Ray's own messages per task, over the loopback interface."""


def measure_core(folder: Path, n: int) -> dict[str, float]:
    """Return the rates of one thread with n centers."""
    X, y = make_rows(max(2**16, 2**25 // n))
    source = ArraySource(X)
    data = TrainingSet(source, y, 2)
    spec = MapSpec(DEGREE, n, "random", "minmax", 0)
    questions = replace(spec.questions(FEATURES, labels=True), gather=False)
    u = 1e-3 * np.random.default_rng(0).normal(size=(n, 1))
    problem = Problem(n, AdmmUpdate(0.1, 1.7))
    stored = open_data(folder, target="y")
    with single_threaded_blas(), Pool(1) as pool:
        labelled = ArraySource(X, y=y)
        found = survey(labelled, questions, pool)
        engine = LocalEngine(data, build_feature_map(spec, found, source.dtype), pool)
        engine.begin(1)
        m = len(X)
        sweep = m * n / best_time(lambda: engine.sweep([problem], u), 5)
        gram = m * n * n / best_time(engine.gram)
        G = engine.gram().over()[0]
        cholesky = n**3 / 3 / best_time(lambda: factorise(G.copy(), Ridge(1.0)))
        surveyed = stored.n_rows / best_time(lambda: survey(stored, questions, pool))
        parts = [part for _, _, part in survey_partition(stored, questions, 0, 1)]
        merge = 1 / best_time(lambda: parts[0].merge(parts[0], n), 10)
        sums = engine.sweep([problem], u)
    return {
        "gram": gram,
        "sweep": sweep,
        "cholesky": cholesky,
        "survey": surveyed,
        "merges": merge,
        "survey_bytes": size_of(parts[:1]),
        "sweep_bytes": size_of([(1, 1, sums)]),
    }


def decode_rate(folder: Path) -> float:
    source = open_data(folder, target="y")

    def read() -> None:
        for _, part in source.parts():
            source.rows(part)

    return source.n_rows / best_time(read, 5)


def sweep_like(*args: Any) -> tuple[np.ndarray, np.ndarray, None, None]:
    """Return what a task of a sweep returns, at once."""
    return np.zeros(400), np.zeros(65_536), None, None


def gram_like(n: int) -> list[tuple[int, int, GramSums]]:
    """Return the partial sum of a partition, at once."""
    return [(1, 1, GramSums(np.ones((1, n, n)), np.ones((1, n, 1))))]


def loopback_bytes() -> int:
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == "lo":
            return int(figures.split()[0])
    return 0


def measure_driver(folder: Path, quick: bool) -> dict[str, Any]:
    """Return the rates of the driver, on a cluster whose workers have nothing to do."""
    cluster = RayCluster(workers=WORKERS).open().cluster
    cluster.workers = 16  # so many tasks are on their way as would be for a larger cluster
    count = 300 if quick else 1000
    partitions = cut_into_partitions(shard_spans(count * 65_536), 1)
    scheduler = Scheduler(cluster, partitions, Monitor())
    sent = [cluster.put(value) for value in (b"x" * 4000, b"x" * 70_000, np.zeros(65_536))]
    own_bytes: list[float] = []

    def sweep() -> None:
        before, step = loopback_bytes(), cluster.put(np.zeros(400))

        def submit(i: int) -> list[Any]:
            return cluster.submit(
                sweep_like, sent[0], sent[1], None, None, i, sent[2], step, returns=4
            )

        for _ in scheduler.run("sweep", range(count), submit, lambda i, lost: ""):
            pass
        own_bytes.append((loopback_bytes() - before) / count)

    def intake(n: int) -> float:
        made = [cluster.submit(gram_like, n)[0] for _ in range(max(16, 4 * 10**7 // n**2))]
        ray.wait(made, num_returns=len(made), fetch_local=False)
        tree: TreeSum[GramSums] = TreeSum(GramSums.add)
        began = perf_counter()
        for ref in made:
            for level, parts, total in cluster.get(ref, lambda: None):
                tree.push(total, level, parts)
        return 8 * n * n * len(made) / (perf_counter() - began)

    def puts() -> None:
        rows = PartitionedSource(cluster, source, partitions)
        for i in range(len(partitions)):
            rows[i]

    sweep()
    tasks = count / best_time(sweep, 5)
    source = open_data(folder, target="y")
    partitions = cut_into_partitions(source.shards(), 1)
    return {
        "tasks": tasks,
        "intake": {n: max(intake(n) for _ in range(4)) for n in (400, 1600)},
        "puts": len(partitions) / best_time(puts, 5),
        "task_bytes": min(own_bytes),
    }


def measure_rates(folder: Path, quick: bool) -> Rates:
    path = folder / "rates"
    m = 262_144 if quick else 1_048_576
    if not path.exists():
        write_files(path, *make_rows(m), 65_536)
    row_bytes = sum(file.stat().st_size for file in path.iterdir()) / m
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    by_n = {n: measure_core(path, n) for n in (400, 1600)}
    decode = decode_rate(path)
    pa.set_cpu_count(threads)
    values: dict[str, Any] = {
        name: {n: by_n[n][name] for n in by_n}
        for name in ("gram", "sweep", "survey", "merges", "survey_bytes", "sweep_bytes")
    }
    return Rates(
        **values,
        cholesky=by_n[1600]["cholesky"],
        decode=decode,
        row_bytes=row_bytes,
        **measure_driver(path, quick),
    )


def best_rates(runs: list[Rates]) -> Rates:
    """Return the best of each rate: what others take of the machine is no property of it."""
    best: dict[str, Any] = {}
    for name, value in asdict(runs[0]).items():
        choose = min if name.endswith("bytes") else max
        found = [getattr(run, name) for run in runs]
        if isinstance(value, dict):
            best[name] = {n: choose(own[n] for own in found) for n in value}
        else:
            best[name] = choose(found)
    return Rates(**best)


def print_rates(rates: Rates) -> None:
    print("one core, and the driver, in a second (dictionaries: by n)")
    for name, value in asdict(rates).items():
        shown = value if isinstance(value, dict) else {"": value}
        text = ", ".join(f"{n}: {v:.3g}" if n else f"{v:.3g}" for n, v in shown.items())
        print(f"  {name:13} {text}")


KEPT = Rates(
    gram={400: 2.63e10, 1600: 3.58e10},
    sweep={400: 5.26e8, 1600: 7.44e8},
    decode=7.2e6,
    survey={400: 1.48e6, 1600: 1.36e6},
    cholesky=2.67e10,
    row_bytes=85.2,
    tasks=321.0,
    puts=797.0,
    intake={400: 3.3e9, 1600: 9.04e9},
    merges={400: 1.75e4, 1600: 8.25e3},
    survey_bytes={400: 4.72e4, 1600: 1.67e5},
    sweep_bytes={400: 3.7e3, 1600: 1.33e4},
    task_bytes=7.72e3,
)
"""As ``--rates`` printed them for docs/ray.md."""


# A model on paper.


@dataclass
class Phase:
    """The seconds of a phase: of the workers, of reading the rows, of the driver."""

    workers: float
    reading: float
    driver: float

    @property
    def seconds(self) -> float:
        """The slowest decides; while it works, the others do."""
        return max(self.workers, self.reading, self.driver)


@dataclass
class Cluster:
    """So many machines of 16 cores, each task with ``cpus`` of them; the link is in bytes/s."""

    nodes: int
    cores: int
    cpus: int
    link: float

    @property
    def workers(self) -> int:
        """The tasks at a time."""
        return self.nodes * self.cores // self.cpus


@dataclass
class Estimate:
    """A fit with five iterations."""

    partitions: int
    survey: Phase
    gram: Phase
    sweep: Phase
    factor: float
    work: float
    """Seconds of one core, if there were nothing but rows."""
    gram_bytes: float
    sweep_bytes: float

    @property
    def total(self) -> float:
        """The seconds of all phases."""
        return self.survey.seconds + self.gram.seconds + self.factor + 5 * self.sweep.seconds


def count_sums(partition: Partition) -> int:
    """Return how many sums a task on a partition returns."""
    return len(partial_sums(partition.first_shard, [0] * len(partition.shards), int.__add__))


def on_paper(rates: Rates, m: int, n: int, cluster: Cluster) -> Estimate:
    shards = shard_spans(m)
    size = partition_sizes(shards, cluster.workers)[0]
    partitions = cut_into_partitions(shards, size)
    T = len(partitions)
    sums = sum(map(count_sums, partitions))
    # The rows that a core of the worker with the most tasks visits.
    busy = -(-T // cluster.workers) * size * (shards[0][1] - shards[0][0]) / cluster.cpus
    link, square = cluster.link, 8 * n * n
    reading = m * rates.row_bytes / (cluster.nodes * link)
    gram_row = n * n / rates.gram[n] + 1 / rates.decode
    sweep_row = n / rates.sweep[n] + 1 / rates.decode
    merging = 1 / rates.puts + 1 / rates.merges[n] + rates.survey_bytes[n] / link
    sweep_bytes = T * (rates.sweep_bytes[n] + rates.task_bytes) + cluster.nodes * 8 * n
    return Estimate(
        T,
        Phase(busy / rates.survey[n], reading, T * (1 / rates.tasks + merging)),
        Phase(
            busy * gram_row,
            reading,
            T / rates.tasks + sums * square * (1 / link + 1 / rates.intake[n]),
        ),
        Phase(busy * sweep_row, reading, T / rates.tasks + sweep_bytes / link),
        n**3 / 3 / rates.cholesky,
        m * (1 / rates.survey[n] + gram_row + 5 * sweep_row),
        sums * square,
        sweep_bytes,
    )


def print_model(rates: Rates) -> None:
    here = on_paper(rates, 2_000_000, 400, Cluster(1, WORKERS, 1, np.inf))
    print(
        f"two cores, 2,000,000 rows of Parquet, n = 400: {here.total:.1f} s "
        f"(survey {here.survey.seconds:.1f}, Gram matrix {here.gram.seconds:.1f}, five sweeps "
        f"{5 * here.sweep.seconds:.1f})"
    )
    for n in (400, 1600, 20_000):
        print(f"Cholesky factor on the driver, n = {n:,}: {n**3 / 3 / rates.cholesky:.2g} s")
    for cpus in (1, 16):
        print(f"\ncpus={cpus}; seconds; a / b: with links of 10 / 100 Gbit/s")
        print(
            "| rows | n | nodes | partitions | Gram: workers | driver | a sweep: workers | reading "
            "| driver | in all | cores at work | driver's traffic: Gram | a sweep |"
        )
        print("|" + "---|" * 13)
        for m in (10**9, 10**10):
            for n in (400, 1600):
                for nodes in (10, 100, 1000):
                    print_estimate(rates, m, n, nodes, cpus)


def print_estimate(rates: Rates, m: int, n: int, nodes: int, cpus: int) -> None:
    slow, fast = (
        on_paper(rates, m, n, Cluster(nodes, 16, cpus, gigabits * 1.25e8)) for gigabits in (10, 100)
    )

    def both(get: Callable[[Estimate], float]) -> str:
        values = [figure(get(slow)), figure(get(fast))]
        return values[0] if values[0] == values[1] else " / ".join(values)

    shares = [f"{e.work / (16 * nodes) / e.total:.0%}" for e in (slow, fast)]
    entries = [
        f"{m:.0e}".replace("+", ""),
        str(n),
        str(nodes),
        f"{slow.partitions:,}",
        figure(slow.gram.workers),
        both(lambda e: e.gram.driver),
        figure(slow.sweep.workers),
        both(lambda e: e.sweep.reading),
        both(lambda e: e.sweep.driver),
        both(lambda e: e.total),
        shares[0] if shares[0] == shares[1] else " / ".join(shares),
        f"{figure(slow.gram_bytes / 1e9)} GB",
        f"{figure(slow.sweep_bytes / 1e6)} MB",
    ]
    print(f"| {' | '.join(entries)} |")


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", action="store_true", help="measure the rates first")
    parser.add_argument("--quick", action="store_true", help="few rows and centers")
    parser.add_argument("--repeat", type=int, default=5, help="measurements; the best count")
    parser.add_argument("--folder", type=Path, help="where to write files")
    options = parser.parse_args()
    rates = KEPT
    if options.rates:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            runs = [measure_rates(Path(name), options.quick) for _ in range(options.repeat)]
        rates = best_rates(runs)
        print_rates(rates)
    print_model(rates)


if __name__ == "__main__":
    main()

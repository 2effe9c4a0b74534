"""The Ray engine: time against the local engine at equal cores, bytes moved, a worker killed.

Two workers against two threads, on a cluster that this process starts. Every model is compared with
the local one, bit for bit. ``--rates`` measures what one core and the driver do in a second,
``--model`` prints what that would mean for clusters that were not at hand (with both: of this
machine now, else of the rates kept in this file).
Usage: python benchmarks/distributed.py [--quick] [--repeat N] [--part overhead|traffic|recovery]
       [--folder DIR] | [--rates] [--model]
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from sklearn.exceptions import ConvergenceWarning

from common import best_time
from polysift import FPCClassifier, RayCluster, open_data
from polysift._admm import Settings, factorise
from polysift._crew import Crew
from polysift._data import ArraySource, DataSource, TrainingSet
from polysift._distributed import Pieces
from polysift._distributed_place import DistributedPlace
from polysift._engine import LocalEngine
from polysift._feature_map import MapSpec, build_feature_map
from polysift._lanes import Lane
from polysift._monitor import Monitor
from polysift._parallel import Pool, TreeSum, partial_sums, shard_spans, single_threaded_blas
from polysift._stretches import Stretch, cut_into_stretches, stretch_sizes
from polysift._sums import GramSums
from polysift._survey import survey
from polysift._tasks import Keep, Sweep, survey_stretch

WORKERS = 2
FEATURES, DEGREE = 21, 3
PAPER = {"solver": "paper", "max_iter": 5, "tol": 0.0}
CONVERGED = {"solver": "converged", "max_iter": 60, "tol": 0.0}
SMALL = 100 * 1024
"""Results up to this size Ray sends to the driver with the word that the task is done."""


# Data and fits.


def make_rows(m: int, d: int = FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Return a noisy quadratic problem, float32."""
    rng = np.random.default_rng(0)
    X = rng.random((m, d), dtype="float32")
    y = (X[:, 0] - 0.5) ** 2 + X[:, 1] * X[:, 2] > 0.3
    return X, (y ^ (rng.random(m) < 0.1)).astype(np.int8)


def write_files(folder: Path, X: np.ndarray, y: np.ndarray, group: int, files: int = 4) -> Path:
    """Write rows as a Parquet data set with row groups of so many rows."""
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(X)), files)):
        own = slice(rows[0], rows[-1] + 1)
        columns = {f"x{j}": np.ascontiguousarray(X[own, j]) for j in range(X.shape[1])}
        path = folder / f"part-{i}.parquet"
        table = pa.table(columns | {"y": y[own]})
        pq.write_table(table, path, row_group_size=group, use_dictionary=False)
    return folder


class Wrapped:
    """An engine: the workers, behind something that watches or disturbs them."""

    def __init__(self, wrap: Callable[[Any], Any] = lambda cluster: cluster) -> None:
        self._wrap = wrap

    def open(self) -> DistributedPlace:
        """Connect."""
        return DistributedPlace(self._wrap(RayCluster(workers=WORKERS).open().cluster))


@dataclass
class Fitted:
    """A fit: what it took, and its model."""

    seconds: float
    cpu: float
    phases: dict[str, float]
    coef: np.ndarray


def fit(data: tuple, engine: Any, n: int, **parameters: Any) -> Fitted:
    clf = FPCClassifier(
        degree=DEGREE, n_centers=n, random_state=0, n_jobs=WORKERS, engine=engine, **parameters
    )
    wait_for_quiet()
    cpu, began = processor_seconds(), perf_counter()
    clf.fit(*data)
    seconds = perf_counter() - began
    return Fitted(seconds, processor_seconds() - cpu, clf.timings_, clf.coef_)


def wait_for_quiet(patience: float = 20.0) -> None:
    """Wait, for a while at most, until nobody else uses the machine (Linux)."""
    until = perf_counter() + patience
    while perf_counter() < until:
        before = machine_ticks()
        sleep(0.5)
        idle, total = np.subtract(machine_ticks(), before)
        if idle >= 0.93 * total:
            return


def machine_ticks() -> tuple[int, int]:
    """Return the time that the machine's cores were idle, and in all."""
    figures = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return figures[3] + figures[4], sum(figures)


def same_model(models: list[Fitted]) -> str:
    """Return whether models agree to the last bit."""
    equal = all(np.array_equal(models[0].coef, model.coef) for model in models[1:])
    return "same" if equal else "DIFFERENT"


def family() -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the figures of this process and of those it has started (Linux)."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
    own = {os.getpid()}
    while True:
        more = {pid for pid, figures in found.items() if int(figures[1]) in own} - own
        if not more:
            break
        own |= more
    yield from ((pid, found[pid]) for pid in own)


def processor_seconds() -> float:
    """Return the processor time of this process and of those it has started, Ray's included."""
    ticks = sum(int(figures[11]) + int(figures[12]) for _, figures in family())
    return ticks / os.sysconf("SC_CLK_TCK")


# Overhead.


def start_cluster() -> None:
    """Start Ray and have the workers import what they need; tell how long that takes."""
    began = perf_counter()
    Wrapped().open()
    started = perf_counter()
    data = make_rows(20_000)
    times = [fit(data, Wrapped(), 50, **PAPER).seconds for _ in range(2)]
    print(
        f"start of a cluster, one worker imports polysift: {started - began:.1f} s; a first small "
        f"fit, the other imports it: {times[0]:.1f} s; a second: {times[1]:.2f} s",
        flush=True,
    )


def interleaved(
    data: tuple, engines: dict[str, Any], n: int, repeat: int, **parameters: Any
) -> dict[str, list[Fitted]]:
    """Return the fits of each engine, taken in turns."""
    fits: dict[str, list[Fitted]] = {name: [] for name in engines}
    for _ in range(repeat):
        for name, engine in engines.items():
            fits[name].append(fit(data, engine, n, **parameters))
    return fits


def best_phases(fits: list[Fitted]) -> list[float]:
    """Return the best time of each phase: what others take of the machine counts least there."""
    return [min(fit.phases[name] for fit in fits) for name in ("survey", "Gram matrix", "sweep")]


def shown(fits: list[Fitted]) -> str:
    phases = " / ".join(f"{seconds:.2f}" for seconds in best_phases(fits))
    return f"{min(f.seconds for f in fits):7.2f} s  {phases:22}"


def overhead(title: str, data: tuple, n: int, repeat: int, **parameters: Any) -> None:
    engines = {"local, 2 threads": "local", "Ray, 2 workers": Wrapped()}
    fits = interleaved(data, engines, n, repeat, **parameters)
    print(f"{title}: {same_model([f for own in fits.values() for f in own])} model")
    for name, own in fits.items():
        print(f"  {name:16} {shown(own)} processor {min(f.cpu for f in own):6.1f} s")
    here, there = fits.values()
    best = sum(best_phases(there)) / sum(best_phases(here)) - 1
    pairs = median(t.seconds / h.seconds for h, t in zip(here, there, strict=True)) - 1
    spent = min(f.cpu for f in there) / min(f.cpu for f in here) - 1
    print(
        f"  overhead         {best:+7.1%} by best phases, {pairs:+.1%} by median of pairs, "
        f"{spent:+.1%} of processor time",
        flush=True,
    )


def measure_overhead(folder: Path, quick: bool, repeat: int) -> None:
    m, n = (200_000, 100) if quick else (2_000_000, 400)
    print(f"\nbest of {repeat} in turns; survey / Gram matrix / sweeps, each at its best")
    X, y = make_rows(m)
    overhead(f"arrays, {m:,} x {FEATURES}, n = {n}, paper", (X, y), n, repeat, **PAPER)
    for group in (65_536, m // 4):
        path = write_files(folder / f"groups-{group}", X, y, group)
        title = f"Parquet, row groups of {group:,}, {m:,} x {FEATURES}, n = {n}, paper"
        overhead(title, (open_data(path, target="y"),), n, repeat, **PAPER)
    small, n = (50_000, 50) if quick else (200_000, 200)
    for limit in ("500MB", "8GB"):  # with the second, features may be kept
        title = f"arrays, {small:,} x {FEATURES}, n = {n}, converged, 60 iterations, {limit}"
        data = X[:small], y[:small]
        overhead(title, data, n, repeat, **CONVERGED, memory_limit=limit)


# Bytes.


class Ledger:
    """A cluster that notes the bytes between it and this process; see ``Cluster``."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.phase = "survey"
        self.sweeps = 0
        self.bytes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._states: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def note(self, what: str, size: int) -> None:
        """Add to what has passed in this phase."""
        self.bytes[self.phase][what] += size

    def put(self, value: Any) -> Any:
        """Send a value, once for all tasks that get it."""
        if isinstance(value, (Sweep, Keep)):
            self.weigh_states()
            self.sweeps += 1
            self.phase = f"sweep {self.sweeps}"
        is_rows = isinstance(value, DataSource)
        self.note("rows" if is_rows else "put", size_of(value))
        return self._cluster.put(value)

    def submit(self, task: Callable[..., Any], *args: Any, returns: int = 1) -> list[Any]:
        """Have a task done; it gets the values of references among ``args``."""
        if task.__name__ == "gram":
            self.phase = "Gram matrix"
        self.note("tasks", 1)
        self.note("inline", sum(size_of(a) for a in args if not isinstance(a, ray.ObjectRef)))
        refs = self._cluster.submit(task, *args, returns=returns)
        if task.__name__ == "advance":
            self._states.append(refs[1])
        return refs

    def get(self, ref: Any, check: Callable[[], None]) -> Any:
        """Return a value, calling ``check`` while it is not there."""
        value = self._cluster.get(ref, check)
        self.note("fetched", size_of(value))
        return value

    def weigh_states(self) -> None:
        """Note what the states of the sweep that is over take, and which went through here."""
        for ref in self._states:
            size = ray.get(ref).nbytes
            self.note("state", size)
            self.note("small states", size if size <= SMALL else 0)
        self._states = []


def size_of(value: Any) -> int:
    return len(ray.cloudpickle.dumps(value))


def traffic(m: int, n: int, sweeps: int) -> None:
    data = make_rows(m)
    ledgers: list[Ledger] = []

    def wrap(cluster: Any) -> Ledger:
        ledgers.append(Ledger(cluster))
        return ledgers[0]

    parameters = {**PAPER, "max_iter": sweeps}
    models = [fit(data, engine, n, **parameters) for engine in ("local", Wrapped(wrap))]
    ledger = ledgers[0]
    ledger.weigh_states()
    moved = {
        phase: sum(found[what] for what in ("put", "inline", "fetched", "small states"))
        for phase, found in ledger.bytes.items()
    }
    later = [moved[f"sweep {k}"] for k in range(2, ledger.sweeps + 1)]
    last, rows = ledger.bytes[f"sweep {ledger.sweeps}"], ledger.bytes["survey"]["rows"]
    figures = [
        f"{m:>9,} {last['tasks']:>9}",
        f"{moved['survey'] / 1e3:>9,.0f} {moved['Gram matrix'] / 1e3:>9,.0f}",
        f"{max(later) / 1e3:>9.1f} {max(later) / last['tasks'] / 1e3:>11.2f}",
        f"{rows / 1e6:>9.1f} {last['state'] / 1e6:>9.1f}   {same_model(models)}",
    ]
    print(*figures, flush=True)


def measure_traffic(quick: bool) -> None:
    n = 100 if quick else 400
    print(f"\nthrough the driver, in kB (n = {n}, {FEATURES} float32 features, arrays)")
    print(
        "     rows stretches    survey      Gram   a sweep per stretch   rows MB  state MB  model"
    )
    for millions in (1, 2, 4) if quick else (1, 2, 4, 6, 8):
        traffic(millions * 10**6, n, 3)
    print("rows: sent once to the object store; state: in the object store after each sweep")


# Recovery.


class Saboteur:
    """A cluster that loses a worker in the third sweep; see ``Cluster``."""

    def __init__(self, cluster: Any) -> None:
        self._cluster, self._sweeps = cluster, 0
        self.done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def put(self, value: Any) -> Any:
        """Send a value, once for all tasks that get it."""
        self._sweeps += isinstance(value, Sweep)
        return self._cluster.put(value)

    def get(self, ref: Any, check: Callable[[], None]) -> Any:
        """Return a value, calling ``check`` while it is not there."""
        while self._sweeps == 3 and not self.done:
            for pid, _ in family():
                try:
                    title = Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    continue
                if title.startswith(b"ray::advance"):
                    os.kill(pid, signal.SIGKILL)
                    self.done = True
                    break
        return self._cluster.get(ref, check)


def measure_recovery(quick: bool, repeat: int) -> None:
    m, n = (200_000, 100) if quick else (2_000_000, 400)
    data = make_rows(m)
    engines = {"undisturbed": Wrapped(), "a worker killed": Wrapped(Saboteur)}
    print(f"\nrecovery: arrays, {m:,} x {FEATURES}, n = {n}, paper; one worker killed in sweep 3")
    local = fit(data, "local", n, **PAPER)
    fits = interleaved(data, engines, n, repeat, **PAPER)
    print(f"  {same_model([local, *(f for own in fits.values() for f in own)])} model")
    for name, own in fits.items():
        print(f"  {name:16} {shown(own)}")
    quiet, killed = fits.values()
    more = [k.seconds - q.seconds for q, k in zip(quiet, killed, strict=True)]
    best = sum(best_phases(killed)) / sum(best_phases(quiet)) - 1
    print(f"  {best:+.1%} by best phases, {median(more):+.2f} s by median of pairs", flush=True)


# Rates.


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
    """Pieces of the rows per second that the driver cuts and sends."""
    intake: dict[int, float]
    """Bytes per second of partial sums that the driver takes from the store and adds up."""
    merges: dict[int, float]
    """Surveys per second that the driver merges."""
    survey_bytes: dict[int, float]
    """Bytes of the survey of a stretch."""
    sweep_bytes: dict[int, float]
    """Bytes of the sums of a stretch's sweep."""
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
    lane = Lane(n, gamma=0.1, relax=1.7)
    stored = open_data(folder, target="y")
    with single_threaded_blas(), Pool(1) as pool:
        labelled = ArraySource(X, y=y)
        found = survey(labelled, questions, pool)
        engine = LocalEngine(data, build_feature_map(spec, found, source.dtype), pool)
        engine.begin(1)
        m = len(X)
        sweep = m * n / best_time(lambda: engine.sweep([lane], u), 5)
        gram = m * n * n / best_time(engine.gram)
        G = engine.gram().over()[0]
        cholesky = n**3 / 3 / best_time(lambda: factorise(G.copy(), Settings(1.0, rho=1.0)))
        surveyed = stored.n_rows / best_time(lambda: survey(stored, questions, pool))
        parts = [part for _, _, part in survey_stretch(stored, 0, questions, 1)]
        merge = 1 / best_time(lambda: parts[0].merge(parts[0], n), 10)
        sums = engine.sweep([lane], u)
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
    """Return the partial sum of a stretch, at once."""
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
    stretches = cut_into_stretches(shard_spans(count * 65_536), 1)
    crew = Crew(cluster, stretches, Monitor())
    sent = [cluster.put(value) for value in (b"x" * 4000, b"x" * 70_000, np.zeros(65_536))]
    own_bytes: list[float] = []

    def sweep() -> None:
        before, step = loopback_bytes(), cluster.put(np.zeros(400))

        def submit(i: int) -> list[Any]:
            return cluster.submit(
                sweep_like, sent[0], sent[1], None, None, i, sent[2], step, returns=4
            )

        for _ in crew.visit("sweep", range(count), submit, lambda i, lost: ""):
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
        pieces = Pieces(cluster, source, stretches)
        for i in range(len(stretches)):
            pieces[i]

    sweep()
    tasks = count / best_time(sweep, 5)
    source = open_data(folder, target="y")
    stretches = cut_into_stretches(source.shards(), 1)
    return {
        "tasks": tasks,
        "intake": {n: max(intake(n) for _ in range(4)) for n in (400, 1600)},
        "puts": len(stretches) / best_time(puts, 5),
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
    """A phase by who takes how long: the workers, the reading of the rows, the driver."""

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

    stretches: int
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


def count_sums(stretch: Stretch) -> int:
    """Return how many sums a task on a stretch returns."""
    return len(partial_sums(stretch.first_shard, [0] * len(stretch.shards), int.__add__))


def on_paper(rates: Rates, m: int, n: int, cluster: Cluster) -> Estimate:
    shards = shard_spans(m)
    size = stretch_sizes(shards, cluster.workers)[0]
    stretches = cut_into_stretches(shards, size)
    T = len(stretches)
    sums = sum(map(count_sums, stretches))
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
            "| rows | n | nodes | stretches | Gram: workers | driver | a sweep: workers | reading "
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
    cells = [
        f"{m:.0e}".replace("+", ""),
        str(n),
        str(nodes),
        f"{slow.stretches:,}",
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
    print(f"| {' | '.join(cells)} |")


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and centers")
    parser.add_argument("--repeat", type=int, help="fits of each kind; the best counts")
    parser.add_argument("--part", choices=("overhead", "traffic", "recovery"))
    parser.add_argument("--folder", type=Path, help="where to write files")
    parser.add_argument("--rates", action="store_true", help="measure rates, nothing else")
    parser.add_argument("--model", action="store_true", help="the model on paper, nothing else")
    options = parser.parse_args()
    repeat = options.repeat or (2 if options.quick else 5)
    warnings.simplefilter("ignore", ConvergenceWarning)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if options.rates or options.model:
            rates = KEPT
            if options.rates:
                runs = [measure_rates(folder, options.quick) for _ in range(repeat)]
                rates = best_rates(runs)
                print_rates(rates)
            if options.model:
                print_model(rates)
            return
        print(f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}, Ray "
              f"{ray.__version__}")  # fmt: skip
        start_cluster()
        if options.part in (None, "overhead"):
            measure_overhead(folder, options.quick, repeat)
        if options.part in (None, "traffic"):
            measure_traffic(options.quick)
        if options.part in (None, "recovery"):
            measure_recovery(options.quick, repeat)


if __name__ == "__main__":
    main()

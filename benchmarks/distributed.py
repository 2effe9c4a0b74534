"""The Ray engine: time against the local engine at equal cores, bytes moved, a worker killed.

Two workers against two threads, on a cluster that this process starts. Every model is compared with
the local one, bit for bit. What that means for clusters that were not at hand tells
``distributed_model.py``.
Usage: python benchmarks/distributed.py [--quick] [--repeat N] [--part overhead|traffic|recovery]
       [--folder DIR]
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
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from sklearn.exceptions import ConvergenceWarning

from harness.classifiers import paper_classifier
from polysift import RayCluster, open_data
from polysift.cluster.backend import ClusterBackend
from polysift.cluster.tasks import Keep, Sweep
from polysift.data.source import DataSource

WORKERS = 2
FEATURES, DEGREE = 21, 3
PAPER = {"solver": "paper", "max_iter": 5, "tol": 0.0}
CONVERGED = {"solver": "converged", "max_iter": 60, "tol": 0.0}
INLINE_BYTES = 100 * 1024
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

    def open(self) -> ClusterBackend:
        """Connect."""
        return ClusterBackend(self._wrap(RayCluster(workers=WORKERS).open().cluster))


@dataclass
class Fitted:
    """A fit: what it took, and its model."""

    seconds: float
    cpu: float
    phases: dict[str, float]
    coef: np.ndarray


def fit(data: tuple, engine: Any, n: int, **parameters: Any) -> Fitted:
    clf = paper_classifier(
        degree=DEGREE, n_centers=n, random_state=0, n_jobs=WORKERS, engine=engine, **parameters
    )
    wait_for_quiet()
    cpu, began = processor_seconds(), perf_counter()
    clf.fit(*data)
    seconds = perf_counter() - began
    return Fitted(seconds, processor_seconds() - cpu, clf.timings_, clf.coef_)


def wait_for_quiet(patience: float = 20.0) -> None:
    """Wait, for a while at most, until no other process uses the machine (Linux)."""
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
            self.note("small states", size if size <= INLINE_BYTES else 0)
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
        f"{m:>9,} {last['tasks']:>10}",
        f"{moved['survey'] / 1e3:>9,.0f} {moved['Gram matrix'] / 1e3:>9,.0f}",
        f"{max(later) / 1e3:>9.1f} {max(later) / last['tasks'] / 1e3:>13.2f}",
        f"{rows / 1e6:>9.1f} {last['state'] / 1e6:>9.1f}   {same_model(models)}",
    ]
    print(*figures, flush=True)


def measure_traffic(quick: bool) -> None:
    n = 100 if quick else 400
    print(f"\nthrough the driver, in kB (n = {n}, {FEATURES} float32 features, arrays)")
    counted = "     rows partitions    survey      Gram   a sweep per partition"
    print(f"{counted}   rows MB  state MB  model")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows and centers")
    parser.add_argument("--repeat", type=int, help="fits of each kind; the best counts")
    parser.add_argument("--part", choices=("overhead", "traffic", "recovery"))
    parser.add_argument("--folder", type=Path, help="where to write files")
    options = parser.parse_args()
    repeat = options.repeat or (2 if options.quick else 5)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}, Ray "
        f"{ray.__version__}"
    )
    start_cluster()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        if options.part in (None, "overhead"):
            measure_overhead(Path(name), options.quick, repeat)
        if options.part in (None, "traffic"):
            measure_traffic(options.quick)
        if options.part in (None, "recovery"):
            measure_recovery(options.quick, repeat)


if __name__ == "__main__":
    main()

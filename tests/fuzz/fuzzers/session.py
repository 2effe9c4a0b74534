"""Many cases, on all cores, for some time or to some number; what is found is kept in a folder."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from fuzzers.cases import store
from fuzzers.child import FOUND, Child, Job, Outcome
from fuzzers.table import TARGETS

PROGRAM = "python tests/fuzz/fuzz.py"
SECONDS_PER_LINE = 5.0


@dataclass
class Session:
    """A run of fuzzers.

    Parameters
    ----------
    jobs : iterator of Job
        What to try, in this order.
    seconds : float
        When to stop.
    folder : Path
        Where findings are kept; it is made when there is one.
    """

    jobs: Iterator[Job]
    seconds: float
    folder: Path
    tried: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[Job]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, processes: int) -> None:
        """Try the jobs in so many processes."""
        began = self._shown = monotonic()
        with ThreadPoolExecutor(processes) as pool:
            for done in [pool.submit(self._work, began + self.seconds) for _ in range(processes)]:
                done.result()
        self._show(end=True)

    def _work(self, until: float) -> None:
        with Child() as child:
            while monotonic() < until:
                with self._lock:
                    job = next(self.jobs, None)
                if job is None:
                    return
                outcome = child.run(job)
                with self._lock:
                    self._note(job, outcome)

    def _note(self, job: Job, outcome: Outcome) -> None:
        self.tried[job.target, outcome.result] += 1
        if outcome.result == FOUND:
            self._keep(job, outcome.text)
        if monotonic() - self._shown > SECONDS_PER_LINE:
            self._show()

    def _keep(self, job: Job, text: str) -> None:
        """Store the first case of each kind of finding, and print how to repeat it."""
        kind = kind_of(text)
        others = self.found.setdefault(f"{job.target}: {kind}", [])
        others.append(job)
        if len(others) > 1:
            return
        origin = job.seed if job.kept is None else "corpus"
        name = f"{job.target}-{origin}-{job.number}"
        again = f"{PROGRAM} {job}\n{PROGRAM} {job.target} {self.folder / name}"
        store(job.case(), job.target, self.folder / name, f"{again}\n\n{text}")
        print(
            f"\n{job.target}: {text.strip().splitlines()[0][:300]}\n  {again.splitlines()[0]}",
            flush=True,
        )

    def _show(self, end: bool = False) -> None:
        """Print a line of progress."""
        self._shown = monotonic()
        totals = {name: sum(n for (t, _), n in self.tried.items() if t == name) for name in TARGETS}
        refused = {name: self.tried[name, "refused"] for name in TARGETS}
        each = ", ".join(
            f"{k} {n:,} ({refused[k] / n:.0%} refused)" for k, n in totals.items() if n
        )
        line = f"{sum(totals.values()):,} cases, {len(self.found)} findings: {each}"
        terminal = sys.stdout.isatty() and not end
        print(f"\r{line[:150]}" if terminal else line, end="" if terminal else "\n", flush=True)


def kind_of(text: str) -> str:
    """Return what findings of one cause have in common: their first words, and where they arose."""
    lines = text.strip().splitlines()
    places = [
        line.strip() for line in lines if line.strip().startswith("File ") and "polysift" in line
    ]
    return f"{lines[0].split(':')[0]} {lines[0][:60]} {places[-1] if places else ''}"


def endless(targets: Sequence[str], seed: int) -> Iterator[Job]:
    """Yield cases of all targets in turn."""
    turns = [name for name in targets for _ in range(TARGETS[name].share)]
    numbers = Counter[str]()
    while True:
        for name in turns:
            yield Job(name, seed, numbers[name])
            numbers[name] += 1

"""Fuzz what polysift reads: for some time, or one case again.

    python tests/fuzz/fuzz.py                              all targets, for a minute, by a new seed
    python tests/fuzz/fuzz.py csv npy --seconds 600        two of them, for ten minutes
    python tests/fuzz/fuzz.py csv --seed 5 --case 17       one case again
    python tests/fuzz/fuzz.py csv findings/csv-5-17        the same, as it was kept
    python tests/fuzz/fuzz.py csv some.csv                 a file
    python tests/fuzz/fuzz.py --corpus                     every kept case

The exit status is 1 if something was found.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from fuzzers.child import FOUND, Child, Job, corpus_jobs
from fuzzers.session import Session, endless
from fuzzers.table import TARGETS


def main(words: Sequence[str] | None = None) -> int:
    """Run what the words ask for, and return the exit status."""
    given = _parser().parse_args(words)
    targets = [word for word in given.words if word in TARGETS]
    files = [word for word in given.words if word not in TARGETS]
    if files and len(targets) != 1:
        sys.exit(f"There is no target {files[0]!r}; there are {', '.join(TARGETS)}.")
    if given.case is not None and (len(targets) != 1 or (given.seed is None and not files)):
        sys.exit("--case needs one target, and a --seed or a file.")
    if files:
        return _again([job for file in files for job in _kept(targets[0], file, given.case)])
    if given.case is not None:
        return _again([Job(targets[0], given.seed, given.case)])
    targets = [name for name in targets or TARGETS if TARGETS[name].available()]
    return _again(corpus_jobs(targets)) if given.corpus else _session(targets, given)


def _kept(target: str, file: str, case: int | None) -> list[Job]:
    """Return the cases of a file or folder, or of a name of the corpus."""
    name = str(Path(file).resolve()) if Path(file).exists() else file
    numbers = range(len(TARGETS[target].kept(name))) if case is None else [case]
    return [Job(target, 0, number, name) for number in numbers]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="TARGET|FILE", help=", ".join(TARGETS))
    parser.add_argument("--seed", type=int, help="by default a new one")
    parser.add_argument("--case", type=int, help="only this case of the seed")
    parser.add_argument("--seconds", type=float, default=60, help="when to stop (60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (all cores)")
    parser.add_argument(
        "--findings", type=Path, default=Path("findings"), help="folder to keep them in"
    )
    parser.add_argument("--corpus", action="store_true", help="only the kept cases")
    return parser


def _again(jobs: Sequence[Job]) -> int:
    """Try some cases, and print what comes of each."""
    found = 0
    with Child() as child:
        for job in jobs:
            outcome = child.run(job)
            found += outcome.result == FOUND
            print(f"{job}: {outcome.result}\n{outcome.text}".rstrip())
    return int(found > 0)


def _session(targets: Sequence[str], given: argparse.Namespace) -> int:
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    print(
        f"seed {seed}, {given.jobs} processes, {given.seconds:g} s: {', '.join(targets)}",
        flush=True,
    )
    jobs = chain(corpus_jobs(targets), endless(targets, seed))
    session = Session(jobs, given.seconds, given.findings)
    session.run(given.jobs)
    for kind, jobs in session.found.items():
        print(f"{len(jobs)} times, first {jobs[0]}: {kind}")
    return int(bool(session.found))


if __name__ == "__main__":
    sys.exit(main())

"""A process in which cases are tried, with bounds on memory and time.

What crashes, hangs or takes too much memory ends the child and not the session: the parent notes
it, and goes on with a new child. ``python child.py`` is such a child; it reads jobs from its
standard input and writes what came of each to its standard output, both as lines of JSON.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOM = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOM)

from fuzzers.cases import Case, Finding, strict_warnings  # noqa: E402
from fuzzers.table import target_of  # noqa: E402

MEMORY_BYTES = 5 * 2**29
"""The address space of a child: all modules take 0.8 GiB of it."""
GROWTH_BYTES = 400 * 2**20
"""How much more memory than before a case may have used, modules that it imports included."""
SECONDS = 60.0
"""The time of a case, after which it counts as hanging; most take some milliseconds."""
FOUND = "found"
GROWN = "MemoryError: it took"


@dataclass(frozen=True)
class Job:
    """A case by its name: by seed and number, or by name (or path) and number in the corpus."""

    target: str
    seed: int = 0
    number: int = 0
    kept: str | None = None

    def case(self) -> Case:
        """Return what is tried."""
        target = target_of(self.target)
        if self.kept is not None:
            return target.kept(self.kept)[self.number]
        return target.case(self.seed, self.number)

    def __str__(self) -> str:
        """Return the words that repeat it, after the name of the program."""
        if self.kept is not None:
            return shlex.join([self.target, self.kept, "--case", str(self.number)])
        return f"{self.target} --seed {self.seed} --case {self.number}"


def corpus_jobs(targets: Iterable[str]) -> list[Job]:
    """Return the kept cases of targets."""
    return [Job(t, 0, k, name) for t in targets for name, k in target_of(t).corpus()]


@dataclass(frozen=True)
class Outcome:
    """What came of a job: "accepted", "refused" or "found", and in the last case, what."""

    result: str
    text: str = ""


class Child:
    """A child, which is started when it is needed, and again after it has died."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        self._errors = Path(self._folder.name) / "errors"

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._folder.cleanup()

    def run(self, job: Job) -> Outcome:
        """Return what came of a job."""
        process = self._process or self._started()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(vars(job)) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self.seconds)
        line = process.stdout.readline() if ready else ""
        if line:
            outcome = Outcome(*json.loads(line))
            if outcome.text.startswith(GROWN):
                self.close()  # its peak would hide the next one
            return outcome
        if not ready:
            process.send_signal(signal.SIGABRT)  # faulthandler tells where it was
        self.close(aborted=True)
        code = process.returncode
        what = (
            f"Crash: the child ended with status {code}"
            if ready
            else (f"Hang: no answer within {self.seconds:g} s")
        )
        told = self._errors.read_text(errors="replace").partition("Extension modules")[0]
        return Outcome(FOUND, f"{what}\n{told[-4000:]}")

    def close(self, aborted: bool = False) -> None:
        """End the child."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1.0 if aborted else 0.0)
        process.kill()
        process.communicate()

    def _started(self) -> subprocess.Popen[str]:
        one = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
        scratch = Path(self._folder.name) / "tmp"
        scratch.mkdir(exist_ok=True)
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=self._folder.name,
                env=os.environ | one | {"TMPDIR": str(scratch), "MALLOC_ARENA_MAX": "2"},
            )
        return self._process


def tried(job: Job, scratch: Path) -> Outcome:
    """Try a job in this process."""
    try:
        case = job.case()
        with tempfile.TemporaryDirectory(dir=scratch.parent) as name:
            folder = Path(name)
            os.chdir(folder)
            case.write(folder)
            with strict_warnings():
                result = target_of(job.target).check(case, folder)
            if any(scratch.iterdir()):
                gc.collect()  # a source is removed with its folder
            if left := sorted(path.name for path in scratch.iterdir()):
                raise Finding(f"left temporary files behind: {left}")
    except Finding as finding:
        return Outcome(FOUND, f"Finding: {finding}\n{_cause(finding)}")
    except MemoryError:
        return Outcome(
            FOUND, f"MemoryError: more than {MEMORY_BYTES:,} bytes\n{traceback.format_exc()}"
        )
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Outcome(FOUND, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    finally:
        os.chdir(scratch.parent)
        for path in scratch.iterdir():
            _remove(path)
    return Outcome(result)


def _cause(finding: Finding) -> str:
    error = finding.__cause__ or finding.__context__
    return "" if error is None else "".join(traceback.format_exception(error))


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _peak_bytes() -> int:
    """Return the most memory that this process has used."""
    try:
        text = Path("/proc/self/status").read_text()
        return 1024 * int(text.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):  # getrusage counts what the parent had used, too
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Try the jobs of standard input."""
    import resource

    faulthandler.enable()
    with contextlib.suppress(ValueError, OSError):  # not every system can bound it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is printed past Python
    scratch = Path(tempfile.gettempdir())
    for line in sys.stdin:
        job = Job(**json.loads(line))
        before = _peak_bytes()
        outcome: Any = tried(job, scratch)
        grown = _peak_bytes() - before
        if grown > GROWTH_BYTES and outcome.result != FOUND:
            outcome = Outcome(FOUND, f"{GROWN} {grown >> 20} MiB")
        answers.write(json.dumps([outcome.result, outcome.text]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

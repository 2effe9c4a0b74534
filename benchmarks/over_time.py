"""How fast the commits of the past are, in one picture: a change in speed shows.

Each commit is checked out into a temporary folder, and measured there in two ways:
``benchmarks/speed`` with pytest-benchmark, in processor time on one thread over that of a product
of matrices in the same run; and the commit's own ``benchmarks/run.py --quick``, by the sections on
speed that it has, whose figures are ratios within the run, too. One JSON file is kept for each
commit. What is measured again replaces what was.
Usage: python benchmarks/over_time.py [--draw] [COMMIT ...]   (default: HEAD; --draw measures none)
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from math import exp, log
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "results" / "over-time"
PICTURE = ROOT / "docs" / "performance" / "over-time.png"
YARDSTICK = "yardstick"
SECTIONS = ("gram", "sweep", "splines", "fits", "small")
"""The sections of ``benchmarks/run.py`` on the speed of our own work; quick, they take a minute."""


def main() -> int:
    """Measure the commits that are named, and draw all that are kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="default: HEAD")
    parser.add_argument("--draw", action="store_true", help="draw what is kept, measure nothing")
    options = parser.parse_args()
    for commit in [] if options.draw else options.commits or ["HEAD"]:
        found = measured(commit)
        KEPT.mkdir(parents=True, exist_ok=True)
        name = f"{found['date'][:19].replace(':', '')}-{found['commit'][:8]}.json"
        (KEPT / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(name, found["ratios"], sorted(found["sections"]), flush=True)
    draw(stored(KEPT), PICTURE)
    return 0


def measured(commit: str) -> dict[str, Any]:
    """Return what is found in a checkout of a commit, and which commit it is."""
    with tempfile.TemporaryDirectory(prefix="polysift-commit-") as folder:
        tree, out = Path(folder) / "tree", Path(folder) / "out"
        run("git", "worktree", "add", "--quiet", "--detach", tree, commit, cwd=ROOT)
        try:
            out.mkdir()
            environment = os.environ | {
                "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'paper' / 'src'}",
                "OPENBLAS_NUM_THREADS": "1",
            }
            about = run("git", "log", "-1", "--format=%H %cI %s", cwd=tree)
            identity, date, subject = about.strip().split(" ", 2)
            return {
                "commit": identity,
                "date": date,
                "subject": subject,
                **operations(tree, out, environment),
                "sections": sections(tree, out, environment),
            }
        finally:
            run("git", "worktree", "remove", "--force", tree, cwd=ROOT)


def operations(tree: Path, out: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Return the ratios of single operations to the yardstick, and the machine."""
    speed, written = ROOT / "benchmarks" / "speed" / "test_speed.py", out / "speed.json"
    timed = ["--benchmark-timer", "time.process_time", "--benchmark-json", written]
    plain = ["-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull]
    words = [*plain, "--rootdir", speed.parent, *timed]
    run(sys.executable, "-m", "pytest", *words, speed, cwd=tree, env=environment)
    return summary(written)


def sections(tree: Path, out: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Return the figures of the quick sections that the commit has; some may fail there."""
    suite = tree / "benchmarks" / "run.py"
    if not suite.exists():
        return {}
    listed = run(sys.executable, suite, "--list", cwd=tree, env=environment)
    known = {line.split()[0] for line in listed.splitlines() if line.strip()}
    for name in SECTIONS:
        if name in known:
            words = [sys.executable, suite, "--quick", "--results", out, name]
            done = subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True)
            if done.returncode:
                print(f"left out: {name} fails there: {done.stderr.splitlines()[-1]}", flush=True)
    return figures(out / "targets.csv")


def figures(path: Path) -> dict[str, dict[str, float]]:
    """Return the figures of each section, all of them so that less is faster.

    What a figure was taken from, in parentheses, may change from commit to commit and is no part
    of its name.
    """
    found: dict[str, dict[str, float]] = {}
    if not path.exists():
        return found
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            figure = float(row["figure"]) if row["verdict"] != "not measured" else 0.0
            if figure > 0:
                name = re.sub(r" \(.*?\)", "", row["what"])
                more = row["target"].startswith("at least")
                found.setdefault(row["section"], {})[name] = 1 / figure if more else figure
    return found


def summary(path: Path) -> dict[str, Any]:
    """Return the ratios, and the machine, of what pytest-benchmark has written."""
    found = json.loads(path.read_text(encoding="utf-8"))
    times = {
        entry["name"].removeprefix("test_"): entry["stats"]["min"] for entry in found["benchmarks"]
    }
    yardstick = times.pop(YARDSTICK)
    machine = found["machine_info"]
    return {
        "processor": machine.get("cpu", {}).get("brand_raw", machine["processor"]),
        "python": machine["python_version"],
        "yardstick_seconds": yardstick,
        "ratios": {name: round(seconds / yardstick, 4) for name, seconds in times.items()},
    }


def run(*command: Any, **options: Any) -> str:
    """Return what a command printed; end with all of it if it fails."""
    done = subprocess.run(
        [*map(str, command)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def stored(folder: Path) -> list[dict[str, Any]]:
    """Return what is kept, the oldest commit first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(({"sections": {}} | entry for entry in found), key=lambda entry: entry["date"])


def relative(entries: list[dict[str, Any]], section: str) -> dict[int, float]:
    """Return, by the place of a commit, the time of a section relative to the first that has it.

    It is the geometric mean over the figures that all of these commits have.
    """
    having = {k: e["sections"][section] for k, e in enumerate(entries) if section in e["sections"]}
    if not having:
        return {}
    common = set.intersection(*(set(found) for found in having.values()))
    means = {
        k: exp(sum(log(found[name]) for name in sorted(common)) / len(common))
        for k, found in having.items()
        if common
    }
    return {k: value / means[min(means)] for k, value in means.items()}


def draw(entries: list[dict[str, Any]], path: Path) -> None:
    """Draw operations and quick sections over the commits, relative to the first that has them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if not entries:
        sys.exit(f"{KEPT} holds no measurement yet; name a commit.")
    names = sorted({name for entry in entries for name in entry["ratios"]})
    timed = {}
    for name in names:
        points = {k: e["ratios"][name] for k, e in enumerate(entries) if name in e["ratios"]}
        timed[name] = {k: value / points[min(points)] for k, value in points.items()}
    panels = {
        "single operations": timed,
        "sections of benchmarks/run.py --quick": {
            name: relative(entries, name) for name in SECTIONS
        },
    }
    figure, axes = plt.subplots(2, figsize=(9, 8), sharex=True, sharey=True, layout="constrained")
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        for name, line in lines.items():
            if line:
                ax.plot(list(line), list(line.values()), marker="o", label=name.replace("_", " "))
        _dress(ax, title)
    labels = [f"{entry['commit'][:7]}\n{entry['date'][:10]}" for entry in entries]
    axes[-1].set_xticks(range(len(entries)), labels, fontsize=8, rotation=45, ha="right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _dress(ax: Any, title: str) -> None:
    ticks = [1 / 4, 1 / 2, 1, 2, 4]
    ax.set(yscale="log", ylabel="time, relative to the first")
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_formatter("")
    ax.axhline(1, color="black", linewidth=0.8)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.lines:
        ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1, 1))


if __name__ == "__main__":
    sys.exit(main())

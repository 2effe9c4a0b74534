"""How fast the commits of the past are, in one picture: a change in speed shows.

Each commit is checked out into a temporary folder, and ``benchmarks/speed`` measures it with
pytest-benchmark, in processor time on one thread. What is kept, one JSON file for each commit, are
times over that of a product of matrices in the same run, so that machines compare.
Usage: python benchmarks/over_time.py [--draw] [COMMIT ...]   (default: HEAD; --draw measures none)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "results" / "over-time"
PICTURE = ROOT / "docs" / "performance" / "over-time.png"
YARDSTICK = "yardstick"


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
        print(name, found["ratios"], flush=True)
    draw(stored(KEPT), PICTURE)
    return 0


def measured(commit: str) -> dict[str, Any]:
    """Return the ratios of a commit to the yardstick, measured in a checkout of it."""
    with tempfile.TemporaryDirectory(prefix="polysift-commit-") as folder:
        tree, out = Path(folder) / "tree", Path(folder) / "speed.json"
        run("git", "worktree", "add", "--quiet", "--detach", tree, commit, cwd=ROOT)
        try:
            speed = ROOT / "benchmarks" / "speed" / "test_speed.py"
            timed = ["--benchmark-timer", "time.process_time", "--benchmark-json", out]
            plain = ["-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull]
            words = [*plain, "--rootdir", speed.parent, *timed]
            environment = os.environ | {
                "PYTHONPATH": str(tree / "src"),
                "OPENBLAS_NUM_THREADS": "1",
            }
            run(sys.executable, "-m", "pytest", *words, speed, cwd=tree, env=environment)
            about = run("git", "log", "-1", "--format=%H %cI %s", cwd=tree)
            identity, date, subject = about.strip().split(" ", 2)
            return {"commit": identity, "date": date, "subject": subject} | summary(out)
        finally:
            run("git", "worktree", "remove", "--force", tree, cwd=ROOT)


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
    return sorted(found, key=lambda entry: entry["date"])


def draw(entries: list[dict[str, Any]], path: Path) -> None:
    """Draw each benchmark over the commits, relative to the first that has it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if not entries:
        sys.exit(f"{KEPT} holds no measurement yet; name a commit.")
    figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
    for name in sorted({name for entry in entries for name in entry["ratios"]}):
        points = [(k, e["ratios"][name]) for k, e in enumerate(entries) if name in e["ratios"]]
        values = [value / points[0][1] for _, value in points]
        ax.plot([k for k, _ in points], values, marker="o", label=name.replace("_", " "))
    labels = [f"{entry['commit'][:7]}\n{entry['date'][:10]}" for entry in entries]
    ax.set(xticks=range(len(entries)), ylabel="processor time, relative to the first", yscale="log")
    ax.set_xticklabels(labels, fontsize=8, rotation=45, ha="right")
    ticks = [1 / 4, 1 / 2, 1, 2, 4]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_formatter("")
    ax.axhline(1, color="black", linewidth=0.8)
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())

"""All benchmarks: ratios within one run, on one machine, with the targets beside them.

Without names of sections it runs all. Each section prints its tables, and leaves CSV files and
pictures in the folder of the results, whose README.md shows them.
Usage: python benchmarks/run.py [--quick] [--results DIR] [--list] [section ...]
       python benchmarks/run.py tables|unseen [--tables magic,skin] [--methods polysift]
           [--splits 1] [--fresh]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from harness.machine import describe, in_short
from harness.page import Folder
from harness.report import Report, printed
from harness.run import Run

ROOT = Path(__file__).resolve().parents[1]

SECTIONS = {
    "gram": "the Gram pass against a bare A.T @ A",
    "sweep": "features per second of a sweep, against NumPy and the arithmetic",
    "splines": "the loops of the spline kernel, against the arithmetic and the polynomial kernel",
    "fits": "whole fits at the shapes of SUSY and HIGGS, against the Gram matrix alone",
    "rivals": "time to equal accuracy, and memory, against six rivals",
    "small": "the overhead of small fits, and one-row predictions",
    "prediction": "rows per second, memory and latency of predictions",
    "growth": "how time grows with rows, centers, features and classes",
    "converged": "a converged fit against LightGBM's default",
    "sampled": "the sampled Gram matrix against the exact one, and what large n buys",
    "tables": "a plain fit against boosted trees and others on raw tables, all by their defaults",
    "unseen": "the same on tables of packages, which settled next to nothing in the library",
    "memory": "peak memory of training",
    "forecast": "the forecast against what happens",
    "massive": "training from Parquet files within a budget",
    "distributed": "the Ray engine against the local one",
    "model": "a model on paper of clusters that were not at hand",
}

SCRIPTS = ("memory", "forecast", "massive", "distributed", "model")
"""Sections that are scripts of their own."""


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="section", help="some of --list; else all")
    parser.add_argument("--list", action="store_true", help="the sections, then end")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", default="full")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny", help="for tests")
    parser.add_argument("--results", type=Path, help="default: docs/performance; out if quick")
    parser.add_argument("--threads", type=int, default=joblib.cpu_count(), help="default: all")
    parser.add_argument("--scale", type=float, help="share of the rows of whole fits, up to 1")
    _add_table_options(parser.add_argument_group("of the sections tables and unseen"))
    options = parser.parse_args(arguments)
    unknown = [name for name in options.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if options.scale is not None and not 0 < options.scale <= 1:
        parser.error(f"--scale must be above 0 and at most 1; got {options.scale:g}")
    if options.splits is not None and options.splits < 1:
        parser.error(f"--splits must be at least 1; got {options.splits}")
    return options


def _add_table_options(group: Any) -> None:
    group.add_argument("--tables", type=_names, default=(), help="some, by commas; else all")
    group.add_argument("--methods", type=_names, default=(), help="some, by commas; else all")
    group.add_argument("--splits", type=int, help="default: 3; 1 if quick")
    group.add_argument("--fresh", action="store_true", help="measure these cells again")


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def default_results(size: str) -> Path:
    """Return the folder of the documents, or for less than a full run one that is not kept."""
    return ROOT / "docs" / "performance" if size == "full" else ROOT / "out" / "performance"


def kept_cells(section: str, options: argparse.Namespace) -> Path:
    """Return the file from which an interrupted run of a section on tables goes on."""
    if options.results is None and options.size == "full":
        return ROOT / "docs" / "results" / section / "cells.json"
    return (options.results or default_results(options.size)) / f"{section}-cells.json"


def run_of(section: str, options: argparse.Namespace) -> Run:
    """Return the run of a section that the options describe."""
    return Run(
        options.size,
        options.threads,
        options.scale,
        kept=kept_cells(section, options),
        tables=options.tables,
        methods=options.methods,
        splits=options.splits,
        fresh=options.fresh,
    )


def command(section: str, options: argparse.Namespace) -> str:
    """Return the command that runs a section in the same way."""
    words = ["python benchmarks/run.py", section]
    words += [] if options.size == "full" else [f"--{options.size}"]
    words += [] if options.scale is None else [f"--scale {options.scale:g}"]
    return " ".join(words)


def measured(section: str, run: Run) -> Report:
    """Return what a section finds; OpenMP, too, takes no more threads than asked for."""
    with threadpool_limits(limits=run.threads, user_api="openmp"):
        if section in SCRIPTS:
            return import_module("harness.scripts").measure(section, run)
        return import_module(f"suite.{section}").measure(run)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections that are asked for."""
    options = parsed(arguments)
    if options.list:
        print("\n".join(f"{name:12} {about}" for name, about in SECTIONS.items()))
        return 0
    warnings.simplefilter("ignore")  # models that stop at max_iter are part of what is measured
    folder = Folder(options.results or default_results(options.size))
    machine = describe(options.threads)
    print("\n".join(f"{key}: {value}" for key, value in machine.items()))
    folder.describe(machine)
    began = perf_counter()
    for section in options.sections or SECTIONS:
        print(f"{section}: {SECTIONS[section]}", file=sys.stderr, flush=True)
        started = perf_counter()
        report = measured(section, run_of(section, options))
        took = perf_counter() - started
        print(
            f"\n== {section}: {SECTIONS[section]} ({took:.0f} s)\n\n{printed(report)}", flush=True
        )
        folder.keep(section, report, command(section, options), in_short(), took)
    print(f"\n{perf_counter() - began:.0f} s in all; results in {folder.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""docs/reproduction.md has the figures of the committed tables."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from polysift_paper.algorithm import VARIANTS
from polysift_paper.comparisons import sensitivity
from polysift_paper.comparisons.comparison import data_title, method_title
from polysift_paper.comparisons.printed import FAST_SYSTEMS, SYSTEMS, UCI, printed
from polysift_paper.comparisons.summary import by_pair, read_rows, summarise
from polysift_paper.studies import degrees
from polysift_paper.studies.averages import where
from polysift_paper.studies.results import read_table

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="no documents beside this package")

RANGES = {"": "[0, 1]", "-symmetric": "[-1, 1]"}


@pytest.fixture(scope="module")
def page():
    return (DOCS / "reproduction.md").read_text(encoding="utf-8")


def lines_of(name):
    text = (DOCS / "results" / name).read_text(encoding="utf-8")
    return by_pair(summarise(read_rows(text)))


def table_of(name):
    return read_table((DOCS / "results" / name / "summary.csv").read_text(encoding="utf-8"))


def check(page, facts):
    missing = [fact for fact in facts if fact not in page]
    assert not missing


def within(data, line):
    paper = printed("accuracy", data, "fpc")
    return abs(line["accuracy"] - paper.mean) <= 2 * paper.std + paper.unit / 2


def cell(data, method, lines):
    if (data, method) not in lines:
        return "not run"
    line = lines[data, method]
    text = f"{100 * line['accuracy']:.2f} ± {100 * line['accuracy_std']:.2f}"
    return f"**{text}**" if method in VARIANTS and within(data, line) else text


@pytest.mark.parametrize(
    ("file", "methods"),
    [("results.csv", (*VARIANTS, "polysift_plain")), ("seed-1.csv", tuple(VARIANTS))],
)
def test_fpc_in_three_settings(page, file, methods):
    lines, facts = lines_of(f"uci/{file}"), []
    for data in UCI:
        runs = {lines[data, method]["runs"] for method in VARIANTS if (data, method) in lines}
        cells = [cell(data, method, lines) for method in methods]
        paper = printed("accuracy", data, "fpc").text
        facts.append(
            f"| {' | '.join([data_title(data), paper, *cells, str(max(runs, default=0))])} |"
        )
    counts = [
        sum((data, one) in lines and within(data, lines[data, one]) for data in UCI)
        for one in VARIANTS
    ]
    some = sum((data, "fpc") in lines for data in UCI)
    if file == "results.csv":
        facts.append(f"| within, of 9 | | {' | '.join(map(str, counts))} | | |")
    else:
        facts.append(
            f"Within: `fpc` {counts[0]} of {some}, `fpc_demo` {counts[1]}, `fpc_print` {counts[2]}."
        )
    check(page, facts)


def test_the_best_of_tables_2_and_3(page):
    lines, facts = lines_of("uci/results.csv"), []
    for kind, form, sets in (
        ("accuracy", lambda share: f"{100 * share:.2f}", ("banknote", "musk2", "seismic_bumps")),
        ("auc", "{:.4f}".format, ("breast_cancer", "banknote", "seismic_bumps", "musk2")),
    ):
        for data in sets:
            rivals = {one: lines[data, one][kind] for one in SYSTEMS if one != "fpc"}
            best = max(rivals, key=lambda one: rivals[one])
            mine = form(lines[data, "fpc_print"][kind])
            facts.append(f"{data_title(data)} {mine} ({method_title(best)} {form(rivals[best])})")
    check(page, facts)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("centers", "almost the same on {} of {} sets"),
        ("alpha", "stable on {} of {} sets"),
        ("beta", "beta = 1 almost the best on {} of {} sets"),
    ],
)
def test_appendix_f(page, name, words):
    facts = []
    for suffix, span in RANGES.items():
        lines = table_of(f"sensitivity/sensitivity-{name}{suffix}")
        distances = sensitivity._losses if name == "beta" else sensitivity._ranges
        total = len({line["data"] for line in lines})
        good = total - len(sensitivity._beyond_chance(name, lines, distances))
        counted = words if suffix == "" else "{} of {}"
        facts.append(f"{counted.format(good, total)} in {span}")
        by_value = defaultdict(list)
        for line in lines:
            by_value[line[name]].append(line["accuracy_percent"])
        means = " / ".join(f"{np.mean(values):.2f}" for values in by_value.values())
        facts.append(f"{means} in {span}")
    check(page, facts)


def test_tables_6_and_7(page):
    lines = lines_of("massive/results.csv")
    facts = [
        f"{method_title(one).removeprefix('FPC, the ').removeprefix('FPC, ')} "
        f"{100 * line['accuracy']:.1f} % / {line['auc']:.3f} ({line['runs']})"
        for (data, one), line in lines.items()
        if data == "higgs_11k"
    ]
    for data in ("susy_shape", "higgs_shape"):
        line = lines[data, "fpc"]
        facts.append(f"{line['search_seconds']:.0f} s to choose among 11 sizes and ")
        facts.append(f"{line['fit_seconds']:.0f} s to fit, {100 * line['accuracy']:.2f} % (Bayes")
    lines = lines_of("highdim/results.csv")
    for method in (*FAST_SYSTEMS, *VARIANTS):
        if ("mnist38", method) in lines:
            share, runs = (lines["mnist38", method][name] for name in ("accuracy", "runs"))
            facts.append(f"{method_title(method)} {100 * share:.2f} % ({runs})")
    check(page, facts)


def test_simulations(page):
    facts = []
    for folder in ("simulations/simulation-1", "simulations-more/symmetric-1"):
        first, *_, last = table_of(folder)
        facts.append(f"3, then {last['iterations']:,.0f}")
        facts.append(f"{first['test_error']:.4f}, {last['test_error']:.4f}")
    schemes = defaultdict(list)
    for line in table_of("simulations/simulation-5"):
        schemes[line["scheme"]].append(line["test_error"])
    facts.append(", ".join(f"{np.mean(errors):.4f}" for errors in schemes.values()))
    for folder in ("simulations/simulation-4", "simulations-more/symmetric-4"):
        for method in (degrees.FPC, degrees.SVM):
            lines = where(table_of(folder), method=method)
            if lines:
                best = min(lines, key=lambda line: line["test_error"])
                facts.append(f"{method} best at {best['degree']}")
    check(page, facts)


def can_be_a_mean(system, data, test_rows, runs=20):
    share = float(printed("accuracy", data, system).text.split()[0])
    near = round(share / 100 * runs * test_rows)
    return any(f"{100 * (near + i) / (runs * test_rows):.2f}" == f"{share:.2f}" for i in (-1, 0, 1))


def test_means_of_twenty_runs_that_cannot_be(page):
    wrong = [one for one in SYSTEMS if not can_be_a_mean(one, "banknote", 1372 // 4)]
    assert wrong == ["svm_rbf", "svm_poly", "falkon"]
    shares = [printed("accuracy", "banknote", one).text.split()[0] for one in wrong]
    check(page, ["{}, {} or {} %".format(*shares)])
    for size in range(169, 173):
        assert not all(can_be_a_mean(one, "breast_cancer", size) for one in SYSTEMS)

"""Comparisons with the paper on real data: its figures, summaries, verdicts, pages."""

from __future__ import annotations

import base64
import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need polysift[plots]")

from polysift_paper.comparisons import printed as paper_figures
from polysift_paper.comparisons.comparison import (
    COLUMNS,
    COMPARISONS,
    FPC_ROWS,
    METHODS,
    OURS,
    kind_of,
)
from polysift_paper.comparisons.figures import draw_pictures
from polysift_paper.comparisons.page import write_comparison_docs
from polysift_paper.comparisons.printed import CELLS, printed
from polysift_paper.comparisons.results import machine, write_comparison
from polysift_paper.comparisons.summary import (
    by_pair,
    checked_rows,
    lines_text,
    read_rows,
    summarise,
)
from polysift_paper.comparisons.tables import (
    METRICS,
    WALL,
    cells_of,
    footnotes,
    print_alone,
    signed,
    tables_markdown,
    value_text,
)
from polysift_paper.comparisons.verdicts import findings

PAPER = Path(__file__).resolve().parents[4] / "shared" / "paper" / "fpc.tex"

EVIL = '<script>alert("x")</script> | *a* _b_'

BARE = re.compile(r"(?<!\\)<script")
"""A tag that Markdown would keep."""


def row(data, method, run=0, accuracy=None, auc=None, search=None, fit=None, **more):
    entries = {
        "data": data,
        "method": method,
        "run": run,
        "seed": 1000 + run,
        "accuracy": accuracy,
        "auc": auc,
        "search_seconds": search,
        "fit_seconds": fit,
        "predict_seconds": None if fit is None else fit / 10,
        "peak_mb": None if fit is None else 120.5,
        "clock": "processor",
        "params": {} if fit is None else {"n": 200},
        "status": "ok",
    }
    return {**entries, **more}


def realistic_rows(name="uci", runs=3, seed=0):
    """Return rows like those of a real comparison: the paper's figures and some chance."""
    rng, rows = np.random.default_rng(seed), []
    table = COMPARISONS[name]
    extra = dict.fromkeys((*FPC_ROWS, *OURS), "fpc") | {"lightgbm": "falkon"}
    del extra["fpc"]
    for data in table.data:
        for method in [*table.systems, *extra]:
            model = extra.get(method, method)
            accuracy, auc, seconds = (
                printed(kind, data, model) for kind in ("accuracy", "auc", "seconds")
            )
            better = 0.003 if method in extra else 0.0
            for run in range(runs):
                share = rng.normal(accuracy.mean + better, accuracy.std or 0.002)
                area = rng.normal(auc.mean + better, auc.std or 0.002) if auc else None
                fit = max(seconds.mean, 0.002) * rng.uniform(0.02, 0.05)
                params = {"degree": int(rng.integers(1, 4)), "n_centers": 400}
                shown = min(share, 1.0), None if area is None else min(area, 1.0)
                rows.append(row(data, method, run, *shown, 20 * fit, fit, params=params))
    return rows


def uci_rows_with_gaps():
    """Return realistic rows with every kind of status, and a set with a single run."""
    rows = []
    for one in realistic_rows():
        pair = one["data"], one["method"]
        empty = dict.fromkeys(COLUMNS[4:10]) | {"params": {}}
        if pair == ("skin", "svm_poly"):
            one = {**one, **empty, "status": "over limit: no candidate within 30 s"}
        elif pair == ("magic", "svm_poly") and one["run"]:
            one = {**one, "status": "limited: 3 of 80 candidates over 30 s"}
        elif pair == ("musk2", "falkon") and one["run"] == 1:
            one = {**one, **empty, "status": f"failed: {EVIL}"}
        elif one["data"] == "occupancy":
            one = {**one, **empty, "status": "absent: no file"}
        elif one["data"] == "banknote" and one["run"]:
            continue
        rows.append(one)
    return rows


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a small comparison with every kind of status, as it was written."""
    sets = ("magic", "musk2", "occupancy", "skin")
    methods = ("svm_poly", "falkon", "fpc", "polysift", "polysift_auc", "lightgbm")
    rows = uci_rows_with_gaps()
    rows = [one for one in rows if one["data"] in sets and one["method"] in methods]
    return write_comparison(
        COMPARISONS["uci"],
        rows,
        tmp_path_factory.mktemp("results"),
        command=f"polysift reproduce uci  # {EVIL}",
        runs=3,
        seed=7,
        notes=[f"A note. {EVIL}"],
    )


# The paper's figures ---------------------------------------------------------------------------


def tex_table(label):
    """Return the cells of a table of the paper, line by line."""
    text = PAPER.read_text()
    end = text.index(f"\\label{{{label}}}")
    start = text.rindex("\\begin{tabular}", 0, end)
    lines = []
    for line in text[start:end].splitlines():
        if line.strip().startswith("%") or "&" not in line:
            continue
        line = re.sub(r"\{\\bf ([^}]*)\}|\$\\underline\{([^}]*)\}\$", r"\1\2", line)
        line = line.replace("$\\pm$", "±").replace("$\\ell_1$", "l1")
        line = re.sub(r"\\\\\s*\\hline", "", line)
        lines.append([cell.strip() for cell in line.split("&")])
    return lines


def lower(names):
    return [name.lower().replace("\\", "") for name in names]


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's text is not at hand")
@pytest.mark.parametrize(
    ("label", "kinds", "sets", "systems"),
    [
        ("Tab:error", ("accuracy",), paper_figures.UCI, tuple(paper_figures.SYSTEMS)),
        ("Tab:auc", ("auc",), paper_figures.UCI, tuple(paper_figures.SYSTEMS)),
        (
            "Tab:training-time",
            ("seconds",),
            paper_figures.UCI,
            tuple(paper_figures.SYSTEMS),
        ),
        (
            "Tab:massive-data-comp",
            ("accuracy", "auc", "minutes"),
            paper_figures.MASSIVE,
            paper_figures.FAST_SYSTEMS,
        ),
        (
            "Tab:highdim-data-comp",
            ("accuracy", "seconds"),
            paper_figures.HIGHDIM,
            paper_figures.FAST_SYSTEMS,
        ),
    ],
    ids=["accuracy", "auc", "time", "massive", "highdim"],
)
def test_every_cell_is_as_the_paper_prints_it(label, kinds, sets, systems):
    lines = tex_table(label)
    body = lines[-len(systems) :]
    assert lower(line[0] for line in body) == lower(paper_figures.SYSTEMS[one] for one in systems)
    titles = " ".join(lower(lines[-len(systems) - len(kinds[1:2]) - 1]))
    places = [titles.index(paper_figures.SETS[data].lower()) for data in sets]
    assert places == sorted(places)
    seen = 0
    for system, line in zip(systems, body, strict=True):
        heads = [(kind, data, system) for data in sets for kind in kinds]
        assert [CELLS[head] for head in heads] == line[1:]
        seen += len(heads)
    assert seen == len(systems) * len(sets) * len(kinds)


def test_the_paper_has_so_many_figures():
    assert len(CELLS) == 3 * 90 + 5 * 6 + 5 * 6


def test_printed_figures_are_in_the_units_of_the_rows():
    found = printed("accuracy", "magic", "fpc")
    assert (found.mean, found.std, found.text) == (0.8652, 0.003, "86.52 ± 0.30")
    assert found.unit == pytest.approx(1e-4)
    assert printed("accuracy", "mnist38", "fpc").unit == pytest.approx(1e-3)
    assert printed("auc", "banknote", "fpc").std == 0.0
    assert printed("seconds", "susy", "fpc").mean == 612.0
    assert printed("seconds", "susy", "fpc").text == "10.2 min"
    assert printed("auc", "gisette", "fpc") is None
    assert printed("accuracy", "magic", "lightgbm") is None


# Rows and their summary ------------------------------------------------------------------------


def test_rows_survive_csv():
    rows = checked_rows(uci_rows_with_gaps())
    text = lines_text(rows)
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert read_rows(text) == rows


def test_no_rows_make_an_empty_table():
    assert lines_text([]) == ",".join(COLUMNS) + "\n"
    assert read_rows(lines_text([])) == []


def test_numbers_of_numpy_become_plain():
    given = row("magic", "fpc", np.int64(1), np.float64(0.5), float("nan"))
    given["params"] = {"n": np.int64(3), "scheme": np.str_("random")}
    (found,) = checked_rows([given])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["auc"] is None and found["params"] == {"n": 3, "scheme": "random"}


@pytest.mark.parametrize("change", [{"more": 1}, {"accuracy": ...}], ids=["more", "less"])
def test_rows_have_exactly_the_columns(change):
    given = {**row("magic", "fpc"), **change}
    given = {name: value for name, value in given.items() if value is not ...}
    with pytest.raises(ValueError, match=f"wrong: {next(iter(change))}"):
        checked_rows([given])


def test_summary_by_hand():
    rows = [
        row("magic", "fpc", 0, 0.86, 0.91, 2.0, 0.5, params={"s": 2}),
        row("magic", "fpc", 1, 0.88, 0.93, 4.0, 1.5, params={"s": 3}),
        row("magic", "fpc", 2, 0.87, None, 3.0, 1.0, params={"s": 3}, status="limited: 1 of 9"),
        row("magic", "fpc", 3, status="over limit: nothing within 30 s"),
    ]
    (line,) = summarise(checked_rows(rows))
    assert line["runs"] == 3
    assert line["accuracy"] == pytest.approx(0.87) and line["accuracy_std"] == pytest.approx(0.01)
    assert line["auc"] == pytest.approx(0.92)
    assert line["auc_std"] == pytest.approx(0.02 / np.sqrt(2))
    assert line["fit_seconds"] == 1.0 and line["search_seconds"] == 3.0
    assert line["training_seconds"] == 4.0
    assert line["predict_seconds"] == pytest.approx(0.1) and line["peak_mb"] == 120.5
    assert (line["params"], line["params_runs"]) == ({"s": 3}, 2)
    assert (line["status"], line["status_runs"]) == ("over limit: nothing within 30 s", 1)
    assert (line["paper_accuracy"], line["paper_accuracy_std"]) == (0.8652, 0.003)
    assert line["accuracy_difference"] == pytest.approx(0.0048)
    assert line["paper_seconds"] == 0.58 and line["fit_ratio"] == pytest.approx(1 / 0.58)
    assert line["training_ratio"] == pytest.approx(4 / 0.58)


def test_seconds_of_two_clocks_are_not_averaged():
    rows = [
        row("magic", "fpc", 0, 0.86, 0.91, 20.0, 5.0, clock="wall"),
        row("magic", "fpc", 1, 0.88, 0.93, 2.0, 0.5),
        row("magic", "falkon", 0, 0.88, 0.93, 2.0, 0.5, clock="wall"),
    ]
    falkon, fpc = summary = summarise(checked_rows(rows))
    assert (fpc["runs"], fpc["timed_runs"], fpc["clock"]) == (2, 1, "processor")
    assert fpc["accuracy"] == pytest.approx(0.87)
    assert fpc["fit_seconds"] == 0.5 and fpc["training_seconds"] == 2.5
    assert (falkon["timed_runs"], falkon["clock"], falkon["fit_seconds"]) == (1, "wall", 0.5)
    timed, plain = (cells_of(by_pair(summary), one) for one in (METRICS[-1], METRICS[0]))
    assert [timed["magic", one].mark for one in ("falkon", "fpc")] == [WALL, ""]
    assert plain["magic", "falkon"].mark == ""
    assert "\u02b7: the time that passed" in " ".join(tables_markdown(summary))


def test_times_by_another_clock_do_not_count_against_fpc():
    rows = two_runs("magic", "fpc", 0.86) + two_runs("magic", "falkon", 0.87)
    rows = [one | {"fit_seconds": 1.0 + (one["method"] == "falkon")} for one in rows]
    slow = [one | ({"clock": "wall"} if one["method"] == "falkon" else {}) for one in rows]
    assert "MAGIC 1 s (FALKON 2, " in verdicts(rows)["Speed"].text
    assert "No figures" in verdicts(slow)["Speed"].text
    cells = cells_of(by_pair(summarise(checked_rows(slow))), METRICS[-1])
    assert cells["magic", "fpc"].best and not cells["magic", "falkon"].best


def test_rows_of_older_tables_are_by_the_wall_clock():
    rows = checked_rows([row("magic", "fpc", 0, 0.86, 0.91, 2.0, 0.5)])
    older = re.sub("(,clock|,processor)(?=,)", "", lines_text(rows))
    assert read_rows(older) == [rows[0] | {"clock": "wall"}]


def test_one_run_has_no_standard_deviation():
    (line,) = summarise(checked_rows([row("magic", "fpc", 0, 0.86, 0.9, None, 0.5)]))
    assert line["accuracy_std"] is None and line["fit_seconds_std"] is None
    assert line["training_seconds"] == 0.5  # nothing was selected


def test_summary_is_in_the_papers_order_and_unknown_names_come_last():
    pairs = [("mine", "fpc"), ("skin", "own"), ("skin", "polysift"), ("magic", "svm_rbf")]
    summary = summarise(checked_rows([row(*pair, fit=1.0) for pair in pairs]))
    found = [(line["data"], line["method"]) for line in summary]
    assert found == [pairs[3], pairs[2], pairs[1], pairs[0]]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("ok", "ok"),
        ("limited: 3 of 80", "limited"),
        ("over limit: 30 s", "over limit"),
        ("absent: x", "absent"),
        ("failed: x", "failed"),
        ("whatever", "failed"),
    ],
    ids=["ok", "limited", "over", "absent", "failed", "unknown"],
)
def test_kinds_of_status(status, kind):
    assert kind_of(status) == kind


# Tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", 0.86315, "86.31"),
        ("auc", 0.91234, "0.9123"),
        ("fit_seconds", 0.0031234, "0.00312"),
        ("fit_seconds", 9817.2, "9,817"),
        ("fit_seconds", None, "\u2013"),
    ],
    ids=["accuracy", "auc", "short", "long", "none"],
)
def test_texts_of_figures(name, value, text):
    assert value_text(name, value) == text


def test_differences_have_signs_but_for_zero():
    assert signed("accuracy", -0.0021) == "\u22120.21"
    assert signed("accuracy", 0.0021) == "+0.21"
    assert signed("accuracy", -0.00001) == "0.00"


def table_rows():
    return [
        row("magic", "falkon", 0, 0.86, 0.9, 1.0, 1.0),
        row("magic", "falkon", 1, 0.88, 0.9, 1.0, 1.0),
        row("magic", "fpc", 0, 0.87, 0.9, 1.0, 0.29, status="limited: 1 of 9 candidates over 9 s"),
        row("magic", "polysift", 0, 0.869, 0.9, 1.0, 2.0),
        row("magic", "lightgbm", 0, 0.88, 0.8, 1.0, 2.0),
        row("magic", "svm_rbf", 0, status="over limit: no candidate within 9 s"),
    ]


def test_cells_by_hand():
    lines = by_pair(summarise(checked_rows(table_rows())))
    accuracy, _, _, fit = (cells_of(lines, metric) for metric in METRICS)
    cell = accuracy["magic", "fpc"]
    assert (cell.mean, cell.spread, cell.mark, cell.best) == ("87.00", "", "†", True)
    assert (cell.beside, cell.change) == ("paper 86.52 ± 0.30", "+0.48")
    # The best of the paper's systems, as shown, and whatever of the others is no worse.
    assert accuracy["magic", "falkon"].best and accuracy["magic", "falkon"].spread == "1.41"
    assert not accuracy["magic", "polysift"].best and accuracy["magic", "lightgbm"].best
    assert (fit["magic", "fpc"].mean, fit["magic", "fpc"].change) == ("0.29", "0.5\u00d7")
    assert fit["magic", "fpc"].best and not fit["magic", "falkon"].best
    gone = accuracy["magic", "svm_rbf"]
    assert (gone.mean, gone.mark) == ("\u2013", "‡")
    assert (gone.beside, gone.change) == ("paper 85.69 ± 0.26", "")


def test_small_ratios_and_reasons_that_are_sentences():
    rows = [row("magic", "linear_svm", 0, 0.8, 0.9, 0.01, 0.02)]
    rows += [row("magic", "polysift", status="over limit: Too late.")]
    summary = summarise(checked_rows(rows))
    text = "\n".join(tables_markdown(summary))
    assert "9.9e-6\u00d7" in text  # of 2018.5 s
    assert footnotes(summary)[0][1] == "over limit: Too late: polysift on MAGIC"


def test_markdown_of_tables():
    text = "\n".join(tables_markdown(summarise(checked_rows(table_rows()))))
    assert "| FPC, the text | **87.00**†<br><sub>paper 86.52 ± 0.30, +0.48</sub> |" in text
    assert "| polysift<br><sub>not in the paper</sub> | 86.90 |" in text
    assert "- † limited: 1 of 9 candidates over 9 s: FPC, the text on MAGIC" in text
    assert "- ‡ over limit: no candidate within 9 s: SVM-RBF on MAGIC" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.count("|") == 3


def test_footnotes_join_places_and_escape():
    rows = [row(data, "falkon", status=f"failed: {EVIL}") for data in ("magic", "skin")]
    summary = summarise(checked_rows(rows))
    assert footnotes(summary) == [("§", f"failed: {EVIL}: FALKON on MAGIC; FALKON on Skin")]
    text = "\n".join(tables_markdown(summary))
    assert "\\<script\\>" in text and "\\| \\*a\\* \\_b\\_" in text
    assert not BARE.search(text)


def test_footnotes_count_runs_and_name_sets_as_a_whole():
    rows = [row("magic", one, status="absent: x") for one in ("falkon", "fpc")]
    rows += [row("skin", "falkon", run, status="failed: x") for run in range(2)]
    rows += [row("skin", "fpc", fit=1.0)]
    assert footnotes(summarise(checked_rows(rows))) == [
        ("¶", "absent: x: all on MAGIC"),
        ("§", "failed: x: FALKON (2 runs) on Skin"),
    ]


def test_synthetic_data_tell_time_and_the_gap_to_bayes():
    rows = [row("susy_shape", "fpc", 0, 0.79, 0.9, 1.0, 306.0)]
    lines = by_pair(summarise(checked_rows(rows)))
    accuracy, auc, _, fit = (cells_of(lines, metric) for metric in METRICS)
    assert not auc
    cell = accuracy["susy_shape", "fpc"]
    assert (cell.mean, cell.beside, cell.change) == ("79.00", "Bayes 80.00", "\u22121.00")
    assert fit["susy_shape", "fpc"].beside == "paper 10.2 min"
    assert fit["susy_shape", "fpc"].change == "0.5\u00d7"
    assert lines["susy_shape", "fpc"]["paper_accuracy"] is None


# Verdicts --------------------------------------------------------------------------------------


def verdicts(rows, name="uci"):
    found = findings(COMPARISONS[name], summarise(checked_rows(rows)))
    return {one.name: one.verdict for one in found}


def two_runs(data, method, mean, spread=0.0, kind="accuracy", **more):
    """Return two runs with a mean, and a standard deviation of ``spread`` times root two."""
    return [
        row(data, method, run, **{kind: mean + sign * spread}, **more)
        for run, sign in enumerate((-1, 1))
    ]


def as_printed(kind="accuracy", system="fpc", change=0.0):
    return {data: printed(kind, data, system).mean + change for data in paper_figures.UCI}


def everywhere(figures, method, spread=0.0, **more):
    return [
        one
        for data, mean in figures.items()
        for one in two_runs(data, method, mean, spread, **more)
    ]


def test_fpc_is_as_printed():
    name = "FPC, the text, as printed: accuracy"
    same = verdicts(everywhere(as_printed(), "fpc"))[name]
    assert same.agrees is True and same.text.startswith("9 of 9 sets. Within: breast 96.83")
    # MAGIC: 86.52 ± 0.30 in the paper; half a digit is allowed beside the two deviations.
    for change, agrees in ((0.006, True), (0.00604, True), (0.0061, False), (-0.0061, False)):
        figures = as_printed() | {"magic": 0.8652 + change}
        found = verdicts(everywhere(figures, "fpc"))[name]
        assert found.agrees is agrees
        assert agrees or "Differs: MAGIC" in found.text


def test_fpc_as_printed_stays_open_where_a_set_is_missing():
    figures = as_printed()
    del figures["skin"]
    found = verdicts(everywhere(figures, "fpc"))["FPC, the text, as printed: accuracy"]
    assert found.agrees is None and found.text.startswith("8 of 9 sets.")
    assert "No figures: Skin." in found.text


def test_nothing_is_said_of_what_was_not_run():
    rows = [row("susy_shape", "fpc", 0, 0.78, 0.79)]
    names = [one.name for one in findings(COMPARISONS["massive"], summarise(checked_rows(rows)))]
    assert names == ["FPC's place in accuracy", "Speed"]


def test_what_is_printed_of_sets_that_were_not_run_has_a_table():
    lines = by_pair(summarise(checked_rows([row("higgs", "fpc", 0, 0.6, 0.6)])))
    heads, rows = print_alone(COMPARISONS["massive"], lines)
    assert heads == ["", "SUSY: accuracy (%)", "SUSY: AUC", "SUSY: time (s or min)"]
    assert rows[1] == ["FALKON", "79.12", "0.871", "46.7 min"] and len(rows) == 5
    everything = by_pair(summarise(checked_rows(realistic_rows("massive", 1))))
    assert print_alone(COMPARISONS["massive"], everything)[1] == []


def test_a_printed_deviation_of_zero_allows_for_rounding():
    for area, agrees in ((0.9996, True), (0.9994, False)):
        figures = as_printed("auc") | {"banknote": area}
        found = verdicts(everywhere(figures, "fpc", kind="auc"))["FPC, the text, as printed: AUC"]
        assert found.agrees is agrees


@pytest.mark.parametrize(
    ("below", "agrees"), [(-0.01, True), (0.0049, True), (0.0051, False)], ids=["up", "half", "far"]
)
def test_polysift_is_never_below_fpc(below, agrees):
    figures = as_printed()
    rows = everywhere(figures, "fpc", 0.01 / np.sqrt(2))  # a deviation of 0.01
    mine = figures | {"magic": figures["magic"] - below}
    found = verdicts(rows + everywhere(mine, "polysift"))["Never below FPC: accuracy"]
    assert found.agrees is agrees
    assert agrees or "Below: MAGIC 86.01 against 86.52 ± 1.00." in found.text


def test_below_a_perfect_fpc_by_less_than_the_paper_prints_is_equal():
    for area, agrees in ((0.9996, True), (0.9994, False)):
        figures = as_printed("auc")
        mine = everywhere(figures | {"banknote": area}, "polysift_auc", kind="auc")
        found = verdicts(everywhere(figures, "fpc", kind="auc") + mine)["Never below FPC: AUC"]
        assert found.agrees is agrees


def test_one_run_below_fpc_stays_open():
    rows = [row("magic", "fpc", 0, 0.87), row("magic", "polysift", 0, 0.86)]
    found = verdicts(rows)["Never below FPC: accuracy"]
    assert found.agrees is None and "one run has no standard deviation" in found.text


def test_polysift_in_front_here():
    name = "In front here: accuracy"
    rows = two_runs("magic", "falkon", 0.87) + two_runs("magic", "fpc", 0.865)
    # A deviation of its own of 0.01.
    for mean, agrees in ((0.88, True), (0.861, True), (0.859, False)):
        own = two_runs("magic", "polysift", mean, 0.01 / np.sqrt(2))
        found = verdicts(rows + own)[name]
        assert found.agrees is (None if agrees else False)  # the other eight sets are missing
        head = "First (1)" if mean > 0.87 else "First (0)" if agrees else "Behind"
        assert head in found.text and "(FALKON 87.00)" in found.text
    assert "Left out, for want of a figure: SVM-RBF on MAGIC" in found.text


def test_polysift_in_front_of_the_printed_figures():
    best = {
        data: max(printed("accuracy", data, one).mean for one in paper_figures.SYSTEMS)
        for data in paper_figures.UCI
    }
    name = "In front of the printed figures: accuracy"
    found = verdicts(everywhere(best, "polysift"))[name]
    assert found.agrees is True and "First (9)" in found.text
    best["skin"] -= 0.001
    found = verdicts(everywhere(best, "polysift"))[name]
    assert found.agrees is False and "Behind: Skin 99.84 ± 0.00 (RF 99.94)." in found.text
    assert found.text.startswith("8 of 9 sets.")


def timed(sets, times):
    return [row(data, one, 0, 0.9, 0.9, 1.0, fit) for data in sets for one, fit in times.items()]


def test_speed():
    times = {"fpc": 1.0, "falkon": 2.0, "rr_fourier": 3.0, "tensor_sketch": 1.5}
    found = verdicts(timed(paper_figures.UCI, times))["Speed"]
    assert found.agrees is True and found.text.startswith("5 of 5 sets.")
    assert "HTRU2 1 s (FALKON 2, RR-Fourier 3, TS 1.5)" in found.text
    slow = verdicts(timed(paper_figures.UCI, times | {"tensor_sketch": 0.5}))["Speed"]
    assert slow.agrees is False
    assert "Selection and final fit together: faster than all on 0 of 5 sets." in slow.text
    del times["rr_fourier"]
    assert verdicts(timed(paper_figures.UCI, times))["Speed"].agrees is None


def test_place_and_speed_on_few_sets():
    times = dict.fromkeys(paper_figures.FAST_SYSTEMS, 2.0) | {"fpc": 1.0, "lightgbm": 0.1}
    rows = timed(paper_figures.HIGHDIM, times)
    shares = {"fpc": 0.9, "falkon": 0.95, "lightgbm": 0.99}
    rows = [{**one, "accuracy": shares.get(one["method"], 0.8)} for one in rows]
    found = verdicts(rows, "highdim")
    assert found["FPC's place in accuracy"].agrees is True
    assert "Gisette: FPC is number 2 of 5 (LightGBM 99.00, FALKON 95.00, FPC, the text 90.00" in (
        found["FPC's place in accuracy"].text
    )
    assert found["Speed"].agrees is True
    worse = [{**one, "accuracy": 0.7} if one["method"] == "fpc" else one for one in rows]
    assert verdicts(worse, "highdim")["FPC's place in accuracy"].agrees is False
    assert found["FPC, the text, as printed: accuracy"].agrees is None


def test_what_the_paper_does_not_print_is_no_claim():
    found = verdicts(realistic_rows("highdim"), "highdim")
    assert "FPC, the text, as printed: accuracy" in found
    rows = [row("mnist38", "fpc", accuracy=0.98, auc=0.99)]
    found = verdicts(rows, "highdim")
    assert "FPC, the text, as printed: AUC" not in found  # Table VII has none
    assert not any("0 of 0" in verdict.text for verdict in found.values())


def test_data_of_the_size_of_a_set_stand_in_for_it_in_time_alone():
    times = dict.fromkeys(paper_figures.FAST_SYSTEMS, 2.0) | {"fpc": 1.0}
    rows = timed(("susy_shape", "higgs_shape"), times)
    rows += [row(data, "fpc", status="absent: no file") for data in paper_figures.MASSIVE]
    found = verdicts(rows, "massive")
    assert found["Speed"].agrees is True and "size of SUSY 1 s" in found["Speed"].text
    assert found["FPC's place in accuracy"].agrees is None


@pytest.mark.parametrize("name", list(COMPARISONS))
def test_nothing_measured_leaves_all_verdicts_open(name):
    rows = [row(data, "fpc", status="absent: no file") for data in COMPARISONS[name].data]
    for given in ([], rows):
        found = verdicts(given, name)
        assert found and all(verdict.agrees is None for verdict in found.values())


# Files -----------------------------------------------------------------------------------------


class Checker(HTMLParser):
    """Collects tags, addresses and text, and checks that tags are closed in order."""

    VOID = {"meta", "img", "br", "link", "input", "hr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses, self.words = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_all_files_are_written(written):
    names = {path.name for path in written.folder.iterdir()}
    pictures = {f"{name}.{kind}" for name in written.pictures for kind in ("svg", "png")}
    assert names == {"results.csv", "results.json", "summary.csv", "tables.md"} | pictures
    assert written.folder.name == "uci" and written.page == written.folder.parent / "uci.html"
    for picture in written.pictures.values():
        ElementTree.fromstring(picture.svg)
        assert picture.png.startswith(b"\x89PNG")


def test_tables_hold_the_rows(written):
    text = (written.folder / "results.csv").read_text()
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert read_rows(text) == written.rows
    entries = json.loads((written.folder / "results.json").read_text())
    assert entries["rows"] == written.rows and entries["columns"] == list(COLUMNS)
    assert (entries["runs"], entries["seed"]) == (3, 7)
    assert set(entries["machine"]) == {"Processor", "Cores", "Memory", "System"}
    assert [one["holds"] for one in entries["verdicts"]] == [
        one.verdict.agrees for one in written.findings
    ]
    with (written.folder / "summary.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(written.summary)
    assert float(lines[0]["accuracy"]) == written.summary[0]["accuracy"]


def test_the_page_needs_no_other_file_and_escapes(written):
    text = written.page.read_text()
    found = Checker(text)
    assert "script" not in found.tags and "link" not in found.tags
    for address in found.addresses:
        assert address.startswith(("#", "data:image/svg+xml;base64,"))
    assert "@import" not in text and "url(" not in text
    assert "http" not in " ".join(found.words)
    ids = set(re.findall(r'id="([^"]*)"', text))
    assert {one[1:] for one in found.addresses if one.startswith("#")} <= ids
    images = [one for one in found.addresses if one.startswith("data:")]
    assert [base64.b64decode(one.split(",")[1]) for one in images] == [
        picture.svg for picture in written.pictures.values()
    ]
    for one in written.findings:
        assert one.verdict.text in found.words


def test_documents(written, tmp_path):
    (tmp_path / "results" / "uci").mkdir(parents=True)
    (tmp_path / "results" / "uci" / "remarks.md").write_text("## Remarks\n\n*By hand.* <b>x</b>\n")
    path = write_comparison_docs(written, tmp_path, "polysift reproduce uci --docs docs")
    text = path.read_text()
    assert path.name == "comparison-uci.md"
    assert "## Remarks\n\n*By hand.* <b>x</b>\n" in text
    assert "    polysift reproduce uci --docs docs\n" in text
    assert not BARE.search(text) and "A note. \\<script\\>" in text
    for address in re.findall(r"\]\(([^)]*)\)", text):
        assert (tmp_path / address).is_file()
    assert (tmp_path / "results/uci/results.csv").read_bytes() == (
        written.folder / "results.csv"
    ).read_bytes()
    again = write_comparison_docs(written, tmp_path, "polysift reproduce uci --docs docs")
    assert again.read_text() == text


def test_the_same_rows_make_the_same_pictures(written):
    again = draw_pictures(written.summary)
    assert {name: one.svg for name, one in again.items()} == {
        name: one.svg for name, one in written.pictures.items()
    }


def _tradeoff_panel(shares):
    from polysift_paper.comparisons.figures import draw_tradeoff
    from polysift_paper.comparisons.summary import by_pair

    rows = [row("banknote", name, 0, share, 0.9, 1.0, 0.1) for name, share in shares.items()]
    drawing = draw_tradeoff(by_pair(summarise(checked_rows(rows))))
    drawing.canvas.draw()
    return drawing.axes[0]


def test_fpc_is_in_the_picture_however_far_below_it_is():
    shares = dict.fromkeys(("svm_rbf", "svm_poly", "falkon", "tensor_sketch"), 1.0)
    panel = _tradeoff_panel({**shares, "fpc": 0.985, "linear_svm": 0.9})
    assert panel.get_ylim()[0] < 98.5
    assert [text.get_text() for text in panel.texts] == ["1 further below"]


def test_equal_accuracies_have_a_scale_that_can_be_read():
    panel = _tradeoff_panel(dict.fromkeys(("svm_rbf", "falkon", "fpc"), 1.0))
    assert panel.yaxis.get_offset_text().get_text() == ""
    assert "100.0" in [label.get_text() for label in panel.get_yticklabels()]


@pytest.mark.parametrize("absent", [True, False], ids=["absent", "nothing"])
def test_pictures_of_nothing(absent, tmp_path):
    rows = [row("susy", "fpc", status="absent: no file")] if absent else []
    settings = {"command": "x", "runs": 1, "seed": 0}
    found = write_comparison(COMPARISONS["massive"], rows, tmp_path, **settings)
    assert found.page.stat().st_size > 1000
    write_comparison_docs(found, tmp_path, "x")


def test_pictures_without_figures_are_left_out():
    rows = [row("higgs_11k", method, 0, 0.6, 0.6, 1.0, 1.0) for method in ("falkon", "fpc")]
    found = draw_pictures(summarise(checked_rows(rows)))
    assert list(found) == ["scatter", "tradeoff"]  # nothing is printed of these rows
    assert list(draw_pictures(summarise(checked_rows(rows[1:])))) == ["tradeoff"]  # no rival
    one = found["scatter"].size[1]
    both = [*rows, row("higgs_11k", "polysift", 0, 0.6, 0.6, 1.0, 1.0)]
    assert draw_pictures(summarise(checked_rows(both)))["scatter"].size[1] > 1.5 * one


def test_other_names_are_shown_as_they_are(tmp_path):
    rows = [row("<b>data</b>", "own_method", run, 0.9, 0.9, 1.0, 0.5) for run in range(2)]
    table = replace(COMPARISONS["highdim"], title=EVIL)
    found = write_comparison(table, rows, tmp_path, command="x", runs=2, seed=0)
    text = found.page.read_text()
    assert "&lt;b&gt;data&lt;/b&gt;" in text and "<b>data" not in text
    assert "own\\_method" in (found.folder / "tables.md").read_text()


def test_the_machine_is_told_without_its_name():
    import socket

    assert all(machine().values())
    assert socket.gethostname() not in " ".join(machine().values())


def test_realistic_rows_cover_all_sets_and_methods():
    rows = realistic_rows()
    assert len(rows) == 9 * 16 * 3
    assert {one["method"] for one in rows} == set(METHODS)

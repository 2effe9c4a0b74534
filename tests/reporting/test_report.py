"""The report: what the page says against what the model holds; escaping; odd models; the file."""

from __future__ import annotations

import base64
import re
import sys
import warnings
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="reports need polysift[plots]")
import matplotlib as mpl
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from every_kind import every_kind
from polysift import FPCClassifier, FPCClassifierCV, explain, open_data
from polysift.explanation.tables import notes_of
from polysift.reporting.evaluation import evaluate
from polysift.reporting.page import (
    MAX_NAME_CHARACTERS,
    seconds_text,
    share_text,
    shortened,
    size_text,
)
from polysift.reporting.report import report
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")

X, Y = noisy_problem(np.random.default_rng(0), 400, 2)
TRAIN, TEST = (X[:300], Y[:300]), (X[300:], Y[300:])
ALWAYS = ["summary", "data", "columns", "quality", "confusion", "roc"]
ALWAYS += ["importance", "convergence", "cost", "model"]
LAST = ["reproduce", "versions"]
VOID = {"meta", "img", "br"}
EVIL = '<script>alert("x")</script>'


class Page(HTMLParser):
    """Reads a page: sections, links, pictures, tables; raises where tags do not match."""

    def __init__(self, html):
        super().__init__()
        self.html, self.open, self.tags, self.ids, self.links = html, [], [], [], []
        self.images, self.texts, self.section = [], {}, None
        self.tables, self.cell = [], None
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "section":
            self.section = attrs["id"]
        elif tag == "a":
            self.links.append(attrs["href"])
        elif tag == "img":
            self.images.append((self.section, attrs))
        elif tag == "table":
            self.tables.append((self.section, []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "section":
            self.section = None

    def handle_data(self, data):
        self.texts[self.section] = self.texts.get(self.section, "") + data
        if "td" in self.open or "th" in self.open:
            self.tables[-1][1][-1][-1] += data

    def text(self, section):
        return " ".join(self.texts[section].split())

    def rows(self, section, number=0):
        return [rows for name, rows in self.tables if name == section][number]


def svgs(page, section=None):
    """Return the pictures as text, each well-formed XML."""
    found = []
    for where, attrs in page.images:
        head, _, body = attrs["src"].partition(",")
        assert head == "data:image/svg+xml;base64" and attrs["alt"].strip()
        svg = base64.b64decode(body).decode()
        ElementTree.fromstring(svg)
        if section in (None, where):
            found.append(svg)
    return found


def read(html):
    """Return the page, after what must hold for any of them."""
    page = Page(html)
    assert html.startswith('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">')
    assert '<meta name="viewport"' in html and html.count("<title>") == 1
    sections = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert len(set(page.ids)) == len(page.ids) and page.ids == sections
    assert page.links == [f"#{name}" for name in sections], "the contents list every section"
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not re.search(r"https?://|url\(|@import", html), "nothing is loaded"
    assert not [k for _, attrs in page.tags for k in attrs if k.startswith("on")]
    assert "nan" not in re.sub(r'src="[^"]*"|<style>.*</style>', "", html, flags=re.S).split()
    for svg in svgs(page):
        known = r"http://(www\.w3\.org|purl\.org/dc|creativecommons\.org/ns)"
        assert not re.search(r"https?://", re.sub(known, "", svg))
    return page


def sections_of(page):
    return [link[1:] for link in page.links]


@pytest.fixture(scope="module")
def calibrated():
    clf = paper_classifier(3, solver="converged", tol=1e-2, calibration="isotonic", random_state=7)
    return clf.fit(*TRAIN)


@pytest.fixture(scope="module")
def search():
    return FPCClassifierCV(
        (1, 2, 3),
        (3, 6, 10),
        rhos=(None, 1e-3),
        solvers=("paper", "converged"),
        max_iter=(5, 10),
        cv=3,
        random_state=0,
    ).fit(*TRAIN)


@pytest.fixture(scope="module")
def plain_model():
    return paper_classifier(2, random_state=0).fit(*TRAIN)


@pytest.fixture(autouse=True)
def no_leaks():
    """A report leaves matplotlib's settings and figures alone."""
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.fixture
def undrawn(monkeypatch):
    """Leave pictures out, for tests of other things: they take most of the time."""
    empty = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"/>').decode()
    address = f"data:image/svg+xml;base64,{empty}"
    monkeypatch.setattr("polysift.reporting.figures._picture", lambda draw, height: address)


@pytest.fixture(scope="module")
def calibrated_html(calibrated):
    return report(calibrated, {"training": TRAIN, "validation": TEST})


@pytest.fixture(scope="module")
def search_html(search):
    return report(search, {"training": TRAIN, "test": TEST}, title="Mine")


def test_two_classes_with_probabilities(calibrated, calibrated_html):
    page = read(calibrated_html)
    wanted = [*ALWAYS[:6], "reliability", *ALWAYS[6:], *LAST]
    assert sections_of(page) == wanted
    figures = {row[0].split("  ")[0]: row[1:] for row in page.rows("quality")}
    assert page.rows("quality")[0] == ["", "training (seen)", "validation"]
    expected = [evaluate(calibrated, *TRAIN), evaluate(calibrated, *TEST)]
    for label, name, text in (
        ("Accuracy", "accuracy", lambda v: share_text(v, 2)),
        ("Balanced accuracy", "balanced_accuracy", lambda v: share_text(v, 2)),
        ("Area under ROC", "roc_auc", "{:.4f}".format),
        ("Log loss", "log_loss", "{:.4f}".format),
        ("Brier score", "brier_score", "{:.4f}".format),
    ):
        row = next(values for key, values in figures.items() if key.startswith(label))
        for cell, found in zip(row, expected, strict=True):
            ends = (found.figures[name].low, found.figures[name].high)
            assert cell == text(found.value(name)) + " to ".join(map(text, ends))
    assert figures["Rows"] == ["300", "100"]
    predicted = calibrated.predict(TEST[0])
    accuracy = accuracy_score(TEST[1], predicted)
    assert share_text(accuracy) in page.texts["summary"]
    assert f"{roc_auc_score(TEST[1], calibrated.decision_function(TEST[0])):.4f}" in svgs(page)[0]
    balanced = balanced_accuracy_score(TEST[1], predicted)
    assert share_text(balanced) in page.texts["summary"]
    found = calibrated.calibration_report_
    rows = page.rows("reliability")
    assert rows[-1] == ["out of fold", f"{found['log_loss']:.4f}", f"{found['brier_score']:.4f}"]
    assert "out of fold" in svgs(page, "reliability")[0]
    assert "validation" in svgs(page, "reliability")[0]
    assert all(name in svgs(page, "roc")[0] for name in ("training", "validation"))
    assert calibrated.status_message_ in page.text("convergence")


def test_the_confusion_matrix_counts(calibrated, calibrated_html):
    page = read(calibrated_html)
    rows = page.rows("confusion")
    counts = confusion_matrix(TEST[1], calibrated.predict(TEST[0]))
    assert rows[0][1:] == ["-1", "1", "recall"]
    for k, (name, row) in enumerate(zip(("-1", "1"), rows[1:3], strict=True)):
        shares = counts[k] / counts[k].sum()
        cells = [f"{n}{share_text(s)}" for n, s in zip(counts[k], shares, strict=True)]
        assert row == [name, *cells, share_text(shares[k])]
    assert rows[3][1] == share_text(counts[0, 0] / counts[:, 0].sum())


def test_a_plain_model(plain_model):
    page = read(report(plain_model, TEST))
    assert sections_of(page) == [*ALWAYS, *LAST]
    assert "without calibration" in page.text("quality")
    assert page.rows("quality")[0] == ["", "the given rows"]
    counts = plain_model.training_summary_["class_counts"]
    assert [row[0] for row in page.rows("data")] == ["-1", "1"]
    assert [row[2].split()[0] for row in page.rows("data")] == [f"{n:.0f}" for n in counts]
    assert "float64" in page.text("data") and "none: arrays in memory" in page.text("data")
    assert "FPCClassifier for 2 classes" in page.html
    seconds = seconds_text(plain_model.timings_["total"])
    assert seconds in page.texts["summary"] and seconds in page.texts["cost"]


def test_what_matters(calibrated, calibrated_html):
    page = read(calibrated_html)
    found = explain(calibrated, TEST[0])
    text = page.text("importance")
    assert all(note in text for note in notes_of(found))
    features, pairs, terms = (page.rows("importance", k) for k in range(3))
    assert [row[0] for row in features] == [e["feature"] for e in found.features()]
    both = [f"{e['attribution']:.3g}{e['shuffled']:.3g}" for e in found.features()]
    assert [row[2] for row in features] == both
    assert [row[0] for row in pairs] == ["x0 & x1"]
    assert [row[0] for row in terms[1:]] == [e["term"] for e in found.terms(10)]


def test_a_spline(undrawn):
    given = {
        "kernel": "spline",
        "scaler": "minmax",
        "alpha": 1.0,
        "solver": "paper",
        "random_state": 0,
    }
    page = read(report(FPCClassifier(2, 40, **given).fit(*TRAIN), TEST))
    assert "A spline kernel classifier of degree 2 with 40 centers" in page.html
    assert "spline kernel is no polynomial" in page.text("importance")
    text = page.text("model")
    assert "Kernelspline" in text and "Scaler" not in text


def test_a_given_explanation_is_shown(plain_model, undrawn):
    given = explain(plain_model, max_monomials=1)
    page = read(report(plain_model, TEST, explanation=given))
    assert given.reason in page.text("importance") and page.rows("importance")
    with pytest.raises(TypeError, match="explanation must be an Explanation"):
        report(plain_model, TEST, explanation={})


def test_a_search(search, search_html):
    page = read(search_html)
    assert sections_of(page) == [*ALWAYS[:8], "search", *ALWAYS[8:], *LAST]
    assert page.html.count("<h1>Mine</h1>") == 1 and "<title>Mine</title>" in page.html
    status = search.cv_results_["status"]
    text = page.text("search")
    assert f"{len(status)} candidates" in text
    assert f"{np.sum(status == 'finished')} finished" in text
    assert f"{np.sum(status == 'screened')} screened out" in text
    rows = page.rows("search")[1:]
    assert len(rows) == 10
    splits = [search.cv_results_[f"split{k}_test_score"] for k in range(3)]
    errors = pd.DataFrame(splits).sem().to_numpy()
    best = rows[0]
    assert best[0] == "1" and best[1] == search.best_params_["scaler"]
    assert best[2:4] == [str(search.best_params_[name]) for name in ("degree", "n_centers")]
    i = search.best_index_
    assert best[-2:] == [share_text(search.best_score_, 2), share_text(errors[i], 2)]
    assert len(svgs(page, "search")) == 4, "degree, n_centers, max_iter and rho vary"
    assert "chosen: degree" in svgs(page, "search")[0]
    marked = [attrs for tag, attrs in page.tags if tag == "tr" and attrs.get("class") == "marked"]
    assert marked
    assert "FPCClassifierCV" in page.text("reproduce") and "alone" in page.text("reproduce")
    assert "a search makes no forecast" in page.text("cost")


def test_a_search_over_nothing_much():
    search = FPCClassifierCV(
        2, 6, scalers="minmax", rhos=None, solvers="paper", cv=0.3, scoring="roc_auc"
    ).fit(*TRAIN)
    search.time_saved_, search.status_ = -1.0, "time_limit"
    page = read(report(search, TEST))
    assert svgs(page, "search") == []
    assert page.rows("search")[1][-1] == "\u2013", "one split has no standard error"
    assert page.rows("search")[0][-2] == "mean roc_auc"
    assert "validation part" in page.text("search") and "saved" not in page.text("search")
    assert "ended early (time_limit)" in page.text("search")
    assert "another run may end elsewhere" in page.text("reproduce")


def test_the_chosen_candidate_is_shown_wherever_it_ranks(search, undrawn):
    other = clone(search)
    vars(other).update({k: v for k, v in vars(search).items() if k.endswith("_")})
    other.best_index_ = int(np.argmax(search.cv_results_["rank_test_score"]))
    rows = read(report(other, TEST)).rows("search")
    assert len(rows) == 12
    assert rows[-1][0] == str(search.cv_results_["rank_test_score"][other.best_index_])


def test_three_classes():
    features, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    clf = paper_classifier(2, calibration="sigmoid", random_state=0).fit(features, names)
    page = read(report(clf, {"all": (features, names)}))
    assert page.rows("confusion")[0][1:4] == ["setosa", "versicolor", "virginica"]
    curves = svgs(page, "roc")[0]
    assert all(name in curves for name in ("setosa", "versicolor", "virginica"))
    assert "likeliest class" in svgs(page, "reliability")[0]
    assert "petal length (cm)" in page.text("data")


def many_classes(n_classes, rows=1500):
    rng = np.random.default_rng(1)
    y = np.arange(rows) % n_classes
    centers = rng.random((n_classes, 4))
    return centers[y] + 0.1 * rng.normal(size=(rows, 4)), y


def test_fifty_classes_have_a_table_of_confusions():
    features, y = many_classes(50)
    clf = paper_classifier(2, random_state=0).fit(features, y)
    page = read(report(clf, (features, y)))
    counts = confusion_matrix(y, clf.predict(features))
    np.fill_diagonal(counts, 0)
    rows = page.rows("confusion")
    assert len(rows) == 16 and rows[0] == [
        "true class",
        "predicted class",
        "rows",
        "of the true class",
    ]
    largest = sorted(counts.ravel(), reverse=True)[:15]
    assert [int(row[2]) for row in rows[1:]] == largest
    assert int(rows[1][2]) == counts[int(rows[1][0]), int(rows[1][1])]
    curves = svgs(page, "roc")[0]
    assert curves.count(">class ") == 10 and "the other 40 classes" in curves
    assert len(page.rows("data")) + len(page.rows("data", 1)) == 50


def test_twenty_classes_still_have_a_matrix(undrawn):
    features, y = many_classes(20)
    clf = paper_classifier(2, random_state=0).fit(features, y)
    rows = read(report(clf, (features, y))).rows("confusion")
    assert len(rows) == 22 and all(len(row) == 22 for row in rows)


def test_very_many_classes_and_features(undrawn):
    features, y = many_classes(60)
    features = pd.DataFrame(np.tile(features, 20)).rename(columns=lambda k: f"name{k}")
    clf = paper_classifier(1, random_state=0).fit(features, y)
    page = read(report(clf, (features, y)))
    assert "50 largest of 60 classes" in page.text("data")
    assert "and 20 more" in page.text("data") and "name59" in page.text("data")


def test_no_mistake_at_all(undrawn):
    features = np.repeat(np.eye(30), 3, axis=0)
    y = np.repeat(np.arange(30), 3)
    clf = paper_classifier(1, 30, scaler=None, random_state=0).fit(features, y)
    assert clf.score(features, y) == 1
    page = read(report(clf, (features, y)))
    assert "No row is classified wrongly" in page.text("confusion")
    assert "100.0\u00a0%" in page.texts["summary"]


def test_weights_count(calibrated, undrawn):
    weights = np.linspace(0.5, 3, 100)
    page = read(report(calibrated, {"weighted": (*TEST, weights)}))
    found = evaluate(calibrated, *TEST, weights)
    assert share_text(found.accuracy, 2) in page.texts["quality"]
    assert f"{found.confusion[0, 0]:,.1f}" in page.rows("confusion")[1][1]


def test_unknown_labels_are_counted(calibrated, undrawn):
    y = TEST[1].copy()
    y[:3] = 5
    page = read(report(calibrated, {"training": TRAIN, "odd": (TEST[0], y)}))
    row = next(row for row in page.rows("quality") if row[0].startswith("Unknown labels"))
    assert row[1:] == ["0", "3"]
    assert "3 rows have a label that is not a class" in page.text("confusion")
    assert "counts in no figure" in page.text("confusion")
    y[:] = 5
    page = read(report(calibrated, {"none known": (TEST[0], y)}))
    assert "reliability" not in sections_of(page) and "there is no curve" in page.text("roc")


def test_files(tmp_path, calibrated):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(target=Y)
    path = tmp_path / "all & sundry.parquet"
    frame.to_parquet(path)
    source = open_data(path, target="target")
    clf = paper_classifier(2, random_state=0).fit(source)
    page = read(report(clf, source))
    alone = "training rows, each scored without itself"
    assert page.rows("quality")[0] == ["", "all & sundry.parquet (seen)", alone]
    assert "estimated from leave-one-out scores" in page.text("summary")
    assert "FPCClassifier on all &amp; sundry.parquet" in page.html
    assert str(path) in page.text("data") and "open_data(" in page.text("reproduce")


def test_everything_of_the_user_is_escaped(tmp_path):
    y = np.where(Y > 0, EVIL, "b & c <!-- $x$")
    frame = pd.DataFrame(X, columns=["<img src=x>", "b'\"&"]).assign(target=y)
    path = tmp_path / "<script>odd.parquet"
    frame.to_parquet(path)
    source = open_data(path, target="target")
    clf = paper_classifier(
        2, calibration="sigmoid", class_weight={EVIL: 2.0, "b & c <!-- $x$": 1.0}
    )
    clf.fit(source)
    rows = (frame.drop(columns="target"), y)
    html = report(clf, {EVIL: source, "_$\\frac$": rows}, title=EVIL, command=EVIL)
    page = read(html)
    assert "<script" not in html and "<img src=x" not in html and "<!--" not in html
    for section in ("summary", "quality"):
        assert "_$\\frac$" in page.text(section)
    assert page.rows("confusion")[1][0] == shortened(EVIL, MAX_NAME_CHARACTERS)
    titles = [attrs.get("title") for _, attrs in page.tags]
    assert EVIL in titles
    assert EVIL in page.text("reproduce") and EVIL in page.text("confusion")
    assert "<img src=x>" in page.text("data") and "<script>odd.parquet" in page.text("data")
    assert "_$\\frac$" in unescape(svgs(page, "roc")[0])
    for svg in svgs(page):
        assert not {el.tag.rpartition("}")[2] for el in ElementTree.fromstring(svg).iter()} & {
            "script",
            "img",
        }


@pytest.mark.parametrize("names", [("日本", "한국"), ("a\x00\x1bb", "c\ud800d"), ("_a", "x" * 300)])
def test_odd_names_make_no_noise(names):
    y = np.array(names, dtype=object)[(Y > 0).astype(int)]
    clf = paper_classifier(2, calibration="sigmoid", random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = report(clf, {names[0]: (X, y), names[1]: (X, y)})
    page = read(html)
    html.encode("utf-8")
    if names[0] == "日本":
        assert "日本" in svgs(page, "roc")[0]
    if names[0] == "_a":
        assert "_a: AUC" in svgs(page, "roc")[0], "a legend leaves such names out"


def test_forecast(plain_model, undrawn, capsys):
    forecast = clone(plain_model).plan(*TRAIN)
    page = read(report(plain_model, TEST, forecast=forecast))
    assert seconds_text(forecast.seconds) in page.texts["cost"]
    assert size_text(forecast.peak_memory) in page.texts["cost"]
    assert size_text(forecast.memory_limit)[-2:] in page.texts["cost"]
    phases = {row[0]: row[2] for row in page.rows("cost")}
    for name, seconds in forecast.seconds_by_phase.items():
        measured = seconds_text(plain_model.timings_[name])
        assert phases[name] == measured + seconds_text(seconds)
    assert list(phases)[-1] == "everything else"


def test_what_is_not_known_of_memory(plain_model, undrawn):
    model = clone(plain_model)
    vars(model).update(vars(plain_model))
    model.training_summary_ = plain_model.training_summary_ | {"measured_memory": None}
    page = read(report(model, TEST))
    assert "not known" in page.text("cost") and "had been larger before" in page.text("cost")
    model.training_summary_ = model.training_summary_ | {"measured_memory": 12_345_678}
    assert "12.3\u00a0MB" in read(report(model, TEST)).texts["cost"]


def test_a_history_without_numbers_is_told_in_words():
    clf = paper_classifier(2, tol=0, max_iter=1, random_state=0).fit(*TRAIN)
    page = read(report(clf, TEST))
    assert svgs(page, "convergence") == []
    assert "There is no picture" in page.text("convergence") and "tol=0" in page.text("convergence")


def test_a_model_from_an_old_file(calibrated):
    """It has what prediction needs, and nothing more."""
    old = paper_classifier(**calibrated.get_params())
    needed = ("classes_", "coef_", "centers_", "n_centers_", "degree_", "scaler_")
    for name in (*needed, "n_features_in_", "calibrator_"):
        setattr(old, name, getattr(calibrated, name))
    page = read(report(old, TEST))
    wanted = [*ALWAYS[:2], *ALWAYS[3:6], "reliability", "importance", "model", *LAST]
    assert sections_of(page) == wanted
    assert "Training time" not in page.text("summary")
    assert "out of fold" not in svgs(page, "reliability")[0]


class TestColumns:
    """The section on columns, and what a report says of a table elsewhere."""

    @pytest.fixture
    def page(self):
        frame, y = every_kind()
        frame["outcome"] = y
        clf = paper_classifier(2, 40, columns={"since": "drop"}, random_state=0).fit(frame, y)
        return read(report(clf, (frame, y)))

    def test_each_column_has_its_row(self, page):
        heads, *rows = page.rows("columns")
        assert heads == ["column", "kind", "missing", "levels", "most frequent"]
        shown = {row[0]: row[1:] for row in rows}
        assert list(shown) == [*every_kind()[0], "outcome"]
        assert shown["row"] == ["identifier, left out", "", "", ""]
        assert shown["size"] == ["number", "", "", ""]
        assert shown["age"][0] == "number" and shown["age"][1].endswith("\u00a0%")
        assert shown["since"][0] == "left out"
        assert shown["colour"][2] == "4" and shown["colour"][3].startswith("red 4")
        assert shown["unit"] == ["constant, left out", "", "1", "cm 100\u00a0%"]
        text = page.text("columns")
        assert "2 numbers, 3 categories, 3 left out." in text
        assert "Column 'row' is left out: its values are all different." in text
        assert "Feature names" not in page.text("data"), "they are in the table"

    def test_a_leak_is_in_the_summary(self, page):
        said = "Column 'outcome' alone decides the label in 100.0 % of rows"
        assert said in page.text("summary") and said in page.text("columns")

    def test_levels_of_what_matters(self, page):
        tables = [rows for name, rows in page.tables if name == "importance"]
        assert any({"yes", "no"} == {row[0] for row in rows[1:]} for rows in tables)
        assert "Levels of outcome" in page.text("importance")
        assert "several coordinates" in page.text("importance")

    def test_plain_numbers_are_one_sentence(self, calibrated, undrawn):
        page = read(report(calibrated, TEST))
        assert page.text("columns") == "Columns 2 numbers."
        assert not [name for name, _ in page.tables if name == "columns"]

    def test_words_are_escaped(self, undrawn):
        frame, y = every_kind()
        frame[EVIL] = np.where(y == "yes", EVIL, "&lt;")
        clf = paper_classifier(1, 10, random_state=0).fit(frame, y)
        page = read(report(clf, (frame, y)))
        assert shortened(EVIL, 24) in page.rows("columns")[-1][-1]


def test_a_search_from_an_old_file(search, undrawn):
    old = FPCClassifierCV(**search.get_params())
    for name in ("best_estimator_", "classes_", "n_features_in_"):
        setattr(old, name, getattr(search, name))
    assert "search" not in sections_of(read(report(old, TEST)))


def test_the_snippet_reproduces_the_model(calibrated, undrawn):
    page = read(report(calibrated, TEST))
    code = page.texts["reproduce"].partition("from polysift")
    names = {"X": TRAIN[0], "y": TRAIN[1]}
    exec(code[1] + code[2], names)
    np.testing.assert_array_equal(names["model"].coef_, calibrated.coef_)
    assert "verbose" not in code[2] and "alpha" not in code[2] and "random_state=7" in code[2]


def test_parameters_of_every_kind(undrawn):
    centers = X[:5]
    clf = paper_classifier(
        degree=np.int64(2),
        centers=centers,
        random_state=np.random.RandomState(0),
        class_weight={1: 2.0, -1: np.float64(1.0)},
        warm_start=True,
        memory_limit="1GB",
    ).fit(*TRAIN)
    page = read(report(clf, TEST))
    values = dict(row for row in page.rows("model")[1:])
    assert values["centers"].startswith("ndarray of shape (5, 2)")
    assert values["class_weight"].startswith("{1: 2.0, -1: 1.0}") and values["tol"] == "None"
    assert 'default: "auto"' in values["degree"] and "0x" not in values["random_state"]
    code = page.text("reproduce")
    assert "centers=..., # ndarray of shape (5, 2)" in code and "degree=2," in code
    assert f"random_state={clf.random_state_}," in code
    assert "warm_start=True a fit continues" in code
    split = StratifiedKFold(3)
    search = FPCClassifierCV([1], [3], solvers=("paper",), scoring=lambda e, X, y: 0.5, cv=split)
    page = read(report(search.fit(*TRAIN), TEST))
    values = dict(row for row in page.rows("model")[1:])
    assert values["solvers"].startswith('("paper",)') and values["cv"].startswith("StratifiedKFold")
    assert "scoring=..., # <lambda>" in page.text("reproduce")


def test_a_given_command(plain_model, undrawn):
    page = read(report(plain_model, TEST, command="polysift fit --a 1\n  --b 2"))
    assert "polysift fit --a 1\n  --b 2" in page.texts["reproduce"]
    assert "from polysift" not in page.texts["reproduce"]


def masked(html):
    return re.sub(r"<time.*?</time>", "", html)


def test_the_same_model_gives_the_same_page(search, search_html, calibrated, calibrated_html):
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "black"}):  # those do not count
        again = report(search, {"training": TRAIN, "test": TEST}, title="Mine")
    assert masked(again) == masked(search_html)
    again = report(calibrated, {"training": TRAIN, "validation": TEST})
    assert masked(again) == masked(calibrated_html)


def test_the_file(tmp_path, plain_model, undrawn, monkeypatch):
    path = tmp_path / "model.html"
    html = report(plain_model, TEST, path)
    assert path.read_text(encoding="utf-8") == html
    with pytest.raises(FileExistsError, match="overwrite=True"):
        report(plain_model, TEST, path)
    report(plain_model, TEST, path, overwrite=True, title="Other")
    assert "<h1>Other</h1>" in path.read_text(encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("polysift.runtime.outputs.os.fsync", fail)
    before = path.read_bytes()
    with pytest.raises(OSError, match="disk full"):
        report(plain_model, TEST, path, overwrite=True)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        report(plain_model, TEST, tmp_path / "no" / "x.html")


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (
            X,
            TypeError,
            r"data must be a source .* got a ndarray of shape \(400, 2\), without label",
        ),
        ([X, Y], TypeError, "data must be .* got a list"),
        (pd.DataFrame(X), TypeError, "got a DataFrame of shape"),
        (None, TypeError, "got a NoneType"),
        ((X,), TypeError, "got a tuple of 1"),
        ({"a": {"b": TEST}}, TypeError, r"data\['a'\] must be .* got a dict"),
        ({}, ValueError, "empty dict"),
        ((X, Y[:5]), ValueError, "inconsistent numbers"),
    ],
)
def test_wrong_data(plain_model, data, error, message):
    with pytest.raises(error, match=message):
        report(plain_model, data)


def test_an_error_names_the_data_set(plain_model):
    with pytest.raises(ValueError, match="features") as caught:
        report(plain_model, {"good": TEST, "bad": (X[:, :1], Y)})
    assert "'bad'" in caught.value.__notes__[0]


def test_a_source_without_labels(tmp_path, plain_model):
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="without labels.*target"):
        report(plain_model, open_data(tmp_path / "x.parquet"))


def test_wrong_models(plain_model, search):
    with pytest.raises(NotFittedError, match="FPCClassifier instance is not fitted"):
        report(paper_classifier(), TEST)
    with pytest.raises(NotFittedError, match="FPCClassifierCV instance is not fitted"):
        report(clone(search), TEST)
    with pytest.raises(TypeError, match="got LogisticRegression"):
        report(LogisticRegression(), TEST)
    with pytest.raises(TypeError, match=r"got Pipeline\. .*pipeline\[-1\]"):
        report(make_pipeline(plain_model), TEST)
    with pytest.raises(TypeError, match="got the class FPCClassifier"):
        report(FPCClassifier, TEST)
    with pytest.raises(TypeError, match="forecast must be a Forecast.*got float"):
        report(plain_model, TEST, forecast=1.0)
    only = FPCClassifierCV((1, 2), (3,), solvers="paper", cv=0.3, refit=False).fit(*TRAIN)
    with pytest.raises(ValueError, match="refit=False made none. Set refit=True"):
        report(only, TEST)


def test_without_matplotlib(plain_model, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'polysift\[plots\]'"):
        report(plain_model, TEST, tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (share_text(0.8764), "87.6 %"),
        (share_text(1.0), "100.0 %"),
        (share_text(0.99997), "99.997 %"),
        (share_text(0.0), "0.0 %"),
        (share_text(0.0001, 1), "0.01 %"),
        (share_text(None), "\u2013"),
        (seconds_text(0.0012), "1.2 ms"),
        (seconds_text(1.234), "1.23 s"),
        (seconds_text(61.26), "61.3 s"),
        (seconds_text(600), "10.0 min"),
        (seconds_text(9000), "2.5 h"),
        (size_text(12), "12 bytes"),
        (size_text(12_345_678), "12.3 MB"),
        (size_text(999_999), "1.00 MB"),
        (size_text(123_456), "123 kB"),
        (size_text(5.4e12), "5,400 GB"),
        (shortened("a" * 30 + "z", 9), "aaaa\u2026aaaz"),
    ],
)
def test_numbers_as_people_read_them(text, expected):
    assert text.replace("\u00a0", " ") == expected

"""Drift: rows against the training rows of a model, column by column."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import polysift
from polysift import FPCClassifierCV, PolynomialKernelMap, drift, open_data
from polysift.data.source import ArraySource
from polysift.features import levels
from polysift.reporting.drift import is_much
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")


def numbers(rng, m=2000, d=3):
    X, y = noisy_problem(rng, m, d)
    return X, y, paper_classifier(2, 30, random_state=0).fit(X, y)


def frame(rng, m=2000):
    """Return a table of all kinds of columns, and labels."""
    days = np.datetime64("2024-01-01") + rng.integers(0, 365, m).astype("timedelta64[D]")
    made = pd.DataFrame(
        {
            "age": rng.integers(18, 80, m).astype(float),
            "color": rng.choice(["red", "green", "blue"], m),
            "day": days,
            "size": np.where(rng.random(m) < 0.1, np.nan, rng.random(m)),
            "who": rng.choice([f"name {i}" for i in range(400)], m),
            "same": "same",
        }
    )
    return made, np.where(made["age"] + rng.normal(0, 20, m) > 50, "yes", "no")


@pytest.fixture
def table(rng):
    X, y = frame(rng)
    return X, paper_classifier(2, 50, random_state=0).fit(X, y)


def column(found, name):
    return next(column for column in found.columns if column.name == name)


class TestNumbers:
    def test_the_training_rows_do_not_differ(self, rng):
        X, _, clf = numbers(rng)
        found = drift(clf, X)
        assert found.rows == 2000 and found.sentences == () and found.summary == ""
        assert all(part.below == part.above == part.missing == 0 for part in found.columns)
        np.testing.assert_array_equal(clf.column_ranges_, [X.min(axis=0), X.max(axis=0)])

    def test_other_rows_of_the_same_distribution_do_not_differ(self, rng):
        X, y = noisy_problem(rng, 600, 20)
        clf = paper_classifier(1, 10, random_state=0).fit(X[:60], y[:60])
        assert drift(clf, X[60:]).sentences == ()

    def test_shares_beyond_the_range(self, rng):
        X, _, clf = numbers(rng)
        moved = X.copy()
        moved[:500, 0], moved[:100, 1], moved[:200, 2] = 2.5, -0.25, np.nan
        found = drift(clf, moved)
        first, second, third = found.columns
        assert (first.name, first.kind) == ("x0", "number")
        assert (first.low, first.high) == (X[:, 0].min(), X[:, 0].max())
        assert (first.below, first.above) == (0.0, 0.25)
        assert (second.below, second.above) == (0.05, 0.0)
        assert (third.missing, third.trained_missing) == (0.1, 0.0)
        assert found.differing == 3 and len(found.sentences) == 3
        assert found.sentences[0].startswith("x0: 25.0 % of the rows are above 0.99")
        assert "smallest value of the training rows" in found.sentences[1]
        assert found.sentences[2] == (
            "x2: 10.0 % of the rows lack a value; of the training rows 0.0 % did."
        )

    def test_sparse_rows(self, rng):
        X, y, _ = numbers(rng)
        X[X < 0.3] = 0.0
        X[:, 2] += 1.0  # without zeros
        clf = paper_classifier(2, 20, random_state=0).fit(sp.csr_matrix(X), y)
        moved = X.copy()
        moved[:300, 0], moved[300:500, 1], moved[:400, 2] = 5.0, -1.0, 0.0
        sparse, dense = drift(clf, sp.csr_matrix(moved)), drift(clf, moved)
        assert [part.below for part in sparse.columns] == pytest.approx([0.0, 0.1, 0.2])
        assert [part.above for part in sparse.columns] == pytest.approx([0.15, 0.0, 0.0])
        assert sparse.sentences == dense.sentences

    @pytest.mark.parametrize(("fitted", "given"), [("f4", "f8"), ("f8", "f4")])
    def test_rounding_to_float32_is_no_drift(self, rng, fitted, given):
        X = rng.choice([0.1, 0.7], (500, 2))
        y = X[:, 0] > X[:, 1]
        clf = paper_classifier(2, 3, random_state=0).fit(X.astype(fitted), y)
        assert drift(clf, X.astype(given)).sentences == ()

    def test_a_constant_column_is_not_looked_at(self, rng):
        X, y, _ = numbers(rng)
        X[:, 1] = 3.0
        clf = paper_classifier(2, 30, random_state=0).fit(X, y)
        X[:, 1] = 4.0
        assert [part.name for part in drift(clf, X).columns] == ["x0", "x2"]


class TestTables:
    def test_the_training_rows_do_not_differ(self, table):
        X, clf = table
        found = drift(clf, X)
        assert found.sentences == ()
        kinds = {part.name: part.kind for part in found.columns}
        assert kinds == {
            "age": "number",
            "color": "category",
            "day": "date",
            "size": "number",
            "who": "encoded category",
        }
        assert column(found, "size").missing == column(found, "size").trained_missing > 0.05
        assert column(found, "color").unseen == 0.0 and column(found, "color").below is None

    def test_unseen_levels(self, table):
        X, clf = table
        X = X.copy()
        X.loc[:99, "color"], X.loc[100:149, "color"], X.loc[150:159, "color"] = "grey", "pink", "x"
        X.loc[160, "color"] = "rare"
        found = column(drift(clf, X), "color")
        assert found.unseen == pytest.approx(161 / 2000)
        assert found.unseen_words == (("grey", 0.05), ("pink", 0.025), ("x", 0.005))
        assert found.sentences == (
            "color: 8.1 % of the rows have a level that the training rows did not have, most often "
            "'grey' (5.0 %), 'pink' (2.5 %), 'x' (0.5 %).",
        )

    def test_levels_that_are_new_as_often_as_expected(self, rng):
        """Of a column of names, some of further rows are always new."""
        names = np.array([f"name {i}" for i in range(3000)], dtype=object)
        X = pd.DataFrame({"who": rng.choice(names, 6000), "x": rng.random(6000)})
        clf = paper_classifier(2, 20, random_state=0).fit(X[:3000], rng.random(3000) < 0.5)
        found = column(drift(clf, X[3000:]), "who")
        assert found.unseen == pytest.approx(clf.unseen_shares_[0], abs=0.03)
        assert found.unseen > 0.3 and not found.sentences

    def test_dates(self, table):
        X, clf = table
        X = X.assign(day=X["day"] + pd.Timedelta(days=100))
        found = column(drift(clf, X), "day")
        assert found.above == pytest.approx(100 / 365, abs=0.05)
        assert datetime.fromtimestamp(found.high, UTC).date().isoformat() == "2024-12-30"
        assert "are above 2024-12-30 00:00, the largest value" in found.sentences[0]

    def test_missing_values(self, table):
        X, clf = table
        X = X.copy()
        X.loc[:599, "size"] = np.nan
        X.loc[:399, "color"] = None
        found = drift(clf, X)
        assert column(found, "size").missing > 0.3
        assert column(found, "color").missing == 0.2 and column(found, "color").unseen == 0.0
        assert found.differing == 2

    def test_many_levels(self, rng, monkeypatch):
        """Levels beyond those that are counted are neither missing nor a surprise."""
        monkeypatch.setattr(levels, "MAX_COUNTED_LEVELS", 50)
        X, y = frame(rng)
        clf = paper_classifier(2, 50, max_levels=10, random_state=0).fit(X[:1500], y[:1500])
        who = column(drift(clf, X[1500:]), "who")
        assert clf.column_kinds_[4] == "encoded category"
        assert who.missing == who.trained_missing == 0.0
        assert who.unseen > 0.7 and not who.sentences

    def test_levels_of_any_number_keep_memory_bounded(self, table, monkeypatch):
        monkeypatch.setattr(levels, "MAX_COUNTED_LEVELS", 20)
        X, clf = table
        X = X.assign(color=[f"new {i}" for i in range(len(X))])
        found = column(drift(clf, X), "color")
        assert found.unseen == 1.0 and len(found.unseen_words) == 3


class TestSources:
    @pytest.mark.needs("pyarrow", "pandas")
    def test_files_are_read_shard_by_shard(self, table, tmp_path):
        X, clf = table
        X = pd.concat([X] * 5, ignore_index=True)
        X.loc[:2999, "color"] = "grey"
        X.to_parquet(tmp_path / "rows.parquet", row_group_size=1000)
        expected = drift(clf, X).to_dict()
        assert expected["rows"] == 10_000 and len(expected["sentences"]) == 1
        assert drift(clf, open_data(tmp_path / "rows.parquet")).to_dict() == expected

    def test_weights_count(self, rng):
        X, _, clf = numbers(rng)
        X[:500, 0] = 7.0
        weights = np.ones(len(X))
        weights[:500] = 3.0
        weights[1500:] = 0.0
        found = drift(clf, ArraySource(X, sample_weight=weights)).columns[0]
        assert found.above == pytest.approx(1500 / 2500)
        for factor in (1e300, 1e-300):
            scaled = drift(clf, ArraySource(X, sample_weight=weights * factor)).columns[0]
            assert scaled.above == pytest.approx(found.above) and scaled.sentences
        with pytest.raises(ValueError, match="All weights are zero"):
            drift(clf, ArraySource(X, sample_weight=0 * weights))

    def test_some_rows_of_many(self, rng):
        X, _, clf = numbers(rng)
        X = np.tile(X, (20, 1))
        X[:20_000, 1] = 9.0
        found = drift(clf, X, max_rows=5_000)
        assert found.rows == 6_000  # three shards of twenty
        assert found.columns[1].above == pytest.approx(0.5, abs=0.2)
        with pytest.raises(ValueError, match="max_rows must be"):
            drift(clf, X, max_rows=0)

    def test_an_infinity_is_named(self, rng):
        X, _, clf = numbers(rng)
        X[7, 1] = np.inf
        with pytest.raises(ValueError, match=r"infinity in column 1, first in row 7"):
            drift(clf, X)


class TestModels:
    def test_a_search(self, rng):
        X, y, _ = numbers(rng)
        search = FPCClassifierCV(degrees=1, solvers="paper", n_centers=5, random_state=0).fit(X, y)
        assert drift(search, X + 5).differing == 3

    def test_what_is_no_classifier(self, rng):
        X, _, _ = numbers(rng)
        with pytest.raises(TypeError, match="FPCClassifier or FPCClassifierCV"):
            drift(PolynomialKernelMap().fit(X), X)

    def test_a_model_without_ranges_says_so(self, rng):
        """As one that was saved before there were any."""
        X, _, clf = numbers(rng)
        for name in ("column_ranges_", "column_kinds_", "unseen_shares_", "training_summary_"):
            delattr(clf, name)
        X[:1000, 0] = np.nan
        found = drift(clf, X + 5)
        assert "cannot be told" in found.untold[0] and "cannot be told" in str(found)
        assert found.columns[1].below is None and found.columns[1].low is None
        assert len(found.sentences) == 1 and "lack a value" in found.sentences[0]

    def test_a_file_of_the_first_format(self, rng):
        files = Path(__file__).resolve().parents[1] / "persistence" / "files"
        clf = polysift.load(files / "format1-isotonic.polysift")
        found = drift(clf, pd.DataFrame(rng.random((50, 2)) + 9, columns=clf.feature_names_in_))
        assert "cannot be told" in found.untold[0] and found.sentences == ()

    def test_a_saved_model(self, table, tmp_path):
        X, clf = table
        polysift.save(clf, tmp_path / "model.polysift")
        loaded = polysift.load(tmp_path / "model.polysift")
        X = X.assign(age=X["age"] + 30)
        assert drift(loaded, X).to_dict() == drift(clf, X).to_dict()

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("column_ranges_", np.ones((2, 2)), "must have shape"),
            ("column_ranges_", np.array([[1.0] * 3, [0.0] * 3]), "smallest and the largest"),
            ("column_ranges_", np.array([[1.0] * 3, [np.nan] * 3]), "smallest and the largest"),
            ("column_ranges_", np.array([[-np.inf] * 3, [np.inf] * 3]), "must be finite"),
            ("unseen_shares_", np.array([0.0, 2.0, 0.0]), "must be shares"),
            ("column_kinds_", np.array(["number", "what", "date"], dtype=object), "must be words"),
        ],
    )
    def test_what_no_fit_records_is_refused(self, rng, tmp_path, name, value, message):
        _, _, clf = numbers(rng)
        setattr(clf, name, value)
        with pytest.raises(polysift.ModelFileError, match=message):
            polysift.save(clf, tmp_path / "model.polysift")


class TestResult:
    def test_print(self, table):
        X, clf = table
        X = X.assign(age=X["age"] + 30)
        found = drift(clf, X)
        lines = str(found).splitlines()
        assert lines[0] == "2,000 rows against the training rows"
        assert lines[2].split()[0] == "age" and lines[2].endswith("much")
        assert lines[-1] == found.sentences[0]
        assert repr(found) == "<Drift: 2,000 rows, 1 of 5 columns differ much>"
        assert found._repr_html_().startswith("<pre>2,000 rows")
        assert found.summary.startswith("1 of 5 columns differs much from the training rows, as in")
        assert "No column differs much" in str(drift(clf, X.assign(age=50.0)))

    def test_print_shows_those_of_many_columns_that_differ_most(self, rng):
        X, y, _ = numbers(rng, m=300, d=40)
        clf = paper_classifier(1, 5, random_state=0).fit(X, y)
        X[:, 35] = 9.0
        lines = str(drift(clf, X)).splitlines()
        assert lines[0].endswith("the 30 of 40 columns that differ most")
        assert lines[2].startswith("x35 ") and len(lines) == 2 + 30 + 2

    def test_names_and_words_cannot_drive_a_terminal(self, rng):
        X = pd.DataFrame({"a\x1b[2J": rng.choice(["x", "y"], 300), "b": rng.random(300)})
        clf = paper_classifier(1, 3, random_state=0).fit(X, X["b"] > 0.5)
        X.iloc[:, 0] = "evil\x1b[2J"
        assert "\x1b" not in str(drift(clf, X))

    def test_plain_values(self, table):
        X, clf = table
        found = drift(clf, X.assign(color="grey"))
        again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert again["columns"][1]["unseen_words"] == [["grey", 1.0]]
        assert again["sentences"] == list(found.sentences) and again["untold"] == []

    @pytest.mark.parametrize(
        ("share", "before", "n", "m", "much"),
        [
            (0.05, 0.0, 10_000, 10_000, True),
            (0.009, 0.0, 1_000_000, 1_000_000, False),  # less than 1 % of the rows
            (0.05, 0.0, 100, 10_000, False),  # five rows
            (1.0, 0.0, 1, 10_000, False),  # one row proves nothing
            (1.0, 0.0, 5, 10_000, True),
            (0.25, 0.2, 10_000, 10_000, True),
            (0.25, 0.2, 10_000, 100, False),  # too few in training
            (0.1, 0.3, 10_000, 10_000, False),  # less than before
        ],
    )
    def test_the_rule(self, share, before, n, m, much):
        assert is_much(share, before, n, m) == much

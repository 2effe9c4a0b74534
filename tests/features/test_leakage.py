"""Columns that nearly decide the label alone: found, and honest ones not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from every_kind import every_kind
from polysift import FPCClassifierCV, open_data
from polysift.features.leakage import MAX_SAMPLED_ROWS
from polysift.features.sampled_rows import is_sampled, is_sampled_at
from problems import optional, paper_classifier

pd = optional("pandas")

HONEST = [
    *("banknote", "breast_cancer", "htru2", "magic", "occupancy", "seismic_bumps"),
    *("tables/attrition", "tables/credit_data", "tables/keel_mammographic", "tables/keel_splice"),
]


def leaks(frame, y, **more):
    """Return what a fit says about columns that decide the label."""
    model = paper_classifier(1, 10, random_state=0).fit(frame, y, **more)
    return [note for note in model.column_notes_ if "alone decides the label" in note]


@pytest.fixture
def table():
    frame, y = every_kind(1000)
    return frame, y


class TestWhatIsFound:
    def test_a_category(self, table):
        frame, y = table
        assert leaks(frame, y) == []
        said = leaks(frame.assign(outcome=np.where(y == "yes", "kept", "lost")), y)
        assert said == [
            "column 'outcome' alone decides the label in 100.0 % of rows: is it known before the "
            "label is?"
        ]

    def test_a_number_beyond_a_border(self, table):
        frame, y = table
        rng = np.random.default_rng(0)
        cost = np.where(y == "yes", rng.uniform(5, 9, 1000), rng.uniform(0, 5, 1000))
        assert len(leaks(frame.assign(cost=cost), y)) == 1

    def test_a_value_that_is_there_only_afterwards(self, table):
        frame, y = table
        paid = np.where(y == "yes", np.random.default_rng(0).normal(size=1000), np.nan)
        assert len(leaks(frame.assign(paid=paid), y)) == 1

    def test_nearly(self, table):
        frame, y = table
        rng = np.random.default_rng(0)
        for wrong, count in ((0.003, 1), (0.05, 0)):
            code = np.where(rng.random(1000) < wrong, y != "yes", y == "yes")
            assert len(leaks(frame.assign(code=code), y)) == count

    def test_three_classes(self, table):
        frame, y = table
        y = np.where(frame["colour"] == "red", "r", y)
        assert leaks(frame, y) == []
        assert len(leaks(frame.assign(code=[f"is {label}" for label in y]), y)) == 1


class TestWhatIsNot:
    def test_columns_that_are_left_out(self, table):
        frame, y = table
        frame = frame.assign(outcome=y)
        model = paper_classifier(1, 10, columns={"outcome": "drop"}, random_state=0).fit(frame, y)
        assert model.column_notes_ == [
            "column 'row' is left out: its values are all different.",
            "column 'unit' is left out: it has the same value in every row.",
            "column 'outcome' is left out, as asked for.",
        ]

    def test_many_levels_of_chance(self, table):
        frame, y = table
        names = [f"name {k}" for k in np.random.default_rng(0).integers(0, 500, 1000)]
        assert leaks(frame.assign(name=names), y) == []

    def test_few_rows_and_a_rare_class(self, table):
        frame, y = table
        leaky = frame.assign(outcome=y)
        assert leaks(leaky[:150], y[:150]) == []
        rare = np.arange(1000) < 10
        assert leaks(frame.assign(outcome=rare), rare) == []

    def test_columns_without_names_are_not_tried(self, table):
        _, y = table
        X = np.stack([y == "yes", np.arange(1000) % 7], axis=1).astype(float)
        assert leaks(X, y) == []

    @pytest.mark.parametrize("name", HONEST)
    def test_real_data(self, name):
        path = Path(os.environ.get("POLYSIFT_DATA", ".")) / f"{name}.parquet"
        if not path.exists():
            pytest.skip(f"{name}.parquet is not at hand")
        pytest.importorskip("pyarrow")
        frame = pd.read_parquet(path)
        assert leaks(frame.drop(columns="target"), frame["target"].to_numpy()) == []


class TestTheSample:
    def test_is_the_same_however_the_rows_are_cut(self):
        whole = is_sampled_at(0, 100_000, 0.1, 7)
        parts = [is_sampled_at(first, 12_500, 0.1, 7) for first in range(0, 100_000, 12_500)]
        assert np.concatenate(parts).tolist() == whole.tolist()
        assert abs(whole.sum() - 10_000) < 400
        assert is_sampled_at(0, 100, 1.0, 7).all()
        assert (is_sampled_at(0, 100_000, 0.1, 8) != whole).any()

    def test_by_content_neither_order_nor_repetition_matter(self):
        rng = np.random.default_rng(0)
        X, order = rng.normal(size=(20_000, 3)), rng.permutation(20_000)
        chosen = is_sampled(X, 0.1, 7)
        assert abs(chosen.sum() - 2000) < 200
        assert is_sampled(X[order], 0.1, 7).tolist() == chosen[order].tolist()
        assert is_sampled(np.repeat(X, 2, axis=0), 0.1, 7).tolist() == np.repeat(chosen, 2).tolist()
        assert is_sampled(X, 1.0, 7).all() and (is_sampled(X, 0.1, 8) != chosen).any()

    @pytest.mark.needs("pyarrow")
    def test_threads_and_files_say_the_same(self, tmp_path):
        rng = np.random.default_rng(0)
        m = 3 * MAX_SAMPLED_ROWS
        y = rng.random(m) < 0.3
        frame = pd.DataFrame({"a": rng.normal(size=m), "b": np.where(rng.random(m) < 0.004, ~y, y)})
        one, two = (leaks_of(frame, y, n_jobs=n) for n in (1, 2))
        frame.assign(y=y).to_parquet(tmp_path / "rows.parquet", row_group_size=1000)
        filed = leaks_of(open_data(tmp_path / "rows.parquet", target="y"), None)
        assert one == two == filed and len(one) == 1
        assert "99." in one[0], "it is not decided in all rows"

    def test_rows_of_weight_zero_do_not_count(self, table):
        frame, y = table
        outcome = np.where(np.arange(1000) < 600, y, "no")
        weights = np.where(np.arange(1000) < 600, 1.0, 0.0)
        assert leaks(frame.assign(outcome=outcome), y) == []
        assert len(leaks(frame.assign(outcome=outcome), y, sample_weight=weights)) == 1

    def test_a_search_says_it_too(self, table):
        frame, y = table
        search = FPCClassifierCV(1, 10, solvers="paper", cv=3, random_state=0)
        search.fit(frame.assign(outcome=y), y)
        assert "alone decides" in search.best_estimator_.column_notes_[-1]


def leaks_of(X, y, **params):
    """Return the notes of a fit with other parameters."""
    model = paper_classifier(1, 10, random_state=0, **params)
    return (model.fit(X) if y is None else model.fit(X, y)).column_notes_


def test_they_are_shown_with_progress(table, capsys):
    frame, y = table
    paper_classifier(1, 10, random_state=0, verbose=1).fit(frame.assign(outcome=y), y)
    shown = capsys.readouterr().err
    assert "polysift: column 'row' is left out: its values are all different." in shown
    assert "polysift: column 'outcome' alone decides the label in 100.0 % of rows" in shown

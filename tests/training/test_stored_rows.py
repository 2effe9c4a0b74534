"""Rows of files, stored as floats: the same model as from rows that are read in every pass."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from polysift import FPCClassifierCV, open_data  # noqa: E402
from polysift.engine.backend import LOCAL  # noqa: E402
from polysift.engine.budget import Execution, Shape, fit_in, peak_bytes  # noqa: E402
from polysift.training import stored_rows  # noqa: E402
from problems import paper_classifier  # noqa: E402

M = 30_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    word = np.array([f"w{i}" for i in range(300)])[rng.integers(0, 300, M)]
    table = pd.DataFrame({"x": rng.normal(size=M), "few": rng.choice(["a", "b"], M), "many": word})
    table["y"] = np.where(table["x"] + (table["few"] == "a") + rng.normal(size=M) > 0, "p", "n")
    made = tmp_path_factory.mktemp("stored") / "table.parquet"
    table.to_parquet(made, row_group_size=7_000)
    return made


def fitted(path, **params):
    return paper_classifier(2, 40, random_state=0, **params).fit(open_data(path, target="y"))


@pytest.fixture
def unstored(monkeypatch):
    """Return a function that fits to rows that are read in every pass."""

    def fit(path, **params):
        with monkeypatch.context() as patch:
            patch.setattr(stored_rows, "is_stored", lambda *_: False)
            return fitted(path, **params)

    return fit


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.centers_, other.centers_)


@pytest.mark.parametrize("params", [{}, {"calibration": "sigmoid"}, {"n_jobs": 1}])
def test_the_same_model(path, unstored, params):
    same(fitted(path, **params), unstored(path, **params))


def test_each_row_group_is_read_once(path, monkeypatch):
    from polysift.data import arrow_units

    loaded, load = [], arrow_units.load_unit

    def counted(unit, columns):
        loaded.append((unit.first_row, tuple(columns)))
        return load(unit, columns)

    source = open_data(path, target="y")
    assert source.types is not None  # which looks into the text
    monkeypatch.setattr(arrow_units, "load_unit", counted)
    paper_classifier(2, 40, random_state=0, max_iter=4, tol=0).fit(source)
    assert len(loaded) == len(set(loaded)) == 5


@pytest.mark.parametrize("fails", [0, 2, 5])
def test_a_full_disk(path, unstored, monkeypatch, fails):
    """Rows are read in every pass then, whether the survey or the pass for levels met it."""
    shards = len(open_data(path, target="y").shards())
    calls, write = [], os.pwrite

    def full(*args):
        calls.append(args)
        if len(calls) > fails + shards * (fails == 5):
            raise OSError(28, "No space left on device")
        return write(*args)

    expected = unstored(path)
    monkeypatch.setattr(os, "pwrite", full)
    same(fitted(path), expected)
    assert len(calls) > fails


def test_a_search(path, monkeypatch):
    params = {"degrees": (1, 2), "n_centers": 30, "scalers": "minmax", "solvers": "paper"}
    source = open_data(path, target="y")
    one = FPCClassifierCV(**params, cv=3, random_state=0).fit(source)
    monkeypatch.setattr(stored_rows, "is_stored", lambda *_: False)
    other = FPCClassifierCV(**params, cv=3, random_state=0).fit(source)
    same(one.best_estimator_, other.best_estimator_)
    assert one.best_score_ == other.best_score_


def test_a_unit_counts_in_the_survey_alone(path):
    """Later passes read floats: what is decoded in the survey and what is held after it differ."""
    source = open_data(path, target="y")
    stored = replace(Shape.of(source, 40, 1, weighted=False, quantiles=True), decoded_once=True)
    threads = Execution(2, 4)
    read = replace(stored, decoded_once=False)
    for shape in (stored, replace(stored, rows=10**7), replace(stored, centers=2_000)):
        again = replace(shape, decoded_once=False)
        plain = replace(again, unit_bytes=0)
        assert peak_bytes(plain, threads) <= peak_bytes(again, threads)
        assert peak_bytes(shape, threads) < peak_bytes(again, threads)
    large = replace(stored, centers=2_000)  # the fit needs more than the survey
    assert peak_bytes(large, threads) == peak_bytes(replace(large, unit_bytes=0), threads)
    limit = peak_bytes(stored, threads)
    assert fit_in(limit, stored, 2) == threads and fit_in(limit, read, 2) != threads


def test_rows_that_could_not_be_stored_count_in_every_pass(path, tmp_path):
    source = open_data(path, target="y")
    with (tmp_path / "rows").open("wb") as file:
        rows = stored_rows.StoredRows(source, file)
        assert stored_rows.is_stored(rows, LOCAL)
        rows.writable = False
        assert not stored_rows.is_stored(rows, LOCAL)


def test_the_forecast_has_the_file(path):
    source = open_data(path, target="y")
    forecast = paper_classifier(2, 40).plan(source, show=False)
    assert forecast.disk == 8 * 3 * M + (8 * M if forecast.spilled else 0)

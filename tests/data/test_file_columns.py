"""Columns of files of types that differ between files, or are rare: the model of their rows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from polysift import open_data
from problems import optional, paper_classifier

pytest.importorskip("pyarrow")
pd = optional("pandas")
pa = optional("pyarrow")
pq = optional("pyarrow.parquet")
feather = optional("pyarrow.feather")


@pytest.fixture
def frame(rng):
    X = rng.normal(size=(600, 3))
    return pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(
        label=np.where(X[:, 0] > 0, "good", "bad")
    )


def classifier():
    return paper_classifier(degree=2, n_centers=9, random_state=0)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_files_of_which_some_lack_values(frame, tmp_path, ending):
    """A column may be empty in the first files, or whole numbers there and not in others."""
    word = np.where(frame["x1"] > 0, "high", "low")
    whole = frame.assign(word=word, count=np.arange(len(frame)) % 7 + 0.0, lower=1)
    half = len(frame) // 2
    first = whole[:half].assign(word=None, count=whole["count"][:half].astype(int))
    last = whole[half:].assign(word=word[half:], count=whole["count"][half:] + 0.5, lower=None)
    for name, part in (("a", first), ("b", last)):
        table = pa.Table.from_pandas(part, preserve_index=False)
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(table, path)
        else:
            feather.write_feather(table, path)
    joined = pd.concat([first, last], ignore_index=True)
    expected = classifier().fit(joined.drop(columns="label"), joined["label"].to_numpy())
    found = classifier().fit(open_data(tmp_path, target="label"))
    np.testing.assert_array_equal(found.column_kinds_, expected.column_kinds_)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize("kind", ["time", "duration", "binary", "truth"])
def test_columns_of_further_types(frame, tmp_path, kind):
    few = np.arange(len(frame)) % 5
    column = {
        "time": pa.array([dt.time(int(v), 30) for v in few]),
        "duration": pa.array([dt.timedelta(hours=int(v)) for v in few]),
        "binary": pa.array([b"\xff%d" % v for v in few]),
        "truth": pa.array(few > 2),
    }[kind]
    table = pa.Table.from_pandas(frame, preserve_index=False).append_column("odd", column)
    pq.write_table(table, tmp_path / "t.parquet")
    asked = {"odd": "number"} if kind == "truth" else None
    found = classifier().fit(open_data(tmp_path / "t.parquet", target="label", columns=asked))
    model = classifier().set_params(columns=asked)
    expected = model.fit(table.drop_columns("label"), frame["label"].to_numpy())
    assert found.column_kinds_[-1] == ("category" if kind == "binary" else "number")
    np.testing.assert_array_equal(found.coef_, expected.coef_)

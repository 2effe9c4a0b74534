"""Columns of odd types in memory: a right model, or an error that names column and remedy."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from pathlib import PurePosixPath

import numpy as np
import pytest

from polysift import FPCClassifier
from problems import optional, paper_classifier

pd = pytest.importorskip("pandas")
pa = optional("pyarrow")
pl = optional("polars")

M = 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=M)
Y = (X > 0).astype(int)
FEW = RNG.integers(0, 4, M)
GAPS = RNG.random(M) < 0.2


class Color(enum.Enum):
    """Some values."""

    RED, BLUE = 1, 2


def fitted(column, y=Y, **params):
    table = pd.DataFrame({"a": X, "odd": column})
    model = paper_classifier(2, n_centers=20, random_state=0, **params).fit(table, y)
    assert model.predict(table).shape == (M,)
    return model


def series(values, dtype=None):
    return pd.Series(values, dtype=dtype).mask(GAPS)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (series(FEW, "Int64"), "number"),
        (series(FEW > 1, "boolean"), "category"),
        (np.where(GAPS, None, FEW > 1), "category"),
        (series(FEW.astype(str), "string[python]"), "category"),
        (
            [None if gap else Decimal(int(v)) / 3 for v, gap in zip(FEW, GAPS, strict=True)],
            "number",
        ),
        ([dt.time(int(v), 30) for v in FEW], "number"),
        (series(pd.to_timedelta(FEW, unit="h")), "number"),
        (pd.period_range("1950-01", periods=M, freq="M"), "date"),
        (pd.cut(X, 4), "category"),
        (pd.Categorical(FEW), "category"),
        ([uuid.UUID(int=int(v)) for v in FEW], "category"),
        ([PurePosixPath(f"f{v}") for v in FEW], "category"),
        ([Color.RED if v else Color.BLUE for v in FEW], "category"),
        ([b"left" if v else b"right" for v in FEW], "category"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_that_can_be_read(column, kind):
    assert list(fitted(column).column_kinds_) == ["number", kind]


@pytest.mark.parametrize(
    "value", [[1, 2], {"k": 1}, {1}, np.arange(2), 1 + 2j, object()], ids=lambda v: type(v).__name__
)
def test_values_that_cannot(value):
    column = [value if row == 7 else "text" for row in range(M)]
    with pytest.raises(TypeError, match=r"'odd' holds .* in row 7 .*columns=\{...: 'drop'\}"):
        fitted(column)
    assert list(fitted(column, columns={"odd": "drop"}).column_kinds_) == ["number", "drop"]


def test_all_that_cannot_in_one_message():
    table = pd.DataFrame({"a": X, "one": [[1]] * M, "two": [{"k": 1}] * M, "3": ["7 of 9"] * M})
    with pytest.raises(ValueError, match="'one' holds .*'two' holds .*'3' holds"):
        FPCClassifier(columns={"3": "number"}).fit(table, Y)


def test_what_a_model_meets_later():
    model = fitted(FEW.astype(str))
    with pytest.raises(TypeError, match=r"column 'odd' holds \[1\] of type list in row 0"):
        model.predict(pd.DataFrame({"a": X, "odd": [[1]] * M}))
    with pytest.raises(ValueError, match="several columns with the name 'a'"):
        model.predict(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]))


@pytest.mark.parametrize(
    "truths",
    [FEW > 1, series(FEW > 1, "boolean"), series(FEW > 1, object)],
    ids=["bool", "boolean", "object"],
)
def test_truth_values_are_numbers_if_asked_for(truths):
    model = fitted(truths, columns={"odd": "number"})
    assert model.column_kinds_[1] == "number"
    numbers = [np.nan if value is pd.NA else float(value) for value in truths]
    as_numbers = fitted(numbers)
    np.testing.assert_array_equal(model.coef_, as_numbers.coef_)


def test_integers_beyond_floats_are_infinite():
    with pytest.raises(ValueError, match="infinity in column 'odd', first in row 0"):
        fitted([10**400] * M)


def test_structured_arrays():
    rows = np.zeros(M, dtype=[("a", float), ("b", "U1"), ("c", "M8[D]")])
    rows["a"], rows["b"] = X, FEW.astype(str)
    rows["c"] += np.arange(M)
    model = FPCClassifier(random_state=0, n_centers=20).fit(rows, Y)
    assert list(model.column_kinds_) == ["number", "category", "date"]
    frame = pd.DataFrame({name: rows[name] for name in rows.dtype.names})
    np.testing.assert_array_equal(model.predict(rows), model.predict(frame))
    with pytest.raises(ValueError, match=r"in their order: \['a', 'b', 'c'\]"):
        model.predict(rows[["a", "c", "b"]])
    deep = np.zeros(M, dtype=[("a", float), ("b", float, (2,))])
    with pytest.raises(TypeError, match=r"'b' holds arrays of shape \(2,\)"):
        FPCClassifier().fit(deep, Y)


@pytest.mark.needs("pyarrow")
def test_arrow_types():
    def table(column):
        return pa.table({"a": X, "odd": column})

    for values in (pa.array([[1]] * M), pa.array([(1, 2, 3)] * M, pa.month_day_nano_interval())):
        with pytest.raises(TypeError, match="'odd' holds values of type"):
            FPCClassifier().fit(table(values), Y)
    words = np.where(FEW > 1, "left", "right")
    expected = FPCClassifier(random_state=0).fit(table(pa.array(words)), Y)
    for kind in (pa.binary(), pa.large_binary()):
        found = FPCClassifier(random_state=0).fit(table(pa.array(words).cast(kind)), Y)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.needs("polars")
def test_polars_types():
    frame = pl.DataFrame({"a": X})
    with pytest.raises(TypeError, match="'odd' holds values of type .*list"):
        FPCClassifier().fit(frame.with_columns(odd=pl.Series([[1]] * M)), Y)
    held = pl.Series("odd", [object()] * M, dtype=pl.Object)
    with pytest.raises(TypeError, match="'odd' holds <object"):
        FPCClassifier().fit(frame.with_columns(held), Y)


@pytest.mark.parametrize("rows", [{"a": [1]}, (row for row in [[1]])], ids=["dict", "generator"])
def test_what_is_no_table(rows):
    with pytest.raises(TypeError, match=f"X is a {type(rows).__name__}.*pass"):
        FPCClassifier().fit(rows, Y)


@pytest.mark.parametrize(
    "labels",
    [Y > 0, pd.Series(Y > 0, dtype="boolean"), pd.Series(Y, dtype="Int64"), pd.Categorical(Y)],
    ids=["bool", "boolean", "Int64", "categorical"],
)
def test_labels_keep_their_type(labels):
    model = fitted(FEW, labels)
    assert model.classes_.dtype.kind == np.asarray(labels).dtype.kind
    assert (model.classes_ == [0, 1]).all()


@pytest.mark.parametrize(
    "labels",
    [
        np.where(np.arange(M) == 5, np.nan, Y),
        np.where(np.arange(M) == 5, None, Y.astype(str)),
        pd.Series(Y, dtype="Int64").mask(np.arange(M) == 5),
        pd.Series(pd.Categorical(Y)).mask(np.arange(M) == 5),
        np.where(np.arange(M) == 5, np.datetime64("NaT"), np.datetime64("2020-01-01")),
    ],
    ids=["float", "text", "Int64", "categorical", "date"],
)
def test_missing_labels_are_named_by_their_row(labels):
    with pytest.raises(ValueError, match="missing value, first in row 5"):
        fitted(FEW, labels)

"""CSV files: what is inferred, what is read, bit by bit, and what each mistake says."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from polysift.data import csv_files, csv_layout
from polysift.data.columns import Roles
from polysift.data.csv_files import parse_csv
from polysift.data.text import ParsedText

pytest.importorskip("pyarrow", reason="CSV needs polysift[files]")

IRIS = "length,width,label,w\n5.1,3.5,setosa,1\n4.9,3.0,virginica,2\n6.2,2.9,setosa,0.5\n"


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch) -> Path:
    """Return the folder in which temporary folders are made, so that a test can look there."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    monkeypatch.setattr(csv_layout, "BLOCK_BYTES", 64)


def parse(path: Path, text: str | bytes, **options) -> ParsedText:
    """Write a file and parse it."""
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    names = {field.name for field in fields(Roles)}
    roles = Roles(**{name: options.pop(name) for name in names & options.keys()})
    return parse_csv(path, roles=roles, **options)


@pytest.fixture
def csv(tmp_path):
    return lambda text, **options: parse(tmp_path / "rows.csv", text, **options)


@pytest.fixture
def fails(tmp_path, scratch):
    """Parse a file that must be refused, check that nothing stays, and return the message."""

    def refuse(text, name="rows.csv", **options) -> str:
        with pytest.raises(ValueError, match=re.escape(name)) as caught:
            parse(tmp_path / name, text, **options)
        assert list(scratch.iterdir()) == [], "nothing stays behind"
        assert type(caught.value) is ValueError, "no error of pyarrow's own"
        return str(caught.value)

    return refuse


class TestReading:
    def test_roles_by_name(self, csv):
        parsed = csv(IRIS, target="label", weight="w")
        assert parsed.names == ("length", "width")
        assert_array_equal(parsed.X, [[5.1, 3.5], [4.9, 3.0], [6.2, 2.9]])
        assert_array_equal(parsed.labels, ["setosa", "virginica", "setosa"])
        assert_array_equal(parsed.weights, [1, 2, 0.5])
        assert parsed.weights.dtype == np.float64

    def test_roles_by_position(self, csv):
        parsed = csv(IRIS, target=2, weight=-1, columns=[1, "length"])
        assert parsed.names == ("width", "length")
        assert_array_equal(parsed.X[:, 1], [5.1, 4.9, 6.2])
        assert_array_equal(parsed.weights, [1, 2, 0.5])

    def test_memory_map(self, csv, scratch):
        parsed = csv(IRIS, columns=["width"])
        assert isinstance(parsed.X, np.memmap) and not parsed.X.flags.writeable
        assert parsed.X.dtype == np.float64 and parsed.X.flags.c_contiguous
        assert parsed.labels is None and parsed.weights is None
        assert parsed.folder.parent == scratch and parsed.folder.name.startswith("polysift-")
        assert parsed.n_bytes == parsed.X.nbytes == 24
        shutil.rmtree(parsed.folder)

    def test_several_batches(self, csv, rng, small_blocks, monkeypatch):
        X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
        lines = [f"{a!r},{b!r},{c!r},c{k}" for (a, b, c), k in zip(X.tolist(), y, strict=True)]
        seen = []
        add = csv_files._add_labels
        monkeypatch.setattr(
            csv_files,
            "_add_labels",
            lambda labels, column: (seen.append(len(column)), add(labels, column)),
        )
        parsed = csv("a,b,c,y\n" + "\n".join(lines), target="y")
        assert len(seen) > 100 and sum(seen) == 300
        assert_array_equal(parsed.X, X)
        assert_array_equal(parsed.labels, np.char.add("c", y.astype(str)))

    def test_every_bit_survives(self, csv, rng):
        bits = rng.integers(0, 2**64, 6000, dtype=np.uint64).view(np.float64)
        hard = [0.1, 0.30000000000000004, 16777217.0, 5e-324, -0.0, 2**53 + 2.0, np.nextafter(1, 2)]
        X = np.concatenate([bits[np.isfinite(bits)], hard])
        X = X[: len(X) // 2 * 2].reshape(-1, 2)
        text = "\n".join(f"{a!r};{b!r}" for a, b in X.tolist())
        assert_array_equal(csv(text).X.view(np.uint64), X.view(np.uint64))

    def test_susy(self, csv, rng):
        table = np.column_stack([rng.integers(0, 2, 50), rng.normal(size=(50, 18))])
        text = "\n".join(",".join(f"{v:.18e}" for v in row) for row in table) + "\n"
        assert text.startswith(("1.000000000000000000e+00,", "0.000000000000000000e+00,"))
        parsed = csv(text, target=0, columns=range(1, 9))
        assert parsed.names is None
        assert_array_equal(parsed.X, table[:, 1:9])
        assert_array_equal(parsed.labels, table[:, 0])
        assert parsed.labels.dtype == np.float64

    @pytest.mark.parametrize("name", ["rows.csv.gz", "ROWS.CSV.GZ"])
    def test_gzip(self, tmp_path, name, small_blocks):
        path = tmp_path / name
        path.write_bytes(gzip.compress(IRIS.encode()) + gzip.compress(b"1,2,other,3\n"))
        parsed = parse_csv(path, roles=Roles("label", "w"))
        assert_array_equal(parsed.X[-1], [1, 2])
        assert parsed.labels[-1] == "other" and len(parsed.labels) == 4

    def test_columns_that_are_not_needed_may_hold_anything(self, csv):
        text = 'id,x,note\nA-1,1,"two\nlines, and a comma"\nA-2,2,\n'
        assert_array_equal(csv(text, columns=["x"]).X, [[1], [2]])

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_line_ends_blank_lines_and_byte_order_mark(self, csv, end, small_blocks):
        lines = ["", "", "a,b", *["1,2", ""] * 30, "3, +4.5 "]
        parsed = csv("\ufeff" + end.join(lines), header=None)
        assert parsed.names == ("a", "b")
        assert parsed.X.shape == (31, 2)
        assert_array_equal(parsed.X[-1], [3, 4.5])

    def test_wide_line(self, csv, small_blocks, rng):
        X = rng.normal(size=(3, 20_000))
        text = "\n".join(";".join(map(repr, row)) for row in X.tolist())
        assert_array_equal(csv(text).X, X)


class TestLabels:
    @pytest.mark.parametrize(
        ("fields", "expected", "dtype"),
        [
            (["1", "-1", "1"], [1, -1, 1], np.int64),
            (["+1", "-1", "+1"], [1, -1, 1], np.float64),
            (["0.5", "1", "2"], [0.5, 1, 2], np.float64),
            (["true", "False", "TRUE"], [True, False, True], np.bool_),
            (["a", "é", '"b,c"'], ["a", "é", "b,c"], "<U3"),
            (["2020-01-01", "2020-01-02", "2020-01-01"], None, "<U10"),
            (["x" * 17, "y", "x"], None, object),
        ],
    )
    def test_inferred(self, csv, fields, expected, dtype):
        rows = "".join(f"{k},{label}\n" for k, label in enumerate(fields))
        labels = csv("x,label\n" + rows, target="label").labels
        assert_array_equal(labels, fields if expected is None else expected)
        assert labels.dtype == dtype

    @pytest.mark.parametrize(("kind", "first"), [("string", "01"), ("double", 1.0), ("int8", 1)])
    def test_overridden(self, csv, kind, first):
        labels = csv("x,y\n1,01\n2,02\n", target="y", column_types={"y": kind}).labels
        assert labels[0] == first and labels.dtype != np.int64

    def test_a_class_named_na(self, csv, fails):
        text = "x,country\n1,NA\n2,DE\n"
        message = fails(text, target="country")
        assert "row 0 (counted from 0)" in message
        assert "if NA is a class, pass column_types={'country': 'string'}" in message
        parsed = csv(text, target="country", column_types={"country": "string"})
        assert_array_equal(parsed.labels, ["NA", "DE"])

    def test_text_after_the_first_block(self, fails, csv, small_blocks):
        text = "x,label\n" + "1,0\n" * 100 + "\n2,other\n"
        message = fails(text, target="label")
        assert "label 'other' in column 'label', row 100 (counted from 0)" in message
        assert "first rows look like int64" in message
        assert "column_types={'label': 'string'}" in message
        parsed = csv(text, target="label", column_types={"label": "string"})
        assert_array_equal(np.unique(parsed.labels), ["0", "other"])

    def test_fraction_after_the_first_block(self, fails, csv, small_blocks):
        text = "1,0\n" * 100 + "2,0.5\n"
        assert "Pass column_types={1: 'double'}" in fails(text, target=1)
        assert csv(text, target=-1, column_types={-1: "double"}).labels[-1] == 0.5

    def test_not_of_the_type_asked_for(self, fails):
        message = fails("x,y\n1,a\n", target="y", column_types={"y": "int64"})
        assert "column_types asks for int64" in message and "'string'" in message

    def test_feature_of_true_and_false_as_numbers(self, csv):
        text = "x,flag\n1,True\n2,False\n"
        assert_array_equal(csv(text, column_types={"flag": "bool"}).X, [[1, 1], [2, 0]])


class TestInference:
    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("1,2\n3,4\n", None),
            ("a,b\n3,4\n", ("a", "b")),
            ("0,1,label\n3,4,5\n", ("0", "1", "label")),
            (",a\n0,5\n", ("", "a")),
            ("1,\n2,3\n", None),
            ("cat,1\ndog,2\n", None),
            ("cat,1\n,2\n", None),
            ("cat,1\n", None),
            ("a,b\nc,d\n", ("a", "b")),
            ("a,b\n", ("a", "b")),
            ("nan,1e5\n-inf,3\n", None),
        ],
    )
    def test_header(self, tmp_path, text, names):
        (tmp_path / "x.csv").write_text(text)
        assert csv_layout.inspect_csv(tmp_path / "x.csv", None, None).names == names

    def test_header_given(self, csv):
        assert csv("1,2\n3,4\n", header=True).names == ("1", "2")
        assert csv("1,2\n3,4\n", header=False).X.shape == (2, 2)

    @pytest.mark.parametrize("mark", [",", ";", "\t", "|", " "])
    @pytest.mark.parametrize("header", ["a{}b{}c\n", ""])
    def test_delimiter(self, csv, mark, header):
        lines = header.format(mark, mark) + f"1.5{mark}2{mark}3\n4{mark}5{mark}6e-1\n"
        assert_array_equal(csv(lines).X, [[1.5, 2, 3], [4, 5, 0.6]])

    @pytest.mark.parametrize(
        ("text", "mark"),
        [
            ("sepal length,sepal width\n5.1,3.5\n", ","),
            ("1, 2, 3\n4, 5, 6\n", ","),
            ("day hour,x\n2020-01-01 10:00,1\n", ","),
            ("a,b;c\n1;2\n", ";"),
            ("1\n2\n", ","),
            ("1,2,3\n4,5\n", ","),
            ('x|"a;b,c"\n1|"d;e,f"\n', "|"),
        ],
    )
    def test_delimiter_among_others(self, tmp_path, text, mark):
        (tmp_path / "x.csv").write_text(text)
        assert csv_layout.inspect_csv(tmp_path / "x.csv", None, None).delimiter == mark

    def test_delimiter_given(self, csv):
        assert csv("1#2\n3#4\n", delimiter="#").X.shape == (2, 2)
        with pytest.raises(ValueError, match="delimiter must be one character"):
            csv("1,2\n", delimiter="::")
        with pytest.raises(ValueError, match="delimiter must be one character of ASCII.*'é'"):
            csv("1é2\n", delimiter="é")


class TestMistakes:
    def test_no_file(self, tmp_path, scratch):
        with pytest.raises(FileNotFoundError, match="no file .*absent.csv"):
            parse_csv(tmp_path / "absent.csv", roles=Roles())
        assert list(scratch.iterdir()) == []

    @pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
    @pytest.mark.parametrize("text", ["", "\n\n"])
    def test_empty(self, fails, name, text):
        assert "is empty" in fails(text, name)

    @pytest.mark.parametrize("options", [{}, {"target": "b"}])
    def test_header_only(self, fails, options):
        assert "header line and no rows" in fails("a,b\n", **options)

    @pytest.mark.parametrize("row", ["7,8,9", "7"])
    def test_ragged(self, fails, row, small_blocks):
        message = fails("\na,b\n" + "1,2\n\n" * 50 + row + "\n", target="b")
        assert f"{row.count(',') + 1} fields instead of 2 in row 50 (counted from 0)" in message
        assert repr(row) in message

    def test_ragged_from_the_start(self, fails):
        assert "instead of 3 in row 1 (counted from 0): '4,5'" in fails("1,2,3\n4,5\n", target=0)

    def test_text_in_the_weight(self, fails):
        message = fails("a,w\n1,2\n3,heavy\n", weight="w")
        assert "column 'w', row 1" in message and "Weights must be numbers" in message

    @pytest.mark.parametrize("field", ["", "NA", "nan", "NULL", '""', "  "])
    @pytest.mark.parametrize("column", ["y", "w"])
    def test_missing_value(self, fails, field, column, small_blocks):
        row = ",".join(field if name == column else "1" for name in "xyw")
        message = fails("x,y,w\n" + "1,1,1\n" * 50 + row, target="y", weight="w")
        assert f"missing value in column '{column}', row 50 (counted from 0)" in message
        assert ("Fill it in" in message) == (column != "y")

    @pytest.mark.parametrize("kind", ["string", "int64"])
    @pytest.mark.parametrize("field", ["", " "])
    def test_empty_label_of_given_type(self, fails, kind, field):
        message = fails(f"x,y\n1,1\n2,{field}\n", target="y", column_types={"y": kind})
        assert "missing value in column 'y', row 1" in message

    def test_missing_value_comes_first(self, fails):
        assert "column 'b', row 0" in fails("a,b,x\n1,,1\n,2,1\n", target="b", weight="a")

    def test_unknown_name(self, fails):
        message = fails(IRIS, target="lable")
        assert "no column 'lable'" in message and "Did you mean 'label'" in message

    def test_name_without_header(self, fails):
        assert "no header line" in fails("1,2\n", target="label")

    @pytest.mark.parametrize("place", [4, -5])
    def test_position_out_of_range(self, fails, place):
        message = fails(IRIS, columns=[place])
        assert f"no column {place}" in message and "0 to 3" in message

    def test_duplicate_names(self, fails):
        assert "2 columns named 'a'" in fails("a,b, a\n1,2,3\n")

    @pytest.mark.parametrize(
        "options",
        [
            {"target": "label", "columns": ["width", "label"]},
            {"target": "label", "weight": 2},
            {"weight": "w", "columns": [-1]},
            {"columns": ["width", 1]},
        ],
    )
    def test_two_roles(self, fails, options):
        assert "is used 2 times" in fails(IRIS, **options)

    def test_no_features(self, fails, csv):
        assert "left as a feature" in fails(IRIS, columns=[])
        with pytest.raises(ValueError, match=r"Pass \['width'\]"):
            csv(IRIS, columns="width")

    @pytest.mark.parametrize("types", [{"length": "text"}, {"label": "text"}])
    def test_unknown_type(self, csv, types):
        with pytest.raises(ValueError, match="column_types gives .* expected one of"):
            csv(IRIS, target="label", columns=["length"], column_types=types)

    @pytest.mark.parametrize("cut", [40, 4000, -4])
    def test_gzip_cut_short(self, tmp_path, rng, scratch, cut):
        text = "\n".join(f"{a!r},{b!r}" for a, b in rng.random((2000, 2)).tolist())
        path = tmp_path / "cut.csv.gz"
        path.write_bytes(gzip.compress(text.encode())[:cut])
        with pytest.raises(ValueError, match="cut.csv.gz is corrupt or truncated"):
            parse_csv(path, roles=Roles(0))
        assert list(scratch.iterdir()) == []

    def test_not_gzip(self, tmp_path):
        (tmp_path / "x.csv.gz").write_text(IRIS)
        with pytest.raises(ValueError, match="x.csv.gz is corrupt"):
            parse_csv(tmp_path / "x.csv.gz", roles=Roles())

    def test_not_utf8(self, fails):
        assert "not UTF-8 text" in fails("é,b\n1,2\n".encode("latin-1"))
        late = b"x,y\n" + b"1,a\n" * 5000 + "2,é\n".encode("latin-1")
        message = fails(late, target="y")
        assert "not UTF-8 in column 'y', row 5000 (counted from 0)" in message

    def test_open_quotation(self, fails, small_blocks):
        message = fails('a,b\n1,2\n3,"' + "4,5\n" * 100)
        assert "cannot be read as CSV" in message and "quotation mark" in message

    def test_full_disk_is_not_a_corrupt_file(self, tmp_path, monkeypatch, scratch):
        def full(*_):
            raise OSError("8 requested and 0 written")  # as numpy's tofile says it

        monkeypatch.setattr(csv_files, "_add_labels", full)
        with pytest.raises(OSError, match="0 written"):
            parse(tmp_path / "x.csv.gz", IRIS, columns=["width"], target="label")
        assert list(scratch.iterdir()) == []

    def test_without_pyarrow(self, csv, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r"polysift\[files\]"):
            csv(IRIS)


def test_memory_is_bounded(tmp_path):
    """A file of 40 MB is parsed in blocks of 1 MB: the peak grows by far less than the file."""
    pytest.importorskip("resource")
    path = tmp_path / "long.csv"
    with path.open("w") as out:
        for _ in range(40):
            out.write("0.123456789012345,1\n" * 50_000)
    code = f"""
import resource, sys
from pathlib import Path
from polysift.data import csv_files, csv_layout
csv_files.BLOCK_BYTES = 1 << 20
small = Path({str(tmp_path)!r}) / "small.csv"
small.write_text("0.5,1\\n" * 1000)
roles = csv_files.Roles(columns=[0])
csv_files.parse_csv(small, roles=roles)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
parsed = csv_files.parse_csv(Path({str(path)!r}), roles=roles)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(parsed.X.shape[0], grown // (1024 if sys.platform != "darwin" else 1 << 20))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    rows, grown = map(int, run.stdout.split())
    assert rows == 2_000_000
    assert grown < 20, f"{grown} MiB for a file of 40 MB"

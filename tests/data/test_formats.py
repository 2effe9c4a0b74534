"""The same table from every format, compressed or not, and from databases."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sqlite3
import sys
import zipfile
from urllib.parse import quote

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from polysift import open_data
from problems import optional, paper_classifier

pa = pytest.importorskip("pyarrow", reason="files need polysift[files]")
pd = optional("pandas")
orc = optional("pyarrow.orc")

ROWS = 120


@pytest.fixture
def table(rng):
    numbers = rng.normal(size=ROWS).round(3).tolist()
    days = rng.choice(["1960-05-01", "2024-02-29", "2031-12-31"], ROWS).tolist()
    made = {
        "n": [None if k % 17 == 3 else value for k, value in enumerate(numbers)],
        "c": [None if k % 13 == 5 else "ábc"[k % 3] for k in range(ROWS)],
        "d": days,
        "t": [k % 5 == 0 for k in range(ROWS)],
        "y": ["no" if value > 0 else "yes" for value in numbers],
    }
    return pa.table(made)


def fitted(data, **options):
    return paper_classifier(random_state=0).fit(open_data(data, target="y", **options))


@pytest.fixture
def expected(table):
    return fitted(table)


def check(model, expected):
    assert model.column_kinds_.tolist() == ["number", "category", "date", "category"]
    assert_array_equal(model.coef_, expected.coef_)
    assert_array_equal(model.centers_, expected.centers_)


def csv_of(table) -> bytes:
    rows = [table.column_names, *(row.values() for row in table.to_pylist())]
    lines = (",".join("" if cell is None else str(cell) for cell in row) for row in rows)
    return "\n".join(lines).encode()


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


class TestCompressed:
    @pytest.mark.parametrize("ending", PACKERS)
    def test_csv(self, table, expected, tmp_path, ending):
        path = tmp_path / f"rows.csv{ending}"
        path.write_bytes(PACKERS[ending](csv_of(table)))
        check(fitted(path), expected)

    @pytest.mark.parametrize("name", ["rows.zip", "rows.csv.zip"])
    def test_zip(self, table, expected, tmp_path, name):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("__MACOSX/._rows.csv", "x")
            archive.writestr("data/rows.csv", csv_of(table))
        check(fitted(tmp_path / name), expected)

    def test_zip_of_several_files(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
            archive.writestr("a.csv", "x\n1\n")
            archive.writestr("b.csv", "x\n1\n")
        with pytest.raises(ValueError, match=r"rows.zip must hold one table; .* 2 files: a.csv"):
            open_data(tmp_path / "rows.zip")

    @pytest.mark.parametrize("ending", PACKERS)
    def test_libsvm(self, tmp_path, ending):
        text = "".join(f"{k % 2} 1:{k} 3:{k % 7}\n" for k in range(50)).encode()
        (tmp_path / "rows.svm").write_bytes(text)
        path = tmp_path / f"rows.svm{ending}"
        path.write_bytes(PACKERS[ending](text))
        plain, packed = open_data(tmp_path / "rows.svm"), open_data(path)
        assert_array_equal(packed.rows((0, 50)).toarray(), plain.rows((0, 50)).toarray())

    def test_parquet_is_not_compressed_as_a_whole(self, tmp_path):
        (tmp_path / "x.parquet.gz").write_bytes(gzip.compress(b"PAR1"))
        with pytest.raises(ValueError, match=r"x.parquet.gz: the format cannot be inferred"):
            open_data(tmp_path / "x.parquet.gz")


class TestJsonLines:
    def lines(self, table):
        return "\n".join(map(json.dumps, table.to_pylist()))

    @pytest.mark.parametrize("name", ["rows.jsonl", "rows.ndjson", "rows.jsonl.gz"])
    def test_same_model(self, table, expected, tmp_path, name):
        content = self.lines(table).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        check(fitted(tmp_path / name), expected)

    def test_keys_may_be_absent(self, tmp_path):
        (tmp_path / "x.jsonl").write_text('{"a": 1}\n\n{"b": "x", "a": "2"}\n{"b": true}\n')
        source = open_data(tmp_path / "x.jsonl")
        assert source.names == ("a", "b")
        assert [column.kind for column in source.types] == ["category", "category"]
        part = next(source.stream([(0, 3)]))
        assert np.isnan(source.rows(part)).tolist() == [
            [False, True],
            [False, False],
            [True, False],
        ]
        assert set(source.words(part)[1].values()) == {"x", "True"}

    def test_odd_values(self, tmp_path):
        lines = ['{"a": 1' + "0" * 400 + ', "b": "\\ud83d"}', '{"a": 1, "b": "x\\u0000y"}']
        (tmp_path / "x.jsonl").write_text("\n".join(lines))
        source = open_data(tmp_path / "x.jsonl")
        part = next(source.stream([(0, 2)]))
        assert_array_equal(source.rows(part)[:, 0], [np.inf, 1])
        assert set(source.words(part)[1].values()) == {"\\ud83d", "x\0y"}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"a": 1}\n[1]\n', r"x.jsonl, line 2 .* no object"),
            ('{"a": 1}\n{"a":\n', r"x.jsonl, line 2 .* no JSON"),
            ("\n\n", r"x.jsonl is empty"),
        ],
    )
    def test_mistakes(self, tmp_path, text, message):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(ValueError, match=message):
            open_data(tmp_path / "x.jsonl")

    def test_columns_that_cannot_be_used_are_named_together(self, tmp_path):
        (tmp_path / "x.jsonl").write_text('{"a": [1], "b": {"c": 2}, "n": 1, "y": "p"}\n' * 3)
        source = open_data(tmp_path / "x.jsonl", target="y")
        with pytest.raises(ValueError, match=r"Columns 'a' .* 'b' .* cannot be used"):
            paper_classifier().fit(source)
        assert open_data(tmp_path / "x.jsonl", target="y", drop=["a", "b"]).names == ("n",)


class TestExcel:
    def write(self, path, rows, sheets=1):
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append(row)
        for _ in range(sheets - 1):
            book.create_sheet()
        book.save(path)
        return path

    def test_same_model(self, table, expected, tmp_path):
        rows = [table.column_names, *(list(row.values()) for row in table.to_pylist())]
        check(fitted(self.write(tmp_path / "rows.xlsx", rows)), expected)

    def test_dates_are_dates(self, tmp_path):
        from datetime import datetime

        rows = [["d", "n"], [datetime(1970, 1, 2), 1], [None, None], [datetime(1970, 1, 3), 2]]
        source = open_data(self.write(tmp_path / "rows.xlsx", rows))
        assert [column.kind for column in source.types] == ["date", "number"]
        part = next(source.stream([(0, 2)]))
        assert_array_equal(source.rows(part), [[86400, 1], [172800, 2]])

    def test_several_sheets(self, tmp_path):
        path = self.write(tmp_path / "rows.xlsx", [["a"], [1]], sheets=2)
        with pytest.raises(ValueError, match=r"rows.xlsx must have one sheet; it has 2: Sheet"):
            open_data(path)

    def test_without_the_package(self, tmp_path, monkeypatch):
        (tmp_path / "x.xlsx").write_bytes(b"PK")
        monkeypatch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(ImportError, match=r"openpyxl.*pip install 'polysift\[formats\]'"):
            open_data(tmp_path / "x.xlsx")


class TestDatabases:
    def sqlite(self, path, table):
        with sqlite3.connect(path) as connection:
            columns = ", ".join(f'"{name}"' for name in table.column_names)
            connection.execute(f'CREATE TABLE "my rows" ({columns})')
            marks = ", ".join("?" * table.num_columns)
            rows = [
                [str(cell) if isinstance(cell, bool) else cell for cell in row.values()]
                for row in table.to_pylist()
            ]
            connection.executemany(f'INSERT INTO "my rows" VALUES ({marks})', rows)
        connection.close()

    @pytest.mark.parametrize(
        "query", ["table=my+rows", "query=" + quote('SELECT n, c, d, t, y FROM "my rows"')]
    )
    def test_sqlite(self, table, expected, tmp_path, query):
        self.sqlite(tmp_path / "x.db", table)
        model = fitted(f"sqlite://{tmp_path / 'x.db'}?{query}")
        check(model, expected)

    def test_duckdb(self, table, expected, tmp_path):
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(tmp_path / "x.db")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE rows AS SELECT * FROM given")
        uri = f"duckdb://{tmp_path / 'x.db'}"
        check(fitted(f"{uri}?table=rows"), expected)
        check(fitted(f"{uri}?query={quote('SELECT * FROM rows')}"), expected)
        with pytest.raises(ValueError, match=r"x.db \(none\) cannot be read: .*none"):
            open_data(f"{uri}?table=none")

    @pytest.mark.parametrize(
        ("uri", "message"),
        [
            ("sqlite:///none.db?table=x", "no database"),
            ("sqlite://none.db?table=x", "three slashes"),
            ("duckdb:///none.db", r"must end with \?table="),
            ("duckdb:///none.db?view=x", r"ends with 'view=x'"),
        ],
    )
    def test_mistakes(self, uri, message):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            open_data(uri)

    def test_nothing_stays(self, table, tmp_path, monkeypatch):
        import tempfile

        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(scratch))
        self.sqlite(tmp_path / "x.db", table)
        source = open_data(f"sqlite://{tmp_path / 'x.db'}?table=my+rows", target="y")
        assert source.n_rows == ROWS and len(list(scratch.iterdir())) == 1
        del source
        assert list(scratch.iterdir()) == []


@pytest.mark.needs("pandas")
def test_frames_with_cells_of_several_types(rng):
    cells = [1, "x", 2.5, None, True, b"z"] * 20
    frame = pd.DataFrame({"a": cells, "b": rng.normal(size=120)})
    y = np.arange(120) % 2
    model = paper_classifier(random_state=0).fit(frame, y)
    source = open_data(frame.assign(y=y), target="y", columns={"b": "number"})
    other = paper_classifier(random_state=0).fit(source)
    assert_array_equal(model.coef_, other.coef_)
    assert other.column_kinds_.tolist() == ["category", "number"]


def test_orc(table, expected, tmp_path):
    for k in range(2):
        orc.write_table(table.slice(k * 60, 60), str(tmp_path / f"part-{k}.orc"))
    check(fitted(tmp_path), expected)


def test_several_arrow_files(table, expected, tmp_path):
    for k in range(2):
        with pa.ipc.new_file(str(tmp_path / f"part-{k}.arrow"), table.schema) as writer:
            writer.write_table(table.slice(k * 60, 60))
    check(fitted(tmp_path), expected)


def test_text_that_turns_out_later_in_parquet(tmp_path):
    """What a column of text holds is judged by all row groups."""
    import pyarrow.parquet as pq

    made = pa.table({"d": [None] * 50 + ["2024-01-01"] * 50, "m": ["2024-01-01"] * 99 + ["x"]})
    pq.write_table(made, tmp_path / "x.parquet", row_group_size=10)
    kinds = [column.kind for column in open_data(tmp_path / "x.parquet").types]
    assert kinds == ["date", "category"]


def test_an_unknown_ending_gets_the_known_ones(tmp_path):
    (tmp_path / "x.sas7bdat").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"known are .parquet.*\.xlsx.*Pass format="):
        open_data(tmp_path / "x.sas7bdat")


def test_several_files_of_different_formats(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.jsonl").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"a.csv is of format csv, and .*b.jsonl of format jsonl"):
        open_data(tmp_path / "*.*")


@pytest.mark.parametrize("ending", ["parquet", "arrow", "frame"])
def test_words_that_stand_for_missing_values(tmp_path, ending):
    frame = pd.DataFrame({"a": ["x", "unknown", " unknown ", "y"], "label": ["unknown", "b"] * 2})
    data = frame
    if ending != "frame":
        data = tmp_path / f"table.{ending}"
        write = frame.to_parquet if ending == "parquet" else frame.to_feather
        write(data)
    source = open_data(data, target="label", missing=["unknown"])
    ((_, part),) = source.parts()
    assert np.isnan(source.rows(part)[:, 0]).tolist() == [False, True, True, False]
    assert source.labels(part).tolist() == ["unknown", "b"] * 2

"""CSV files with text, dates, missing values and numbers as people write them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import polysift
from polysift import open_data
from polysift.data import csv_layout, text_columns
from polysift.data.kinds import level_of
from problems import optional, paper_classifier

pytest.importorskip("pyarrow", reason="CSV needs polysift[files]")
pd = optional("pandas")


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    monkeypatch.setattr(csv_layout, "BLOCK_BYTES", 64)


@pytest.fixture
def opened(tmp_path):
    """Write a file, and open it."""

    def write(text, name="rows.csv", **options):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
        return open_data(tmp_path / name, **options)

    return write


def values(source):
    return np.concatenate([source.rows(part) for _, part in source.parts()])


def kinds(source):
    return [column.kind for column in source.types or ()] or ["number"] * source.n_features


def words(source, column=0):
    """Return the words of a column of categories, None where they are missing."""
    known = source.words((0, source.n_rows)).get(column, {})
    return [None if np.isnan(v) else known[v] for v in values(source)[:, column].tolist()]


def mixed_frame(rng, rows=400):
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=rows).round(3),
            "rooms": rng.integers(0, 9, rows),
            "city": rng.choice(["Rom", "Ulm", "São Paulo", "no, where"], rows),
            "flag": rng.choice([True, False], rows),
            "heated": rng.choice(["yes", "no"], rows),
            "day": rng.choice(["1969-07-20", "2024-02-29", "2031-01-01 08:30"], rows),
            "price": [f"${value:.2f}" for value in rng.random(rows) * 100],
            "share": [f"{value} %" for value in rng.integers(0, 100, rows)],
            "user": [f"u{value}" for value in rng.integers(0, 300, rows)],
            "empty": np.full(rows, np.nan),
        }
    )
    frame["y"] = np.where(frame["size"] + (frame["city"] == "Rom") > 0.4, "a", "b")
    for name in ("size", "city", "day", "price"):
        frame.loc[rng.random(rows) < 0.05, name] = None
    return frame


@pytest.mark.needs("pandas")
class TestSameModel:
    """The same bits from a frame, a Parquet file and a CSV file of one table."""

    @pytest.fixture
    def table(self, tmp_path, rng):
        mixed_frame(rng).to_csv(tmp_path / "rows.csv", index=False)
        frame = pd.read_csv(tmp_path / "rows.csv")
        frame.to_parquet(tmp_path / "rows.parquet", row_group_size=150)
        return frame

    def test_fit(self, table, tmp_path, small_blocks):
        X = table.drop(columns="y")
        expected = paper_classifier(random_state=0).fit(X, table["y"])
        sources = [open_data(tmp_path / f"rows.{e}", target="y") for e in ("parquet", "csv")]
        sources.append(open_data(table, target="y"))
        for source in sources:
            model = paper_classifier(random_state=0).fit(source)
            assert_array_equal(model.coef_, expected.coef_)
            assert_array_equal(model.centers_, expected.centers_)
            assert_array_equal(model.column_kinds_, expected.column_kinds_)
            assert source.notes == sources[0].notes and len(source.notes) == 2
            assert_array_equal(model.predict(source), expected.predict(X))
        assert_array_equal(expected.predict(sources[1]), expected.predict(X))

    def test_several_files(self, table, tmp_path):
        folder = tmp_path / "parts"
        folder.mkdir()
        for k in range(4):
            table[k * 100 : (k + 1) * 100].to_csv(folder / f"part-{k}.csv", index=False)
        expected = paper_classifier(random_state=0).fit(
            open_data(tmp_path / "rows.csv", target="y")
        )
        for name in (folder, folder / "*.csv"):
            model = paper_classifier(random_state=0).fit(open_data(name, target="y"))
            assert_array_equal(model.coef_, expected.coef_)


class TestKinds:
    def test_words_dates_and_truth_values(self, opened):
        text = "a,b,c,d,e\nx,2024-01-31,TRUE,yes,1\ny y,1960-01-01T00:00+02:00,false,no,NA\n"
        source = opened(text)
        assert kinds(source) == ["category", "date", "category", "category", "number"]
        assert words(source, 0) == ["x", "y y"]
        assert words(source, 2) == ["True", "False"]
        assert_array_equal(values(source)[:, 1], [1706659200.0, -315626400.0])
        assert_array_equal(values(source)[:, 4], [1, np.nan])

    @pytest.mark.parametrize("cell", ["", "NA", " ", "NaN", "?", "-", '"null"'])
    def test_missing(self, opened, cell):
        source = opened(f"a,b,c\n1,x,2024-01-31\n{cell},{cell},{cell}\n")
        assert kinds(source) == ["number", "category", "date"]
        assert np.isnan(values(source)[1]).all() and np.isfinite(values(source)[0]).all()

    def test_missing_words_of_a_user(self, opened):
        source = opened("a,b\n-999,unknown\n5, -999 \n", missing=["-999", "unknown"])
        assert source.types is None
        assert_array_equal(values(source), [[np.nan, np.nan], [5, np.nan]])
        with pytest.raises(ValueError, match=r"missing must be a list.*\['x'\]"):
            opened("a\n1\n", missing="x")

    def test_text_after_the_first_block(self, opened, small_blocks):
        rows = [f"{k},{k},2024-01-01,$1" for k in range(60)]
        source = opened("a,b,c,d\n" + "\n".join([*rows, "60,late,soon,2"]))
        assert kinds(source) == ["number", "category", "category", "category"]
        assert words(source, 1) == [*map(str, range(60)), "late"]
        assert words(source, 2)[-2:] == ["2024-01-01", "soon"]
        assert words(source, 3)[-2:] == ["$1", "2"]

    @pytest.mark.parametrize(
        ("cell", "kind"),
        [("x", "category"), ("2024-01-01", "date"), ("7", "number"), ("", "number")],
    )
    def test_empty_at_first(self, opened, small_blocks, cell, kind):
        source = opened("a,b\n" + ",1\n" * 60 + f"{cell},1\n")
        assert kinds(source)[0] == kind
        found = values(source)[:, 0]
        assert np.isnan(found[:-1]).all() and np.isnan(found[-1]) == (not cell)

    def test_passes_are_few(self, opened, small_blocks, monkeypatch):
        """However many columns turn out to be something else."""
        passes = []
        restart = text_columns.TextColumns.restart
        monkeypatch.setattr(
            text_columns.TextColumns, "restart", lambda self: (passes.append(1), restart(self))
        )
        rows = [["1"] * 12 for _ in range(40)]
        for k in range(12):
            rows[20 + k][k] = "1,5" if k % 2 else "word"
        text = "\n".join(";".join(row) for row in rows)
        source = opened(text)
        assert kinds(source) == ["category", "number"] * 6
        assert len(passes) <= 2

    def test_asked(self, opened):
        text = "zip,day,n,y\n01234,2024-01-31,1,a\n12345,2024-02-01,2,b\n"
        source = opened(text, target="y", columns={"zip": "category", "n": "drop"})
        assert source.names == ("zip", "day")
        assert words(source) == ["01234", "12345"]
        assert source.types[0].asked and not source.types[1].asked
        numbers = opened(text, target="y", columns={"day": "category", 2: "number"})
        assert kinds(numbers) == ["number", "category", "number"]

    def test_asked_for_what_it_is_not(self, opened, small_blocks):
        rows = "\n".join(f"{k},1" for k in range(50))
        with pytest.raises(ValueError, match=r"rows.csv has 'x'.* number in column 'a', row 50 "):
            opened(f"a,b\n{rows}\nx,1\n", columns={"a": "number"})
        with pytest.raises(ValueError, match=r"'0'.* date such as .* column 'a', row 0 "):
            opened(f"a,b\n{rows}\n", columns={"a": "date"})
        with pytest.raises(ValueError, match=r"kind for 'b' .* no feature"):
            opened(f"a,b\n{rows}\n", target="b", columns={"b": "category"})
        with pytest.raises(ValueError, match="There is no column 'c'"):
            opened(f"a,b\n{rows}\n", columns={"c": "category"})
        with pytest.raises(ValueError, match="gives 'word' for column 'a'"):
            opened(f"a,b\n{rows}\n", columns={"a": "word"})

    def test_column_type_string_is_a_category(self, opened):
        source = opened("a,b\n1,2\n3,4\n", column_types={"a": "string"})
        assert words(source) == ["1", "3"]

    def test_the_target_must_not_be_missing(self, opened):
        with pytest.raises(ValueError, match=r"missing value in column 'y', row 1 "):
            opened("a,y\nx,1\ny,\n", target="y")
        assert opened("a,y\nx,+\ny,-\n", target="y").labels((0, 2)).tolist() == ["+", "-"]


class TestTraps:
    def test_a_level_named_like_a_column(self, opened):
        source = opened("a,b\nb,a\na,b\n", header=True)
        assert words(source, 0) == ["b", "a"] and words(source, 1) == ["a", "b"]

    def test_nul_emoji_quotes_and_delimiters(self, opened):
        cells = ["a\0b", "🎈", 'say ""hi""', "a,b", "two\nlines", " x "]
        rows = "\n".join(f'"{cell}",{k}' for k, cell in enumerate(cells))
        assert words(opened(f"t,n\n{rows}\n")) == [cell.replace('""', '"') for cell in cells]

    def test_many_words(self, opened, monkeypatch):
        monkeypatch.setattr(text_columns, "MAX_COUNTED_LEVELS", 1000)
        names = [f"w{k}" for k in range(100_000)]
        source = opened("t,n\n" + "\n".join(f"{name},1" for name in names))
        kept = source.words((0, 1))[0]
        levels = sorted(map(level_of, names))
        assert sorted(kept) == levels[:1000]
        assert_array_equal(np.sort(values(source)[:, 0]), levels)

    def test_mixed_cells(self, opened):
        source = opened("a,b\n1,x\n2.0,x\nthree,x\n2024-01-01,x\nTrue,x\n")
        assert words(source) == ["1", "2.0", "three", "2024-01-01", "True"]

    def test_a_column_that_is_all_missing(self, opened):
        source = opened("a,b,y\n" + "NA,1,p\n,2,q\n?,3,q\n" * 5, target="y")
        model = paper_classifier(random_state=0).fit(source)
        assert model.column_kinds_.tolist() == ["empty", "number"]
        assert set(model.predict(source)) <= {"p", "q"}

    def test_dates_before_1970_and_with_zones(self, opened):
        text = "d,n\n1900-01-01,1\n1969-12-31T23:59:59Z,1\n1970-01-01 01:00+01:00,1\n"
        assert_array_equal(values(opened(text))[:, 0], [-2208988800.0, -1.0, 0.0])

    def test_a_model_reads_new_files_as_its_own(self, opened, rng):
        rows = [f"{k % 3}{'x' if k == 0 else ''},{k % 2},{'ab'[k % 3 == 1]}" for k in range(60)]
        model = paper_classifier(random_state=0).fit(
            opened("c,n,y\n" + "\n".join(rows), target="y")
        )
        new = opened("n,c\n1,1\n0,2\n")  # a column of words for the model, of numbers here
        expected = opened("n,c\n1,1\n0,2\n", columns={"c": "category"})
        assert_array_equal(model.decision_function(new), model.decision_function(expected))
        with pytest.raises(ValueError, match=r"column 'n' holds text, such as 'q',"):
            model.predict(opened("n,c\nq,1\n"))


class TestWrittenNumbers:
    def test_units(self, opened):
        source = opened("a;b;c\n$1.50;12 %;5 EUR\n-$2;3%;-1.5 EUR\n")
        assert_array_equal(values(source), [[1.5, 12, 5], [-2, 3, -1.5]])
        assert source.notes[0] == (
            "Column 'a' is read as numbers with the sign $; to read it as words, pass "
            "columns={'a': 'category'}."
        )
        assert [column.reading for column in source.types] == ["point $", "point %", "point EUR"]

    def test_a_file_with_decimal_commas(self, opened):
        source = opened("länge;breite;preis;y\n5,1;3,5;1.200,50 €;a\n4,9;3;950 €;b\n", target="y")
        assert_array_equal(values(source), [[5.1, 3.5, 1200.5], [4.9, 3, 950]])
        assert "decimal comma" in source.notes[0]

    def test_without_a_header(self, opened):
        assert_array_equal(values(opened("5,1;2,3\n4,5;6,7\n")), [[5.1, 2.3], [4.5, 6.7]])

    @pytest.mark.parametrize(
        ("cell", "value"), [("5,1", 5.1), ("1,200.5", 1200.5), ("1.200,50", 1200.5)]
    )
    def test_commas_between_fields_may_separate_values(self, opened, cell, value):
        rows = f'"{cell}",1\n' * 30
        text = f"a,b\n3,1\n{rows}"
        message = rf"rows.csv has '{cell}', which is {value} if .* in column 'a', row 1 "
        with pytest.raises(ValueError, match=message) as caught:
            opened(text)
        assert "Pass columns={'a': 'number'} to read it as a number" in str(caught.value)
        assert "columns={'a': 'category'} to read it as words" in str(caught.value)
        assert values(opened(text, columns={"a": "number"}))[1, 0] == value
        assert words(opened(text, columns={"a": "category"}))[1] == cell
        for delimiter in ";\t|":
            other = text.replace(f'"{cell}",', f"{cell}{delimiter}").replace(
                "a,b", f"a{delimiter}b"
            )
            source = opened(other.replace("3,1", f"3{delimiter}1"))
            assert values(source)[1, 0] == value
            assert "Column 'a' is read as numbers with a" in source.notes[0]

    def test_a_unit_tells_a_number_from_several_values(self, opened):
        source = opened('a,b\n"$1,200.50",1\n$3,2\n')
        assert_array_equal(values(source)[:, 0], [1200.5, 3])
        assert "comma between thousands and the sign $" in source.notes[0]
        with pytest.raises(ValueError, match=r"'\$1,200', which is 1200 if .* and 1.2 if"):
            opened('a,b\n"$1,200",1\n$3,2\n')

    def test_several_values_in_a_cell_are_words(self, opened):
        assert kinds(opened('a,b\n"5,1",1\n"1,2,3",2\n')) == ["category", "number"]

    def test_a_model_reads_commas_as_it_did_in_training(self, opened, rng):
        rows = [f"{x:.2f}".replace(".", ",") for x in rng.random(60)]
        rest = [f"{i};{i % 2}\n" for i in range(60)]
        trained = opened(
            "a;b;y\n" + "".join(f"{x};{r}" for x, r in zip(rows, rest, strict=True)), target="y"
        )
        clf = paper_classifier(degree=1, random_state=0).fit(trained)
        quoted = [f'"{x}",{r}' for x, r in zip(rows, rest, strict=True)]
        text = "a,b,y\n" + "".join(quoted).replace(";", ",")
        again = opened(text, name="new.csv", columns={"a": "number"}, drop=["y"])
        assert_array_equal(clf.predict(again), clf.predict(trained))

    def test_thousands(self, opened):
        source = opened("a;b\n1,200;x\n1,234,567;x\n950.5;x\n")
        assert_array_equal(values(source)[:, 0], [1200, 1234567, 950.5])
        assert "comma between thousands" in source.notes[0]

    def test_what_tells_may_come_late(self, opened, small_blocks):
        rows = "1,200;x\n" * 60
        assert values(opened(f"a;b\n{rows}1,5;x\n"))[0, 0] == 1.2
        assert values(opened(f"a;b\n{rows}1,200.5;x\n"))[0, 0] == 1200

    def test_two_ways(self, opened, small_blocks):
        text = "a;b\n" + "950;x\n" * 50 + "1,200;x\n" * 50
        with pytest.raises(ValueError, match=r"'1,200', which is 1200 if .* and 1.2 if") as caught:
            opened(text)
        assert "column 'a', row 50 (counted from 0)" in str(caught.value)
        assert "columns={'a': 'category'}" in str(caught.value)
        assert words(opened(text, columns={"a": "category"}))[-1] == "1,200"
        for kind, value in (("decimal comma", 1.2), ("thousands comma", 1200)):
            assert f"columns={{'a': '{kind}'}}" in str(caught.value)
            assert_array_equal(
                values(opened(text, columns={"a": kind}))[:, 0], [950] * 50 + [value] * 50
            )

    @pytest.mark.needs("pandas")
    @pytest.mark.parametrize(("kind", "value"), [("decimal comma", 1.2), ("thousands comma", 1200)])
    def test_which_way_is_said(self, tmp_path, kind, value):
        """Of frames, of files of text, and of a model that reads further rows."""
        frame = pd.DataFrame({"a": ["$1,200", "$1"] * 30, "b": np.arange(60) % 7})
        y = np.arange(60) % 3 % 2
        with pytest.raises(ValueError, match=f"columns={{'a': '{kind}'}}"):
            paper_classifier().fit(frame, y)
        clf = paper_classifier(columns={"a": kind}, random_state=0).fit(frame, y)
        assert clf.column_ranges_[:, 0].tolist() == [1, value]
        frame.assign(y=y).to_parquet(tmp_path / "x.parquet")
        with pytest.raises(ValueError, match=f"columns={{'a': '{kind}'}}"):
            paper_classifier().fit(open_data(tmp_path / "x.parquet", target="y"))
        source = open_data(tmp_path / "x.parquet", target="y", columns={"a": kind})
        assert source.rows(next(iter(source.parts()))[1])[0, 0] == value
        again = paper_classifier(random_state=0).fit(source)
        assert_array_equal(again.coef_, clf.coef_)
        assert_array_equal(again.predict(frame), clf.predict(source))

    def test_the_wrong_way_is_refused(self, opened):
        with pytest.raises(
            ValueError, match=r"'1,5', which cannot be read as numbers with a comma"
        ):
            opened("a;b\n1,5;x\n2,5;x\n", columns={"a": "thousands comma"})

    def test_two_units_are_words(self, opened):
        assert kinds(opened("a,b\n$1,1\n€1,2\n"))[0] == "category"

    def test_codes_and_versions_are_words(self, opened):
        assert kinds(opened("a,b\n1.200.300,1\n1.2.3,2\n"))[0] == "category"

    @pytest.mark.needs("pandas")
    def test_in_memory(self, tmp_path):
        frame = pd.DataFrame(
            {"a": ["$1", "$2.5"] * 20, "b": ["39", "?"] * 20, "z": ["1", "2"] * 20}
        )
        y = [0, 1] * 20
        model = paper_classifier(random_state=0).fit(frame, y)
        assert model.column_kinds_.tolist()[::2] == ["number", "category"]
        assert_array_equal(model.predict(frame), model.predict(frame.assign(a=[1, 2.5] * 20)))
        with pytest.raises(ValueError, match=r"column 'a' holds '1,200', which is .* row 0"):
            paper_classifier().fit(frame.assign(a="1,200"), y)
        assert paper_classifier(columns={"a": "category"}).fit(frame.assign(a="1,200"), y)

    @pytest.mark.needs("pandas")
    def test_plain_numbers_keep_their_reading_at_prediction(self):
        frame = pd.DataFrame({"a": ["5,1", "4,5"] * 20, "b": range(40)})
        model = paper_classifier(random_state=0).fit(frame, [0, 1] * 20)
        numbers = pd.DataFrame({"a": [5.1, 4.5] * 20, "b": range(40)})
        assert_array_equal(model.decision_function(frame), model.decision_function(numbers))


class TestIndex:
    @pytest.mark.parametrize("name", ["", "Unnamed: 0"])
    @pytest.mark.parametrize("first", [0, 1])
    def test_left_out(self, opened, small_blocks, name, first):
        rows = "".join(f"{k + first},w{k % 3},{k % 2}\n" for k in range(50))
        source = opened(f"{name},a,y\n{rows}", target="y")
        assert source.names == ("a",) and words(source)[:3] == ["w0", "w1", "w2"]
        assert "counts the rows and is left out" in source.notes[0]

    @pytest.mark.parametrize("numbers", [[5, 6, 7], [0, 2, 1], [0, 1, ""]])
    def test_kept(self, opened, numbers):
        source = opened(",a\n" + "".join(f"{number},1\n" for number in numbers))
        assert source.names == ("", "a") and source.notes == ()

    def test_kept_where_it_is_asked_for(self, opened):
        text = ",a\n0,1\n1,5\n"
        assert opened(text, columns=["", "a"]).n_features == 2
        assert opened(text, columns={"": "number"}).n_features == 2
        assert opened("key,a\n0,1\n1,5\n").n_features == 2

    def test_of_text_columns(self, opened):
        assert opened(",a\n0,x\n1,y\n").names == ("a",)


class TestSeveralFiles:
    def write(self, tmp_path, *texts):
        for k, text in enumerate(texts):
            (tmp_path / f"part-{k}.csv").write_text(text)
        return tmp_path / "part-*.csv"

    def test_kinds_are_agreed(self, tmp_path):
        glob = self.write(tmp_path, "a,b,c\n,1,5\n,2,6\n", "a,b,c\nx,3,7\n", "a,b,c\ny,z,8\n")
        source = open_data(glob)
        assert kinds(source) == ["category", "category", "number"]
        assert words(source, 0) == [None, None, "x", "y"]
        assert words(source, 1) == ["1", "2", "3", "z"]
        assert_array_equal(values(source)[:, 2], [5, 6, 7, 8])
        assert source.origin.endswith("part-0.csv and 2 more")

    def test_index_of_each(self, tmp_path):
        source = open_data(self.write(tmp_path, ",a\n0,1\n1,2\n", ",a\n0,5\n1,6\n"))
        assert source.names == ("a",)

    def test_without_headers(self, tmp_path):
        assert_array_equal(
            values(open_data(self.write(tmp_path, "1,2\n", "3,4\n"))), [[1, 2], [3, 4]]
        )

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ("a,c\n1,2\n", r"column 'b': .*part-0.csv has it, .*part-1.csv has not"),
            ("b,a\n1,2\n", r"different orders in .*part-0.csv and .*part-1.csv"),
        ],
    )
    def test_other_columns(self, tmp_path, other, message):
        with pytest.raises(ValueError, match=message):
            open_data(self.write(tmp_path, "a,b\n1,2\n", other))

    def test_errors_name_the_file_and_its_row(self, tmp_path):
        glob = self.write(tmp_path, "a,y\n1,p\n", "a,y\n1,p\n2,\n")
        with pytest.raises(
            ValueError, match=r"part-1.csv has a missing value in column 'y', row 1 "
        ):
            open_data(glob, target="y")

    def test_a_folder_of_several_formats(self, tmp_path):
        self.write(tmp_path, "a\n1\n")
        (tmp_path / "x.jsonl").write_text(json.dumps({"a": 1}))
        with pytest.raises(ValueError, match=r"several formats: csv .*part-0.csv.*jsonl .*glob"):
            open_data(tmp_path)


def test_public_notes(opened):
    source = polysift.open_data(opened("a,b\n$1,1\n$2,2\n").origin)
    assert len(source.notes) == 1


def test_a_row_of_several_files_has_its_number_in_its_file(tmp_path):
    for name, value in (("a", "1"), ("b", "2"), ("c", "inf")):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n1,no\n3,yes\n{value},no\n")
    source = open_data(tmp_path / "*.csv", target="y")
    with pytest.raises(ValueError, match=r"infinity in column 'x', first in row 2 .* of .*c\.csv"):
        paper_classifier(1).fit(source)
    assert source.cut([(4, 9)]).place(1).endswith(f"of {tmp_path / 'b.csv'}")

"""Dates as people write them: words, columns of frames and of files, and what is refused."""

from datetime import UTC, datetime

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from polysift import FPCClassifier, open_data
from polysift.data.words import infer_words
from polysift.data.written_dates import date_readings, is_written_date, written_date

LATE = "2024-01-31 20:30"
SAME = [
    ("iso", "2024-01-31 20:30"),
    ("iso", "2024/01/31T20:30:00"),
    ("day first", "31.01.2024 20:30"),
    ("day first", "31.1.2024, 8:30 pm"),
    ("day first", " 31/01/2024 20:30:00 "),
    ("day first", "31-01-2024T20:30"),
    ("month first", "01/31/2024 8:30 PM"),
    ("month first", "1-31-2024 20:30"),
]


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(("reading", "word"), SAME)
def test_one_moment_in_many_forms(reading, word):
    assert date_readings(word) == {reading}
    assert written_date(word, reading) == seconds(LATE)


NO_DATES = """31.13.2024;2024-02-30;31/31/2024;1/2/24;1/2.2024;1.2.3;25:00;8:30;x;
01/31/2024 13:30 PM;01/31/2024 0:30 AM;31.01.2024 24:30;2024-01/31"""


@pytest.mark.parametrize("word", NO_DATES.split(";"))
def test_what_is_no_date(word):
    assert not is_written_date(word)


def test_noon_and_midnight():
    assert written_date("31.01.2024 12:00 AM", "day first") == seconds("2024-01-31")
    assert written_date("31.01.2024 12:00 PM", "day first") == seconds("2024-01-31 12:00")


def test_a_word_between_slashes_may_fit_two():
    assert date_readings("01/02/2024") == {"day first", "month first"}
    assert date_readings("01.02.2024") == {"day first"}  # nobody writes the month first with points


def test_all_words_of_a_column_say_what_it_is():
    assert infer_words(["01/02/2024", None, "NA", "13/02/2024"]).reading == "day first"
    assert infer_words(["01/02/2024", "02/13/2024"]).reading == "month first"
    assert infer_words(["13/02/2024", "02/13/2024"]).kind == "category"
    assert infer_words(["13.02.2024", "2024-02-13"]).kind == "category"
    assert infer_words(["13.02.2024", "13/02/1950"]).reading == "day first"


def moments(count: int) -> list[datetime]:
    """Return moments of some decades, before 1970, too."""
    draw = np.random.default_rng(0).integers(-(10**9), 10**9, count) // 60 * 60
    return [datetime.fromtimestamp(int(second), UTC) for second in draw]


@pytest.mark.needs("pandas", "pyarrow")
@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%Y/%m/%d %H:%M"])
def test_the_same_model_for_any_form(tmp_path, form):
    import pandas as pd

    when = moments(300)
    y = np.array([moment.year % 20 > 10 for moment in when])
    frame = pd.DataFrame({"when": when, "x": np.arange(300) % 7})
    expected = FPCClassifier(random_state=0).fit(frame, y)
    written = frame.assign(when=[moment.strftime(form) for moment in when])
    models = [FPCClassifier(random_state=0).fit(written, y)]
    written.assign(y=y).to_csv(tmp_path / "x.csv", index=False)
    written.assign(y=y).to_parquet(tmp_path / "x.parquet")
    for ending in ("csv", "parquet"):
        source = open_data(tmp_path / f"x.{ending}", target="y")
        models.append(FPCClassifier(random_state=0).fit(source))
    for model in models:
        assert model.column_kinds_.tolist() == ["date", "number"]
        assert_array_equal(model.coef_, expected.coef_)
        assert_array_equal(model.predict(written), expected.predict(frame))


@pytest.mark.needs("pandas", "pyarrow")
def test_day_or_month(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"when": ["01/02/2024", "03/04/2024"] * 30, "x": np.arange(60) % 7})
    y = np.arange(60) % 2
    frame.assign(y=y).to_csv(tmp_path / "x.csv", index=False)
    frame.assign(y=y).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"columns=\{'when': 'day first'\} or") as caught:
        FPCClassifier().fit(frame, y)
    assert "'01/02/2024', in which the day or the month may come first" in str(caught.value)
    with pytest.raises(ValueError, match="day or the month"):
        FPCClassifier(columns={"when": "date"}).fit(frame, y)
    for ending in ("csv", "parquet"):
        with pytest.raises(ValueError, match=r"columns=\{'when': 'month first'\} to say which"):
            FPCClassifier().fit(open_data(tmp_path / f"x.{ending}", target="y"))
        for kind, first in (("day first", "2024-02-01"), ("month first", "2024-01-02")):
            model = FPCClassifier(columns={"when": kind}).fit(frame, y)
            assert model.column_ranges_[0, 0] == seconds(first)
            opened = open_data(tmp_path / f"x.{ending}", target="y", columns={"when": kind})
            assert opened.rows(next(iter(opened.parts()))[1])[0, 0] == seconds(first)


@pytest.mark.needs("pyarrow")
def test_what_tells_may_come_late(tmp_path):
    rows = "".join(f"{1 + i % 12:02}/02/2024,{i}\n" for i in range(200))
    path = tmp_path / "x.csv"
    path.write_text(f"when,x\n{rows}31/02/2024,1\n")
    assert open_data(path).types[0].kind == "category"  # there is no such day
    path.write_text(f"when,x\n{rows}28/02/2024,1\n")
    assert open_data(path).types[0].reading == "day first"
    assert "with the day first" in open_data(path).notes[0]


def test_a_wrong_word_is_named():
    X = np.array([["31.01.2024", "1"], ["01/31/2024", "2"]], dtype=object)
    with pytest.raises(ValueError, match=r"'01/31/2024', which cannot be read as dates with the d"):
        FPCClassifier(columns={0: "day first"}).fit(X, [0, 1])

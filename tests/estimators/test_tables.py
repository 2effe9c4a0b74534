"""Tables as people have them: categories, missing values, dates, in every container."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import numpy as np
import pytest

from polysift import FPCClassifierCV, PolynomialKernelMap, open_data
from polysift.features.tables import stored_scaler
from problems import optional, paper_classifier

pd, pl, pa = optional("pandas"), optional("polars"), optional("pyarrow")
pytestmark = pytest.mark.needs("pandas")

M = 3_000


@pytest.fixture(scope="module")
def frame():
    """Return a table whose columns are of every kind."""
    rng = np.random.default_rng(0)
    city = np.array(["Rome", "Oslo", "Bonn", "Lima \N{SNOWMAN}", "a\0b"])[rng.integers(0, 5, M)]
    income = rng.lognormal(10, 1, M)
    when = np.datetime64("1965-03-01T05:00") + rng.integers(0, 10**6, M).astype("timedelta64[h]")
    made = pd.DataFrame(
        {
            "age": rng.integers(18, 90, M),
            "income": np.where(rng.random(M) < 0.1, np.nan, income),
            "city": np.where(rng.random(M) < 0.05, None, city),
            "member": rng.random(M) < 0.3,
            "shop": np.array([f"shop {i}" for i in range(400)])[rng.integers(0, 400, M)],
            "when": when,
            "empty": np.full(M, np.nan),
            "same": "always",
            "id": [f"row-{i}" for i in range(M)],
        }
    )
    made["city"] = made["city"].astype(object)
    score = (made["age"] - 50) / 20 + 1.5 * made["member"] + (made["city"] == "Rome")
    score += made["when"].dt.hour.isin(range(8, 18)) * 1.0 - 1.0
    made["label"] = np.where(score + rng.normal(0, 0.5, M) > 0, "yes", "no")
    return made


KINDS = {
    "age": "number",
    "income": "number",
    "city": "category",
    "member": "category",
    "shop": "encoded category",
    "when": "date",
    "empty": "empty",
    "same": "constant",
    "id": "identifier",
}


def classifier(**params):
    return paper_classifier(**({"random_state": 0, "n_centers": 60} | params))


def same_model(one, other):
    """Check that two fits ended in the same bits."""
    for name in ("coef_", "centers_", "column_kinds_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.fixture(scope="module")
def fitted(frame):
    return classifier().fit(frame.drop(columns="label"), frame["label"])


def test_kinds_are_found(fitted, frame):
    assert dict(zip(fitted.feature_names_in_, fitted.column_kinds_, strict=True)) == KINDS
    assert fitted.score(frame.drop(columns="label"), frame["label"]) > 0.85


class TestTheSameModel:
    @pytest.mark.needs("pyarrow", "polars")
    def test_from_any_container(self, fitted, frame):
        X, y = frame.drop(columns="label"), frame["label"]
        as_category = X.assign(city=X["city"].astype("category"), shop=X["shop"].astype("category"))
        polars = pl.from_pandas(X)
        for other in (as_category, polars, polars.to_arrow(), X.convert_dtypes()):
            same_model(classifier().fit(other, y), fitted)
            np.testing.assert_array_equal(
                fitted.decision_function(other), fitted.decision_function(X)
            )

    def test_from_arrays(self, fitted, frame):
        X, y = frame.drop(columns="label"), frame["label"]
        structured = X.drop(columns=["city", "id"]).to_records(index=False)
        few = classifier().fit(X.drop(columns=["city", "id"]), y)
        same_model(classifier().fit(structured, y), few)
        np.testing.assert_array_equal(classifier().fit(structured, y).coef_, few.coef_)
        named = X.drop(columns="id")
        by_name = classifier().fit(named, y)
        by_number = classifier().fit(named.astype(object).to_numpy(), y)
        np.testing.assert_array_equal(by_number.coef_, by_name.coef_)

    @pytest.mark.needs("pyarrow")
    @pytest.mark.parametrize("rows", [700, 10_000])
    def test_from_files_threads_and_budgets(self, fitted, frame, tmp_path, rows):
        path = tmp_path / "table.parquet"
        frame.to_parquet(path, row_group_size=rows)
        source = open_data(path, target="label")
        same_model(classifier(n_jobs=1).fit(source), fitted)
        same_model(classifier(n_jobs=3, memory_limit="30MB").fit(source), fitted)
        same_model(classifier(checkpoint=tmp_path / "run").fit(source), fitted)
        np.testing.assert_array_equal(
            fitted.predict(open_data(path, drop=["label"])),
            fitted.predict(frame.drop(columns="label")),
        )

    @pytest.mark.needs("pyarrow", "ray")
    @pytest.mark.parametrize("calibration", [None, "sigmoid"])
    def test_from_workers(self, frame, tmp_path, four_workers, calibration):
        path = tmp_path / "table.parquet"
        frame.to_parquet(path, row_group_size=500)
        source = open_data(path, target="label")
        one, other = (
            classifier(calibration=calibration, engine=engine).fit(source)
            for engine in ("local", "ray")
        )
        same_model(one, other)
        from_memory = classifier(calibration=calibration, engine="ray")
        same_model(from_memory.fit(frame.drop(columns="label"), frame["label"]), one)

    def test_weights_are_multiplicities(self, frame):
        X, y = frame.drop(columns=["label", "id"])[:600], frame["label"][:600]
        counts = np.random.default_rng(1).integers(0, 3, 600)
        weighted = classifier().fit(X, y, sample_weight=counts)
        at = np.repeat(np.arange(600), counts)
        repeated = classifier().fit(X.iloc[at], y.iloc[at])
        np.testing.assert_allclose(weighted.centers_, repeated.centers_, atol=1e-12)
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), atol=1e-8
        )

    def test_the_order_of_rows_does_not_matter(self, frame):
        X, y = frame.drop(columns=["label", "id"]), frame["label"]
        order = np.random.default_rng(1).permutation(M)
        one, other = classifier().fit(X, y), classifier().fit(X.iloc[order], y.iloc[order])
        np.testing.assert_allclose(one.centers_, other.centers_, atol=1e-12)
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-8)


class TestMissing:
    @pytest.mark.parametrize("scaler", ["minmax", "standard", "quantile", None])
    def test_in_numbers_alone(self, rng, scaler):
        X = rng.normal(size=(500, 3))
        y = X[:, 0] + X[:, 1] > 0
        X[rng.random(X.shape) < 0.2] = np.nan
        clf = classifier(scaler=scaler).fit(X, y)
        assert clf.centers_.shape[1] == 6 and clf.score(X, y) > 0.8
        single = classifier(scaler=scaler).fit(X.astype(np.float32), y)
        assert single.score(X, y) > 0.8

    def test_a_missing_value_says_nothing(self, fitted, frame):
        scaler = stored_scaler(fitted.scaler_)
        block = np.full((1, len(KINDS)), np.nan)
        z = scaler.transform(block)[0]
        numbers = len(scaler.numbers)
        indicators = slice(numbers, numbers + len(scaler.indicators))
        assert (np.delete(z, np.arange(len(z))[indicators]) == 0).all() and (
            z[indicators] > 0
        ).all()

    def test_levels_that_training_did_not_have(self, fitted, frame):
        X = frame.drop(columns="label")[:50]
        unseen, missing = X.assign(city="Atlantis"), X.assign(city=None)
        known = X.assign(city="Oslo")
        scores = [fitted.decision_function(rows) for rows in (unseen, missing, known)]
        assert np.isfinite(scores[0]).all() and not np.array_equal(scores[0], scores[2])
        scaler = stored_scaler(fitted.scaler_)
        column = next(found for found in scaler.levels if found.column == 2)
        assert (column.table[column.rows(np.array([12345.0]))] == 0).all()

    @pytest.mark.parametrize("word", ["", "NA", "?", "null", "-", " n/a "])
    def test_words(self, frame, word):
        X, y = frame.drop(columns="label"), frame["label"]
        with_word = X.assign(city=X["city"].where(X["city"].notna(), word))
        same_model(classifier().fit(with_word, y), classifier().fit(X, y))

    def test_rows_without_any_value(self, fitted):
        empty = pd.DataFrame({name: [None, None] for name in KINDS})
        with pytest.warns(UserWarning, match="Values are missing in column 'age', column 'member'"):
            assert np.isfinite(fitted.decision_function(empty)).all()


class TestOverruled:
    def test_kinds(self, frame):
        X, y = frame.drop(columns="label"), frame["label"]
        asked = {"age": "category", "id": "category", "when": "drop", "member": "drop"}
        clf = classifier(columns=asked).fit(X, y)
        kinds = dict(zip(clf.feature_names_in_, clf.column_kinds_, strict=True))
        assert kinds["age"] == "category" and kinds["id"] == "encoded category"
        assert kinds["when"] == kinds["member"] == "drop"
        assert clf.score(X, y) > 0.6

    def test_categories_of_numbers_in_an_array(self, rng):
        X = rng.integers(0, 5, (400, 2)).astype(float)
        y = np.isin(X[:, 0], [1, 3])
        clf = classifier(degree=1, columns={0: "category"}).fit(X, y)
        assert clf.score(X, y) == 1.0 and clf.column_kinds_.tolist() == ["category", "number"]
        assert classifier(degree=1).fit(X, y).score(X, y) < 0.9

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"aeg": "number"}, "no column 'aeg' in X. Did you mean 'age'"),
            ({"age": "text"}, "columns gives 'text' for column 'age'; the kinds are 'number'"),
            (["age"], "columns must map columns to kinds"),
            (
                {"city": "number"},
                "column 'city' holds 'Bonn', which cannot be read as a number",
            ),
            ({"city": "date"}, "column 'city' holds 'Bonn', which cannot be read as a date"),
        ],
    )
    def test_mistakes(self, frame, columns, message):
        rows = frame[frame["city"] == "Bonn"]
        with pytest.raises(ValueError, match=message):
            classifier(columns=columns).fit(rows.drop(columns="label"), rows["label"])

    def test_all_unreadable_columns_are_named_at_once(self, frame):
        asked = {"city": "number", "shop": "date"}
        with pytest.raises(ValueError, match=r"(?s)column 'city'.*column 'shop'"):
            classifier(columns=asked).fit(frame.drop(columns="label"), frame["label"])


class TestIdentifiers:
    @pytest.mark.parametrize("share", [1.0, 0.7, 0.1])
    def test_row_numbers_after_rows_were_drawn(self, rng, share):
        table = pd.DataFrame({"ID": np.arange(1, 20_001), "x": rng.normal(size=20_000)})
        drawn = table.sample(frac=share, random_state=1)
        clf = classifier(degree=2).fit(drawn, drawn["x"] > 0)
        assert clf.column_kinds_.tolist() == ["identifier", "number"]
        shifted = drawn.assign(ID=drawn["ID"] * 10)
        np.testing.assert_array_equal(clf.predict(drawn), clf.predict(shifted))

    def test_what_is_none(self, rng):
        m = 2_000
        table = pd.DataFrame(
            {
                "amount": rng.permutation(10**6)[:m] ** 2,  # whole and different, but uneven
                "year": 1900 + rng.permutation(m),  # far from zero
                "age": rng.integers(0, 90, m),
                "x": rng.normal(size=m),
            }
        )
        clf = classifier(degree=2).fit(table, table["x"] > 0)
        assert clf.column_kinds_.tolist() == ["number"] * 4
        numbers = np.column_stack([np.arange(m), table["x"]])  # columns without names
        assert classifier().fit(numbers, table["x"] > 0).column_kinds_.tolist() == ["number"] * 2

    def test_the_only_column_and_one_that_is_asked_for(self, rng):
        table = pd.DataFrame({"ID": np.arange(500)})
        y = table["ID"] > 250
        assert classifier().fit(table, y).column_kinds_.tolist() == ["number"]
        both = table.assign(x=rng.normal(size=500))
        kept = classifier(columns={"ID": "number"}).fit(both, y)
        assert kept.column_kinds_.tolist() == ["number", "number"] and kept.score(both, y) > 0.95

    @pytest.mark.skipif("POLYSIFT_DATA" not in os.environ, reason="needs credit_default.parquet")
    @pytest.mark.needs("pyarrow")
    def test_credit_default_after_a_split(self):
        path = Path(os.environ["POLYSIFT_DATA"]) / "credit_default.parquet"
        if not path.exists():
            pytest.skip(f"{path} is not there")
        table = pd.read_parquet(path).sample(frac=0.7, random_state=0)
        clf = classifier(degree=1).fit(table.drop(columns="target"), table["target"])
        kinds = dict(zip(clf.feature_names_in_, clf.column_kinds_, strict=True))
        assert kinds.pop("ID") == "identifier" and set(kinds.values()) == {"number"}


@pytest.fixture(scope="module")
def noise():
    rng = np.random.default_rng(0)
    m = 12_000
    words = np.array([f"N{i}" for i in range(4_000)])[rng.integers(0, 4_000, m)]
    return pd.DataFrame({"tail": words, "x": rng.normal(size=m)}), rng.random(m) < 0.7


class TestManyLevels:
    def test_noise_scores_the_rate_of_the_majority_out_of_fold(self, noise):
        X, y = noise
        search = FPCClassifierCV(
            (1, 2), n_centers=50, scalers="minmax", solvers="paper", random_state=0
        )
        search.fit(X, y)
        assert search.best_estimator_.column_kinds_[0] == "encoded category"
        assert abs(search.best_score_ - y.mean()) < 0.005
        clf = classifier(degree=2, calibration="sigmoid").fit(X, y)
        p = y.mean()
        assert clf.calibration_report_["brier_score"] == pytest.approx(p * (1 - p), abs=0.003)

    def test_levels_that_matter_are_learned(self, noise):
        X, _ = noise
        rng = np.random.default_rng(1)
        good = rng.random(4_000) < 0.5
        number = X["tail"].str[1:].astype(int)
        y = np.where(rng.random(len(X)) < 0.1, ~good[number], good[number])
        clf = classifier(degree=2).fit(X[:8_000], y[:8_000])
        assert clf.score(X[8_000:], y[8_000:]) > 0.7
        three = np.where(X["x"] > 1, "c", np.where(y, "b", "a"))
        clf = classifier(degree=2).fit(X[:8_000], three[:8_000])
        assert clf.score(X[8_000:], three[8_000:]) > 0.6

    @pytest.mark.slow
    @pytest.mark.needs("pyarrow")
    def test_a_million_levels(self, tmp_path):
        """Of which some are counted, and the others say nothing."""
        rng = np.random.default_rng(0)
        m = 10**6
        words = [f"u{i}" for i in rng.integers(0, 10**6, m)]
        X = pd.DataFrame({"user": words, "x": rng.normal(size=m)})
        y = X["x"] + rng.normal(size=m) > 0
        clf = classifier(degree=2).fit(X, y)
        assert clf.column_kinds_.tolist() == ["encoded category", "number"]
        assert clf.score(X, y) == pytest.approx(0.75, abs=0.005)
        X.assign(y=y).to_parquet(tmp_path / "levels.parquet")
        same_model(classifier(degree=2).fit(open_data(tmp_path / "levels.parquet", "y")), clf)

    def test_without_labels_they_are_hashed(self, noise):
        X, _ = noise
        made = PolynomialKernelMap(2, 40, random_state=0, max_levels=20).fit(X)
        scaler = stored_scaler(made.scaler_)
        assert scaler.levels[0].buckets == 20 and made.transform(X[:9]).shape == (9, 40)
        unseen = made.transform(X[:9].assign(tail="never seen"))
        assert np.isfinite(unseen).all()

    def test_a_warm_start_goes_on(self, frame):
        X, y = frame.drop(columns="label"), frame["label"]
        clf = classifier(warm_start=True, max_iter=2, tol=0).fit(X, y)
        before = clf.scaler_
        clf.fit(X, y)
        np.testing.assert_array_equal(
            clf.scaler_["levels"][0]["table"], before["levels"][0]["table"]
        )


class TestOddCells:
    def test_numbers_that_are_too_large(self, frame):
        X = frame[["city"]].assign(age=np.where(np.arange(M) == 7, 1e200, frame["age"]))
        with pytest.raises(FloatingPointError, match="magnitude 1e\\+200 in column 'age'"):
            classifier().fit(X, frame["label"])

    def test_types_that_are_mixed(self, frame):
        X = frame[["age"]].assign(mixed=[i if i % 2 else f"w{i % 3}" for i in range(M)])
        clf = classifier().fit(X, frame["label"])
        assert clf.column_kinds_[1] == "encoded category"

    def test_dates(self, frame):
        naive = [datetime.datetime(1950 + i % 90, 1 + i % 12, 1 + i % 28, i % 24) for i in range(M)]
        zone = datetime.timezone(datetime.timedelta(hours=5))
        utc = [value.replace(tzinfo=datetime.UTC) for value in naive]
        X, y = frame[["age"]], frame["label"]
        made = [
            classifier().fit(X.assign(when=column), y)
            for column in (
                pd.Series(naive, dtype="datetime64[us]"),
                pd.Series(utc, dtype="datetime64[us, UTC]"),
                pd.Series([value.astimezone(zone) for value in utc]),
                pd.Series([value.isoformat() for value in naive]),
                pd.Series([value.astimezone(zone).isoformat() for value in utc]),
            )
        ]
        for other in made[1:]:
            np.testing.assert_array_equal(other.coef_, made[0].coef_)
        assert made[0].column_kinds_[1] == "date"

    def test_a_level_named_like_a_column(self, frame):
        X = frame[["age", "member"]].assign(city=np.where(frame["age"] > 50, "age", "city"))
        assert classifier().fit(X, frame["label"]).column_kinds_.tolist() == [
            "number",
            "category",
            "category",
        ]

    def test_a_category_that_is_constant_in_a_fold(self, frame):
        word = np.where(np.arange(M) < 20, "rare", "common")
        X, y = frame[["age", "member"]].assign(word=word), frame["label"]
        search = FPCClassifierCV((1, 2), n_centers=20, scalers="minmax", solvers="paper")
        assert search.fit(X, y).best_score_ > 0.7

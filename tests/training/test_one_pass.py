"""What is learned of a table is learned in one pass over its rows."""

from __future__ import annotations

import numpy as np
import pytest

from polysift import FPCClassifier, FPCClassifierCV, open_data
from polysift.data.kinds import CATEGORY, NUMBER, ColumnType, levels_of
from polysift.data.source import ArraySource
from problems import paper_classifier

M = 1_500
TYPES = (ColumnType(NUMBER), ColumnType(NUMBER), ColumnType(CATEGORY))


class Counted(ArraySource):
    """Rows that count the passes over them, as those of a file would be read."""

    passes = 0

    def stream(self, spans):
        self.passes += 1
        return super().stream(spans)

    def may_lack_values(self):
        return super(ArraySource, self).may_lack_values()


@pytest.fixture
def rows(rng):
    levels = levels_of(f"level {i}" for i in range(150))
    X = np.column_stack([rng.normal(size=(M, 2)), levels[rng.integers(0, 150, M)]])
    return X, (X[:, 0] + rng.normal(size=M) > 0).astype(int)


def passes(estimator, X, y, types=None):
    source = Counted(X, y=y, types=types)
    estimator.fit(source)
    return source.passes, estimator


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
def test_encoded_categories_take_no_pass_of_their_own(rows, calibration):
    counts, kinds = zip(
        *(
            (found, fitted.column_kinds_[2])
            for found, fitted in (
                passes(
                    paper_classifier(
                        n_centers=20, max_iter=2, max_levels=most, calibration=calibration
                    ),
                    *rows,
                    TYPES,
                )
                for most in (1000, 100)
            )
        ),
        strict=True,
    )
    assert kinds == ("category", "encoded category")
    assert counts[0] == counts[1]


def test_nor_do_they_in_a_search(rows):
    params = {"degrees": [1], "n_centers": 20, "scalers": ["minmax"], "rhos": [1e-6]}
    params |= {"solvers": ["paper"], "cv": 3, "random_state": 0}
    counts = [
        passes(FPCClassifierCV(**params, max_levels=most), *rows, TYPES)[0] for most in (1000, 100)
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("degree", [1, 3])
def test_numbers_with_gaps_are_surveyed_once(rows, degree):
    """With all centers of the polynomial space, which plain numbers do not take from the rows."""
    X, y = rows[0][:, :2], rows[1]
    params = {"n_centers": 3, "degree": degree, "max_iter": 2, "random_state": 0}
    plain, _ = passes(paper_classifier(**params), X, y)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert passes(paper_classifier(**params), gaps, y)[0] == plain


@pytest.mark.parametrize("estimator", [FPCClassifier, FPCClassifierCV])
def test_nor_are_very_many_columns(rng, estimator):
    X = rng.normal(size=(500, 400))
    y = (X[:, 0] > 0).astype(int)
    gaps = np.where(rng.random(X.shape) < 0.01, np.nan, X)
    params = {"n_centers": 20, "random_state": 0}
    if estimator is FPCClassifier:
        params |= {"kernel": "polynomial", "degree": 2, "scaler": "minmax", "solver": "paper"}
    else:
        params |= {"degrees": [2], "scalers": ["minmax"], "solvers": ["paper"], "rhos": [1e-6]}
    plain, _ = passes(estimator(**params), X, y)
    assert passes(estimator(**params), gaps, y)[0] == plain


def test_a_sample_of_repeated_rows_is_taken_in_the_same_pass(rng):
    X, counts = rng.normal(size=(40_000, 2)), []
    for rows in (X, X[np.arange(40_000) % 97]):
        y = (rows[:, 0] > rows[:, 1] ** 2).astype(int)
        model = FPCClassifier(n_centers=20, solver="paper", max_iter=2, random_state=0)
        counts.append(passes(model, rows, y)[0])
        assert model.selection_["trials"]
    assert counts[0] == counts[1]


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("columns", [2, 300])
def test_the_same_model_from_arrays_and_files_with_gaps(rng, columns, tmp_path):
    """Arrays are looked at for gaps, files are not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = rng.normal(size=(M, columns))
    y = (X[:, 0] + rng.normal(size=M) > 0).astype(int)
    X[::7, 1] = np.nan
    table = pa.table({f"x{j}": X[:, j] for j in range(columns)} | {"y": y})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=400)
    from_file = paper_classifier(n_centers=20, random_state=0).fit(
        open_data(tmp_path / "t.parquet", target="y")
    )
    from_array = paper_classifier(n_centers=20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(from_file.coef_, from_array.coef_)

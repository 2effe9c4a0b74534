"""Ray Datasets as sources: the same model as from arrays, and no rows in this process."""

from __future__ import annotations

import logging
import time
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from clocks import GUARD
from polysift import open_data
from polysift.cluster import ray_data
from problems import paper_classifier

# A context warns of its own fields, whoever makes it.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")

M = 40_000


@pytest.fixture(scope="module")
def data(four_workers):
    return pytest.importorskip("ray.data", reason="ray[data] is not installed")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.random((M, 3))
    noisy = X[:, 0] * X[:, 1] + 0.05 * rng.normal(size=M)
    y = np.array(["low", "mid", "high"])[np.digitize(noisy, [0.1, 0.3])]
    columns = {f"c{j}": X[:, j] for j in range(3)}
    return pa.table(columns | {"y": y, "w": rng.integers(0, 3, M)})


def blocks_of(table, *borders):
    edges = [0, *borders, len(table)]
    return [table.slice(start, stop - start) for start, stop in pairwise(edges)]


def read(source):
    """Return all rows of a source: features, and labels where it has any."""
    ((_, part),) = source.parts([(0, source.n_rows)])
    return source.rows(part), source.labels(part) if source.has_labels else None


def wait_for_loss(ray, refs):
    for _ in range(10 * GUARD):
        try:
            ray.get(refs)
        except ray.exceptions.ObjectLostError:
            return
        time.sleep(0.1)
    pytest.fail("nothing was lost")


def rows_of(table):
    return np.column_stack([table[f"c{j}"].to_numpy() for j in range(3)])


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_model_is_that_of_the_arrays(data, table, engine, monkeypatch):
    dataset = data.from_arrow(blocks_of(table, 100, 9_000, 9_000, 30_000))
    if engine == "ray":
        # Workers are other processes, whose module is as it was.
        monkeypatch.setattr(ray_data, "_get_block", lambda *_: pytest.fail("rows came here"))
    source = open_data(dataset, target="y", weight="w")
    found = paper_classifier(random_state=0, engine=engine).fit(source)
    X, y, w = rows_of(table), table["y"].to_numpy(), table["w"].to_numpy()
    expected = paper_classifier(random_state=0).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert list(found.feature_names_in_) == ["c0", "c1", "c2"]


def test_predictions(data, table):
    dataset = data.from_arrow(blocks_of(table, 15_000))
    model = paper_classifier(random_state=0).fit(rows_of(table), table["y"].to_numpy())
    found = model.predict(open_data(dataset, columns=["c0", "c1", "c2"]))
    np.testing.assert_array_equal(found, model.predict(rows_of(table)))


def test_files_with_a_filter_and_a_map(data, table, tmp_path, monkeypatch):
    # Ray's newer reader takes ten seconds to list four files.
    context = data.DataContext.get_current()
    monkeypatch.setattr(context, "use_datasource_v2", False, raising=False)
    files, mark = tmp_path / "files", tmp_path / "mark"
    files.mkdir()
    for number, part in enumerate(blocks_of(table, 10_000, 20_000, 30_000)):
        pq.write_table(part, files / f"{number}.parquet")

    def with_sum(rows: pd.DataFrame) -> pd.DataFrame:
        if rows["c0"].iloc[0] != first:
            mark.touch()
        else:  # the first block is done after another
            for _ in range(10 * GUARD):
                if mark.exists():
                    break
                time.sleep(0.1)
        return rows.assign(c2=rows["c0"] + rows["c1"])

    X, y = rows_of(table), table["y"].to_numpy()
    kept = X[:, 0] > 0.5
    first = X[kept][0, 0]
    dataset = data.read_parquet(str(files), override_num_blocks=4).filter(
        expr=data.expressions.col("c0") > 0.5
    )
    dataset = dataset.map_batches(with_sum, batch_format="pandas", batch_size=None)
    found, labels = read(open_data(dataset, target="y", drop=["w"]))
    expected = np.column_stack([X[kept, 0], X[kept, 1], X[kept, 0] + X[kept, 1]])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(labels, y[kept])


def test_blocks_of_pandas(data, table):
    frame = table.drop_columns("w").to_pandas()
    parts = [frame[:0], frame[:100], frame[100:100], frame[100:5_000][["y", "c2", "c1", "c0"]]]
    source = open_data(data.from_pandas(parts), target="y")
    found, labels = read(source)
    np.testing.assert_array_equal(found, rows_of(table)[:5_000])
    np.testing.assert_array_equal(labels, table["y"].to_numpy()[:5_000])
    assert source.unit_bytes >= 4_900 * 24


def test_blocks_of_both_kinds(data, table):
    plain, frame = table.slice(0, 100), table.slice(100, 100).to_pandas()
    frame["y"] = frame["y"].astype("category")
    dataset = data.from_arrow(plain).union(data.from_pandas(frame))
    found, labels = read(open_data(dataset, target="y", drop=["w"]))
    np.testing.assert_array_equal(found, rows_of(table)[:200])
    assert labels.tolist() == table["y"].to_pylist()[:200]


def test_a_piece_takes_references_along(data, table):
    ray = pytest.importorskip("ray")
    source = open_data(data.from_arrow(blocks_of(table, 10_000, 20_000, 30_000)), target="y")
    assert source.unit_bytes == 0  # the blocks are mapped
    piece = source.cut([(12_000, 15_000), (15_000, 21_000)])
    assert len(ray.cloudpickle.dumps(piece)) < 5_000
    piece = ray.get(ray.put(piece))
    found = np.concatenate([piece.rows(part) for _, part in piece.parts()])
    np.testing.assert_array_equal(found[:, :3], rows_of(table)[12_000:21_000])
    assert piece.place(1) == "row 12001 (counted from 0) of the Ray Dataset"


def test_it_is_silent_and_leaves_options_alone(data, table, monkeypatch):
    printed = logging.StreamHandler(StringIO())
    logger = logging.getLogger("ray.data")
    monkeypatch.setattr(logger, "handlers", [printed])
    dataset = data.from_arrow(table).map_batches(lambda rows: rows, batch_size=None)
    context = dataset.context
    before = context.enable_progress_bars, context.execution_options.preserve_order
    open_data(dataset, target="y")
    assert printed.stream.getvalue() == ""
    assert before == (context.enable_progress_bars, context.execution_options.preserve_order)
    logger.info("heard")
    assert printed.stream.getvalue() == "heard\n"


def test_a_dataset_in_place_of_x(data, table):
    dataset = data.from_arrow(table)
    with pytest.raises(TypeError, match=r"X is a Ray Dataset; pass polysift.open_data\(X, target="):
        paper_classifier().fit(dataset)
    with pytest.raises(TypeError, match="X is a Ray Dataset"):
        paper_classifier().fit(dataset.limit(10), np.zeros(10))


def test_no_rows(data, table):
    nothing = data.from_arrow(table).filter(expr=data.expressions.col("c0") > 2)
    with pytest.raises(ValueError, match="no rows in the Ray Dataset"):
        open_data(nothing, target="y")


def test_columns_that_do_not_serve(data, table):
    dataset = data.from_arrow(table.slice(0, 10))
    with pytest.raises(ValueError, match="no column 'C0' in the Ray Dataset. Did you mean 'c0'"):
        open_data(dataset, target="C0")
    with pytest.raises(ValueError, match="Column 'y' of the Ray Dataset is not numeric.*string"):
        paper_classifier().fit(open_data(dataset, target="w", weight="y"))
    with pytest.raises(ValueError, match="Column 'data' of the Ray Dataset holds .*ensor"):
        open_data(data.from_numpy(rows_of(table)[:10]))
    lists = pa.table({"a": [[1.0, 2.0], [3.0]], "y": [0, 1]})
    with pytest.raises(ValueError, match="Column 'a' of the Ray Dataset holds list.*map_batches"):
        open_data(data.from_arrow(lists), target="y")


def test_objects(data):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [object(), object()], "y": [0, 1]})
    dataset = data.from_pandas(frame)
    assert open_data(dataset, target="y", drop=["b"]).names == ("a",)
    with pytest.raises(ValueError, match="Column 'b' of the Ray Dataset holds objects"):
        paper_classifier().fit(open_data(dataset, target="y"))


def test_an_infinite_value_has_a_row(data, table):
    values = table["c1"].to_numpy().copy()
    values[9_003] = np.inf
    holed = table.set_column(1, "c1", pa.array(values))
    source = open_data(data.from_arrow(blocks_of(holed, 9_000)), target="y")
    with pytest.raises(
        ValueError, match=r"infinity in column 'c1', first in row 9003 .*Ray Dataset"
    ):
        paper_classifier().fit(source)


def test_types_that_differ_between_blocks(data):
    first = pa.table({"a": [1, 2], "y": [0, 1]})
    later = pa.table({"y": [1.0, 0.0], "a": pa.array([3.0, None])})
    X, y = read(open_data(data.from_arrow([first, later]), target="y"))
    np.testing.assert_array_equal(X, [[1.0], [2.0], [3.0], [np.nan]])
    assert y.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("kind", "later", "problem"),
    [
        (pa.int64(), pa.array([0.5]), "double in block 1.*and int64 in others"),
        (pa.float32(), pa.array([0.1]), "digits would be lost"),
        (pa.float64(), pa.array(["x"]), "string in block 1"),
    ],
)
def test_values_that_do_not_fit(data, kind, later, problem):
    tables = [pa.table({"a": pa.array([1], kind)}), pa.table({"a": later})]
    with pytest.raises(ValueError, match=problem):
        read(open_data(data.from_arrow(tables)))


def test_a_column_that_a_block_lacks(data):
    tables = [pa.table({"a": [1.0], "b": [1.0]}), pa.table({"a": [1.0]})]
    with pytest.raises(ValueError, match="no column 'b' in block 1 of the Ray Dataset"):
        read(open_data(data.from_arrow(tables)))


def test_a_block_that_is_lost(four_workers, data, table):
    ray = four_workers

    @ray.remote
    class Owner:
        def put(self, part):
            return [ray.put(part)]

    owner = Owner.remote()
    refs = ray.get(owner.put.remote(table))
    source = open_data(data.from_arrow_refs(refs), target="y")
    ray.kill(owner)
    wait_for_loss(ray, refs)
    for engine in ("local", "ray"):
        with pytest.raises(RuntimeError, match="Block 0 of the Ray Dataset was lost with a node"):
            paper_classifier(engine=engine).fit(source)


def test_a_cluster_that_has_gone(four_workers, data, table, monkeypatch):
    source = open_data(data.from_arrow(table), target="y")
    monkeypatch.setattr(four_workers, "is_initialized", lambda: False)
    with pytest.raises(RuntimeError, match="went with the Ray cluster that held it"):
        paper_classifier().fit(source)

"""Partitions of shards: sums in parts, sources cut to a few rows, labels encoded where they are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from polysift import open_data
from polysift.cluster.partitions import cut_into_partitions, partition_sizes
from polysift.cluster.tasks import Keep, RowLabels, Sweep, TaskContext, advance, gram
from polysift.data.labels import find_encoding, label_part
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.budget import Execution
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import learn_scaler
from polysift.features.statistics import column_statistics
from polysift.runtime.arrays import read_arrays, read_rows, write_arrays
from polysift.runtime.parallel import TreeSum, partial_sums, shard_spans, tree_sum


def add(a, b):
    return a + b


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=700), st.data())
def test_sums_in_parts_give_the_same_bits(values, data):
    borders = data.draw(st.sets(st.integers(0, len(values)), max_size=6)) | {0, len(values)}
    tree = TreeSum(add)
    for lo, hi in zip(sorted(borders), sorted(borders)[1:], strict=False):
        for level, count, total in partial_sums(lo, values[lo:hi], add):
            tree.push(total, level, count)
    assert tree.result() == tree_sum(values, add)


def test_an_aligned_run_is_one_sum():
    assert partial_sums(64, range(64), add) == [(2, 1, sum(range(64)))]
    assert partial_sums(8, range(8), add) == [(1, 1, sum(range(8)))]
    assert partial_sums(16, range(3), add) == [(0, 3, 3)]
    assert partial_sums(3, range(3), add) == [(0, 1, 0), (0, 1, 1), (0, 1, 2)]


@pytest.mark.parametrize("m", [1, 2_048, 40_000, 600_000, 2_000_000, 30_000_000])
@pytest.mark.parametrize("workers", [1, 2, 7, 1000])
def test_partitions_cover_all_shards_in_order(m, workers):
    shards = shard_spans(m)
    sizes = partition_sizes(shards, workers)
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1
    for size in sizes:
        partitions = cut_into_partitions(shards, size)
        assert [shard for s in partitions for shard in s.shards] == shards
        assert partitions[0].rows[0] == 0 and partitions[-1].rows[1] == m
        for s in partitions:
            assert shards[s.first_shard] == s.shards[0]
            assert (s.joined[0][0], s.joined[-1][1]) == s.rows
        firsts = [s.first_joined for s in partitions]
        assert firsts == list(range(0, firsts[-1] + 1, size))


def test_every_worker_has_some_partitions():
    shards = shard_spans(2_000_000)
    assert len(cut_into_partitions(shards, partition_sizes(shards, 2)[0])) == 8
    assert len(cut_into_partitions(shards, partition_sizes(shards, 16)[0])) == 32
    assert len(cut_into_partitions(shards, partition_sizes(shards, 1000)[0])) == 64


M = 20_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((M, 3)) < 0.5, 0.0, rng.random((M, 3)))
    return X, rng.integers(0, 3, M), rng.random(M)


def sources(rows, folder):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    X, y, w = rows
    yield "array", ArraySource(X, None, y, w)
    yield "columns", ArraySource(np.asfortranarray(X), ["a", "b", "c"], y, w).select(["c", "a"])
    yield "sparse", ArraySource(sp.csr_array(X), None, y, w)
    np.save(folder / "rows.npy", np.column_stack([X, y, w]))
    yield "memory map", open_data(folder / "rows.npy", target=3, weight=4)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "w": w})
    pq.write_table(table.slice(0, 7_000), folder / "0.parquet", row_group_size=1_500)
    pq.write_table(table.slice(7_000), folder / "1.parquet", row_group_size=9_999)
    yield "parquet", open_data(folder / "*.parquet", target="y", weight="w")
    yield "table", open_data(table, target="y", weight="w")
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=6_001)
    yield "arrow", open_data(folder / "rows.arrow", target="y", weight="w")
    table.to_pandas().to_csv(folder / "rows.csv", index=False)
    yield "csv", open_data(folder / "rows.csv", target="y", weight="w")


def dense(block):
    return block.toarray() if sp.issparse(block) else np.asarray(block)


def read(source, what):
    return np.concatenate([dense(getattr(source, what)(part)) for _, part in source.parts()])


def test_a_source_is_cut_to_some_shards(rows, tmp_path):
    for name, source in sources(rows, tmp_path):
        whole = {what: read(source, what) for what in ("rows", "labels", "weights")}
        all_bytes = len(pickle.dumps(source)) if name == "array" else np.inf
        for partition in cut_into_partitions(source.shards(), 1):
            sent = pickle.dumps(source.cut(partition.shards))
            assert len(sent) < all_bytes
            piece = pickle.loads(sent)
            start, stop = partition.rows
            assert piece.n_rows == stop - start and piece.first_row == start
            assert piece.shards() == [(lo - start, hi - start) for lo, hi in partition.shards], name
            for what, values in whole.items():
                np.testing.assert_array_equal(read(piece, what), values[start:stop], err_msg=name)
            assert piece.place(5) == source.place(start + 5), name
            assert piece.dtype == source.dtype and piece.names == source.names
            nested = piece.cut(piece.shards()[1:2])
            lo, hi = partition.shards[1]
            np.testing.assert_array_equal(read(nested, "rows"), whole["rows"][lo:hi])
            assert nested.place(0) == source.place(lo)


def test_a_piece_reads_the_footer_of_a_file_once(rows, tmp_path):
    """A footer tells of all row groups: to read it for each of them would take their square."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"a": rows[0][:, 0], "y": rows[1]})
    for number, first in enumerate((0, M // 2)):
        part = table.slice(first, M // 2)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=99)
    source = open_data(tmp_path, target="y")
    piece = pickle.loads(pickle.dumps(source.cut(source.shards())))
    assert len(piece._units) > 200
    assert len({id(unit.load.args[0]) for unit in piece._units}) == 2
    np.testing.assert_array_equal(read(piece, "rows")[:, 0], rows[0][:, 0])


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
def test_labels_are_encoded_shard_by_shard(rows, class_weight):
    _, y, w = rows
    w = np.where(y == 2, 0.0, w)  # a label whose rows weigh nothing is no class
    spans = shard_spans(M)
    parts = [label_part(y[slice(*span)], w[slice(*span)]) for span in spans]
    encoding = find_encoding(parts, class_weight)
    codes = np.concatenate([encoding.codes(part) for part in parts])
    np.testing.assert_array_equal(codes, np.where(y == 2, -1, y))
    weights = encoding.weights(encoding.own_weights(w), codes)
    assert encoding.total == pytest.approx(weights.sum(), rel=1e-13)
    counts = [w[y == label].sum() / w[w > 0].mean() for label in (0, 1)]
    np.testing.assert_allclose(encoding.counts, counts, rtol=1e-13)
    back = find_encoding(parts[::-1], class_weight)
    assert back.total == encoding.total  # no order of shards matters


class InBlocks:
    """An array that a checkpoint reads and writes in blocks of rows."""

    def __init__(self, array, borders):
        self.array, self.borders = array, borders
        self.dtype, self.shape = array.dtype, array.shape

    def blocks(self):
        return zip(self.borders, self.borders[1:], strict=False)

    def read(self):
        for lo, hi in self.blocks():
            yield self.array[lo:hi]

    def write(self):
        for lo, hi in self.blocks():
            block = np.empty_like(self.array[lo:hi])
            yield block
            self.array[lo:hi] = block


def test_a_state_in_blocks_looks_like_any_other(rng, tmp_path):
    state = rng.random((1000, 3))
    write_arrays(tmp_path / "whole", {"a": rng.random(4) * 0, "state": state}, {"k": 1})
    blocks = InBlocks(state, [0, 1, 700, 1000])
    write_arrays(tmp_path / "blocks", {"a": np.zeros(4), "state": blocks}, {"k": 1})
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "blocks").read_bytes()
    np.testing.assert_array_equal(read_rows(tmp_path / "whole", "state", (7, 300)), state[7:300])
    back = InBlocks(np.empty_like(state), [0, 999, 1000])
    arrays, values = read_arrays(tmp_path / "whole", lambda _: {"state": back})
    assert values == {"k": 1} and "state" not in arrays
    np.testing.assert_array_equal(back.array, state)


class TestTasks:
    """Workers' functions, called here: all steps at once are the same as one by one."""

    @pytest.fixture
    def partition(self, rows):
        X, y, w = rows
        source = ArraySource(X, None, y, w)
        chosen = cut_into_partitions(source.shards(), 1)[1]
        encoding = find_encoding([label_part(y, w)], None)
        centers = np.random.default_rng(1).random((10, 3))
        map_ = FeatureMap(learn_scaler(None, column_statistics(X, w), None), centers, 2)
        return source.cut(chosen.shards), TaskContext(map_, 3, 1, encoding), chosen

    def steps(self):
        u = np.random.default_rng(2).normal(size=(10, 6))
        problems = [Problem(10, AdmmUpdate(1.0, 1.7)), Problem(10, AdmmUpdate(2.0, 1.0))]
        return [
            Sweep(problems, u),
            Sweep(problems, u / 2),
            Keep([3, 4, 5]),
            Sweep(problems[1:], u[:, :3]),
        ]

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("store", [False, True])
    def test_a_state_is_made_again_from_its_steps(self, partition, threads, store):
        source, context, chosen = partition
        context = TaskContext(
            context.feature_map, 3, 1, context.encoding, Execution(threads, keep_features=store)
        )
        first = chosen.first_shard
        sums, state, labels, features = advance(
            source, context, None, None, first, 6, *self.steps()
        )
        assert state.shape == (source.n_rows, 3)
        assert (features is not None) == store
        known, kept, t = None, None, 6
        for step in self.steps():
            found, t, made, features = advance(source, context, known, kept, first, t, step)
            t.flags.writeable = False  # as it comes from shared memory
            known, kept = known or made, features if kept is None else kept
        np.testing.assert_array_equal(t, state)
        np.testing.assert_array_equal(labels.codes, known.codes)
        for one, other in zip(sums, found, strict=True):
            np.testing.assert_array_equal(one[2].r, other[2].r)

    def test_a_gram_matrix_goes_on_within_a_partition(self, partition):
        source, context, chosen = partition
        first, n = chosen.first_shard, len(chosen.shards)
        whole, labels = gram(source, context, None, first, 0)
        for skip in range(n):
            rest, found = gram(source, context, None, first, skip)
            np.testing.assert_array_equal(found.codes, labels.codes)
            assert sum(count for level, count, _ in rest if level == 0) == n - skip
        given, same = gram(source, context, labels, first, 0)
        assert same is labels
        for one, other in zip(whole, given, strict=True):
            np.testing.assert_array_equal(one[2].G, other[2].G)

    def test_fold_parts_and_weights_that_are_given(self, partition, rows):
        source, context, chosen = partition
        codes = rows[1][slice(*chosen.rows)].astype(np.int8)
        fold_parts = np.arange(len(codes)) % 2
        labels = RowLabels(codes, None, fold_parts)
        context = TaskContext(context.feature_map, 3, 2, None)
        sums, _ = gram(source, context, labels, chosen.first_joined, 0)
        data = TrainingSet(source, codes, 3)
        A = (1 + rows[0][slice(*chosen.rows)] @ context.feature_map.centers.T) ** 2
        total = sum(part.G for _, _, part in sums)
        for fold_part in (0, 1):
            np.testing.assert_allclose(
                total[fold_part], A[fold_parts == fold_part].T @ A[fold_parts == fold_part]
            )
        assert data.total_weight() == source.n_rows

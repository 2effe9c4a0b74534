"""Large row groups are decoded in pieces: the same rows, in bounded memory, and clear errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from polysift import open_data
from polysift.data import arrow_units, parquet
from problems import optional

pa, pq = optional("pyarrow"), optional("pyarrow.parquet")
pytestmark = pytest.mark.needs("pyarrow")

M, PIECE = 5_000, 512


@pytest.fixture
def small_pieces(monkeypatch):
    for module in (arrow_units, parquet):
        monkeypatch.setattr(module, "PIECE_ROWS", PIECE)


@pytest.fixture
def table(rng):
    words = np.array(["red", "", "?", "b\N{SNOWMAN}ue", "gr\0y"])[rng.integers(0, 5, M)]
    return pa.table(
        {
            "a.b": rng.normal(size=M),
            "a": rng.integers(0, 9, M),
            "": rng.normal(size=M).astype("float32"),
            "word": words,
            "kind": pa.array(words).dictionary_encode(),
            "y": np.array(["no", "yes"])[rng.integers(0, 2, M)],
        }
    )


def parts(source, spans=None):
    return [(source.rows(part), source.labels(part)) for _, part in source.parts(spans)]


def assert_same(one, other):
    for (rows, labels), (others, their) in zip(one, other, strict=True):
        np.testing.assert_array_equal(rows, others)
        np.testing.assert_array_equal(labels, their)


@pytest.mark.parametrize("options", [{}, {"missing": ["red"]}], ids=["plain", "missing words"])
def test_the_same_rows_as_of_small_groups(table, tmp_path, small_pieces, options):
    for name, rows in (("small", 100), ("large", M)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=rows)
    small, large = (
        open_data(tmp_path / f"{name}.parquet", target="y", **options)
        for name in ("small", "large")
    )
    assert large.types == small.types
    assert_same(parts(large), parts(small))
    some = [(700, 900), (2_000, 3_100)]
    assert_same(parts(large, some), parts(small, some))
    cut = pickle.loads(pickle.dumps(large.cut(large.shards()[1:])))
    assert_same(parts(cut), parts(small)[1:])


def test_memory_is_that_of_a_piece(table, tmp_path, small_pieces):
    sizes = []
    for rows in (PIECE, M):
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=rows)
        sizes.append(open_data(tmp_path / "x.parquet", target="y").unit_bytes)
    assert sizes[0] == sizes[1]


def test_a_damaged_piece_is_reported(table, tmp_path, small_pieces):
    path = tmp_path / "x.parquet"
    pq.write_table(
        table.select(["a.b", "y"]),
        path,
        compression="zstd",
        data_page_size=1024,
        write_batch_size=64,
    )
    source = open_data(path, target="y")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 64] = bytes(64)
    path.write_bytes(content)
    message = f"x.parquet cannot be read: its row group of {M} rows from row 0 on is damaged"
    with pytest.raises(ValueError, match=message):
        parts(source)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="was removed after it was opened"):
        parts(source)

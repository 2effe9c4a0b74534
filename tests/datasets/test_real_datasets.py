"""Real data sets: from prepared and published files, the cache, and a server."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import socket
import sys
import threading
import tracemalloc
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from polysift.datasets import (
    NAMES,
    UCI,
    Dataset,
    DatasetError,
    available,
    catalogue,
    load,
    published,
)
from polysift.datasets import cache as datasets_cache
from polysift.datasets import real as datasets_real
from polysift.datasets.catalogue import ENTRIES, find_entry
from polysift.datasets.prepared import Content, digest, unordered_digest

REAL = os.environ.get("POLYSIFT_DATA")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty data folder, and an empty cache beside it."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("POLYSIFT_DATA", str(folder))
    monkeypatch.setenv("POLYSIFT_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def cache(data):
    folder = data.parent / "cache"
    folder.mkdir()
    return folder


def real(name):
    """Load a real set from where the tests have it, or skip."""
    file = Path(REAL or ".") / ("mnist.npz" if name == "mnist38" else f"{name}.parquet")
    if REAL is None or not file.is_file():
        pytest.skip(f"{file.name} is not at hand: POLYSIFT_DATA is {REAL!r}")
    return load(name, fetch=False)


def pretend(monkeypatch, name, X, y, **changes):
    """Let a catalogue entry describe other content, as if that had been published."""
    content = Content(np.asarray(X), np.asarray(y), ())
    counts = (int(np.sum(content.y == -1)), int(np.sum(content.y == 1)))
    digests = (digest(content), unordered_digest(content))
    entry = replace(ENTRIES[name], counts=counts, digests=digests, **changes)
    monkeypatch.setattr(
        datasets_real, "find_entry", lambda asked: entry if asked == name else find_entry(asked)
    )
    return entry


# ------------------------------------------------------------------ names


def test_names_and_the_papers_names():
    assert len(UCI) == 9 and set(UCI) < set(NAMES) and len(NAMES) == 16
    short = "breast banknote seismic musk2 HTRU2 MAGIC occupancy default Skin SUSY HIGGS Gisette"
    found = [find_entry(name).name for name in (short + " MNIST38 Dogs_vs_Cats").split()]
    assert found == [*UCI, "susy", "higgs", "gisette", "mnist38", "dogs_vs_cats"]
    assert find_entry(" Breast-Cancer ").name == "breast_cancer"
    aliases = [alias for entry in ENTRIES.values() for alias in (entry.name, *entry.aliases)]
    assert len(aliases) == len(set(aliases))


@pytest.mark.parametrize("name", ["iris", "", None, 3])
def test_unknown_names_are_answered_with_all_names(name):
    with pytest.raises(ValueError, match="name must be one of") as caught:
        load(name)
    assert all(known in str(caught.value) for known in (*NAMES, "breast", "default", repr(name)))
    with pytest.raises(ValueError, match="name must be one of"):
        available(name)


def test_flags_are_checked(data):
    with pytest.raises(ValueError, match="fetch must be True or False; got 'no'"):
        load("skin", fetch="no")
    with pytest.raises(ValueError, match="show must be True or False; got 2"):
        load("skin", show=2)


# ------------------------------------------------------------------ the real sets


@pytest.mark.parametrize("name", [*UCI, "covtype_binary", "higgs_11k", "mnist38"])
def test_real_sets_are_what_the_catalogue_says(name):
    found, entry = real(name), ENTRIES[name]
    assert isinstance(found, Dataset) and found.name == name and found.title == entry.title
    assert found.X.shape == (entry.rows, len(entry.features))
    assert found.X.dtype == (np.float32 if name == "mnist38" else np.float64)
    assert found.X.flags.c_contiguous and np.isfinite(found.X).all()
    assert found.y.dtype == np.int8 and found.y.shape == (entry.rows,)
    assert found.feature_names == entry.features and Path(found.source).exists()
    assert found.split is None and found.positive == entry.positive
    content = Content(found.X, found.y, found.feature_names)
    assert (np.sum(found.y == -1), np.sum(found.y == 1)) == entry.counts
    assert digest(content) == entry.digests[0]
    if len(found.X) < 100_000:
        assert unordered_digest(content) == entry.digests[1]
    assert not any("differ" in remark for remark in found.remarks)


@pytest.mark.parametrize("name", UCI)
def test_real_sets_agree_with_table_1_or_say_where_not(name):
    found, printed = real(name), ENTRIES[name].printed
    share = 100 * max(np.mean(found.y == 1), np.mean(found.y == -1))
    assert len(found.X) == printed.rows
    expected = {
        "breast_cancer": ["prints 64.44 % of the rows in the larger class; the data have 65.01 %"],
        "credit_default": ["prints 24 attributes; the data have 23: the paper counts ID"],
    }.get(name, [])
    assert len(found.remarks) == len(expected)
    assert all(text in remark for text, remark in zip(expected, found.remarks, strict=True))
    assert (round(share, 2) == printed.majority) == (name != "breast_cancer")
    assert (found.X.shape[1] == printed.attributes) == (name != "credit_default")


def test_mnist38_says_what_does_not_fit():
    found = real("mnist38")
    assert found.X.shape == (13966, 784) and found.X.max() == 255
    assert "62,581 rows (35,000 for training, 5,000 for validation" in found.remarks[0]
    assert "13,966" in found.remarks[0] and "782" in found.remarks[1]


def test_a_sample_says_so():
    assert "sample of 10,984 of the 11,000,000" in real("higgs_11k").remarks[0]


LIKE_UCI = {
    "breast_cancer": ("breast-cancer-wisconsin.data", "1000025,", "24"),
    "banknote": ("data_banknote_authentication.txt", "", "01"),
    "htru2": ("HTRU_2.csv", "", "01"),
    "magic": ("magic04.data", "", "hg"),
}


def write_like_uci(name, found, folder):
    """Write a real set as it is published: after a key, numbers in full; then the class."""
    file, key, classes = LIKE_UCI[name]
    lines = [
        key + ",".join(f"{value:.17g}" for value in row) + f",{classes[int(label == 1)]}\n"
        for row, label in zip(found.X, found.y, strict=True)
    ]
    if name == "breast_cancer":
        lines.insert(5, "1057013,8,4,5,1,2,?,7,3,1,4\n")
    (folder / file).write_text("".join(lines))
    return folder / file


@pytest.mark.parametrize("name", LIKE_UCI)
def test_published_text_is_read_to_the_last_bit(name, data, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("POLYSIFT_DATA", REAL or "")
        expected = real(name)
    path = write_like_uci(name, expected, data)
    found = load(name, fetch=False)
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.remarks == expected.remarks and found.source == str(path)


# ------------------------------------------------------------------ published formats

SEISMIC = """% a comment, 1, 2
@relation seismic-bumps
@attribute seismic {a,b,c,d}
@attribute class {1,0}
@data
a,a,N,15180,48,-72,-72,a,0,0,0,0,0,0,0,0,0,0,0
b,c,W,14720,33,-70,-79,d,1,0,1,0,0,0,0,0,2000,2000,1
"""
OCCUPANCY = (
    '"date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"\n'
    '"1","2015-02-04 17:51:00",23.18,27.272,426,721.25,0.00479298817650529,{}\n'
)
CREDIT = ",".join(["ID", *ENTRIES["credit_default"].features, "default.payment.next.month"])
WIDE = [0] * 23 + [5] * 761

SMALL = {
    "breast_cancer": (
        {"breast-cancer-wisconsin.data": "1,5,1,1,1,2,1,3,1,1,2\n2,8,4,5,1,2,?,7,3,1,4\n"
         "3,10,7,7,6,4,10,4,1,2,4\n"},
        [[5, 1, 1, 1, 2, 1, 3, 1, 1], [10, 7, 7, 6, 4, 10, 4, 1, 2]],
    ),
    "banknote": (
        {"data_banknote_authentication.txt": "3.6216,8.6661,-2.8073,-0.44699,0\n1,2,3,4e-1,1\n"},
        [[3.6216, 8.6661, -2.8073, -0.44699], [1, 2, 3, 0.4]],
    ),
    "seismic_bumps": (
        {"seismic-bumps.arff": SEISMIC},
        [[0, 0, 0, 15180, 48, -72, -72, 0] + [0] * 10,
         [1, 2, 1, 14720, 33, -70, -79, 3, 1, 0, 1, 0, 0, 0, 0, 0, 2000, 2000]],
    ),
    "musk2": (
        {"clean2.data": "NON-MUSK-1,1_1+1," + "46,-108," * 83 + "0.\nMUSK-2,2_1+1,"
         + "7,8," * 83 + "1.\n"},
        [[46, -108] * 83, [7, 8] * 83],
    ),
    "htru2": (
        {"HTRU_2.csv": "140.5625,55.68378214,-0.23,-0.69,3.199,19.11,7.97,74.24,0\n"
         "1,2,3,4,5,6,7,8,1\n"},
        [[140.5625, 55.68378214, -0.23, -0.69, 3.199, 19.11, 7.97, 74.24], range(1, 9)],
    ),
    "magic": (
        {"magic04.data": "1.5,2,3,4,5,6,7,8,9,10,h\r\n-1,2,3,4,5,6,7,8,9,10,g\r\n"},
        [[1.5, *range(2, 11)], [-1, *range(2, 11)]],
    ),
    "occupancy": (
        {"datatraining.txt": OCCUPANCY.format(0), "datatest.txt": OCCUPANCY.format(1),
         "datatest2.txt": OCCUPANCY.format(1)},
        [[23.18, 27.272, 426, 721.25, 0.00479298817650529]] * 3,
    ),
    "credit_default": (
        {"UCI_Credit_Card.csv": f"\ufeff,X1,X2,Y\n{CREDIT}\n1," + "20000," * 23 + "0\n2,"
         + "-2," * 23 + "1\n"},
        [[20000] * 23, [-2] * 23],
    ),
    "skin": (
        {"Skin_NonSkin.txt": "74\t85\t123\t2\n73\t84\t122\t1\n\n"},
        [[74, 85, 123], [73, 84, 122]],
    ),
    "covtype_binary": (
        {"covtype.data": ",".join(["2596", "51"] + ["0"] * 52 + ["5"]) + "\n"
         + ",".join(["2", "3"] + ["1"] * 52 + ["2"]) + "\n"},
        [[2596, 51] + [0] * 52, [2, 3] + [1] * 52],
    ),
    "mnist38": (
        {"mnist_784.arff": "@RELATION mnist_784\n@ATTRIBUTE class {0,1,3,8}\n@DATA\n"
         + "".join(f"{','.join(map(str, WIDE))},{digit}\n" for digit in ("3", "'0'", "'8'"))},
        [WIDE, WIDE],
    ),
    "susy": (
        {"SUSY.csv": "0.000000000000000000e+00" + ",9.728614687919616699e-01" * 18
         + "\n1.000000000000000000e+00" + ",1.667973041534423828e+00" * 18 + "\n"},
        [[0.972861468791961669] * 8, [1.667973041534423828] * 8],
    ),
    "higgs": (
        {"HIGGS.csv": "0.0" + ",8.692932128906250000e-01" * 28 + "\n1.0" + ",2.5" * 28 + "\n"},
        [[0.869293212890625] * 21, [2.5] * 21],
    ),
    "gisette": (
        {"gisette_train.data": "550 0 " * 2500 + "\n", "gisette_train.labels": "-1\n",
         "gisette_valid.data": "1 2 " * 2500 + "\n", "gisette_valid.labels": "1\n"},
        [[550, 0] * 2500, [1, 2] * 2500],
    ),
}  # fmt: skip


def put(folder, name):
    files, X = SMALL[name]
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8", newline="")
    return np.array([list(row) for row in X], dtype=float)


@pytest.mark.parametrize("name", SMALL)
def test_published_formats(name, data):
    assert not available(name)
    expected = put(data, name)
    assert available(name)
    found = load(name, fetch=False)
    single = name in ("mnist38", "susy", "higgs")
    np.testing.assert_array_equal(found.X, expected.astype(np.float32 if single else float))
    assert found.X.dtype == (np.float32 if single else np.float64) and found.X.flags.c_contiguous
    np.testing.assert_array_equal(found.y, [-1, 1, 1] if name == "occupancy" else [-1, 1])
    assert found.y.dtype == np.int8
    assert found.feature_names == ENTRIES[name].features
    assert "The published data have" in found.remarks[0]
    assert all(str(data / file) in found.source for file in SMALL[name][0])


def test_compressed_text(data):
    expected = put(data, "covtype_binary")
    text = (data / "covtype.data").read_bytes()
    (data / "covtype.data").unlink()
    (data / "covtype.data.gz").write_bytes(gzip.compress(text))
    np.testing.assert_array_equal(load("covtype").X, expected)


def test_arff_of_openml_has_names_and_quotes(data):
    row = ",".join(["1", "'MUSK-211'", "'211_1+1'", *map(str, range(166)), "'1'"])
    other = row.replace("'1'", "'0'")
    (data / "musk.arff").write_text(f"@attribute ID numeric\n@DATA\n{row}\n{other}\n")
    found = load("musk2", fetch=False)
    np.testing.assert_array_equal(found.X, [range(166)] * 2)
    np.testing.assert_array_equal(found.y, [1, -1])


def test_credit_default_without_a_column_of_numbers(data):
    rows = "\n".join(",".join([*map(str, range(23)), label]) for label in "01")
    (data / "default-of-credit-card-clients.arff").write_text(f"@data\n{rows}\n")
    np.testing.assert_array_equal(load("default", fetch=False).X, [range(23)] * 2)


def test_gisette_without_its_validation_set(data):
    put(data, "gisette")
    (data / "gisette_valid.labels").unlink()
    (data / "gisette_train.data").write_text("1 2 " * 2500 + "\n" + "3 4 " * 2500 + "\n")
    (data / "gisette_train.labels").write_text("1 \n-1 \n")
    found = load("Gisette", fetch=False)
    assert found.X[:, 1].tolist() == [2, 4] and found.y.tolist() == [1, -1]


def test_mnist_arrays(data, rng):
    arrays = {}
    for part, digits in (("train", [5, 3, 8, 3]), ("test", [8, 1])):
        arrays[f"x_{part}"] = rng.integers(0, 256, (len(digits), 28, 28)).astype(np.uint8)
        arrays[f"y_{part}"] = np.array(digits, dtype=np.uint8)
    np.savez(data / "mnist.npz", **arrays)
    found = load("MNIST38", fetch=False)
    np.testing.assert_array_equal(found.y, [-1, 1, -1, 1])
    images = np.concatenate([arrays["x_train"][1:], arrays["x_test"][:1]])
    np.testing.assert_array_equal(found.X, images.reshape(4, 784))
    assert found.X.dtype == np.float32
    np.savez(data / "mnist.npz", x_train=arrays["x_train"])
    with pytest.raises(DatasetError, match="mnist.npz must be an .npz file with x_train, y_train"):
        load("mnist38", fetch=False)
    np.savez(data / "mnist.npz", **{**arrays, "y_test": [3]})
    with pytest.raises(DatasetError, match="labels do not fit images of shape"):
        load("mnist38", fetch=False)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (1, 2)])
@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_dogs_vs_cats_from_arrays(ending, labels, data, rng):
    X, y = rng.random((6, 1024)), np.array([labels[i] for i in (0, 1, 1, 0, 1, 0)])
    path = data / f"dogs_vs_cats.{ending}"
    if ending == "npz":
        np.savez(path, X=X, y=y)
    else:
        savemat(path, {"X": X, "y": y[:, None]})
    found = load("Dogs_vs_Cats")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, [-1, 1, 1, -1, 1, -1])
    assert found.feature_names[:2] == ("feature1", "feature2") and found.X.flags.c_contiguous
    assert "28,911 rows (2,000 for training" in found.remarks[0]


def test_streams_of_text_are_split_in_the_papers_proportions(data, monkeypatch):
    """A file of hundreds of thousands of rows is read in blocks; memory is that of the result."""
    monkeypatch.setattr(published, "BLOCK_VALUES", 1 << 15)
    rng = np.random.default_rng(0)
    block = np.hstack([rng.integers(0, 2, (2000, 1)), rng.normal(size=(2000, 18)).round(5)])
    text = "\n".join(",".join(f"{value:.12e}" for value in row) for row in block) + "\n"
    with gzip.open(data / "SUSY.csv.gz", "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(text.encode())
    tracemalloc.start()
    found = load("susy", fetch=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.X.shape == (200_000, 8) and found.X.dtype == np.float32
    # The array may have twice the size while it grows; the rest is a block, or rows to be kept.
    assert peak < 2 * found.X.nbytes + 2**23 < 100 * len(text) / 3
    np.testing.assert_array_equal(found.X[-2000:], block[:, 1:9].astype(np.float32))
    np.testing.assert_array_equal(found.y[:2000], np.where(block[:, 0] == 1, 1, -1))
    train, valid, test = found.split
    assert (len(train), len(valid), len(test)) == (160_000, 20_000, 20_000)
    np.testing.assert_array_equal(np.concatenate(found.split), np.arange(200_000))
    assert any("The split has the paper's proportions" in remark for remark in found.remarks)


def test_the_papers_split_is_by_position():
    from polysift.datasets.prepared import fixed_split

    for name, sizes in (("susy", (4e6, 5e5, 5e5)), ("higgs", (1e7, 5e5, 5e5))):
        split, said = fixed_split(ENTRIES[name], int(sum(sizes)))
        assert tuple(map(len, split)) == sizes and said == ()
        assert (split[0][0], split[1][0], split[2][-1]) == (0, sizes[0], sum(sizes) - 1)
    assert fixed_split(ENTRIES["gisette"], 7000) == (None, ())


# ------------------------------------------------------------------ what is wrong with a file


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("banknote", "data_banknote_authentication.txt", "", "holds no rows"),
        ("banknote", "data_banknote_authentication.txt", "1,2,3\n", "line 1: invalid column index"),
        ("banknote", "data_banknote_authentication.txt", "a,b\n1,2,3,4,0\n\n1,2,x,4,0\n",
         "line 4: could not convert string 'x' to float64, column 3. Correct or replace"),
        ("banknote", "data_banknote_authentication.txt", "1,2,3,4,0\n1,2,nan,4,1\n",
         r"'kurtosis' holds a NaN or nothing in row 1 \(counted from 0\)"),
        ("banknote", "data_banknote_authentication.txt", "1;2;3;4;0\n",
         "no rows of numbers with ',' between them"),
        ("banknote", "data_banknote_authentication.txt", 'a,b\n"', "no rows of numbers"),
        ("banknote", "data_banknote_authentication.txt", "1,2,x,4,0\n", "'x'"),
        ("banknote", "data_banknote_authentication.txt", "1,2,3,4,0\n1,2,3,4,7\n",
         "must be 0, 1; got 7 in row 1 of numbers"),
        ("magic", "magic04.data", "1,2,3,4,5,6,7,8,9,10,x\n", "line 1: .*'x' .*, column 11"),
        ("covtype", "covtype.data.gz", "plain text", "is damaged or truncated"),
        ("htru2", "htru2.parquet", "no Parquet", "htru2.parquet is not a readable Parquet file"),
        ("htru2", "htru2.npz", "no archive", "htru2.npz is not a readable .npz file"),
        ("dogs_vs_cats", "dogs_vs_cats.mat", "no MATLAB file" * 50, "Save it with -v7, or as .npz"),
        ("dogs_vs_cats", "dogs_vs_cats.mat", "", "Save it with -v7, or as .npz"),
    ],
)  # fmt: skip
@pytest.mark.needs("pandas", "pyarrow")
def test_bad_files_are_named(name, file, text, message, data):
    (data / file).write_text(text)
    with pytest.raises(DatasetError, match=message) as caught:
        load(name, fetch=False)
    assert str(data / file) in str(caught.value)
    descriptors = Path("/proc/self/fd")
    # Text is closed also while the exception, whose traceback holds all frames, is alive.
    if descriptors.exists() and file.endswith((".txt", ".data")):
        opened = [os.readlink(link) for link in descriptors.iterdir() if link.is_symlink()]
        assert str(data / file) not in opened


def test_a_compressed_file_that_is_cut_short(data):
    put(data, "susy")
    text = (data / "SUSY.csv").read_bytes() * 100
    (data / "SUSY.csv").unlink()
    (data / "SUSY.csv.gz").write_bytes(gzip.compress(text)[:-20])
    with pytest.raises(DatasetError, match="SUSY.csv.gz is damaged or truncated"):
        load("susy", fetch=False)


@pytest.mark.parametrize("labels", ["1\n", "1\n-1\n1\n"])
def test_gisette_needs_a_label_for_each_row(labels, data):
    put(data, "gisette")
    (data / "gisette_train.data").write_text("1 2 " * 2500 + "\n" + "3 4 " * 2500 + "\n")
    (data / "gisette_train.labels").write_text(labels)
    with pytest.raises(DatasetError, match="gisette_train.data has .* rows, but .*labels"):
        load("gisette", fetch=False)


@pytest.mark.needs("pandas", "pyarrow")
def test_prepared_tables_are_checked(data):
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 2.0], "target": [0, 1]})
    frame.drop(columns="target").to_parquet(data / "skin.parquet")
    with pytest.raises(DatasetError, match="must have a column 'target' .*columns are a."):
        load("skin", fetch=False)
    frame[["target"]].to_parquet(data / "skin.parquet")
    with pytest.raises(DatasetError, match="has no column of attributes"):
        load("skin", fetch=False)
    frame.assign(target=[1, 1]).to_parquet(data / "skin.parquet")
    with pytest.raises(DatasetError, match="target must hold the labels .* 1 different values: 1"):
        load("skin", fetch=False)
    frame.assign(a=["x", "y"]).to_parquet(data / "skin.parquet")
    with pytest.raises(DatasetError, match="column 'a' must hold numbers: .*'x'. Encode"):
        load("skin", fetch=False)
    frame.to_parquet(data / "skin.parquet")
    found = load("skin", fetch=False)
    assert found.feature_names == ("a",) and found.y.tolist() == [-1, 1]
    assert "should have 3 attributes; they have 1" in found.remarks[0]
    for arrays in ({"X": np.ones((2, 3))}, {"X": np.ones(2), "y": [0, 1]}):
        np.savez(data / "magic.npz", **arrays)
        with pytest.raises(
            DatasetError, match="magic.npz.* must (hold arrays X and y|be a matrix)"
        ):
            load("magic", fetch=False)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, None], r"attribute 'B' holds a NaN or nothing in row 1 \(counted from 0\)"),
        ([np.inf, 1.0], "attribute 'B' holds an infinity in row 0"),
        ([{"part": 1}, {"part": 2}], "column 'B' must hold numbers: .*'dict'. Encode"),
        (np.array([0, 1], dtype="M8[us]"), "column 'B' must hold numbers: it holds datetime64"),
    ],
    ids=["null", "infinity", "struct", "date"],
)
@pytest.mark.needs("pyarrow")
def test_columns_of_prepared_tables_are_checked(column, message, data):
    import pyarrow as pa
    from pyarrow.parquet import write_table

    table = pa.table({"B": pa.array(column), "G": [1, 2], "R": [3, 4], "target": [0, 1]})
    write_table(table, data / "skin.parquet")
    with pytest.raises(DatasetError, match=message) as caught:
        load("skin", fetch=False)
    assert str(data / "skin.parquet") in str(caught.value)
    write_table(table.rename_columns(["R", "G", "R", "target"]), data / "skin.parquet")
    with pytest.raises(DatasetError, match="has the column 'R' more than once"):
        load("skin", fetch=False)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c", "d"], ["a", "a", "b"], "a"])
def test_names_of_arrays_must_fit(names, data):
    np.savez(data / "skin.npz", X=np.ones((2, 3)), y=[0, 1], names=names)
    with pytest.raises(DatasetError, match="a different name for each of the 3 columns of X"):
        load("skin", fetch=False)


@pytest.mark.parametrize("name", ["skin", "mnist"])
def test_archives_that_are_cut_short_or_none(name, data):
    path = data / f"{name}.npz"
    np.savez(path, X=np.ones((50, 3)), y=np.arange(50) % 2)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DatasetError, match=f"{name}.npz .* .npz file"):
        load("mnist38" if name == "mnist" else name, fetch=False)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(DatasetError, match=f"{name}.npz .* .npz file"):
        load("mnist38" if name == "mnist" else name, fetch=False)


def test_a_sparse_matrix_of_matlab(data):
    X = np.eye(4, 1024)
    savemat(data / "dogs_vs_cats.mat", {"X": csc_array(X), "y": [0, 1, 0, 1]})
    np.testing.assert_array_equal(load("dogs_vs_cats").X, X)


def test_parquet_needs_pyarrow(data, monkeypatch):
    (data / "skin.parquet").write_text("never read")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"polysift\[files\]"):
        load("skin")


def test_other_values_and_other_orders(data, monkeypatch, rng):
    X, y = np.round(rng.random((40, 3)), 3), np.repeat([-1, 1], 20)
    pretend(monkeypatch, "skin", X, y)
    np.savez(data / "skin.npz", X=X[::-1], y=y[::-1])
    assert all("differ" not in remark for remark in load("skin").remarks), "only the order differs"
    X[7, 1] += 1
    np.savez(data / "skin.npz", X=X, y=y)
    assert load("skin").remarks[0] == "Some values differ from the published ones."


# ------------------------------------------------------------------ where data lie


def test_the_data_folder_comes_before_the_cache(data, cache):
    put(cache, "skin")
    assert load("skin", fetch=False).source == str(cache / "Skin_NonSkin.txt")
    put(data, "skin")
    assert load("skin", fetch=False).source == str(data / "Skin_NonSkin.txt")
    np.savez(data / "skin.npz", X=np.ones((2, 3)), y=[1, -1])
    assert load("skin", fetch=False).source == str(data / "skin.npz"), "prepared before published"


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "given/polysift"),
        ("linux", None, "home/.cache/polysift"),
        ("darwin", "XDG_CACHE_HOME", "home/Library/Caches/polysift"),
        ("win32", "LOCALAPPDATA", "given/polysift"),
        ("win32", None, "home/AppData/Local/polysift"),
    ],
)
def test_the_cache_is_the_platforms(platform, variable, expected, monkeypatch, tmp_path):
    for name in ("POLYSIFT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(sys, "platform", platform)
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    assert datasets_cache.cache_folder() == tmp_path / expected
    monkeypatch.setenv("POLYSIFT_CACHE", str(tmp_path / "own"))
    assert datasets_cache.cache_folder() == tmp_path / "own"


def test_what_is_absent_is_explained(data, monkeypatch):
    with pytest.raises(DatasetError) as caught:
        load("magic", fetch=False)
    text = str(caught.value)
    for part in (str(data), str(data.parent / "cache"), "fetch=False", "magic.parquet",
                 "magic04.data", "archive.ics.uci.edu"):  # fmt: skip
        assert part in text
    with pytest.raises(DatasetError, match="has no public source") as caught:
        load("dogs_vs_cats")
    assert "dogs_vs_cats.npz; dogs_vs_cats.mat" in str(caught.value)
    monkeypatch.delenv("POLYSIFT_DATA")
    with pytest.raises(OSError, match="POLYSIFT_DATA names no folder"):
        load("dogs_vs_cats")
    assert not (data.parent / "cache").exists(), "nothing was fetched, nothing is left"


def test_a_data_folder_that_is_not_there_is_said_to_be(data, monkeypatch):
    monkeypatch.setenv("POLYSIFT_DATA", str(data / "mistyped"))
    with pytest.raises(DatasetError, match="mistyped, which does not exist, and the cache is"):
        load("magic", fetch=False)
    monkeypatch.setenv("POLYSIFT_DATA", "~/data")
    monkeypatch.setenv("POLYSIFT_CACHE", "~/cache")
    assert datasets_cache.data_folder() == Path.home() / "data"
    assert datasets_cache.cache_folder() == Path.home() / "cache"


@pytest.mark.parametrize("folder", ["data", "cache"])
def test_a_folder_that_may_not_be_read(folder, data, monkeypatch):
    def refuse(path):
        if path.parent.name == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return False

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(DatasetError, match=f"{folder} cannot be .*POLYSIFT_{folder.upper()} to"):
        load("magic", fetch=False)


@pytest.mark.needs("pyarrow")
def test_a_kept_copy_is_of_no_use_without_pyarrow(data, cache, monkeypatch):
    monkeypatch.setattr(datasets_real, "MIN_KEPT_BYTES", 10)
    expected = put(data, "higgs").astype(np.float32)
    load("higgs", fetch=False)
    assert (cache / "higgs.parsed.parquet").is_file()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    np.testing.assert_array_equal(load("higgs", fetch=False).X, expected)


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.needs("pyarrow")
def test_long_texts_are_parsed_once(arrow, data, cache, monkeypatch):
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(datasets_real, "MIN_KEPT_BYTES", 10)
    expected = put(data, "higgs").astype(np.float32)
    first = load("higgs", fetch=False)
    copy = cache / f"higgs.parsed.{'parquet' if arrow else 'npz'}"
    assert sorted(file.name for file in cache.iterdir()) == ["higgs.parsed.json", copy.name]
    monkeypatch.setattr(datasets_real, "read_published", None)  # to call it would fail
    second = load("higgs", fetch=False)
    for found in (first, second):
        np.testing.assert_array_equal(found.X, expected)
        assert found.source == str(data / "HIGGS.csv") and found.feature_names[0] == "lepton_pT"
    assert first.remarks == second.remarks and second.X.dtype == np.float32
    assert first.split[0].tolist() == [0, 1], "so few rows are all for training"
    monkeypatch.setattr(datasets_real, "read_published", published.read_published)
    copy.write_bytes(b"damaged")
    np.testing.assert_array_equal(load("higgs", fetch=False).X, expected)
    (data / "HIGGS.csv").write_text("1" + ",7" * 28 + "\n0" + ",8" * 28 + "\n1" + ",9" * 28 + "\n")
    assert load("higgs", fetch=False).X[:, 0].tolist() == [7, 8, 9], "the file has changed"


def test_a_cache_that_cannot_be_written_is_no_error(data, monkeypatch):
    monkeypatch.setattr(datasets_real, "MIN_KEPT_BYTES", 10)
    (data.parent / "cache").write_text("a file is in the way")
    put(data, "higgs")
    with pytest.warns(UserWarning, match="higgs.parsed could not be kept in .*POLYSIFT_CACHE"):
        assert load("higgs").X.shape == (2, 21)


# ------------------------------------------------------------------ fetching


class Server:
    """Serves some bytes by path; ``cut`` ends an answer early, ``asked`` counts requests."""

    def __init__(self):
        self.answers, self.asked, self.agents, self.cut = {}, [], set(), None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                outer.agents.add(self.headers["User-Agent"])
                body = outer.answers.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if outer.cut is None else body[: outer.cut])

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(data, monkeypatch):
    found = Server()
    monkeypatch.setattr(catalogue, "UCI_ARCHIVE", found.address)
    monkeypatch.setattr(datasets_cache, "OPENML", f"{found.address}api/")
    yield found
    found.close()


def archive(files, folder="", method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, text in files.items():
            file.writestr(folder + name, text)
    return buffer.getvalue()


def offer(server, monkeypatch, name, folder=""):
    """Serve a small set as if it had been published so."""
    files, X = SMALL[name]
    X = np.array([list(row) for row in X], dtype=float)
    y = [-1, 1, 1] if name == "occupancy" else [-1, 1]
    entry = pretend(monkeypatch, name, X, y)
    if entry.openml is None:
        server.answers[f"/{entry.archive}"] = archive(files, folder)
        return X
    body = (SMALL[name][0].get(entry.files[0][0]) or "".join(files.values())).encode()
    description = {
        "url": f"{server.address}data/{name}.arff",
        "md5_checksum": hashlib.md5(body).hexdigest(),
    }
    answer = json.dumps({"data_set_description": description}).encode()
    server.answers |= {f"/api/{entry.openml}": answer, f"/data/{name}.arff": body}
    return X


def left_in(folder):
    return sorted(file.name for file in folder.iterdir()) if folder.exists() else []


FROM_UCI = ["breast_cancer", "banknote", "seismic_bumps", "htru2", "magic", "occupancy", "skin"]


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize("name", [*FROM_UCI, "gisette", "musk2", "credit_default", "mnist38"])
@pytest.mark.needs("pyarrow")
def test_fetched_once_then_kept(name, arrow, server, data, monkeypatch):
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    X = offer(server, monkeypatch, name, folder="GISETTE/" if name == "gisette" else "")
    assert not available(name)
    first = load(name)
    asked = len(server.asked)
    assert asked == (1 if name in (*FROM_UCI, "gisette") else 2)
    assert server.agents == {"polysift"}
    ending = "parquet" if arrow else "npz"
    assert left_in(data.parent / "cache") == sorted([f"{name}.json", f"{name}.{ending}"])
    assert left_in(data) == []
    assert first.source == ENTRIES[name].address
    if name in FROM_UCI:
        assert first.source.startswith(server.address), "the address at this moment"
    second = load(name, fetch=False)
    assert len(server.asked) == asked, "the second load asks nobody"
    assert second.source == str(data.parent / "cache" / f"{name}.{ending}")
    for found in (first, second):
        np.testing.assert_array_equal(found.X, X)
        assert found.X.flags.c_contiguous and found.y.dtype == np.int8
        assert found.feature_names == ENTRIES[name].features
    assert first.X.dtype == second.X.dtype
    np.testing.assert_array_equal(first.y, second.y)
    assert first.remarks == second.remarks


def test_large_sets_are_fetched_as_compressed_text(server, data, monkeypatch):
    files, X = SMALL["susy"]
    entry = replace(ENTRIES["susy"], counts=(1, 1))
    monkeypatch.setattr(datasets_real, "find_entry", lambda name: entry)
    packed = {"SUSY.csv.gz": gzip.compress(files["SUSY.csv"].encode())}
    server.answers[f"/{entry.archive}"] = archive(packed)
    np.testing.assert_array_equal(load("susy").X, np.float32(X))
    np.testing.assert_array_equal(load("susy", fetch=False).X, np.float32(X))
    assert len(server.asked) == 1


@pytest.mark.needs("pyarrow")
def test_a_kept_file_that_changes_is_noticed(server, data, monkeypatch):
    offer(server, monkeypatch, "skin")
    found = load("skin")
    import pandas as pd

    path = data.parent / "cache" / "skin.parquet"
    frame = pd.read_parquet(path)
    frame.loc[1, "G"] += 1
    frame.to_parquet(path)
    with pytest.raises(DatasetError, match=r"skin.parquet is damaged: .* Delete it"):
        load("skin")
    path.unlink()
    np.testing.assert_array_equal(load("skin").X, found.X)
    path.with_suffix(".json").write_text("no JSON")
    np.testing.assert_array_equal(load("skin").X, found.X)


def fails_cleanly(data, name, *parts):
    with pytest.raises(DatasetError) as caught:
        load(name)
    for part in (*parts, name, str(data), "by hand"):
        assert part in str(caught.value)
    assert left_in(data.parent / "cache") == [] and left_in(data) == []
    assert not available(name)


@pytest.mark.parametrize("name", ["skin", "musk2"])
def test_a_download_that_breaks_off(name, server, data, monkeypatch):
    offer(server, monkeypatch, name)
    size = len(next(reversed(server.answers.values())))
    server.cut = size - 7
    if name == "musk2":  # its description must arrive whole
        assert len(server.answers["/api/1116"]) < server.cut
    fails_cleanly(data, name, f"broke off after {size - 7:,} of {size:,} bytes")
    server.cut = None
    assert len(load(name).X) == 2, "and the next attempt succeeds"


def test_no_such_file(server, data):
    fails_cleanly(data, "skin", "answers 404 (Not Found)", "Skin_NonSkin.txt")
    fails_cleanly(data, "musk2", "answers 404 (Not Found)", "musk.arff")


def test_no_network(data, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    monkeypatch.setattr(catalogue, "UCI_ARCHIVE", address)
    monkeypatch.setattr(datasets_cache, "OPENML", address)
    fails_cleanly(data, "skin", "cannot be reached", "Skin_NonSkin.txt")
    fails_cleanly(data, "mnist38", "cannot be reached", "mnist.npz")


def test_a_server_that_is_silent(data, monkeypatch):
    monkeypatch.setattr(datasets_cache, "TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        monkeypatch.setattr(catalogue, "UCI_ARCHIVE", address)
        fails_cleanly(data, "skin", "cannot be reached", "timed out")


def test_other_content_is_refused(server, data, monkeypatch):
    offer(server, monkeypatch, "skin")
    path = next(iter(server.answers))
    good = server.answers[path]
    server.answers[path] = b"<html>Moved.</html>"
    fails_cleanly(data, "skin", "is not a valid zip archive")
    server.answers[path] = archive({"Readme.txt": "nothing"})
    fails_cleanly(data, "skin", "holds no Skin_NonSkin.txt; its files are Readme.txt")
    server.answers[path] = archive({"Skin_NonSkin.txt": "74 85 124 2\n73 84 122 1\n"})
    fails_cleanly(data, "skin", "Some values differ from the published ones.")
    server.answers[path] = archive({"Skin_NonSkin.txt": "74 85 123 2\n73 84 122 1\n1 1 1 1\n"})
    fails_cleanly(data, "skin", "published data have 2 rows, 1 of class -1 and 1 of class +1")
    server.answers[path] = archive({"Skin_NonSkin.txt": "74 85\n"})
    fails_cleanly(data, "skin", "Skin_NonSkin.txt, line 1: invalid column index")
    damaged = bytearray(archive({"Skin_NonSkin.txt": "74 85 123 2\n" * 99}, method=0))
    damaged[80] ^= 1
    server.answers[path] = bytes(damaged)
    fails_cleanly(data, "skin", "is not a valid zip archive", "CRC")
    server.answers[path] = good
    assert load("skin").X.shape == (2, 3)


def test_archives_that_are_encrypted_or_too_large(server, data, monkeypatch):
    offer(server, monkeypatch, "skin")
    path = next(iter(server.answers))
    good = server.answers[path]
    locked = bytearray(good)
    locked[6] |= 1  # the flags of the file, and of its entry in the directory
    locked[good.index(b"PK\x01\x02") + 8] |= 1
    server.answers[path] = bytes(locked)
    fails_cleanly(data, "skin", "is not a valid zip archive", "encrypted")
    server.answers[path] = archive({"Skin_NonSkin.txt": "1 2 3 1\n" * 10_000})
    monkeypatch.setattr(datasets_cache, "MAX_FILE_BYTES", 20_000)
    fails_cleanly(data, "skin", "announces 80,000 bytes of Skin_NonSkin.txt")
    monkeypatch.setattr(datasets_cache, "MAX_FILE_BYTES", 100)
    fails_cleanly(data, "skin", "has more than 100 bytes")


def test_a_network_that_fails_is_not_taken_for_a_full_disk(server, data, monkeypatch):
    offer(server, monkeypatch, "skin")

    def fail(self, amount):
        raise OSError(113, "No route to host")

    monkeypatch.setattr("http.client.HTTPResponse.read", fail)
    fails_cleanly(data, "skin", "cannot be reached, or broke off", "No route to host")


def test_rows_in_another_order_are_taken(server, data, monkeypatch):
    X = offer(server, monkeypatch, "skin")
    path = next(iter(server.answers))
    server.answers[path] = archive({"Skin_NonSkin.txt": "73 84 122 1\n74 85 123 2\n"})
    np.testing.assert_array_equal(load("skin").X, X[::-1])


def test_openml_must_keep_its_word(server, data, monkeypatch):
    offer(server, monkeypatch, "musk2")
    server.answers["/data/musk2.arff"] += b"\n"
    fails_cleanly(data, "musk2", "has the MD5", "OpenML announces")
    server.answers["/api/1116"] = b'{"error": "none"}'
    fails_cleanly(data, "musk2", "does not describe a data set")
    facts = {"url": (data / "own.arff").as_uri(), "md5_checksum": ""}
    server.answers["/api/1116"] = json.dumps({"data_set_description": facts}).encode()
    fails_cleanly(data, "musk2", "own.arff', which is not a web address")


def test_a_cache_in_which_nothing_can_be_made(server, data, monkeypatch):
    offer(server, monkeypatch, "skin")
    (data.parent / "cache").write_text("a file is in the way")
    with pytest.raises(DatasetError, match="skin cannot be fetched into .*set POLYSIFT_CACHE"):
        load("skin")


def test_an_interrupt_leaves_nothing(server, data, monkeypatch):
    offer(server, monkeypatch, "skin")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets_real, "read_published", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load("skin")
    assert left_in(data.parent / "cache") == []


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.needs("pyarrow")
def test_progress_is_shown_on_demand(watched, server, data, monkeypatch, capsys):
    offer(server, monkeypatch, "skin")
    load("skin")
    assert capsys.readouterr() == ("", "")
    (data.parent / "cache" / "skin.parquet").unlink()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    load("skin", show=True)
    out, err = capsys.readouterr()
    assert out == "" and f"fetching {server.address}" in err.replace("\n", "")
    size = len(server.answers[f"/{ENTRIES['skin'].archive}"])
    assert ("rows" if watched else f"{size:,} bytes in") in err
    assert watched or "reading Skin_NonSkin.txt: 2 rows in" in err

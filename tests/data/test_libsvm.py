"""libsvm files: indices from one or zero, canonical rows on memory maps, lines named in errors."""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from polysift.data import libsvm
from polysift.data.libsvm import ParsedText, parse_libsvm


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory, monkeypatch) -> Path:
    """Return the folder in which temporary folders are made, so that a test can look there."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    monkeypatch.setattr(libsvm, "BLOCK_BYTES", 64)


def parse(path: Path, text: str | bytes, **options) -> ParsedText:
    """Write a file and parse it."""
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return parse_libsvm(path, **options)


@pytest.fixture
def svm(tmp_path):
    return lambda text, **options: parse(tmp_path / "rows.svm", text, **options)


@pytest.fixture
def fails(tmp_path, scratch):
    """Parse a file that must be refused, check that nothing stays, and return the message."""

    def refuse(text, name="rows.svm", **options) -> str:
        with pytest.raises(ValueError, match=re.escape(name)) as caught:
            parse(tmp_path / name, text, **options)
        assert list(scratch.iterdir()) == [], "nothing stays behind"
        return str(caught.value)

    return refuse


def base_of(array: np.ndarray) -> object:
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return array


class TestReading:
    def test_small(self, svm, scratch):
        parsed = svm("+1 1:0.5 3:2\n-1\n+1 2:-1e-3\n")
        assert_array_equal(parsed.X.toarray(), [[0.5, 0, 2], [0, 0, 0], [0, -1e-3, 0]])
        assert_array_equal(parsed.labels, [1, -1, 1])
        assert parsed.labels.dtype == np.int64
        assert parsed.names is None and parsed.weights is None
        assert parsed.folder.parent == scratch
        assert {file.name for file in parsed.folder.glob("[!.]*")} == {"data", "indices", "indptr"}
        X = parsed.X
        assert parsed.n_bytes == X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        shutil.rmtree(parsed.folder)

    @pytest.mark.parametrize("zero_based", [False, True])
    @pytest.mark.parametrize("suffix", ["svm", "svm.gz"])
    def test_like_scikit_learn(self, tmp_path, rng, small_blocks, zero_based, suffix):
        X = sp.random(200, 30, 0.2, format="lil", random_state=0)
        X[0, 0] = X[199, 29] = 0.1
        y = rng.normal(size=200)
        dump_svmlight_file(
            X.tocsr(), y, str(tmp_path / "plain"), zero_based=zero_based, comment="made up"
        )
        text = (tmp_path / "plain").read_bytes()
        parsed = parse(tmp_path / f"rows.{suffix}", text)
        assert parsed.X.shape == (200, 30)
        expected, labels = load_svmlight_file(str(tmp_path / "plain"))
        assert_array_equal(parsed.X.toarray(), expected.toarray())
        assert_array_equal(parsed.labels, labels)

    def test_memory_maps(self, svm):
        X = svm("1 1:1 2:2\n0 2:3\n").X
        assert isinstance(X, sp.csr_array)
        assert X.data.dtype == np.float64 and X.indices.dtype == X.indptr.dtype == np.int32
        for array in (X.data, X.indices, X.indptr):
            assert isinstance(base_of(array), np.memmap) and not array.flags.writeable
        part = X[1:2]
        assert_array_equal(part.toarray(), [[0, 3]])
        assert_array_equal(X @ np.ones(2), [3, 3])

    def test_more_values_than_32_bits_count(self, svm, monkeypatch):
        monkeypatch.setattr(libsvm, "INT32_MAX", 4)
        X = svm("1 1:1 2:2 3:1\n0 2:3 3:4\n").X
        assert X.indices.dtype == X.indptr.dtype == np.int64
        assert_array_equal(X.toarray(), [[1, 2, 1], [0, 3, 4]])

    def test_canonical(self, svm):
        X = svm("1 3:1 1:2\n2 2:1 1:5 2:4\n").X
        assert X.has_canonical_format
        assert_array_equal(X.indices, [0, 2, 0, 1])
        assert_array_equal(X.toarray(), [[2, 0, 1], [5, 5, 0]])

    def test_every_bit_survives(self, svm, rng):
        bits = rng.integers(0, 2**64, 3000, dtype=np.uint64).view(np.float64)
        x = bits[np.isfinite(bits)]
        parsed = svm("".join(f"{k} 1:{v!r}\n" for k, v in enumerate(x.tolist())))
        assert_array_equal(parsed.X.data.view(np.uint64), x.view(np.uint64))

    def test_comments_blank_lines_and_queries(self, svm, small_blocks):
        text = "# head: 1:2\n\n1 qid:3 1:2 # 2:x\r\n" + "   \n#\n" * 50 + "2 2:4#end\r\n  -3 1:1"
        parsed = svm(text)
        assert_array_equal(parsed.X.toarray(), [[2, 0], [0, 4], [1, 0]])
        assert_array_equal(parsed.labels, [1, 2, -3])

    def test_zero_at_the_end_decides(self, svm, small_blocks):
        assert svm("1 1:1 3:1\n" * 50).X.shape == (50, 3)
        X = svm("1 1:1 3:1\n" * 50 + "1 0:7\n").X
        assert X.shape == (51, 4)
        assert_array_equal(X[[0, 50]].toarray(), [[0, 1, 0, 1], [7, 0, 0, 0]])

    def test_labels(self, svm):
        assert svm("0.5 1:1\n1 1:2\n").labels.dtype == np.float64
        assert svm("1.0 1:1\n2e0 1:2\n").labels.dtype == np.int64
        assert svm("1e300 1:1\n").labels.dtype == np.float64

    @pytest.mark.parametrize("text", ["1:5 2:6\n2:7\n", "0 1:5 2:6\nx 2:7\n", "1 1:5 2:6\n2:7"])
    def test_without_labels(self, svm, text):
        parsed = svm(text, with_labels=False)
        assert parsed.labels is None
        assert_array_equal(parsed.X.toarray(), [[5, 6], [0, 7]])

    def test_number_of_features(self, svm):
        assert svm("1 2:1\n", n_features=5).X.shape == (1, 5)
        assert svm("1 2:1\n", n_features=2).X.shape == (1, 2)
        empty = svm("1\n-1\n", n_features=3)
        assert_array_equal(empty.X.toarray(), np.zeros((2, 3)))


class TestMistakes:
    @pytest.mark.parametrize("number", [0, -1, 2**31 - 1, 10**30])
    def test_numbers_of_features_that_cannot_be(self, svm, number):
        with pytest.raises(ValueError, match=f"n_features must be 1 to 2147483646.*got {number}"):
            svm("1 1:2\n", n_features=number)

    def test_no_file(self, tmp_path, scratch):
        with pytest.raises(FileNotFoundError, match="no file .*absent.svm"):
            parse_libsvm(tmp_path / "absent.svm")
        assert list(scratch.iterdir()) == []

    @pytest.mark.parametrize("text", ["", "\n# only a comment\n"])
    @pytest.mark.parametrize("name", ["rows.svm", "rows.svm.gz"])
    def test_empty(self, fails, text, name):
        assert "is empty" in fails(text, name)

    def test_no_features(self, fails):
        assert "Pass n_features" in fails("1\n-1\n")

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("1 2:3:4", "pairs such as"),
            ("1 2 : 3", "pairs such as"),
            ("1 2", "pairs such as"),
            ("1 -1:3", "pairs such as"),
            ("1 1.5:3", "pairs such as"),
            ("1 1:", "pairs such as"),
            ("1 1:abc", "numbers as values"),
            ("1 1:2 2:3x", "numbers as values"),
            ("1 1:1_0", "numbers as values"),
            ("1 1:é", "numbers as values"),
            ("1:2 2:3", "label before the pairs"),
            ("yes 1:2", "number as label"),
            ("1,2 1:2", "number as label"),
            ("nan 1:2", "finite label"),
            ("1 99999999999999999999999:2", "indices below"),
            ("1 2147483647:2", "indices below"),
        ],
    )
    @pytest.mark.parametrize("name", ["rows.svm", "rows.svm.gz"])
    def test_malformed_line(self, fails, line, reason, name, small_blocks):
        message = fails("# head\n" + "1 1:2\n\n" * 40 + line + "\n1 1:2\n", name)
        assert f"{name}, line 82 (counted from 1): expected" in message
        assert reason in message and repr(line) in message

    def test_index_too_large(self, fails, small_blocks):
        message = fails("1 1:2\n\n" * 40 + "1 1:2 12:1\n" + "1 2:1\n" * 40, n_features=10)
        assert "line 81 (counted from 1): index 12 is too large for n_features=10" in message
        assert "count from 1. Pass n_features=12" in message

    def test_index_too_large_once_a_zero_comes(self, fails, svm, small_blocks):
        text = "1 1:2 10:1\n" + "1 2:1\n" * 40
        parsed = svm(text, n_features=10)
        assert parsed.X.shape == (41, 10)
        shutil.rmtree(parsed.folder)
        message = fails(text + "1 0:1\n", n_features=10)
        assert "line 1 (counted from 1): index 10 is too large" in message
        assert "count from 0. Pass n_features=11" in message

    @pytest.mark.parametrize("cut", [5, 100, -4])
    def test_gzip_cut_short(self, tmp_path, scratch, cut):
        path = tmp_path / "cut.svm.gz"
        text = "".join(f"1 1:{k}\n" for k in range(2000))
        path.write_bytes(gzip.compress(text.encode())[:cut])
        with pytest.raises(ValueError, match="cut.svm.gz is corrupt or truncated"):
            parse_libsvm(path)
        assert list(scratch.iterdir()) == []

    def test_full_disk_is_not_a_corrupt_file(self, tmp_path, monkeypatch, scratch):
        def full(*_):
            raise OSError("8 requested and 0 written")  # as numpy's tofile says it

        monkeypatch.setattr(libsvm._Writer, "add", full)
        with pytest.raises(OSError, match="0 written"):
            parse(tmp_path / "x.svm.gz", "1 1:2\n")
        assert list(scratch.iterdir()) == []

    def test_not_gzip(self, tmp_path):
        (tmp_path / "x.svm.gz").write_text("1 1:2\n")
        with pytest.raises(ValueError, match="x.svm.gz is corrupt"):
            parse_libsvm(tmp_path / "x.svm.gz")

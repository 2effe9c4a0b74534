"""Text: CSV and libsvm files, plain and compressed, beside what pandas and scikit-learn read."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzers.cases import ACCEPTED, REFUSED, Case, Finding, Target, require
from fuzzers.mutations import NUMBERS, mutated
from fuzzers.reading import Rows, read

WORDS = (b'"', b'""', b",", b";", b"\t", b"\n", b"\r\n", b"\r", b"\x00", b"\xef\xbb\xbf", b"\xff")
WORDS += (
    b"nan",
    b"NA",
    b"1e400",
    b"#",
    b" ",
    b"\x1b[31m",
    b":",
    b"-1",
    b"'",
    b"\\",
    b"\xc2\xa0",
    b"\x0c",
)


class CsvTarget(Target):
    """CSV files."""

    name = "csv"
    needs = ("pyarrow",)
    share = 4
    quick = 150

    def make(self, rng: Random) -> Case:
        """Return a file of odd fields, or a damaged one of the corpus."""
        content = _csv(rng)
        if rng.random() < 0.4:
            content = mutated(rng, content, [_csv(rng)], WORDS)
        name, content = _compressed(rng, "data.csv", content)
        options = {"target": rng.choice((None, "y", "y", -1, -1, -1, 0, "0"))}
        for key, values in (
            ("header", (True, False)),
            ("delimiter", (",", ";", "\t", " ", '"', "\n", "é")),
            ("weight", ("a", 1)),
            ("column_types", ({"y": "string"}, {"a": "bool"}, {"a": "int8"}, {"0": "float32"})),
            ("drop", (["a"], ["b", 0])),
            ("missing", (["x"], ["-2.5", "true"])),
            ("columns", ({"a": "category"}, {0: "number"}, {"b": "date"}, {1: "drop"})),
        ):
            if rng.random() < 0.12:
                options[key] = rng.choice(values)
        return Case({name: content}, options)

    def usual(self) -> list[dict[str, Any]]:
        """Return files with and without labels."""
        return [{"target": "y"}, {"target": 0}, {}]

    def check(self, case: Case, folder: Path) -> str:
        """Read it, and compare with pandas where both read numbers."""
        rows = read(case, folder)
        if rows is None:
            return REFUSED
        _compare_csv(folder / next(iter(case.files)), rows, case.options)
        return ACCEPTED


def _csv(rng: Random) -> bytes:
    """Return rows of fields, most of them numbers, in one of the dialects."""
    mark, end = (
        rng.choice((",", ",", ",", ";", "\t", " ", "|")),
        rng.choice(("\n", "\n", "\r\n", "\r")),
    )
    width, strange = rng.choice((1, 2, 2, 3, 5)), rng.choice((0, 0, 0.02, 0.2))
    labels = rng.choice(
        (("0", "1"), ("no", "yes"), ("true", "false"), ("-1", "1"), ("1.5", "2"), ("a\x1bb", "c"))
    )
    lines = [mark.join([*"abcde"[: width - 1], "y"])] if rng.random() < 0.6 else []
    for _ in range(rng.choice((1, 3, 12, 30))):
        fields = [_field(rng, mark, strange) for _ in range(width - 1)]
        lines.append(mark.join([*fields, rng.choice(labels)]))
        if rng.random() < strange:
            lines.append(rng.choice(("", " ", mark, mark * width, '"', "#x")))
    text = end.join(lines) + rng.choice((end, "", end * 3))
    return rng.choice((b"", b"", b"", b"\xef\xbb\xbf")) + text.encode()


def _field(rng: Random, mark: str, strange: float) -> str:
    number = repr(
        rng.choice((0.0, 1.0, -2.5, rng.gauss(0, 1), rng.randrange(100), rng.random() * 1e-20))
    )
    if rng.random() > strange:
        return number
    odd = (
        "",
        "NA",
        "x",
        f'"{number}"',
        f'"{mark}"',
        '"a\nb"',
        f" {number} ",
        "x" * 3000,
        '"',
        "true",
        "2024-02-29",
        "1969-12-31 23:59+01:00",
        "$1",
        "-12 %",
        '"1,200"',
        '"5,1"',
        "?",
    )
    return rng.choice((*odd, *NUMBERS))


def _compressed(rng: Random, name: str, content: bytes) -> tuple[str, bytes]:
    """Compress some files, and damage some of these."""
    if rng.random() > 0.2:
        return name, content
    packed = gzip.compress(content, mtime=0)
    return f"{name}.gz", mutated(rng, packed) if rng.random() < 0.5 else packed


def _compare_csv(path: Path, rows: Rows, options: dict[str, Any]) -> None:
    """Raise a finding where pandas reads other numbers, or other words, in the same table.

    Both must see the same number of rows. They differ by intent in lines that are blank but for
    spaces, and in quotation marks inside of fields.
    """
    try:
        import pandas
    except ImportError:
        return
    from polysift.data.csv_layout import inspect_csv
    from polysift.data.kinds import MISSING_WORDS, level_of, plain_word
    from polysift.data.packing import open_binary

    if {"column_types", "columns", "drop", "missing"} & options.keys():
        return
    table = inspect_csv(path, options.get("header"), options.get("delimiter"))
    with open_binary(path) as raw:
        if b"\r\r" + table.delimiter.encode() in b"\r" + raw.read():
            return  # pandas loses an empty field after a blank line that ends so
    exact = {} if int(pandas.__version__.split(".")[0]) > 2 else {"float_precision": "round_trip"}
    common = {
        "sep": table.delimiter,
        "header": None if table.names is None else 0,
        "index_col": False,
        "keep_default_na": False,
        "encoding": "utf-8-sig",
        "low_memory": False,
        "on_bad_lines": "error",
    }
    spaces = table.delimiter != " "  # else pandas would skip empty fields
    numeric = {"na_values": list(MISSING_WORDS), "skipinitialspace": spaces, **exact}
    try:
        numbers = pandas.read_csv(path, **common, **numeric)
        texts = pandas.read_csv(path, **common, dtype=str)
        quoted = any(text.str.contains('"').any() for _, text in texts.items())
    except (ValueError, OSError, OverflowError, EOFError):  # ParserError is a ValueError
        return
    roles = [options.get(role) for role in ("target", "weight")]
    used = {table.find(role) for role in roles if role is not None}
    kept = [j for j in range(numbers.shape[1]) if j not in used]
    kept = kept[len(kept) - rows.X.shape[1] :]  # an index is left out
    if (len(numbers), len(kept)) != rows.X.shape or len(texts) != len(numbers) or quoted:
        return
    for k, j in enumerate(kept):
        theirs, kind = numbers.iloc[:, j], rows.kind(k)
        if kind == "number" and getattr(theirs.dtype, "kind", "O") in "iuf":
            found = theirs.to_numpy(dtype=float)
        elif kind == "category":
            words = map(plain_word, texts.iloc[:, j])
            found = np.array([np.nan if word is None else level_of(word) for word in words])
        else:
            continue
        if not np.array_equal(found, rows.X[:, k], equal_nan=True):
            raise Finding(f"pandas reads another column {j}: {found} there, {rows.X[:, k]} here")


class LibsvmTarget(Target):
    """libsvm files."""

    name = "libsvm"
    quick = 150

    def make(self, rng: Random) -> Case:
        """Return a file of odd pairs, damaged or not."""
        content = _libsvm(rng)
        if rng.random() < 0.5:
            content = mutated(rng, content, [_libsvm(rng)], WORDS)
        name, content = _compressed(rng, "data.svm", content)
        options = (
            {"n_features": rng.choice((1, 5, 0, -1, 2**31, 10**30))} if rng.random() < 0.1 else {}
        )
        return Case({name: content}, options)

    def check(self, case: Case, folder: Path) -> str:
        """Read it, and compare with scikit-learn where both read it."""
        rows = read(case, folder)
        if rows is None:
            return REFUSED
        _compare_libsvm(folder / next(iter(case.files)), rows, case.options)
        return ACCEPTED


def _libsvm(rng: Random) -> bytes:
    strange = rng.choice((0, 0, 0.05))
    first, lines = rng.choice((0, 1, 1)), []
    for _ in range(rng.choice((1, 3, 20))):
        pairs = [f"{j}:{_field(rng, ':', strange)}" for j in range(first, 7) if rng.random() < 0.5]
        if rng.random() < strange:
            pairs.append(
                rng.choice(
                    (
                        "1:1",
                        "qid:3",
                        "2147483646:1",
                        "2147483647:1",
                        "4294967297:1",
                        "#c",
                        ":",
                        "3:",
                        "-1:2",
                    )
                )
            )
        label = (
            rng.choice(("0", "1", "-1", "+1", "1.5", "1e300"))
            if rng.random() < 0.1
            else str(rng.randrange(2))
        )
        lines.append(" ".join([label, *pairs]))
    return ("\n".join(lines) + rng.choice(("\n", "", " # x\n"))).encode()


def _compare_libsvm(path: Path, rows: Rows, options: dict[str, Any]) -> None:
    """Raise a finding where scikit-learn reads other rows.

    It differs by intent on indices that are repeated or not ascending, which are added up or sorted
    here and refused there, and on a last feature that does not occur.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        theirs, labels = load_svmlight_file(str(path), zero_based="auto", dtype=np.float64)
    except Exception:  # its parser raises what it likes, and has nothing to do with this one
        return
    X = rows.X
    width = min(theirs.shape[1], X.shape[1])
    same_rows = theirs.shape[0] == X.shape[0]
    require(same_rows, f"scikit-learn reads {theirs.shape[0]} rows, here there are {X.shape[0]}")
    extra = theirs[:, width:].nnz + X[:, width:].nnz
    require(
        not extra or "n_features" in options, "features are there that scikit-learn does not read"
    )
    for name in ("data", "indices", "indptr"):
        a, b = (getattr(m[:, :width].tocsr(), name) for m in (theirs, X))
        require(
            np.array_equal(a, b, equal_nan=name == "data"),
            f"scikit-learn reads other {name}: {a} {b}",
        )
    require(
        np.array_equal(labels, rows.labels),
        f"scikit-learn reads labels {labels}, not {rows.labels}",
    )

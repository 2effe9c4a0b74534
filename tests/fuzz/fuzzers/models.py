"""Model files: ``polysift.load``, predictions of what it returns, and ``polysift inspect``."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzers.cases import ACCEPTED, CORPUS, REFUSED, Case, Target, require
from fuzzers.commands import run_command
from fuzzers.mutations import at, mutated, mutated_npy, mutated_tree, npy, places

SAMPLES = CORPUS.parents[1] / "persistence" / "files"
FILE = "model.polysift"
DIGEST = 64
UNFORESEEN = "is not as save writes it"
"""What ``load`` says of a file that no check of its own has found."""

Members = list[tuple[str, bytes]]

TABLE = b'"kind": "table"'
"""What the file of a table's model holds."""

SEARCH = b"FPCClassifierCV"
"""What the file of a search holds."""

SPECIAL: tuple[Any, ...] = (
    {"$array": "coef_.npy"},
    {"$bytes": "00ff"},
    {"$dict": [[[1], 2]]},
    {"$float": "nan"},
    {"$float": "inf"},
    {"$masked": [{"$array": "coef_.npy"}, None, 1e20]},
    {"$not saved": "x\x1b[2J"},
    {"$objects": [[2], ["a", None]]},
    {"$range": [0, 10**18, 1]},
    {"$range": [0, 1, 0]},
    {"$scalar": ["<f8", "000000000000f87f"]},
    {"$scalar": ["<U2", "41000000ffffffff"]},
    {"$str": "x"},
    {"$tuple": [1, [2]]},
)
"""Values as only a model file can hold them."""


def members_of(data: bytes) -> Members:
    """Return the members of a model file."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def packed(members: Sequence[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a model file of these members, with a right digest."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as file:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            file.writestr(info, content, compression)
        file.comment = b"polysift model sha256 " + bytes(DIGEST)
    return sealed(buffer.getvalue())


def sealed(data: bytes) -> bytes:
    """Return a file with the digest that its contents have."""
    return data[:-DIGEST] + hashlib.sha256(data[:-DIGEST]).hexdigest().encode()


def with_header(data: bytes, change: Any, arrays: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    """Return a file with another header and some arrays of given dtype, shape and content."""
    members = dict(members_of(data))
    header = json.loads(members.pop("header.json"))
    for name, (dtype, shape, content) in arrays.items():
        fields = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
        members[name] = npy(fields.encode(), content)
        digest = hashlib.sha256(members[name]).hexdigest()
        header["arrays"][name] = {"dtype": dtype, "shape": shape, "sha256": digest}
    header = change(header)
    return packed([("header.json", json.dumps(header).encode()), *members.items()])


class ModelTarget(Target):
    """Model files."""

    name = "model"
    share = 4
    quick = 100

    def __init__(self) -> None:
        self._seeds: list[bytes] = []

    @property
    def seeds(self) -> list[bytes]:
        """The files that are damaged."""
        if not self._seeds:
            paths = [
                *sorted(SAMPLES.glob("*.polysift")),
                *sorted((CORPUS / "model").glob("*.polysift")),
            ]
            self._seeds = [path.read_bytes() for path in paths]
        return self._seeds

    def make(self, rng: Random) -> Case:
        """Return a damaged model file, most often with a right digest."""
        seed = rng.choice(self.seeds)
        make = rng.choice(
            (_flipped, _edited, _edited, _edited, _edited, _rearranged, _swapped_array)
        )
        options = {
            "inspect": rng.choice(([], [], ["--json"], ["--explain"], ["--explain", "--json"]))
        }
        return Case({FILE: make(rng, seed, self.seeds)}, options)

    def of_file(self, path: Path) -> list[Case]:
        """Return the cases of a file, whatever its name is."""
        return [Case({FILE: path.read_bytes()}, options) for options in self.usual()]

    def usual(self) -> list[dict[str, Any]]:
        """Return both forms of ``inspect``."""
        return [{"inspect": []}, {"inspect": ["--json"]}]

    def check(self, case: Case, folder: Path) -> str:
        """Load it; what is refused names the file, and what is not must predict."""
        import polysift

        (name,) = case.files
        try:
            model = polysift.load(folder / name)
        except polysift.ModelFileError as error:
            text = str(error)
            require(
                name in text and text.endswith("."), f"the message does not name the file: {text}"
            )
            require(UNFORESEEN not in text, f"no check has found this: {text}")
            self._inspect(case, 1)
            return REFUSED
        _predict(model)
        self._inspect(case, None)
        return ACCEPTED

    def _inspect(self, case: Case, expected: int | None) -> None:
        try:
            import typer  # noqa: F401
        except ImportError:
            return
        (name,) = case.files
        words = case.options.get("inspect", [])
        done = run_command(["inspect", name, *words])
        done.check(words)
        require(expected in (None, done.code), f"inspect has status {done.code}: {done.errors}")

    def forged_names(self) -> list[str]:
        """Return the names of what is forged."""
        return [*FORGED, *FORGED_TABLES, *FORGED_SEARCHES]

    def forged(self) -> dict[str, Case]:
        """Return files with a right digest that must be refused, or be harmless."""
        forged = {}
        for made, marks in ((FORGED, ()), (FORGED_TABLES, (TABLE,)), (FORGED_SEARCHES, (SEARCH,))):
            wanted = [mark in marks for mark in (TABLE, SEARCH)]
            base = next(d for d in self.seeds if [mark in d for mark in (TABLE, SEARCH)] == wanted)
            forged |= {name: (base, *parts) for name, parts in made.items()}
        return {
            name: Case({FILE: with_header(base, change, arrays)}, {"inspect": []})
            for name, (base, change, arrays) in forged.items()
        }


def _predict(model: Any) -> None:
    """Predict; a model may lack a method, or say by a ValueError why it cannot predict."""
    best = getattr(model, "best_estimator_", model)
    if not hasattr(best, "coef_"):
        return
    rows = np.linspace(-1.0, 2.0, 5 * best.n_features_in_).reshape(5, -1)
    for method in ("decision_function", "predict", "predict_proba"):
        if not hasattr(model, method):
            continue
        try:
            found = getattr(model, method)(rows)
        except ValueError as error:
            require(str(error), f"{method} raises an error without a message")
            continue
        require(len(found) == len(rows), f"{method} returns {found.shape} for {rows.shape}")
        if method == "predict_proba":
            inside = ((found >= 0) & (found <= 1)).all()
            require(inside and np.allclose(found.sum(axis=1), 1), f"{method} returns {found}")
        if method == "predict":
            require(np.isin(found, best.classes_).all(), f"{method} returns {found}")


# How a model file is damaged


def _flipped(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Damage bytes, half of the time with a new digest."""
    changed = mutated(rng, data[:-DIGEST], [rng.choice(others)]) + data[-DIGEST:]
    return sealed(changed) if rng.random() < 0.7 else changed


def _edited(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Edit the header."""
    foreign = json.loads(members_of(rng.choice(others))[0][1])
    borrowed = at(foreign, rng.choice(list(places(foreign))))
    junk = [*rng.sample(SPECIAL, 4), borrowed]

    def change(header: Any) -> Any:
        part = rng.choice(("attributes", "attributes", "params", "arrays", "all"))
        if part == "all":
            return mutated_tree(rng, header, junk)
        return header | {part: mutated_tree(rng, header[part], junk)}

    return with_header(data, change, {})


def _rearranged(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Rename, repeat, remove, reorder or damage members of the zip."""
    members = members_of(data)
    k = rng.randrange(len(members))
    name, content = members[k]
    how = rng.randrange(6)
    if how == 0:
        names = (
            "../x.npy",
            "/etc/x.npy",
            "",
            "header.json",
            "a\x00.npy",
            "é.npy",
            "x" * 200 + ".npy",
        )
        members[k] = rng.choice(names), content
    elif how == 1:
        members.insert(rng.randrange(len(members)), (name, content))
    elif how == 2:
        del members[k]
    elif how == 3:
        rng.shuffle(members)
    elif how == 4:
        members[k] = name, (mutated(rng, content) if k == 0 else mutated_npy(rng, content))
    else:
        return packed(
            members, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
        )
    return packed(members)


DTYPES = (
    "<f8",
    "<f4",
    "<i8",
    "<u8",
    "|b1",
    "<U1",
    "<U500000000",
    "|S3",
    "<M8[ns]",
    "<m8",
    "|i1",
    "<f2",
)


def _swapped_array(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Give an array another dtype, shape and content, all as the header says."""
    header = json.loads(members_of(data)[0][1])
    name = rng.choice(sorted(header["arrays"]))
    about = header["arrays"][name]
    dtype = rng.choice((about["dtype"], about["dtype"], *DTYPES))
    shape = rng.choice(
        (about["shape"], about["shape"], [0], [], [0, 3], [1], [2**40, 0], about["shape"][::-1])
    )
    if rng.random() < 0.3 and shape:
        shape = [*shape[:-1], max(0, shape[-1] + rng.choice((-1, 1)))]
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if size > 2**20:
        shape, size = [0], 0
    old = dict(members_of(data))[name][-size:] if size else b""
    content = mutated(rng, old + bytes(max(0, size - len(old))))[:size]
    if rng.random() < 0.4 and dtype == "<f8":
        extremes = (0.0, -1.0, 1e300, -1e308, 5e-324, np.nan, np.inf, 1.0)
        content = np.array([rng.choice(extremes) for _ in range(size // 8)]).tobytes()
    content += bytes(size - len(content))
    return with_header(data, lambda header: header, {name: (dtype, shape, content)})


def _with_param(value: Any) -> Any:
    return lambda header: header | {"params": header["params"] | {"random_state": value}}


def _with_attribute(name: str, value: Any) -> Any:
    return lambda header: header | {"attributes": header["attributes"] | {name: value}}


def _text(*labels: str, width: int) -> tuple[str, list[int], bytes]:
    return f"<U{width}", [len(labels)], np.array(labels, f"<U{width}").tobytes()


ESCAPES = _text("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", width=12)

FORGED: dict[str, tuple[Any, dict[str, Any]]] = {
    "a masked array of long text takes gigabytes": (
        _with_param({"$masked": [{"$array": "zz.npy"}, None, "x"]}),
        {"zz.npy": ("<U500000000", [0], b"")},
    ),
    "a masked array of short text": (
        _with_param({"$masked": [{"$array": "zz.npy"}, None, "x"]}),
        {"zz.npy": ("<U5", [0], b"")},
    ),
    "an array of long text without elements": (
        _with_param({"$array": "zz.npy"}),
        {"zz.npy": ("<U500000000", [0], b"")},
    ),
    "class labels with escape sequences": (lambda header: header, {"classes_.npy": ESCAPES}),
    "names of features with escape sequences": (
        _with_attribute("feature_names_in_", {"$objects": [[2], ["\x1b[2Ja", "b\r\nc"]]}),
        {},
    ),
    "a parameter that was not saved, with escape sequences": (
        _with_param({"$not saved": "\x1b]0;title\x07"}),
        {},
    ),
    "a range of a length that no index has": (_with_param({"$range": [0, 2**70, 1]}), {}),
}


def _with_table(**fields: Any) -> Any:
    """Return a change of the fields of a table's scaler."""

    def change(header: Any) -> Any:
        attributes = header["attributes"]
        return header | {"attributes": attributes | {"scaler_": attributes["scaler_"] | fields}}

    return change


def _with_category(**fields: Any) -> Any:
    """Return a change of the fields of a table's first category."""

    def change(header: Any) -> Any:
        first, *others = header["attributes"]["scaler_"]["levels"]
        return _with_table(levels=[first | fields, *others])(header)

    return change


def _floats(*values: float, shape: list[int]) -> tuple[str, list[int], bytes]:
    return "<f8", shape, np.array(values, "<f8").tobytes()


def _integers(*values: int) -> tuple[str, list[int], bytes]:
    return "<i8", [len(values)], np.array(values, "<i8").tobytes()


def _kinds(header: Any, *kinds: str) -> Any:
    described = {"$objects": [[len(kinds)], list(kinds)]}
    made = _with_table(kinds=list(kinds))(header)
    return made | {"attributes": made["attributes"] | {"column_kinds_": described}}


FORGED_TABLES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a table of numbers alone whose categories are left": (
        lambda header: _kinds(header, *["number"] * 9),
        {},
    ),
    "a table whose every column is left out": (lambda header: _kinds(header, *["drop"] * 9), {}),
    "a table of dates alone": (lambda header: _kinds(header, *["date"] * 9), {}),
    "kinds with escape sequences": (lambda header: _kinds(header, *["\x1b[2J"] * 9), {}),
    "a reading that is not known": (_with_table(readings=["exec"] * 9), {}),
    "a category of another column": (_with_category(column=4), {}),
    "a category of a column that no table has": (_with_category(column=2**62), {}),
    "words that are no words": (_with_category(words=[1, 2, 3, 4]), {}),
    "words of other levels": (_with_category(words=["a", "b", "c", "d"]), {}),
    "buckets by the thousand": (_with_category(buckets=1000), {}),
    "buckets that are negative": (_with_category(buckets=-1), {}),
    "a table of no rows": (
        lambda header: header,
        {"scaler_.levels-0-.table.npy": ("<f8", [0, 2**40], b"")},
    ),
    "an unknown level that is known": (
        lambda header: header,
        {"scaler_.levels-0-.table.npy": _floats(*[1.0] * 20, shape=[5, 4])},
    ),
    "codes beyond their table": (
        lambda header: header,
        {"scaler_.levels-0-.codes.npy": _integers(0, 1, 2, 2**62)},
    ),
    "codes of the unknown level": (
        lambda header: header,
        {"scaler_.levels-0-.codes.npy": _integers(4, 4, 4, 4)},
    ),
    "indicators of columns that no table has": (
        lambda header: header,
        {"scaler_.indicators.npy": _integers(0, 2, 2**62)},
    ),
    "shares of missing values that are no shares": (
        lambda header: header,
        {"scaler_.missing.npy": _floats(*[2.0] * 9, shape=[9])},
    ),
    "numbers of columns that no table has": (
        lambda header: header,
        {"scaler_.numbers.npy": _integers(*[99] * 16)},
    ),
    "a scaler within its own scaler": (_with_table(affine={"kind": "table"}), {}),
}
"""Models of tables: nine columns, the first category of which is the third column."""


def _with_best(change: Any) -> Any:
    """Return a change of the best estimator of a search."""

    def changed(header: Any) -> Any:
        best = header["attributes"]["best_estimator_"]
        return _with_attribute("best_estimator_", change(best))(header)

    return changed


def _without(part: str, name: str) -> Any:
    return lambda best: best | {part: {k: v for k, v in best[part].items() if k != name}}


FORGED_SEARCHES: dict[str, tuple[Any, dict[str, Any]]] = {
    "a search with a calibration whose best estimator asks for none": (
        _with_best(_without("params", "calibration")),
        {},
    ),
    "a search with a calibration whose best estimator has none": (
        _with_best(_without("attributes", "calibrator_")),
        {},
    ),
}
"""Searches with a calibration."""

"""Data files that are cut off or changed: an error that names the file, and nothing else."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pytest

from polysift import open_data
from polysift.data.formats import FORMATS
from problems import optional, paper_classifier

pa = optional("pyarrow")
pq = optional("pyarrow.parquet")
optional("pyarrow.orc")

ROWS = 60
TEXT = np.array(["no", "yes", "perhaps"])


def table(labels):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=ROWS) for name in ("a", "b")}
    return pa.table(columns | {"y": labels, "w": np.ones(ROWS)})


def words():
    return TEXT[np.arange(ROWS) % 3]


def write_ipc(path, labels, stream=False, compression=None):
    made = table(labels)
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with opened(str(path), made.schema, options=options) as writer:
        writer.write_table(made, max_chunksize=25)


def write_csv(path):
    made = table(words())
    lines = [",".join(made.column_names)]
    lines += [",".join(map(str, row.values())) for row in made.to_pylist()]
    content = "\n".join(lines).encode()
    path.write_bytes(PACKERS.get(path.suffix, bytes)(content))


def pack_zip(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", content)
    return packed.getvalue()


def pack_zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": pack_zip,
    ".zst": pack_zstd,
}


def write_json(path):
    path.write_text("\n".join(map(json.dumps, table(words()).to_pylist())))


def write_excel(path):
    book = pytest.importorskip("openpyxl").Workbook()
    rows = table(words())
    book.active.append(rows.column_names)
    for row in rows.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


def write_libsvm(path):
    lines = [f"{k % 2} 1:{k / 7:.4f} 3:{k}" for k in range(ROWS)]
    content = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def matrix():
    return np.column_stack([table(words())[name] for name in ("a", "b")])


NAMED = {"target": "y", "weight": "w"}
WRITERS = {
    "x.npy": (lambda path: np.save(path, matrix()), {"target": 1}),
    "fortran.npy": (lambda path: np.save(path, np.asfortranarray(matrix())), {"target": 1}),
    "x.npz": (lambda path: np.savez(path, X=matrix(), y=words(), w=np.ones(ROWS)), {"weight": "w"}),
    "packed.npz": (lambda path: np.savez_compressed(path, X=matrix(), y=words()), {}),
    "x.csv": (write_csv, NAMED),
    "x.csv.gz": (write_csv, NAMED),
    "x.csv.bz2": (write_csv, NAMED),
    "x.csv.xz": (write_csv, NAMED),
    "x.csv.zst": (write_csv, NAMED),
    "x.zip": (write_csv, NAMED),
    "x.jsonl": (write_json, NAMED),
    "x.xlsx": (write_excel, NAMED),
    "x.orc": (lambda path: pa.orc.write_table(table(words()), str(path)), NAMED),
    "x.svm": (write_libsvm, {}),
    "x.svm.gz": (write_libsvm, {}),
    "x.parquet": (lambda path: pq.write_table(table(words()), path, row_group_size=25), NAMED),
    "words.parquet": (
        lambda path: pq.write_table(table(pa.array(words()).dictionary_encode()), path),
        NAMED,
    ),
    "x.arrow": (lambda path: write_ipc(path, words()), NAMED),
    "words.arrow": (lambda path: write_ipc(path, pa.array(words()).dictionary_encode()), NAMED),
    "numbers.arrow": (lambda path: write_ipc(path, np.arange(ROWS) % 2), NAMED),
    "stream.arrow": (lambda path: write_ipc(path, words(), stream=True), NAMED),
    "lz4.feather": (lambda path: write_ipc(path, words(), compression="lz4"), NAMED),
}


def damaged(data: bytes, rng):
    """Yield contents that are cut off, have other bytes, or lack some."""
    for length in {0, 1, 4, 8, *rng.integers(0, len(data), 12).tolist()}:
        yield data[:length]
    heads = [*rng.integers(0, min(len(data), 300), 40), *rng.integers(0, len(data), 60)]
    tails = len(data) - 1 - rng.integers(0, min(len(data), 300), 30)
    for position in [*heads, *tails]:
        changed = bytearray(data)
        changed[position] = rng.choice(
            [changed[position] ^ (1 << rng.integers(8)), 0, 255, 127, 40]
        )
        yield bytes(changed)
    for position in rng.integers(0, len(data), 10):
        yield data[:position] + data[position + 3 :]


def read_all(path, options):
    """Read all that a fit reads."""
    source = open_data(path, **options)
    source.check()
    for _, part in source.parts():
        source.rows(part)
        source.weights(part)
        if source.has_labels:
            source.labels(part)


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("name", WRITERS)
def test_damage_is_an_error_that_names_the_file(name, tmp_path):
    write, options = WRITERS[name]
    path = tmp_path / name
    write(path)
    read_all(path, options)
    outcomes = []
    for content in damaged(path.read_bytes(), np.random.default_rng(1)):
        path.unlink()
        path.write_bytes(content)
        outcomes.append(outcome(path, options))
    unclear = [error for error in outcomes if error and not is_clear(error, name)]
    assert not unclear
    assert sum(map(bool, outcomes)) > 20


def outcome(path, options):
    try:
        read_all(path, options)
    except Exception as error:
        return error
    return None


def is_clear(error, name):
    return type(error) in (ValueError, OSError, FileNotFoundError, MemoryError) and name in str(
        error
    )


def test_what_is_damaged_is_named(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.eye(3))
    path.write_bytes(path.read_bytes().replace(b"}", b"("))
    with pytest.raises(ValueError, match=r"x.npy is not a readable .npy file: .*EOF"):
        open_data(path)
    packed = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 30), ["no", "yes"])
    write_ipc(tmp_path / "x.arrow", packed)
    content = (tmp_path / "x.arrow").read_bytes()
    indices = np.array([0, 1] * 5).tobytes()
    assert indices in content
    (tmp_path / "y.arrow").write_bytes(content.replace(indices, indices[:-8] + b"\x09" + bytes(7)))
    with pytest.raises(ValueError, match=r"Column 'y' of .*y.arrow cannot be read.* 9 "):
        paper_classifier(degree=1).fit(open_data(tmp_path / "y.arrow", **NAMED))


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("missing", [(), ("unknown",)])
@pytest.mark.parametrize("stream", [False, True])
def test_words_that_lie_beyond_the_text(tmp_path, stream, missing):
    """Arrow computes with what lies there, and may end the process."""
    write_ipc(tmp_path / "x.arrow", words(), stream)
    content = (tmp_path / "x.arrow").read_bytes()
    ends = np.cumsum([0, 2, 3, 7, 2, 3, 7], dtype=np.int32)  # no, yes, perhaps
    assert ends.tobytes() in content
    forged = np.where(ends == 12, 2**30, ends).astype(np.int32)
    (tmp_path / "y.arrow").write_bytes(content.replace(ends.tobytes(), forged.tobytes()))
    source = open_data(tmp_path / "y.arrow", missing=missing)
    with pytest.raises(ValueError, match=r"y.arrow cannot be read: .*damaged"):
        list(source.parts())
    with pytest.raises(ValueError, match=r"y.arrow cannot be read: .*damaged"):
        open_data(tmp_path / "y.arrow", target="y").cut([(0, 10)])


def test_every_format_is_tried():
    endings = {"." + name.removesuffix(".gz").rsplit(".")[-1] for name in WRITERS}
    assert all(endings & set(known.endings) for known in FORMATS.values())

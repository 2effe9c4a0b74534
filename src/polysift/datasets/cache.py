"""Where data sets lie: the data folder, and the cache, whose files are checked when read again.

Files of the public sources, fetched into a folder: from archives of UCI, or from OpenML.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from polysift.datasets.catalogue import Entry
from polysift.datasets.prepared import Content, DatasetError, digest, write_prepared
from polysift.runtime.outputs import CHUNK_BYTES
from polysift.runtime.progress import Progress

PREPARED = (".parquet", ".npz")
"""The endings of prepared files."""

WORTH_KEEPING = 8 << 20
"""Bytes of published text from which on its content is kept, so as not to parse it again."""


def data_folder() -> Path | None:
    """Return the folder that POLYSIFT_DATA names."""
    named = os.environ.get("POLYSIFT_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Return the folder for what was fetched: POLYSIFT_CACHE, or the platform's."""
    if named := os.environ.get("POLYSIFT_CACHE"):
        return Path(named).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "polysift"


def candidates(entry: Entry) -> list[tuple[str, ...]]:
    """Return the names of files a data set may lie in, each tuple together, the best first."""
    return [*((f"{entry.name}{ending}",) for ending in PREPARED), *entry.files]


def find_files(entry: Entry) -> tuple[Path, ...] | None:
    """Return the files of a data set: in the data folder, else in the cache, else None."""
    data, cache = data_folder(), cache_folder()
    for folder in (cache,) if data is None else (data, cache):
        for names in candidates(entry):
            paths = tuple(folder / name for name in names)
            try:
                if all(path.is_file() for path in paths):
                    return paths
            except OSError as error:
                raise DatasetError(
                    f"{folder} cannot be looked into: {error}. Change its permissions, or point "
                    f"{'POLYSIFT_DATA' if folder == data else 'POLYSIFT_CACHE'} elsewhere."
                ) from error
    return None


def is_prepared(path: Path, entry: Entry) -> bool:
    """Tell whether a file that was found is a prepared one, not a published one."""
    return path.name in {f"{entry.name}{ending}" for ending in PREPARED}


def temporary_folder() -> TemporaryDirectory[str]:
    """Make a folder in the cache, which goes with the ``with`` statement; or raise an OSError."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    return TemporaryDirectory(dir=cache, prefix=".fetching-")


def keep(stem: str, content: Content, sha: str, source: str, origin: Any = None) -> None:
    """Keep the content of a data set in the cache, with a note of its digest.

    What cannot be kept is no error: the data are there, and can be had again.
    """
    note = {"sha256": sha, "source": source, "origin": origin}
    try:
        with temporary_folder() as temporary:  # its name is unique: others may keep the same
            written = write_prepared(Path(temporary), stem, content)
            described = written.with_suffix(".json")
            described.write_text(json.dumps(note, indent=1))
            path = cache_folder() / written.name
            _note_of(path).unlink(missing_ok=True)  # a file without a note is never in the wrong
            os.replace(written, path)
            os.replace(described, _note_of(path))
    except OSError as error:
        warnings.warn(
            f"{stem} could not be kept in {cache_folder()}: {error}. Free space there, or point "
            "POLYSIFT_CACHE elsewhere.",
            stacklevel=4,
        )


def check_kept(path: Path, content: Content) -> str | None:
    """Return the digest of a file that the cache has a note of; raise if the note disagrees."""
    note = _read_note(path) if path.parent == cache_folder() else {}
    if "sha256" not in note:
        return None
    found = digest(content)
    if found != note["sha256"]:
        raise DatasetError(
            f"{path} is damaged: its content is not what was kept there. Delete it, and it will be "
            "fetched again."
        )
    return found


def parsed_copy(entry: Entry, paths: Sequence[Path]) -> Path | None:
    """Return the kept content of published files, unless they have changed since."""
    for ending in PREPARED:
        path = cache_folder() / f"{parsed_stem(entry)}{ending}"
        if path.is_file() and _read_note(path).get("origin") == origin_of(paths):
            return path
    return None


def parsed_stem(entry: Entry) -> str:
    """Return the name of the kept content of published files, which never is found as such."""
    return f"{entry.name}.parsed"


def origin_of(paths: Sequence[Path]) -> list[list[Any]]:
    """Return what tells whether files are still the same."""
    found = [(path.resolve(), path.stat()) for path in paths]
    return [[str(path), facts.st_size, facts.st_mtime_ns] for path, facts in found]


def _note_of(path: Path) -> Path:
    return path.with_suffix(".json")


def _read_note(path: Path) -> dict[str, Any]:
    try:
        note = json.loads(_note_of(path).read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


OPENML = "https://www.openml.org/api/v1/json/data/"
"""Where OpenML describes a data set: the address of its file, and its MD5."""

PIECE = 1 << 18
"""Bytes that are fetched at a time."""

LARGEST = 1 << 33
"""Bytes of the largest file that is taken; the largest published one has a third of that."""

TIMEOUT = 60.0
"""Seconds without an answer after which a server counts as silent."""


def fetch_published(entry: Entry, folder: Path, *, show: bool) -> tuple[Path, ...]:
    """Fetch the published files of a data set into a folder, or raise a DatasetError."""
    paths = tuple(folder / name for name in entry.files[0])
    if entry.openml is not None:
        _fetch_openml(entry.openml, paths[0], show=show)
    elif entry.address is not None:
        archive = folder / "archive.zip"
        download(entry.address, archive, show=show)
        _unpack(archive, paths, entry.address)
        archive.unlink()  # the largest ones are of gigabytes
    return paths


def _fetch_openml(number: int, path: Path, *, show: bool) -> None:
    # Not with scikit-learn's fetch_openml: it has no timeout, shows no progress, asks again and
    # again when there is no network, and needs pandas for files of the size of MNIST.
    address = f"{OPENML}{number}"
    description = path.with_suffix(".json")
    download(address, description, show=False)
    try:
        facts = json.loads(description.read_bytes())["data_set_description"]
        url, expected = str(facts["url"]), str(facts["md5_checksum"])
    except (ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{address} does not describe a data set.") from error
    if not url.startswith(("https://", "http://")):  # a file of this machine, say
        raise DatasetError(f"{address} announces a file at {url!r}, which is no web address.")
    download(url, path, show=show)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != expected:
        raise DatasetError(f"{url} has the MD5 {found}; OpenML announces {expected}.")


def download(url: str, path: Path, *, show: bool) -> None:
    """Fetch a file, or raise a DatasetError that says why it could not be."""
    request = Request(url, headers={"User-Agent": "polysift"})
    try:
        with _ask(urlopen, request, timeout=TIMEOUT) as answer, path.open("wb") as file:
            total: int | None = answer.length
            with Progress(f"fetching {url}", total, "bytes", show=show) as progress:
                while chunk := _ask(answer.read, PIECE):
                    file.write(chunk)
                    progress.advance(len(chunk))
                    if file.tell() > LARGEST:
                        raise DatasetError(f"{url} has more than {LARGEST:,} bytes.")
            received = file.tell()
    except HTTPError as error:
        error.close()
        raise DatasetError(f"{url} answers {error.code} ({error.reason}).") from error
    except (URLError, http.client.HTTPException, ValueError) as error:  # the last: of a bad url
        reason = getattr(error, "reason", None) or error
        raise DatasetError(f"{url} cannot be reached, or broke off: {reason!r}.") from error
    if total is not None and received != total:
        raise DatasetError(f"{url} broke off after {received:,} of {total:,} bytes.")


def _ask(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return what a call returns; what fails is the network, and not the disk written to."""
    try:
        return call(*args, **options)
    except URLError:  # also: what the server answers instead
        raise
    except OSError as error:
        raise URLError(error) from error


def _unpack(archive: Path, paths: tuple[Path, ...], url: str) -> None:
    """Unpack some files of an archive, whatever folders it has them in."""
    try:
        with zipfile.ZipFile(archive) as file:
            members = {Path(name).name: name for name in reversed(file.namelist())}
            for path in paths:
                if path.name not in members:
                    raise DatasetError(
                        f"{url} holds no {path.name}; its files are {', '.join(sorted(members))}."
                    )
                size = file.getinfo(members[path.name]).file_size
                if size > LARGEST:  # what is unpacked never is more than is announced
                    raise DatasetError(f"{url} announces {size:,} bytes of {path.name}.")
                with file.open(members[path.name]) as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target, CHUNK_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # also: encrypted
        raise DatasetError(f"{url} is not a sound zip archive: {error}.") from error

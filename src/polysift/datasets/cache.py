"""The files of data sets: in the data folder, in the cache, or fetched from their public sources.

What was fetched, and what was slow to parse, is kept in the cache with a note of its digest, and
checked when it is read again. Public sources are archives of UCI, and OpenML.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from polysift.datasets.catalogue import Entry
from polysift.datasets.prepared import Content, DatasetError, digest, write_prepared
from polysift.runtime.outputs import CHUNK_BYTES, TemporaryFolder, replacing
from polysift.runtime.progress import Monitor

PREPARED = (".parquet", ".npz")
"""The endings of prepared files."""

MIN_KEPT_BYTES = 8 << 20
"""The size of published text from which its content is kept, so that it is parsed once."""

OPENML = "https://www.openml.org/api/v1/json/data/"
"""Where OpenML describes a data set: the address of its file, and its MD5."""

DOWNLOAD_BYTES = 1 << 18
"""How much is fetched at a time."""

MAX_FILE_BYTES = 1 << 33
"""The size of a file from which it is refused; the largest published one has a third of that."""

TIMEOUT_SECONDS = 60.0
"""How long a server may be silent."""


def data_folder() -> Path | None:
    """Return the folder that POLYSIFT_DATA names."""
    named = os.environ.get("POLYSIFT_DATA")
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Return the cache: the folder that POLYSIFT_CACHE names, or the platform's."""
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
    """Return the names of files that may hold a data set, each tuple together, best first."""
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
                    f"{folder} cannot be read: {error}. Change its permissions, or set "
                    f"{'POLYSIFT_DATA' if folder == data else 'POLYSIFT_CACHE'} to another folder."
                ) from error
    return None


def is_prepared(path: Path, entry: Entry) -> bool:
    """Return whether a file that was found is a prepared one, not a published one."""
    return path.name in {f"{entry.name}{ending}" for ending in PREPARED}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder in the cache, which is removed after the ``with`` statement."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = TemporaryFolder(cache, ".fetching-")
    try:
        yield folder.path
    finally:
        folder.remove()


def keep(stem: str, content: Content, sha: str, source: str, origin: Any = None) -> None:
    """Keep the content of a data set in the cache, with a note of its digest.

    That it cannot be kept is a warning, not an error: the data are loaded.
    """
    note = {"sha256": sha, "source": source, "origin": origin}
    try:
        with temporary_folder() as temporary:  # a unique one: other processes may do the same
            written = write_prepared(temporary, stem, content)
            path = cache_folder() / written.name
            _note_of(path).unlink(missing_ok=True)  # a file without a note is not checked
            os.replace(written, path)
            with replacing(_note_of(path)) as file:
                file.write(json.dumps(note, indent=1).encode())
    except OSError as error:
        warnings.warn(
            f"{stem} could not be kept in {cache_folder()}: {error}. Free space there, or set "
            "POLYSIFT_CACHE to another folder.",
            stacklevel=4,
        )


def check_kept(path: Path, content: Content) -> str | None:
    """Return the digest of a file of the cache that has a note; raise if they differ."""
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
    """Return the file with the kept content of published files, unless those have changed."""
    for ending in PREPARED:
        path = cache_folder() / f"{parsed_stem(entry)}{ending}"
        if path.is_file() and _read_note(path).get("origin") == origin_of(paths):
            return path
    return None


def parsed_stem(entry: Entry) -> str:
    """Return the name of the kept content of published files; ``find_files`` does not find it."""
    return f"{entry.name}.parsed"


def origin_of(paths: Sequence[Path]) -> list[list[Any]]:
    """Return paths, sizes and times of change, by which changed files are recognised."""
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


def fetch_published(entry: Entry, folder: Path, *, show: bool) -> tuple[Path, ...]:
    """Fetch the published files of a data set into a folder, or raise a DatasetError."""
    paths = tuple(folder / name for name in entry.files[0])
    if entry.openml is not None:
        _fetch_openml(entry.openml, paths[0], show=show)
    elif entry.address is not None:
        archive = folder / "archive.zip"
        download(entry.address, archive, show=show)
        _unpack(archive, paths, entry.address)
        archive.unlink()  # the largest ones have gigabytes
    return paths


def _fetch_openml(number: int, path: Path, *, show: bool) -> None:
    """Fetch a file from OpenML, and check its MD5."""
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
    if not url.startswith(("https://", "http://")):  # such as a file of this machine
        raise DatasetError(f"{address} announces a file at {url!r}, which is not a web address.")
    download(url, path, show=show)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != expected:
        raise DatasetError(f"{url} has the MD5 {found}; OpenML announces {expected}.")


def download(url: str, path: Path, *, show: bool) -> None:
    """Fetch a file, or raise a DatasetError with the reason."""
    request = Request(url, headers={"User-Agent": "polysift"})
    try:
        with _ask(urlopen, request, timeout=TIMEOUT_SECONDS) as answer, path.open("wb") as file:
            total: int | None = answer.length
            with Monitor(show=show) as m, m.task(f"fetching {url}", total, "bytes") as advance:
                while chunk := _ask(answer.read, DOWNLOAD_BYTES):
                    file.write(chunk)
                    advance(len(chunk))
                    if file.tell() > MAX_FILE_BYTES:
                        raise DatasetError(f"{url} has more than {MAX_FILE_BYTES:,} bytes.")
            received = file.tell()
    except HTTPError as error:
        error.close()
        raise DatasetError(f"{url} answers {error.code} ({error.reason}).") from error
    except (URLError, http.client.HTTPException, ValueError) as error:  # ValueError: a bad URL
        reason = getattr(error, "reason", None) or error
        raise DatasetError(f"{url} cannot be reached, or broke off: {reason!r}.") from error
    if total is not None and received != total:
        raise DatasetError(f"{url} broke off after {received:,} of {total:,} bytes.")


def _ask(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of a call; an OSError becomes a URLError, unlike errors of the disk."""
    try:
        return call(*args, **options)
    except URLError:  # also an HTTPError
        raise
    except OSError as error:
        raise URLError(error) from error


def _unpack(archive: Path, paths: tuple[Path, ...], url: str) -> None:
    """Unpack some files of an archive, from any of its folders."""
    try:
        with zipfile.ZipFile(archive) as file:
            members = {Path(name).name: name for name in reversed(file.namelist())}
            for path in paths:
                if path.name not in members:
                    raise DatasetError(
                        f"{url} holds no {path.name}; its files are {', '.join(sorted(members))}."
                    )
                size = file.getinfo(members[path.name]).file_size
                if size > MAX_FILE_BYTES:  # zipfile unpacks no more than is announced
                    raise DatasetError(f"{url} announces {size:,} bytes of {path.name}.")
                with file.open(members[path.name]) as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target, CHUNK_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # or encrypted
        raise DatasetError(f"{url} is not a valid zip archive: {error}.") from error

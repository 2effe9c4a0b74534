"""Files of the public sources, fetched into a folder: from archives of UCI, or from OpenML."""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from polysift.datasets.catalogue import Entry
from polysift.datasets.prepared import DatasetError
from polysift.runtime.outputs import CHUNK
from polysift.runtime.transfers import Progress

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
                    shutil.copyfileobj(source, target, CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # also: encrypted
        raise DatasetError(f"{url} is not a sound zip archive: {error}.") from error

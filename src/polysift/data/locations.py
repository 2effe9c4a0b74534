"""From the name of data to its files: a path, a folder, a glob or a URI of them.

A URI names files in shared or object storage. It may hold secrets, so messages never show it
whole: ``Address`` knows which parts may be shown.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from polysift.data.arrow import load_pyarrow
from polysift.data.formats import FORMATS, format_by_ending

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # a single letter is a drive of Windows
LOST_SLASH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^/]")
"""A URI, and what becomes of one as a Path."""

SCHEMES = {"s3": "s3://", "gcs": "gs://", "abfs": "abfs://"}
"""How URIs begin, by pyarrow's names of filesystems."""

CREDENTIALS_HINTS = {
    "s3": " (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or s3://key:secret@...; a "
    "store that is not Amazon's needs ?endpoint_override=host:port)",
    "gs": " (GOOGLE_APPLICATIONCREDENTIALS_HINTS, or gs://anonymous@... for public data)",
    "hdfs": " (JAVA_HOME, HADOOP_HOME and CLASSPATH must lead to libjvm and libhdfs)",
}


@dataclass(frozen=True)
class Address:
    """A URI in parts, since not all of it may be shown.

    Attributes
    ----------
    scheme : str
        What comes before ``://``.
    login : str
        User and secret, up to the ``@``.
    location : str
        Host or bucket, and path.
    options : str
        The query, from ``?`` on, which may hold secrets, too.
    """

    scheme: str = ""
    login: str = ""
    location: str = ""
    options: str = ""

    @classmethod
    def of(cls, uri: str) -> Address:
        """Parse a URI; where it is malformed, what may be a secret counts as one."""
        scheme, _, rest = uri.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        port = authority.partition(":")[2]
        if "@" in authority:
            end = authority.rindex("@") + 1
        elif port and "@" in rest:  # a secret with a slash that is not percent-encoded
            end = rest.rindex("@") + 1
        else:
            end = len(authority) if port and not port.isdigit() else 0
        location, mark, options = rest[end:].partition("?")
        return cls(scheme.lower(), rest[:end], location, mark + options)

    @property
    def uri(self) -> str:
        """The whole URI, with the characters of the path percent-encoded where it needs that."""
        host, slash, path = self.location.partition("/")
        path = quote(path, safe="/%:@!$&'()*+,;=~")
        return f"{self.scheme}://{self.login}{host}{slash}{path}{self.options}"

    @property
    def shown(self) -> str:
        """The URI as messages may show it: without login and options."""
        return f"{self.scheme}://{unquote(self.location)}"

    def censor(self, text: str) -> str:
        """Return the first line of a message of pyarrow without secrets."""
        login = self.login.removesuffix("@")
        secrets = [login, *login.split(":")] if ":" in login else []
        for name, value in parse_qsl(self.options[1:]):
            if re.search("secret|key|token|password", name.lower()):
                secrets.append(value)
        text = text.replace(self.uri, self.shown)
        for secret in {*secrets, *map(unquote, secrets), self.options}:
            if len(secret) > 3:  # shorter ones are parts of words
                text = text.replace(secret, "...")
        return text.partition("\n")[0][:400].rstrip(". ")

    def unreachable(self, name: str, error: Exception) -> OSError:
        """Return the error that says what to check; raise it ``from None``, to keep secrets."""
        how = CREDENTIALS_HINTS.get(self.scheme or name.partition("://")[0], "")
        return OSError(
            f"{name} cannot be reached: {self.censor(str(error))}. Check the address, the network "
            f"and the credentials{how}."
        )


def is_remote(name: str) -> bool:
    """Return whether a name is a URI of data that are not on this machine."""
    return URI.match(name) is not None and not name.lower().startswith("file://")


def local_path(name: str) -> str:
    """Return the path that a file:// URI stands for; any other name is returned as it is."""
    if is_remote(name) or not URI.match(name):
        return name
    host, slash, path = name.partition("://")[2].partition("/")
    if host not in ("", "localhost"):
        raise ValueError(f"{name} names the host {host!r}; write file:///path, with three slashes.")
    return unquote(path if os.name == "nt" else slash + path)


def public_name(name: str) -> str:
    """Return a name as messages may show it: a URI without its secrets and options."""
    return Address.of(name).shown if is_remote(name) else name


def identity(name: str) -> str:
    """Return a canonical name: two names of the same data have the same one."""
    if not is_remote(name):
        return str(Path(local_path(name)).resolve())
    address = Address.of(name)
    return address.shown.rstrip("/") + address.options


NO_ADDRESS = Address()


@dataclass(frozen=True)
class Storage:
    """A filesystem of pyarrow, with messages that name files as a user does.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
        The filesystem.
    prefix : str
        What makes a URI of a path in it; empty where there is none.
    address : Address
        The URI that it was opened by; empty where there is none.
    """

    filesystem: Any
    prefix: str = ""
    address: Address = NO_ADDRESS

    def name(self, path: str) -> str:
        """Return the name of a file in messages."""
        return self.prefix + path

    def info(self, what: Any, path: str) -> Any:
        """Return pyarrow's FileInfo of a path, or those that a selector finds at a path."""
        try:
            return self.filesystem.get_file_info(what)
        except OSError as error:
            raise self.address.unreachable(self.name(path), error) from None

    def children(self, folder: str, *, recursive: bool) -> list[Any]:
        """Return the FileInfo of the entries of a folder; with ``recursive``, of all below it."""
        select = load_pyarrow("fs").fs.FileSelector
        return self.info(select(folder, allow_not_found=True, recursive=recursive), folder)

    def delivers(self, path: str) -> bool:
        """Return whether a file can be read at all, so that an error lies in its content."""
        try:
            with self.filesystem.open_input_file(path) as file:
                file.read(1)
        except OSError:
            return False
        return True


@dataclass(frozen=True)
class FoundFiles:
    """Files, in order.

    Attributes
    ----------
    paths, names : list of str
        Where they are, and their names in messages.
    storage : Storage or None
        Where the paths are; None is this machine.
    """

    paths: list[str]
    names: list[str]
    storage: Storage | None = None

    @property
    def single(self) -> Path:
        """The file of this machine, where it is the only one, as the user named it."""
        return Path(self.names[0])

    @property
    def origin(self) -> str:
        """The name of the first file, and how many more there are."""
        more = len(self.names) - 1
        return self.names[0] + (f" and {more} more" if more else "")


def find(data: str | Path, filesystem: Any = None) -> FoundFiles:
    """Return the files that a path, a folder, a glob or a URI of them stands for.

    With a filesystem (pyarrow's or fsspec's), ``data`` is a path in it.
    """
    if filesystem is not None:
        storage = _wrap(filesystem)
        path = data.as_posix() if isinstance(data, Path) else data
        if URI.match(path):
            raise ValueError(
                f"With filesystem=, data is a path in it; got the URI {public_name(path)}. Leave "
                "out one of the two."
            )
    elif is_remote(str(data)):
        storage, path = _connect(Address.of(str(data)))
    else:
        names = _find_here(local_path(str(data)))
        return FoundFiles([os.path.abspath(name) for name in names], names)
    paths = _find_there(storage, path.rstrip("/") or path[:1])
    return FoundFiles(paths, [storage.name(path) for path in paths], storage)


def _wrap(filesystem: Any) -> Storage:
    """Return the storage of a filesystem of pyarrow or fsspec."""
    fs = load_pyarrow("fs").fs
    if isinstance(filesystem, fs.FileSystem):
        return Storage(filesystem, SCHEMES.get(filesystem.type_name, ""))
    fsspec = sys.modules.get("fsspec")  # imported, where one of its filesystems exists
    if fsspec is not None and isinstance(filesystem, fsspec.AbstractFileSystem):
        return Storage(fs.PyFileSystem(fs.FSSpecHandler(filesystem)))
    raise TypeError(
        "filesystem must be a filesystem of pyarrow or fsspec, such as "
        f"pyarrow.fs.S3FileSystem(); got {type(filesystem).__name__}."
    )


def _connect(address: Address) -> tuple[Storage, str]:
    """Return the storage of a URI, and the path in it."""
    if not address.location.strip("/"):
        raise ValueError(f"{address.shown} names no bucket, host or folder.")
    fs = load_pyarrow("fs").fs
    try:
        filesystem, path = fs.FileSystem.from_uri(address.uri)
    except OSError as error:
        raise address.unreachable(address.shown, error) from None
    except ImportError as error:
        raise ImportError(f"{address.shown}: {address.censor(str(error))}.") from None
    except (ValueError, NotImplementedError) as error:
        if "Unrecognized filesystem" in str(error):
            raise ValueError(
                f"{address.shown}: pyarrow knows no storage called {address.scheme}://. It reads "
                "s3://, gs://, abfs://, hdfs:// and file://; for another, pass filesystem=, or "
                "copy the data to a disk of this machine."
            ) from None
        raise ValueError(
            f"{address.shown} cannot be used: {address.censor(str(error))}. In a URI, options "
            "begin with ?, and special characters of key and secret are percent-encoded (/ is "
            "%2F, + is %2B)."
        ) from None
    shown = address.shown.rstrip("/")
    known = shown.endswith(path.rstrip("/"))  # else the path begins with what the login named
    prefix = shown.removesuffix(path.rstrip("/")) if known else f"{address.scheme}://"
    return Storage(filesystem, prefix, address), path


def _find_here(pattern: str) -> list[str]:
    """Return the files of this machine that a path, a folder or a glob stands for."""
    path = Path(pattern)
    found: Iterable[str] = ()
    missing = f"There is no file {pattern}."
    if path.is_dir():
        found = _below(path)
        missing = f"The folder {pattern} holds no .parquet files, nor others that can be read."
    elif path.exists():
        if path.stat().st_size == 0:
            raise ValueError(f"{pattern} is empty.")
        found = [pattern]
    elif glob.has_magic(pattern):
        found, missing = _matching_here(pattern), f"No file matches {pattern}."
    elif LOST_SLASH.match(pattern):
        missing += " Pass a URI as text; as a Path it loses a slash."
    return _some(found, missing)


def _matching_here(pattern: str) -> Iterator[str]:
    for match in glob.glob(pattern, recursive=True):
        if not os.path.isdir(match):
            yield match
        elif Path(pattern).name != "**":  # which matches what is in the folder by itself
            yield from _below(Path(match))


def _below(folder: Path) -> list[str]:
    """Return the files of a folder that are one table: Parquet files, else those of one format."""
    # A folder may have such a name, too: what is in it is found by itself.
    parquet = [str(path) for path in folder.rglob("*.parquet") if not path.is_dir()]
    if parquet:
        return parquet
    found: dict[str, list[str]] = {}
    for path in folder.rglob("*"):
        kind = format_by_ending(path.name)
        hidden = path.name.startswith((".", "_"))
        if kind is not None and FORMATS[kind].several and not hidden and path.is_file():
            found.setdefault(kind, []).append(str(path))
    if len(found) > 1:
        shown = ", ".join(f"{kind} ({min(paths)})" for kind, paths in sorted(found.items()))
        raise ValueError(
            f"The folder {folder} holds files of several formats: {shown}. Name those of one with "
            f"a glob, such as {folder / '*.csv'}."
        )
    return next(iter(found.values()), [])


def _some(found: Iterable[str], missing: str) -> list[str]:
    """Return names, sorted and each once, or raise if there are none."""
    names = sorted(set(found))
    if not names:
        raise FileNotFoundError(missing)
    return names


def _find_there(storage: Storage, pattern: str) -> list[str]:
    """Return the paths in a storage that a path, a folder or a glob stands for."""
    name, info = storage.name(pattern), storage.info(pattern, pattern)
    infos: Iterable[Any] = ()
    missing = f"There is no file or folder {name}."
    if info.is_file:
        infos = [info]
    elif info.type.name == "Directory":
        infos, missing = _below_there(storage, pattern), f"{name} holds no .parquet files."
    elif glob.has_magic(pattern):
        infos, missing = _matching_there(storage, pattern), f"No file matches {name}."
    sizes = {info.path: info.size for info in infos}
    for path, size in sizes.items():
        if size == 0:
            raise ValueError(f"{storage.name(path)} is empty.")
    return _some(sizes, missing)


def _below_there(storage: Storage, folder: str) -> Iterator[Any]:
    for info in storage.children(folder, recursive=True):
        if info.is_file and info.path.endswith(".parquet"):
            yield info


def _matching_there(storage: Storage, pattern: str) -> Iterator[Any]:
    """Yield the files that match a glob, or are in folders that do."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    for info in _walk(storage, "/".join(parts[:fixed]), parts[fixed:]):
        if info.is_file:
            yield info
        elif parts[-1] != "**":  # which matches what is in the folder by itself
            yield from _below_there(storage, info.path)


def _walk(storage: Storage, folder: str, parts: list[str]) -> Iterator[Any]:
    """Yield what matches below a folder; only folders that match are listed, one level at a time.

    From ``**`` on, all that is below is listed at once: few requests, many names.
    """
    first, *rest = parts
    if first == "**":
        for info in storage.children(folder, recursive=True):
            below = info.path.strip("/").removeprefix(folder.strip("/")).strip("/")
            if _fits(below.split("/"), parts):
                yield info
        return
    for info in storage.children(folder, recursive=False):
        if not _fits([info.base_name], [first]):
            continue
        if not rest:
            yield info
        elif not info.is_file:
            yield from _walk(storage, info.path, rest)


def _fits(names: list[str], parts: list[str]) -> bool:
    """Return whether names of folders and a file match a glob, by the rules of Python's own."""
    if not parts or not names:
        return not names and all(part == "**" for part in parts)
    first, *rest = parts
    hidden = names[0].startswith(".")
    if first == "**":
        return _fits(names, rest) or (not hidden and _fits(names[1:], parts))
    visible = not hidden or first.startswith(".")
    return visible and fnmatchcase(names[0], first) and _fits(names[1:], rest)

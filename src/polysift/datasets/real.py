"""``load``: a real data set from the data folder, the cache or its public source."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from polysift.datasets.cache import (
    MIN_KEPT_BYTES,
    cache_folder,
    candidates,
    check_kept,
    data_folder,
    fetch_published,
    find_files,
    is_prepared,
    keep,
    origin_of,
    parsed_copy,
    parsed_stem,
    temporary_folder,
)
from polysift.datasets.catalogue import Entry, find_entry
from polysift.datasets.prepared import (
    Content,
    DatasetError,
    deviations,
    digest,
    fixed_split,
    printed_differences,
    read_prepared,
)
from polysift.datasets.published import read_published
from polysift.runtime.parameters import check_flag
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """A real data set in memory.

    Attributes
    ----------
    name, title : str
        The name that ``load`` takes, and the publisher's title.
    X : ndarray of shape (rows, attributes)
        The rows, C-contiguous: float64, or float32 for susy, higgs and mnist38.
    y : ndarray of shape (rows,)
        The labels, -1 and +1 as int8.
    feature_names : tuple of str
        The names of the attributes.
    source : str
        The files or the address that they come from.
    remarks : tuple of str
        Where these data, the published ones and what the paper prints disagree, in sentences.
    split : tuple of ndarray, or None
        The positions of the rows for training, validation and test, where the paper fixes them.
    positive : str
        The meaning of the label +1.

    Examples
    --------
    >>> from polysift import datasets
    >>> if datasets.available("magic"):
    ...     magic = datasets.load("magic", fetch=False)
    ...     assert magic.X.shape == (19020, 10) and set(magic.y.tolist()) == {-1, 1}
    """

    name: str
    title: str
    X: FloatArray
    y: IntArray
    feature_names: tuple[str, ...]
    source: str
    remarks: tuple[str, ...]
    split: tuple[IntArray, IntArray, IntArray] | None
    positive: str


def load(name: str, *, fetch: bool = True, show: bool = False) -> Dataset:
    """Load a real data set of the paper.

    It is looked for in the folder that the environment variable POLYSIFT_DATA names, then in the
    cache (POLYSIFT_CACHE, or the folder polysift among the user's caches), as ``<name>.parquet``
    (attributes, then ``target``), as ``<name>.npz`` (arrays X and y), or under the names of its
    published files. Else it is fetched from its public source, checked, and kept in the cache.

    Parameters
    ----------
    name : str
        One of ``NAMES``, or the short name in the paper's tables; case does not matter.
    fetch : bool, default=True
        Whether to fetch data that are not at hand.
    show : bool, default=False
        Whether to show the progress of fetching and parsing on standard error.

    Returns
    -------
    Dataset
        Rows, labels, and remarks on where they differ from what the paper prints.

    Raises
    ------
    DatasetError
        If the data are not at hand and cannot be fetched, or are damaged. It says where to get them
        and where to put them.

    Notes
    -----
    As in the paper, susy has the 8 and higgs and higgs_11k the 21 low-level attributes, which are
    the first columns of the published files. Rows are in the published order; that of some sets is
    by class or by time, so shuffle before splitting. Fetched content is checked against the
    published one, by its digest or, for susy, higgs and gisette, by the sizes of its classes; files
    that a user supplies may hold other content, which a remark states.

    Examples
    --------
    >>> from polysift.datasets import UCI, load
    >>> UCI[:5]
    ('breast_cancer', 'banknote', 'seismic_bumps', 'musk2', 'htru2')
    >>> load("breast").remarks  # doctest: +SKIP
    ("The paper's Table I prints 64.44 % of the rows in the larger class; the data have 65.01 %: ...
    """
    entry = find_entry(name)
    check_flag("fetch", fetch)
    check_flag("show", show)
    paths = find_files(entry)
    if paths is not None:
        content, sha = _read(entry, paths, show=show)
        return _describe(entry, content, ", ".join(map(str, paths)), sha)
    if not fetch:
        raise DatasetError(_advise(entry, "Fetching it was not allowed (fetch=False)."))
    if entry.address is None:
        raise DatasetError(_advise(entry, "It has no public source that it could be fetched from."))
    return _fetch(entry, entry.address, show=show)


def available(name: str) -> bool:
    """Return whether ``load`` would find a data set without a network.

    Parameters
    ----------
    name : str
        As for ``load``.

    Returns
    -------
    bool
        Whether its files are in the data folder or in the cache; they are not read.

    Examples
    --------
    >>> from polysift.datasets import NAMES, available
    >>> at_hand = [name for name in NAMES if available(name)]
    >>> set(at_hand) <= set(NAMES)
    True
    """
    return find_files(find_entry(name)) is not None


def _read(entry: Entry, paths: Sequence[Path], *, show: bool) -> tuple[Content, str | None]:
    """Return the content of files at hand, and its digest where that was needed."""
    if is_prepared(paths[0], entry):
        content = read_prepared(paths[0], entry)
        return content, check_kept(paths[0], content)
    copy = parsed_copy(entry, paths)
    if copy is not None:
        # If the copy is damaged, or pyarrow is missing, the original is parsed.
        with suppress(DatasetError, ImportError):
            content = read_prepared(copy, entry)
            return content, check_kept(copy, content)
    content = _parse(entry, paths, show=show)
    size = sum(path.stat().st_size for path in paths)
    if paths[0].suffix in (".npz", ".mat") or size < MIN_KEPT_BYTES:
        return content, None
    sha = digest(content)
    keep(parsed_stem(entry), content, sha, str(paths[0]), origin_of(paths))
    return content, sha


def _parse(entry: Entry, paths: Sequence[Path], *, show: bool) -> Content:
    name = f"reading {paths[0].name}"
    with Monitor(show=show) as monitor, monitor.task(name, entry.rows, "rows") as advance:
        return read_published(paths, entry, advance)


def _fetch(entry: Entry, source: str, *, show: bool) -> Dataset:
    """Fetch a data set, check that it is what was published, and keep it."""
    try:
        with temporary_folder() as folder:
            paths = fetch_published(entry, folder, show=show)
            content = _parse(entry, paths, show=show)
    except DatasetError as error:
        raise DatasetError(_advise(entry, f"Fetching it failed: {error}")) from error
    except OSError as error:
        raise DatasetError(
            f"{entry.name} cannot be fetched into {cache_folder()}: {error}. Free space there, or "
            "set POLYSIFT_CACHE to another folder."
        ) from error
    sha = digest(content)
    if faults := deviations(entry, content, sha):
        raise DatasetError(
            _advise(entry, f"What {source} has is something else. {' '.join(faults)}")
        )
    keep(entry.name, content, sha, source)
    return _describe(entry, content, source, sha)


def _describe(entry: Entry, content: Content, source: str, sha: str | None) -> Dataset:
    remarks = deviations(entry, content, sha) or printed_differences(entry, content)
    split, said = fixed_split(entry, len(content.X))
    return Dataset(
        name=entry.name,
        title=entry.title,
        X=content.X,
        y=content.y,
        feature_names=content.names,
        source=source,
        remarks=(*remarks, *said, *entry.notes),
        split=split,
        positive=entry.positive,
    )


def _advise(entry: Entry, tried: str) -> str:
    """Return the message on a missing data set: what was tried, where to get it and to put it."""
    data = data_folder()
    named = "POLYSIFT_DATA names no folder" if data is None else f"the data folder is {data}"
    if data is not None and not data.is_dir():
        named += ", which does not exist"
    files = "; ".join(" + ".join(names) for names in candidates(entry))
    target = cache_folder() if data is None else data
    origin = "" if entry.address is None else f"get it from {entry.address} by hand, and "
    return (
        f"{entry.name} ({entry.title}) is not at hand: {named}, and the cache is "
        f"{cache_folder()}. {tried} To have it, {origin}put it into {target}, under one of these "
        f"names: {files}."
    )

"""``.npy`` and ``.npz`` files as sources, memory-mapped."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.checks import decoding, find_name
from polysift.data.columns import resolve_names, resolve_types
from polysift.data.formats import OpenOptions
from polysift.data.locations import FoundFiles
from polysift.data.source import ArraySource, DataSource
from polysift.runtime.outputs import TemporaryFolder


def open_npy(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return the matrix of an ``.npy`` file as a source; its columns have positions only."""
    where = str(found.single)
    with decoding(f"{where} is not a readable .npy file"):
        X = _map_npy(found.single)
    if X.ndim != 2:
        raise ValueError(f"{where} must hold a matrix (rows x columns); its shape is {X.shape}.")
    _refuse_no_numbers(X, where)
    names = [str(j) for j in range(X.shape[1])]
    features, y, w = resolve_names(names, where, options.roles)
    take = None if features == names else np.array([int(name) for name in features])
    labels = None if y is None else np.array(X[:, int(y)])
    weights = None if w is None else np.array(X[:, int(w)], dtype=float)
    source = ArraySource(X, None, labels, weights, take=take, file=where)
    return source.retyped(resolve_types(options.types, names, features, where))


def open_npz(found: FoundFiles, options: OpenOptions) -> DataSource:
    """Return the arrays of an ``.npz`` file as a source."""
    path, roles, folder = found.single, options.roles, TemporaryFolder()
    arrays = _map_arrays(path, folder.path)
    names = list(arrays)
    y_name = roles.target if roles.target is not None else ("y" if "y" in arrays else None)
    labels, weights = (
        None if name is None else arrays[names[find_name(str(name), names, str(path))]]
        for name in (y_name, roles.weight)
    )
    chosen = _matrix_name(path, arrays)
    _refuse_no_numbers(arrays[chosen], f"{path}: {chosen}")
    if weights is not None:
        _refuse_no_numbers(weights, f"{path}: {roles.weight}")
    X = arrays[chosen].reshape(len(arrays[chosen]), -1)
    for name, values in ((y_name, labels), (roles.weight, weights)):
        if values is not None and values.shape != (len(X),):
            raise ValueError(
                f"{path}: {name} has shape {values.shape}, but {chosen} has {len(X)} rows."
            )
    positions = [str(j) for j in range(X.shape[1])]
    own = replace(roles, target=None, weight=None)  # which are arrays beside this one
    features, _, _ = resolve_names(positions, f"{path}: {chosen}", own)
    take = None if features == positions else np.array([int(name) for name in features])
    disk = sum(file.stat().st_size for file in folder.path.iterdir())
    w = None if weights is None else np.asarray(weights, dtype=float)
    source = ArraySource(X, None, labels, w, take=take, owner=folder, disk=disk, file=str(path))
    return source.retyped(resolve_types(options.types, positions, features, str(path)))


def _matrix_name(path: Path, arrays: dict[str, Any]) -> str:
    """Return the name of the array of the features: X, or the only one that is a matrix."""
    matrices = [name for name, array in arrays.items() if array.ndim >= 2]
    if "X" in matrices:
        return "X"
    if len(matrices) != 1:
        raise ValueError(
            f"{path} must hold one array of two dimensions, or one that is named X; its arrays are "
            f"{', '.join(f'{name} {array.shape}' for name, array in arrays.items())}."
        )
    return matrices[0]


def _map_arrays(path: Path, folder: Path) -> dict[str, Any]:
    """Map all arrays of an archive; ``folder`` holds those that are compressed."""
    with decoding(f"{path} is not a readable .npz file"), zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        names = [name.removesuffix(".npy") for name in members]
        return {name: _map_member(archive, path, name, folder) for name in names}


def _map_member(archive: zipfile.ZipFile, path: Path, name: str, folder: Path) -> Any:
    """Map an array of an archive; a compressed one is unpacked into the folder first."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type == zipfile.ZIP_STORED:
        with archive.open(info) as member, open(path, "rb") as file:
            # The data follow the local header: 30 bytes, the last four of which are the lengths of
            # the name and of the extra field that come after it.
            file.seek(info.header_offset + 26)
            lengths = np.frombuffer(file.read(4), dtype="<u2")
            begin = info.header_offset + 30 + int(lengths.sum())
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(member)
            offset = begin + member.tell()
        if dtype.hasobject or 0 in shape:
            raise ValueError(f"the array {name} holds Python objects, or nothing.")
        return np.memmap(
            path, dtype, mode="r", offset=offset, shape=shape, order="F" if fortran else "C"
        )
    unpacked = folder / f"{len(list(folder.iterdir()))}.npy"
    with archive.open(info) as member, open(unpacked, "wb") as file:
        shutil.copyfileobj(member, file)
    return _map_npy(unpacked)


def _map_npy(path: Path) -> Any:
    """Return an ``.npy`` file as an array that stays on disk."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _refuse_no_numbers(X: Any, where: str) -> None:
    if not X.size:  # without rows it could have any number of columns
        raise ValueError(f"{where} holds no numbers: its shape is {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where} must hold numbers; its type is {X.dtype}.")

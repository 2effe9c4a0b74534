"""``.npy`` and ``.npz`` files as sources, memory-mapped."""

from __future__ import annotations

import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polysift.data.columns import Roles, resolve_names
from polysift.data.source import ArraySource, DataSource, find_name
from polysift.runtime.outputs import TemporaryFolder


def map_npy(path: Path) -> Any:
    """Return an ``.npy`` file as an array that stays on disk."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy file: {error}") from error


def open_npz(path: Path, roles: Roles) -> DataSource:
    """Return the arrays of an ``.npz`` file as a source."""
    folder = TemporaryFolder()
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith(".npy")]
            names = [name.removesuffix(".npy") for name in members]
            arrays = {name: _map_member(archive, path, name, folder.path) for name in names}
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a readable .npz file: {error}") from error
    y_name = roles.target if roles.target is not None else ("y" if "y" in arrays else None)
    labels, weights = (
        None if name is None else arrays[names[find_name(str(name), names, str(path))]]
        for name in (y_name, roles.weight)
    )
    tables = [name for name in names if arrays[name].ndim >= 2]
    chosen = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
    if chosen is None:
        raise ValueError(
            f"{path} must hold one array of two dimensions, or one that is named X; its arrays are "
            f"{', '.join(f'{name} {arrays[name].shape}' for name in names)}."
        )
    X = arrays[chosen].reshape(len(arrays[chosen]), -1)
    for name, values in ((y_name, labels), (roles.weight, weights)):
        if values is not None and values.shape != (len(X),):
            raise ValueError(
                f"{path}: {name} has shape {values.shape}, but {chosen} has {len(X)} rows."
            )
    _refuse_non_numeric(X, f"{path}: {chosen}")
    places = [str(j) for j in range(X.shape[1])]
    own = replace(roles, target=None, weight=None)  # which are arrays beside this one
    features, _, _ = resolve_names(places, f"{path}: {chosen}", own)
    take = None if features == places else np.array([int(name) for name in features])
    disk = sum(file.stat().st_size for file in folder.path.iterdir())
    w = None if weights is None else np.asarray(weights, dtype=float)
    return ArraySource(X, None, labels, w, take=take, owner=folder, disk=disk, file=str(path))


def _map_member(archive: zipfile.ZipFile, path: Path, name: str, folder: Path) -> Any:
    """Map an array of an archive; one that is compressed is unpacked into the folder first."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type == zipfile.ZIP_STORED:
        with archive.open(info) as member, open(path, "rb") as file:
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
            raise ValueError(f"{path}: the array {name} holds Python objects, or nothing.")
        return np.memmap(
            path, dtype, mode="r", offset=offset, shape=shape, order="F" if fortran else "C"
        )
    unpacked = folder / f"{len(list(folder.iterdir()))}.npy"
    with archive.open(info) as member, open(unpacked, "wb") as file:
        shutil.copyfileobj(member, file)
    return map_npy(unpacked)


def matrix_source(X: Any, where: str, roles: Roles) -> DataSource:
    """Return a source over a matrix whose columns have positions only."""
    if X.ndim != 2:
        raise ValueError(f"{where} must hold a matrix (rows x columns); its shape is {X.shape}.")
    _refuse_non_numeric(X, where)
    names = [str(j) for j in range(X.shape[1])]
    features, y, w = resolve_names(names, where, roles)
    take = None if features == names else np.array([int(name) for name in features])
    labels = None if y is None else np.array(X[:, int(y)])
    weights = None if w is None else np.array(X[:, int(w)], dtype=float)
    return ArraySource(X, None, labels, weights, take=take, file=where)


def _refuse_non_numeric(X: Any, where: str) -> None:
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{where} must hold numbers; its type is {X.dtype}.")

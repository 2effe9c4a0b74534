"""Models in files: ``save`` and ``load``, without pickle, and checked before a model is returned.

``persistence.archive`` is the container. Its header holds

- ``format``: the number of the format, 2;
- ``kind``: "FPCClassifier" or "FPCClassifierCV";
- ``versions``: those of polysift and its dependencies, for information only;
- ``params`` and ``attributes``: the constructor's parameters and the fitted attributes;
- ``arrays``: dtype, shape and checksum of each array.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polysift.cluster.ray_cluster import RayCluster
from polysift.data.kinds import NUMBER
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import FPCClassifierCV
from polysift.persistence.archive import ArchiveReader, ModelFile, ModelFileError, write_archive
from polysift.persistence.plain import Encoder, NotPlainError, NotSaved, decode
from polysift.persistence.validation import check_attributes
from polysift.runtime.arrays import InvalidFieldError, MalformedError
from polysift.runtime.failures import naming
from polysift.runtime.outputs import check_output

__all__ = ["ModelFileError", "NotSaved", "load", "save"]

MAX_UPGRADED_COLUMNS = 2**16
"""How many columns of an older model get a word each for what they are; of more they get none."""


def _numbers_alone(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header of format 1, whose models know of numbers alone, as one of format 2.

    Whatever is not as it should be stays so, to be found when the attributes are checked.
    """
    attributes = header.get("attributes")
    if isinstance(attributes, dict):
        attributes = _with_kinds(attributes)
        best = attributes.get("best_estimator_")
        if isinstance(best, dict) and isinstance(best.get("attributes"), dict):
            best = best | {"attributes": _with_kinds(best["attributes"])}
            attributes = attributes | {"best_estimator_": best}
        header = header | {"attributes": attributes}
    return header | {"format": 2}


def _with_kinds(attributes: dict[str, Any]) -> dict[str, Any]:
    d = attributes.get("n_features_in_")
    if "scaler_" not in attributes or type(d) is not int or not 0 < d <= MAX_UPGRADED_COLUMNS:
        return attributes
    return attributes | {"column_kinds_": {"$objects": [[d], [NUMBER] * d]}}


FORMAT = 2
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _numbers_alone}
"""By format, the function that turns a header of it into one of the next, "format" included.

A change to the meaning of a header raises ``FORMAT`` and adds its step here, so that older files
can still be read; ``tests/persistence/files`` has some.
"""

KINDS: dict[str, Any] = {"FPCClassifier": FPCClassifier, "FPCClassifierCV": FPCClassifierCV}
OLD_DEFAULTS: dict[str, dict[str, Any]] = {
    "FPCClassifier": {"kernel": "polynomial", "loss": "hinge"},
    "FPCClassifierCV": {},
}
"""Parameters that files of older versions do not have, with the values that they then had."""

VERSIONS_OF = ("polysift", "numpy", "scipy", "scikit-learn")
RAY = "RayCluster"
OWN_ADDRESSES = (None, "auto", "local")
"""The addresses of clusters that a model file may name: those on the machine that loads it."""

REMEDY = "Copy it again from where it came from, or save the model again."

_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*_|_map_params")


def save(model: Any, path: Any, *, overwrite: bool = False) -> None:
    """Write a fitted model to a file, whole or not at all.

    The file holds numbers and text, and nothing that can be run: unlike a pickle, it can be loaded
    wherever it comes from. The same model gives the same bytes.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted model. All its parameters and fitted attributes are kept, except for parameters
        that are no plain data: a generator as ``random_state`` becomes the seed that was used, and
        of ``cv`` splitters and splits and of ``scoring`` functions only a description is kept. Of
        a ``RayCluster`` all is kept but the address of another machine: a file must not decide
        where the rows of those who load it are sent.
    path : path
        The file, by convention ending in .polysift.
    overwrite : bool, default=False
        Whether to replace a file that exists.

    See Also
    --------
    load : The inverse.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import polysift
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(1_000, random_state=0)
    >>> clf = polysift.FPCClassifier(degree=4, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     polysift.save(clf, Path(folder) / "curve.polysift")
    ...     again = polysift.load(Path(folder) / "curve.polysift")
    >>> bool((again.decision_function(X) == clf.decision_function(X)).all())
    True
    """
    kind = _kind(model)
    check_is_fitted(model)
    output = check_output(path, overwrite=overwrite)
    state = _state(model)
    encoder = Encoder()
    try:
        check_attributes(kind, state["attributes"])
        header = {
            "format": FORMAT,
            "kind": kind,
            "versions": {name: version(name) for name in VERSIONS_OF},
            "params": _encoded(encoder, state["params"]),
            "attributes": _encoded(encoder, state["attributes"]),
        }
        write_archive(output, header, encoder.arrays)
    except InvalidFieldError as error:
        raise ModelFileError(f"The model cannot be saved: {error}.") from None
    except ModelFileError as error:
        raise ModelFileError(f"The model cannot be saved: its file {error}.") from None
    except NotPlainError as error:
        raise TypeError(
            f"{error} Nothing was written. Fit with labels and names that are numbers "
            "or text, or use skops or joblib."
        ) from None


def load(path: Any) -> FPCClassifier | FPCClassifierCV:
    """Return the model that ``save`` has written to a file.

    Nothing in the file is run, and everything is checked first: its digest, its layout, and whether
    the attributes make a model that can predict.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    FPCClassifier or FPCClassifierCV
        The fitted model. It predicts what the saved one did, to the last bit on the same machine.
        A parameter that could not be saved is a ``NotSaved`` object, which ``fit`` refuses.

    Raises
    ------
    ModelFileError
        If the file is no such file, is damaged, is of a newer version of polysift, or needs more
        memory than there is.

    See Also
    --------
    save : The inverse.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import polysift
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.polysift"
    ...     _ = file.write_text("not a model")
    ...     try:
    ...         polysift.load(file)
    ...     except polysift.ModelFileError:
    ...         print("refused")
    refused
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"There is no model file {file}.")
    if not file.is_file():  # a pipe or a device would never end
        raise ModelFileError(f"{file} is a folder or a device; name a file that save has written.")
    try:
        with naming(file), ModelFile(file) as opened:
            return _read(opened)
    except (ModelFileError, MalformedError) as error:
        text = str(error)
    except InvalidFieldError as error:
        text = f"holds an invalid model: {error}"
    except MemoryError:
        text = "needs more memory than there is"
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        text = f"is not as save writes it ({error!s:.200})"  # what no check has found
    raise ModelFileError(f"The model file {file} {text}{'' if text[-1] == '.' else f'. {REMEDY}'}")


def _kind(model: Any) -> str:
    for kind, cls in KINDS.items():
        if type(model) is cls:
            return kind
    hint = ""
    if isinstance(model, Pipeline):
        hint = " Save its last step, pipeline[-1], or all of it with skops.io.dump."
    elif isinstance(getattr(model, "best_estimator_", None), FPCClassifier):
        hint = " Save its best_estimator_."
    elif isinstance(model, tuple(KINDS.values())):
        hint = " A class of your own would come back as its base: use skops or joblib."
    expected = " or ".join(KINDS)
    raise TypeError(f"model must be a fitted {expected}; got {type(model).__name__}.{hint}")


def _state(model: Any) -> dict[str, Any]:
    """Return parameters and fitted attributes; what else a model carries is not its own."""
    params = {name: _kept(model, name, v) for name, v in model.get_params(deep=False).items()}
    state = model.__getstate__()
    attributes = {name: v for name, v in sorted(state.items()) if _ATTRIBUTE.fullmatch(name)}
    if "best_estimator_" in attributes:
        attributes["best_estimator_"] = _state(attributes["best_estimator_"])
    return {"params": params, "attributes": attributes}


def _kept(model: Any, name: str, value: Any) -> Any:
    """Return a parameter as it is kept: as it is, if it is plain."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return getattr(model, "random_state_", NotSaved(_described(value)))
    if isinstance(value, RayCluster):
        kept = vars(value).copy()
        if kept["address"] not in OWN_ADDRESSES:
            kept["address"] = None
        return {RAY: kept}
    # Splits are numbers of rows that are not kept, either, and they can be many.
    if name == "cv" and not (value is None or isinstance(value, Real | str | NotSaved)):
        return NotSaved(_described(value))
    try:
        Encoder().encode(value, name)
    except NotPlainError:
        return NotSaved(_described(value))
    return value


def _restored(engine: Any) -> Any:
    """Return the parameter ``engine`` from what ``_kept`` has made of it."""
    if not isinstance(engine, dict):
        return engine
    if engine.keys() != {RAY} or engine[RAY].get("address") not in OWN_ADDRESSES:
        raise ModelFileError("names an engine that cannot be")
    return RayCluster(**engine[RAY])


def _described(value: Any) -> str:
    if isinstance(value, list | tuple | dict | np.ndarray):
        return f"{type(value).__name__} of length {len(value)}"
    try:
        text = repr(value)
    except Exception:  # whatever a foreign object does
        text = type(value).__name__
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", text).split())[:200]


def _encoded(encoder: Encoder, values: dict[str, Any]) -> dict[str, Any]:
    return {name: encoder.encode(value, name) for name, value in values.items()}


def _read(file: ModelFile) -> Any:
    archive = ArchiveReader(file)
    header = _upgraded(archive.header)
    expected = {"format", "kind", "versions", "params", "attributes", "arrays"}
    if header.keys() != expected:
        wrong = ", ".join(sorted(header.keys() ^ expected))
        raise ModelFileError(f"has a header that lacks something or has too much: {wrong!s:.200}")
    versions = header["versions"]
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        raise ModelFileError("does not say by which versions it was written")
    arrays = archive.arrays(header["arrays"])
    state = {name: decode(header[name], arrays) for name in ("params", "attributes")}
    model = _built(header["kind"], state)
    if arrays:
        raise ModelFileError(f"holds arrays of nothing: {', '.join(arrays)!s:.200}")
    return model


def _upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """Return a header in the present format."""
    found = header.get("format")
    if type(found) is not int or found < 1:
        raise ModelFileError(f"has no number of a format in its header, but {found!r:.80}")
    if found > FORMAT:
        raise ModelFileError(
            f"was written by a newer polysift (format {found!r:.20}; this one reads up to "
            f"{FORMAT}). Update polysift to load it."
        )
    while header["format"] < FORMAT:
        header = UPGRADES[header["format"]](header)
    return header


def _built(kind: Any, state: Any) -> Any:
    """Return the model of a kind, parameters and attributes, all of which are checked."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelFileError(f"holds a model of a kind that is not known: {kind!r:.80}")
    fits = isinstance(state, dict) and state.keys() == {"params", "attributes"}
    if not fits or not all(isinstance(part, dict) for part in state.values()):
        raise ModelFileError(f"holds a {kind} without parameters or attributes")
    cls, params, attributes = KINDS[kind], state["params"], state["attributes"]
    if unknown := params.keys() - cls().get_params().keys():
        text = f"{kind} has no parameter {min(map(repr, unknown)):.80}"
        raise ModelFileError(f"is of another version: {text}: update polysift.")
    for name in attributes:
        named = isinstance(name, str) and _ATTRIBUTE.fullmatch(name)
        own = getattr(cls, name, None)  # a property that is found once is an attribute, too
        if not named or not (own is None or isinstance(own, cached_property)):
            raise ModelFileError(f"holds an attribute that no {kind} has, {name!r:.80}")
    check_attributes(kind, attributes)
    if "engine" in params:
        params = params | {"engine": _restored(params["engine"])}
    model = cls(**OLD_DEFAULTS[kind] | params)
    for name, value in attributes.items():
        if name == "best_estimator_":
            value = _built("FPCClassifier", value)
        setattr(model, name, value)
    return model

"""A folder of predictions, checked before the work that it can be written after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polysift.cli.console import WrongUsage


def check_folder(name: str, *, force: bool, inputs: Sequence[str | Path]) -> None:
    """Raise unless a folder can be written; what is read is never replaced, nor added to."""
    from tempfile import TemporaryFile

    from polysift.estimators.prediction_files import check_predictions

    folder = Path(name)
    try:
        if name:
            for given in map(str, inputs):
                _refuse(folder, given)
        check_predictions(name, overwrite=force)
        with TemporaryFile(dir=folder.parent):  # what fails here would fail after the work
            pass
    except PermissionError:
        raise WrongUsage(f"The folder {folder.parent} cannot be written to.") from None
    except (OSError, ValueError) as error:
        raise WrongUsage(str(error)) from error


def _refuse(folder: Path, given: str) -> None:
    """Raise if a folder holds what is read, or lies in a folder that is read."""
    from glob import glob

    from polysift.data.addresses import is_remote, local_path

    if is_remote(given):
        return
    here, given = folder.resolve(), local_path(given)
    for found in [given] if Path(given).exists() else glob(given, recursive=True):
        read = Path(found).resolve()
        if here == read or here in read.parents:
            raise ValueError(f"{folder} is read by this command; name another output.")
        if read.is_dir() and read in here.parents:
            raise ValueError(
                f"{folder} lies in the folder {found}, whose files are read: the next command "
                "would read predictions as rows. Name another output."
            )

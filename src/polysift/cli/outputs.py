"""What commands write, and the check before the work that it can be written after it.

A folder of predictions, checked before the work that it can be written after it.

The command as a report shows it: a report is passed on, and the command may hold secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from shlex import join
from typing import Annotated

from polysift.cli.console import WrongUsage
from polysift.cli.options import OUTPUT, option


@dataclass
class Output:
    """What is written and printed."""

    output: Annotated[
        Path, option(OUTPUT, "The model file.", "model.polysift", "--output", "-o")
    ] = Path("model.polysift")
    report: Annotated[Path | None, option(OUTPUT, "A page about it: report.html.")] = None
    force: Annotated[bool, option(OUTPUT, "Replace files that exist.", None, "--force", "-f")] = (
        False
    )
    json: Annotated[bool, option(OUTPUT, "Print the result as JSON.", None, "--json")] = False
    quiet: Annotated[
        bool, option(OUTPUT, "Print nothing but errors and warnings.", None, "--quiet", "-q")
    ] = False

    def check(self, *inputs: str | None) -> None:
        """Raise before the work if a file could not be written after it."""
        check_file(self.output, force=self.force, inputs=inputs)
        if self.report is not None:
            check_file(self.report, force=self.force, inputs=inputs)
            if self.report.resolve() == self.output.resolve():
                raise WrongUsage(f"--output and --report are the same file, {self.report}.")


def check_file(
    path: Path,
    *,
    force: bool,
    endings: tuple[str, ...] = (),
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Raise unless an output file can be written; what is read is never replaced."""
    from tempfile import TemporaryFile

    from polysift.runtime.outputs import check_output

    try:
        for name in inputs:
            if name is not None and _is_among(path, str(name)):
                raise ValueError(f"{path} is read by this command; name another output.")
        check_output(path, overwrite=force, endings=endings)
        with TemporaryFile(dir=path.parent):  # what fails here would fail after the work
            pass
    except FileExistsError:
        raise WrongUsage(f"{path} exists already. Replace it with --force.") from None
    except PermissionError:
        raise WrongUsage(f"The folder {path.parent} cannot be written to.") from None
    except OSError as error:
        raise WrongUsage(f"{path}: {error.strerror}." if error.strerror else str(error)) from error
    except ValueError as error:
        raise WrongUsage(str(error)) from error


def _is_among(path: Path, name: str) -> bool:
    """Return whether a file is there and one of those that a file, folder or pattern names."""
    from polysift.data.locations import is_remote, local_path

    if not path.exists() or is_remote(name):
        return False
    name = local_path(name)
    for found in [name] if Path(name).exists() else glob(name, recursive=True):
        inside = Path(found).is_dir() and Path(found).resolve() in path.resolve().parents
        if path.samefile(found) or (inside and path.suffix == ".parquet"):
            return True
    return False


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

    from polysift.data.locations import is_remote, local_path

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


def shown_command(words: Sequence[str]) -> str:
    """Return a command as text, with URIs without their secrets and options."""
    return join(["polysift", *map(_shown, words)])


def _shown(word: str) -> str:
    from polysift.data.locations import public_name

    name, mark, value = word.partition("=")
    if mark and name.startswith("-"):  # --validation=s3://...
        return f"{name}={public_name(value)}"
    return public_name(word)

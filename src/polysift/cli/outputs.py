"""The outputs of commands, checked before the work, so that they can be written after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from shlex import join
from typing import Annotated

from polysift.cli.console import WrongUsage
from polysift.cli.options import OUTPUT, option
from polysift.data.formats import format_by_ending


@dataclass
class Output:
    """The options of what is written and printed."""

    output: Annotated[
        Path, option(OUTPUT, "The model file.", "model.polysift", "--output", "-o")
    ] = Path("model.polysift")
    report: Annotated[Path | None, option(OUTPUT, "An HTML report, such as report.html.")] = None
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
    """Raise unless an output file can be written; an input is never replaced.

    Where an input is missing, nothing is: what reads it says so, which matters more.
    """
    from tempfile import TemporaryFile

    from polysift.runtime.outputs import check_output

    if any(map(_is_missing, inputs)):
        return
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
    """Return whether a file exists and is one of those that a path, folder or glob names."""
    if not path.exists():
        return False
    for found in _existing(name):
        inside = found.is_dir() and found.resolve() in path.resolve().parents
        if path.samefile(found) or (inside and format_by_ending(path.name) is not None):
            return True
    return False


def _is_missing(name: str | Path | None) -> bool:
    """Return whether an input is a plain path, or glob, of nothing."""
    return name is not None and "://" not in str(name) and not _existing(str(name))


def _existing(name: str) -> list[Path]:
    """Return the files and folders of this machine that a path, folder or glob names."""
    from polysift.data.locations import is_remote, local_path

    if is_remote(name):
        return []
    name = local_path(name)
    return list(map(Path, [name] if Path(name).exists() else glob(name, recursive=True)))


def check_folder(name: str, *, force: bool, inputs: Sequence[str | Path]) -> None:
    """Raise unless an output folder can be written; an input is never replaced, nor added to."""
    from tempfile import TemporaryFile

    from polysift.estimators.prediction_files import check_predictions

    if any(map(_is_missing, inputs)):
        return
    folder = Path(name)
    try:
        if name:
            for given in map(str, inputs):
                _refuse_input(folder, given)
        check_predictions(name, overwrite=force)
        with TemporaryFile(dir=folder.parent):  # what fails here would fail after the work
            pass
    except PermissionError:
        raise WrongUsage(f"The folder {folder.parent} cannot be written to.") from None
    except (OSError, ValueError) as error:
        raise WrongUsage(str(error)) from error


def _refuse_input(folder: Path, given: str) -> None:
    """Raise if a folder holds an input, or lies in a folder that is an input."""
    here = folder.resolve()
    for found in _existing(given):
        read = found.resolve()
        if here == read or here in read.parents:
            raise ValueError(f"{folder} is read by this command; name another output.")
        if read.is_dir() and read in here.parents:
            raise ValueError(
                f"{folder} lies in the folder {found}, whose files are read: the next command "
                "would read predictions as rows. Name another output."
            )


def shown_command(words: Sequence[str]) -> str:
    """Return a command as a report shows it: URIs without their secrets and options."""
    return join(["polysift", *map(_shown, words)])


def _shown(word: str) -> str:
    from polysift.data.locations import public_name

    name, mark, value = word.partition("=")
    if mark and name.startswith("-"):  # --validation=s3://...
        return f"{name}={public_name(value)}"
    return public_name(word)

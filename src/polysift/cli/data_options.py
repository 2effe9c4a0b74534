"""The options that say how data are read, and which columns hold labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polysift.cli.console import WrongUsage, busy, show_notes
from polysift.cli.option_types import column_types, delimiter, items
from polysift.cli.options import DATA, option
from polysift.data.formats import FORMATS

if TYPE_CHECKING:
    from polysift import DataSource

    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]  # what --format offers


@dataclass
class ReadingOptions:
    """How a file is read."""

    columns: Annotated[
        Any,
        option(
            DATA,
            "Features, by name or position: a,b,c.",
            "all others",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None
    drop: Annotated[
        Any, option(DATA, "Columns that are not features: id,day.", parser=items, metavar="a,b,...")
    ] = None
    category: Annotated[
        Any,
        option(
            DATA,
            "Columns that hold categories, whatever they look like.",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None
    numeric: Annotated[
        Any, option(DATA, "Columns that hold numbers.", parser=items, metavar="a,b,...")
    ] = None
    date: Annotated[
        Any, option(DATA, "Columns that hold dates.", parser=items, metavar="a,b,...")
    ] = None
    decimal_comma: Annotated[
        Any, option(DATA, "Columns in which 1,200 is 1.2.", parser=items, metavar="a,b,...")
    ] = None
    thousands_comma: Annotated[
        Any, option(DATA, "Columns in which 1,200 is 1200.", parser=items, metavar="a,b,...")
    ] = None
    day_first: Annotated[
        Any,
        option(DATA, "Columns in which 1/2/2024 is in February.", parser=items, metavar="a,b,..."),
    ] = None
    month_first: Annotated[
        Any,
        option(DATA, "Columns in which 1/2/2024 is in January.", parser=items, metavar="a,b,..."),
    ] = None
    missing: Annotated[
        Any,
        option(
            DATA,
            "Text: words that stand for a missing value: unknown,-999.",
            "NA, NaN, ?, ...",
            parser=items,
            metavar="a,b,...",
        ),
    ] = None
    format: Annotated[FormatName | None, option(DATA, "Format.", "by the file's ending")] = None
    header: Annotated[
        bool | None, option(DATA, "CSV: whether the first row names the columns.", "inferred")
    ] = None
    delimiter: Annotated[
        Any,
        option(
            DATA,
            "CSV: what separates fields: a character, or tab.",
            "inferred",
            parser=delimiter,
            metavar="CHARACTER",
        ),
    ] = None
    column_types: Annotated[
        Any,
        option(
            DATA,
            "CSV: types that are not inferred correctly: label=string.",
            parser=column_types,
            metavar="a=TYPE,...",
        ),
    ] = None
    n_features: Annotated[
        int | None, option(DATA, "libsvm: how many features there are.", "as in the file")
    ] = None

    def open(
        self,
        path: str,
        *,
        target: str | None = None,
        weight: str | None = None,
        like: Any = None,
        quiet: bool = True,
    ) -> DataSource:
        """Open a file.

        ``like`` is a model or a source, whose features are selected, where no option does that, and
        read in the same way.
        """
        from polysift.data.columns import Roles
        from polysift.data.formats import OpenOptions
        from polysift.data.locations import public_name
        from polysift.data.readers import has_names, open_with

        if not path:
            raise WrongUsage("The name of the data is empty.")
        if self.columns is not None and self.drop:
            raise WrongUsage(
                "--columns and --drop exclude each other: --columns lists the features."
            )
        columns, (names, known) = self.columns, _known_columns(like)
        if names is None or not has_names(path, self.format):
            known = {}
        elif columns is None and not self.drop:
            columns = names
        else:
            chosen = set(columns or ()) or {*names} - {*self.drop}
            known = {name: kind for name, kind in known.items() if name in chosen}
        options = OpenOptions(
            Roles(target, weight, columns, self.drop or ()),
            known | self._asked(),
            header=self.header,
            delimiter=self.delimiter,
            column_types=self.column_types,
            missing=tuple(self.missing or ()),
            n_features=self.n_features,
        )
        with busy(f"reading {public_name(path)}", quiet=quiet):
            source = open_with(path, options, format=self.format)
        if like is not None and not quiet:  # the notes on training data are facts of the model
            show_notes(source.notes)
        return source

    def _asked(self) -> dict[str, Any]:
        """Return the types of columns that options ask for."""
        from polysift.data.kinds import CATEGORY, DATE, NUMBER, WRITTEN_KINDS, asked_type

        given = {CATEGORY: self.category, NUMBER: self.numeric, DATE: self.date}
        given |= {kind: getattr(self, kind.replace(" ", "_")) for kind in WRITTEN_KINDS}
        asked: dict[str, Any] = {}
        for kind, columns in given.items():
            for column in columns or ():
                if column in asked:
                    raise WrongUsage(
                        f"Column {column!r} is named twice among --category, --numeric, --date, "
                        "--decimal-comma, --thousands-comma, --day-first and --month-first."
                    )
                asked[column] = asked_type(kind)
        return asked


def _known_columns(like: Any) -> tuple[list[str] | None, dict[Any, Any]]:
    """Return the names of the features of a model or a source, and what those in use hold."""
    from polysift.data.inputs import known_types
    from polysift.data.kinds import DROP, ColumnType
    from polysift.data.source import DataSource

    names = getattr(like, "names" if isinstance(like, DataSource) else "feature_names_in_", None)
    if names is None:
        return None, {}
    types = like.types if isinstance(like, DataSource) else known_types(like)
    named = zip(map(str, names), types or (), strict=False)
    return list(map(str, names)), {
        name: ColumnType(known.kind, True, known.reading)
        for name, known in named
        if known.kind != DROP
    }


@dataclass
class LabelOptions:
    """Which columns hold labels and weights."""

    target: Annotated[
        str | None,
        option(DATA, "Column of the labels, by name or position.", None, "--target", "-t"),
    ] = None
    weight: Annotated[str | None, option(DATA, "Column of the sample weights.")] = None

    def open(
        self,
        path: str,
        reading: ReadingOptions,
        *,
        quiet: bool,
        like: Any = None,
    ) -> DataSource:
        """Open a file that has labels; ``like`` as ``ReadingOptions.open`` takes it.

        A model knows the column of its labels, so that it need not be named again.
        """
        from polysift.data.locations import public_name
        from polysift.data.readers import has_names

        target = self.target
        if target is None and path and has_names(path, reading.format):
            target = getattr(like, "training_summary_", {}).get("label")
        source = reading.open(path, target=target, weight=self.weight, like=like, quiet=quiet)
        if not source.has_labels:
            known = like is None and source.names is not None
            have = f" Its columns are {', '.join(source.names or ())}." if known else ""
            raise WrongUsage(
                f"Name the column of the labels of {public_name(path)} with --target.{have}"
            )
        return source

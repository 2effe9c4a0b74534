"""What readers check and say: names of columns, damaged content, values that are not finite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from polysift.runtime.types import Block

if TYPE_CHECKING:
    from polysift.data.source import DataSource

SHOWN_NAMES = 20
"""How many names of columns a message lists."""


def find_name(name: str, names: Sequence[str], where: str) -> int:
    """Return the position of a column, or raise a ValueError with the closest names."""
    if name in names:
        return list(names).index(name)
    folded = {other.casefold(): other for other in names}
    near = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3)]
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(map(repr, names[:SHOWN_NAMES]))
    shown += ", ..." if len(names) > SHOWN_NAMES else ""
    raise ValueError(f"There is no column {name!r} in {where}.{hint} The columns are {shown}.")


@contextmanager
def decoding(what: str, remedy: str = "") -> Iterator[None]:
    """Raise an error that begins with ``what`` where the content of a file cannot be decoded.

    This is the boundary to the libraries that read files: whatever they raise inside, and that is
    all kinds of errors, is about the file, and nothing of this package is to be called there.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except MemoryError as error:
        raise MemoryError(
            f"{what}: it asks for more memory than there is ({error}). It is damaged, or the runs "
            "of rows that are decoded at once are too long."
        ) from error
    except Exception as error:
        raise ValueError(f"{what}: {str(error).strip() or type(error).__name__}{remedy}") from error


def check_finite(source: DataSource, first_row: int, block: Block) -> None:
    """Raise a ValueError that names row and column for an infinity, or a NaN in sparse rows.

    In dense rows NaN is a missing value.
    """
    sparse = sp.issparse(block)
    values = block.data if sparse else block
    if np.isfinite(values).all():
        return
    if sparse:
        entries = block.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        where, found = (entries.row[bad[0]], entries.col[bad[0]]), entries.data[bad[0]]
    else:
        infinite = np.argwhere(np.isinf(block))
        if not len(infinite):
            return
        where = tuple(infinite[0])
        found = block[where]
    what, remedy = "infinity", "Replace it, by NaN if the value is not known."
    if np.isnan(found):
        what, remedy = "NaN", "Missing values need dense rows: pass X.toarray(), or fill them in."
    raise ValueError(
        f"Input X contains {what} in {source.column(int(where[1]))}, first in "
        f"{source.place(first_row + int(where[0]))}. {remedy}"
    )

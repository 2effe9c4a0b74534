"""Data files: read whole through ``open_data``, as a fit does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzzers.cases import Case, Finding, require

PARAMETERS = ("delimiter", "column_types", "n_features", "target", "weight", "columns", "drop")
PARAMETERS += ("missing",)
"""An error names the file, or one of these. A file that asks for more memory than there is may
raise a MemoryError at once, which names it, too; memory that is taken is found in the child."""


@dataclass(frozen=True)
class Rows:
    """All rows of a file: features (dense, or CSR), labels and weights, and the features' types."""

    X: Any
    labels: Any
    weights: Any
    types: Any
    names: Any

    def kind(self, feature: int) -> str:
        """Return the kind of a feature; "written" for numbers that are not plain."""
        if self.types is None:
            return "number"
        known = self.types[feature]
        return "written" if known.kind == "number" and known.reading else known.kind


def read(case: Case, folder: Path) -> Rows | None:
    """Return the rows of a case's first file, or None where it is refused in the right way."""
    name = next(iter(case.files))
    try:
        rows = _rows(folder / name, case.options)
    except (MemoryError, OSError, ValueError) as error:
        text = str(error)
        named = name in text or any(word in text for word in PARAMETERS if word in case.options)
        require(named, f"the message does not name the file: {type(error).__name__}: {text}")
        require(not isinstance(error, UnicodeError), f"not a ValueError of this library: {error!r}")
        return None
    return rows


def _rows(path: Path, options: dict[str, Any]) -> Rows:
    import scipy.sparse as sp

    import polysift

    source = polysift.open_data(path, **options)
    source.check()
    X, labels, weights = [], [], []
    for (first, last), part in source.parts():
        found = source.rows(part)
        if found.shape != (last - first, source.n_features):
            raise Finding(f"rows {first} to {last} have the shape {found.shape}")
        require(found.dtype in (np.float32, np.float64), f"rows are of type {found.dtype}")
        X.append(found)
        if source.has_labels:
            labels.append(source.labels(part))
            require(
                labels[-1].shape == (last - first,), f"labels have the shape {labels[-1].shape}"
            )
        if source.has_weights:
            weights.append(source.weights(part))
    if not X:
        raise ValueError(f"{path} has no rows, which a fit refuses.")
    whole = sp.vstack(X).tocsr() if sp.issparse(X[0]) else np.concatenate(X)
    joined = [np.concatenate(parts) if parts else None for parts in (labels, weights)]
    require(whole.shape == (source.n_rows, source.n_features), f"all rows have shape {whole.shape}")
    return Rows(whole, *joined, source.types, source.names)

"""The inputs of an exported model: rows of numbers as one array, those of a table by column.

The columns of a table that the model uses are inputs of their own, of shape (rows, 1), as pipelines
of scikit-learn have them in ONNX: categories are text, numbers and dates are floats. Inside, rows
are float64 once more, with a category as the row of its table of coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polysift.data.kinds import DATE, NUMBER
from polysift.features.scalers import Scaler
from polysift.features.tables import TableScaler
from polysift.persistence.onnx_graph import DOUBLE, Graph, Value

ROWS = "rows"
"""The name of the number of rows."""

OUTPUTS = ("label", "score", "probabilities")
"""The names of the outputs."""

DOCS = {
    NUMBER: "A number, in the units of the training data; NaN if it is missing.",
    DATE: "A date, as seconds since 1970-01-01 in UTC; NaN if it is missing.",
}
CATEGORY_DOC = (
    'A category, as text; "" or a word such as "NA" or "nan" if it is missing. A number is "3", a '
    'truth value "True" or "False".'
)


def inputs_of(
    scaler: Scaler, d: int, names: Sequence[str] | None, input_type: np.dtype[Any]
) -> list[Value]:
    """Return the inputs of a model of d columns, some of which have names."""
    if not (isinstance(scaler, TableScaler) and scaler.by_column):
        return [Value("X", input_type, (ROWS, d), _rows_doc(names))]
    titles = input_names([""] * d if names is None else names, scaler.inputs)
    return [
        _column_input(title, scaler.kinds[j], input_type)
        for j, title in zip(scaler.inputs, titles, strict=True)
    ]


def input_names(names: Sequence[str], columns: Iterable[int]) -> list[str]:
    """Return the names of the inputs of columns: their own, each made unique.

    A column without a name is "x" and its number. A name that is taken, by an output or a column
    before it, is followed by the first number from 2 that makes it another one.
    """
    taken = set(OUTPUTS)
    found = []
    for j in columns:
        base = title = names[j] or f"x{j}"
        number = 1
        while title in taken:
            number += 1
            title = f"{base}_{number}"
        taken.add(title)
        found.append(title)
    return found


def read_rows(
    graph: Graph, scaler: Scaler, inputs: Sequence[str], input_type: np.dtype[Any]
) -> str:
    """Add the nodes that make float64 rows of inputs, as the scaler's ``to_onnx`` takes them."""
    if not (isinstance(scaler, TableScaler) and scaler.by_column):
        (x,) = inputs
        return _double(graph, x, input_type)
    levels = {found.column: found for found in scaler.levels}
    columns = []
    for j, name in zip(scaler.inputs, inputs, strict=True):
        if j in levels:
            columns.append(levels[j].words_to_onnx(graph, name))
        else:
            columns.append(_double(graph, name, _number_type(scaler.kinds[j], input_type)))
    return graph.op("Concat", *columns, axis=1)


def _column_input(name: str, kind: str, input_type: np.dtype[Any]) -> Value:
    dtype = _number_type(kind, input_type) if kind in DOCS else np.dtype(object)
    return Value(name, dtype, (ROWS, 1), DOCS.get(kind, CATEGORY_DOC))


def _number_type(kind: str, input_type: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(float) if kind == DATE else input_type  # float32 knows a date to two minutes


def _double(graph: Graph, x: str, dtype: np.dtype[Any]) -> str:
    return x if dtype == np.float64 else graph.op("Cast", x, to=DOUBLE)


def _rows_doc(names: Any) -> str:
    order = "in the order of training" if names is None else ", ".join(names)
    return f"The rows, in the units of the training data; their columns: {order}."

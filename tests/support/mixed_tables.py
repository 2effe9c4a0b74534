"""Tables of numbers, categories and dates, with missing values, and how ONNX graphs take them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polysift.data.kinds import word_of

CITIES = ["Bern", "Köln", "Łódź", "Bonn"]
STREETS = [f"street {k}" for k in range(30)]


def mixed_table(m: int = 300, seed: int = 0, *, dates: bool = True) -> tuple[Any, np.ndarray]:
    """Return a frame with columns of every kind, most of which lack values, and its labels.

    With ``max_levels=20`` the streets are an encoded category; "row" is an identifier, and "unit" a
    constant.
    """
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    age, size = rng.integers(18, 90, m).astype(float), rng.normal(size=m)
    city, street = rng.integers(len(CITIES), size=m), rng.integers(len(STREETS), size=m)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(m) < 0.1, np.nan, age),
            "Größe": size,
            "city": [None if rng.random() < 0.1 else CITIES[k] for k in city],
            "street": [STREETS[k] for k in street],
            "label": rng.random(m) < 0.3,
            "row": [f"{seed}-{k}" for k in range(m)],
            "unit": "cm",
        }
    )
    if dates:
        days = rng.integers(-9_000, 20_000, m) + rng.random(m)
        joined = pd.to_datetime((days * 86400).astype("int64"), unit="s").to_series(index=range(m))
        frame["joined"] = joined.where(rng.random(m) > 0.05)
        hours = pd.to_datetime(rng.integers(400_000, 450_000, m) * 3600, unit="s")
        frame["seen"] = hours.strftime("%Y-%m-%dT%H:%M:%SZ")
    score = (age - 50) / 20 + (city == 1) - (street % 5 == 0) + size * frame["label"].to_numpy()
    return frame, np.where(score + rng.normal(0, 0.5, m) > 0, "yes", "no")


def strange_rows(frame: Any) -> Any:
    """Return rows of a table with values that no training row has."""
    rows = frame.head(60).copy()
    rows.loc[rows.index[::4], "city"] = "Atlantis"
    rows.loc[rows.index[::5], "street"] = "N/A"
    rows.loc[rows.index[::7], "Größe"] = np.nan
    rows.loc[rows.index[::9], "age"] = 1e9
    return rows


def raw_tables() -> list[str]:
    """Return the names of the raw tables at hand."""
    folder = os.environ.get("POLYSIFT_DATA")
    return sorted(path.stem for path in Path(folder or "none").glob("tables/*.parquet"))


def load_table(name: str, m: int) -> tuple[Any, Any, Any]:
    """Return the rows and labels of a raw table to fit, at most m, and other rows."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.read_parquet(Path(os.environ["POLYSIFT_DATA"]) / "tables" / f"{name}.parquet")
    frame = frame.sample(frac=1.0, random_state=0)
    y = frame.pop(frame.columns[0])
    half = min(m, len(frame) // 2)
    return frame[:half], y[:half].to_numpy(), frame[half : 2 * half]


def onnx_inputs(proto: Any, frame: Any) -> dict[str, np.ndarray]:
    """Return the columns of a frame as the inputs of an exported graph."""
    props = {prop.key: json.loads(prop.value) for prop in proto.metadata_props}
    types = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    fed = {}
    for name, j in props["inputs"].items():
        kind, column = props["column_kinds"][j], frame.iloc[:, j]
        if "category" in kind:
            cells = column.astype(object)
            values = np.array([_text(value) for value in cells], dtype=object)
        elif kind == "date":
            values = _seconds(column)
        else:
            values = column.to_numpy(dtype=float, na_value=np.nan)
            values = values.astype(np.float32 if types[name] == 1 else np.float64)
        fed[name] = values.reshape(-1, 1)
    return fed


def _text(value: Any) -> str:
    return value if isinstance(value, str) else word_of(value) or ""


def _seconds(column: Any) -> np.ndarray:
    pd = pytest.importorskip("pandas")
    times = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy("datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)

"""Raw tables through every command, as Parquet and as CSV: the same model, and the same answers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

for package in ("typer", "pyarrow", "pandas", "onnxruntime"):
    pytest.importorskip(package)

import onnxruntime  # noqa: E402
import pandas as pd  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

import polysift  # noqa: E402
from mixed_tables import onnx_inputs, raw_tables  # noqa: E402
from polysift.cli.app import app  # noqa: E402

QUICK = "--degrees 1,2 --n-centers 40 --scalers minmax --solvers paper --cv 3 --seed 0"

ALWAYS = ("credit_data", "keel_splice")
"""The tables that are not left to the slow tests."""

TABLES = [
    pytest.param(name, marks=[] if name in ALWAYS else pytest.mark.slow) for name in raw_tables()
] or [pytest.param("none", marks=pytest.mark.skip(reason="needs POLYSIFT_DATA/tables"))]


def run(command: str) -> str:
    """Run a command, which must succeed; return what it prints."""
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, f"{command}: {result.stderr}"
    return result.stdout


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.filterwarnings("ignore:Values are missing in")
@pytest.mark.parametrize("name", TABLES)
def test_every_command(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(os.environ["POLYSIFT_DATA"]) / "tables" / f"{name}.parquet"
    table = pd.read_parquet(path).sample(frac=1, random_state=0)
    half = len(table) // 2
    for part, rows in (("train", table[:half]), ("test", table[half:])):
        rows.to_parquet(f"{part}.parquet", index=False)
        rows.to_csv(f"{part}.csv", index=False)
    for form in ("parquet", "csv"):
        run(f"fit train.{form} -t target --n-centers 40 --seed 0 -o {form}.polysift --quiet")
        run(f"tune train.{form} -t target {QUICK} -o tuned-{form}.polysift --quiet")
        run(f"predict {form}.polysift test.{form} -o {form}.out.parquet --drift --quiet")
        run(f"evaluate {form}.polysift test.{form} -t target")
        assert "column" in run(f"inspect {form}.polysift --explain --rows test.{form}")
        run(f"export {form}.polysift {form}.onnx")
    models = [polysift.load(f"{form}.polysift") for form in ("parquet", "csv")]
    np.testing.assert_array_equal(models[0].column_kinds_, models[1].column_kinds_)
    np.testing.assert_array_equal(models[0].centers_, models[1].centers_)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    tuned = [polysift.load(f"tuned-{form}.polysift").best_estimator_ for form in ("parquet", "csv")]
    np.testing.assert_array_equal(tuned[0].coef_, tuned[1].coef_)
    written = [pd.read_parquet(f"{form}.out.parquet") for form in ("parquet", "csv")]
    pd.testing.assert_frame_equal(*written)
    rows = table[half:].drop(columns="target")
    proto = polysift.to_onnx(models[0])
    fed = onnx_inputs(proto, rows) if len(proto.graph.input) > 1 else {"X": rows.to_numpy(float)}
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    labels, scores = session.run(["label", "score"], fed)
    np.testing.assert_allclose(scores, models[0].decision_function(rows), rtol=1e-6, atol=1e-8)
    assert (labels.astype(str) == models[0].predict(rows).astype(str)).mean() > 0.999

"""A model behind an address: ``uvicorn app:app``, with the model file in POLYSIFT_MODEL.

POST /predict takes {"rows": [{"age": 42, "city": "Bern"}, ...]} and returns a label, scores and
probabilities for each row; GET / says what the model wants. A column that a row lacks is missing.
"""

import os
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import polysift

MODEL = polysift.load(os.environ.get("POLYSIFT_MODEL", "model.polysift"))
CLF = getattr(MODEL, "best_estimator_", MODEL)
COLUMNS = [
    str(name)
    for name in getattr(CLF, "feature_names_in_", [f"x{j}" for j in range(CLF.n_features_in_)])
]
MAX_ROWS = 10_000

app = FastAPI(title="A polysift model")


class Rows(BaseModel):
    """Rows to predict, each with its columns by name."""

    rows: list[dict[str, Any]] = Field(min_length=1, max_length=MAX_ROWS)


@app.get("/")
def about() -> dict[str, Any]:
    """Say what the model takes and returns."""
    kinds = getattr(CLF, "column_kinds_", ["number"] * len(COLUMNS))
    return {
        "columns": dict(zip(COLUMNS, map(str, kinds), strict=True)),
        "classes": CLF.classes_.tolist(),
        "probabilities": hasattr(CLF, "predict_proba"),
        "trained on": CLF.training_summary_["rows"],
    }


@app.post("/predict")
def predict(given: Rows) -> dict[str, Any]:
    """Predict rows."""
    unknown = sorted({name for row in given.rows for name in row} - set(COLUMNS))
    if unknown:
        raise HTTPException(422, f"There is no column {unknown[0]!r}; the columns are {COLUMNS}.")
    frame = pd.DataFrame(given.rows, columns=COLUMNS)
    rows = frame if hasattr(CLF, "feature_names_in_") else frame.to_numpy(dtype=float)
    try:
        answer = {
            "label": CLF.predict(rows).tolist(),
            "score": CLF.decision_function(rows).tolist(),
        }
        if hasattr(CLF, "predict_proba"):
            answer["probabilities"] = CLF.predict_proba(rows).tolist()
    except (TypeError, ValueError) as error:  # they name the column, and what was expected
        raise HTTPException(422, str(error)) from None
    return answer

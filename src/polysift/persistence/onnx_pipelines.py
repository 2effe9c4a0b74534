"""Export of whole pipelines to ONNX, by skl2onnx, with inputs as ``to_onnx`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from polysift.data.kinds import DATE
from polysift.data.tables import columns_of
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.transformer import PolynomialKernelMap
from polysift.features.scalers import ML_DOMAIN
from polysift.features.tables import TableScaler, stored_scaler
from polysift.persistence.onnx_classifier import ML_OPSET, OPSET
from polysift.persistence.onnx_converters import load_skl2onnx, register_onnx_converters
from polysift.persistence.onnx_inputs import inputs_of


def pipeline_proto(model: Any, X: Any, input_type: np.dtype[Any]) -> Any:
    """Return a fitted pipeline, or a feature map, as an ONNX model.

    ``X`` are some rows, by which the types of columns are found; None for rows of numbers.
    """
    check_is_fitted(model)
    skl2onnx = load_skl2onnx()
    register_onnx_converters()
    last = model[-1] if hasattr(model, "steps") else model
    options = {id(last): {"zipmap": False}} if is_classifier(last) else None
    types = _input_types(skl2onnx.common.data_types, model, X, input_type)
    return skl2onnx.to_onnx(
        model,
        name=type(model).__name__,
        initial_types=types,
        target_opset={"": OPSET, ML_DOMAIN: ML_OPSET},
        options=options,
    )


def _input_types(
    types: Any, model: Any, X: Any, input_type: np.dtype[Any]
) -> list[tuple[str, Any]]:
    """Return the names and types of the inputs of a model.

    If its first step is a model of a table, they are those of that model; else a column each of the
    frame X, or one with all columns.
    """
    first = model[0] if hasattr(model, "steps") else model
    if hasattr(first, "best_estimator_"):
        first = first.best_estimator_
    numbers = types.FloatTensorType if input_type == np.float32 else types.DoubleTensorType
    scaler = stored_scaler(first.scaler_) if _is_ours(first) else None
    if isinstance(scaler, TableScaler) and scaler.by_column:
        names = getattr(first, "feature_names_in_", None)
        own = inputs_of(scaler, first.n_features_in_, names, input_type)
        return [(value.name, _tensor_type(types, value.dtype)([None, 1])) for value in own]
    if X is None:
        if hasattr(first, "transformers_"):
            raise ValueError(
                "to_onnx needs some rows to see what the columns of this pipeline are: pass a few "
                "of the training rows as X."
            )
        return [("X", numbers([None, model.n_features_in_]))]
    if not (hasattr(X, "columns") or hasattr(X, "schema")):
        X = np.asarray(X)
        if X.dtype.kind in "iuf" and X.ndim == 2:
            return [("X", numbers([None, X.shape[1]]))]
    return _column_types(types, model, X, numbers)


def _column_types(types: Any, model: Any, X: Any, numbers: Any) -> list[tuple[str, Any]]:
    """Return the inputs of a table: numbers of a type, dates as float64, all else as text."""
    columns, names = columns_of(X)
    known = getattr(model, "feature_names_in_", None)
    if known is not None and names is not None and names != list(known):
        raise ValueError(
            "X must have the columns of the training rows, in their order: "
            f"{', '.join(map(repr, known))}; got {', '.join(map(repr, names))}."
        )
    found = []
    for j, column in enumerate(columns):
        kind = numbers if column.kind != DATE else types.DoubleTensorType
        if column.codes is not None:
            kind = types.StringTensorType
        found.append((f"x{j}" if names is None else names[j], kind([None, 1])))
    return found


def _is_ours(step: Any) -> bool:
    return isinstance(step, FPCClassifier | PolynomialKernelMap)


def _tensor_type(types: Any, dtype: np.dtype[Any]) -> Any:
    kinds = {"O": "String", "f": "Float" if dtype.itemsize == 4 else "Double"}
    return getattr(types, f"{kinds[dtype.kind]}TensorType")

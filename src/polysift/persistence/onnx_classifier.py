"""The ONNX graph of a classifier, in blocks of rows, and what follows its scores in any graph."""

from __future__ import annotations

import json
from numbers import Number
from typing import Any

import numpy as np

from polysift import __version__
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import feature_map_of, stored_calibrator
from polysift.features.scalers import ML_DOMAIN
from polysift.features.tables import TableScaler, stored_scaler
from polysift.persistence import onnx_graph
from polysift.persistence.onnx_graph import Graph, Value
from polysift.persistence.onnx_inputs import ROWS, inputs_of, read_rows

OPSET, ML_OPSET = 17, 3
"""The versions of the operators, and of those on text; onnxruntime knows them since 1.12 (2022)."""

IR_VERSION = 8
"""The version of the file format that came with it."""


def classifier_proto(onnx: Any, clf: FPCClassifier, input_type: np.dtype[Any]) -> Any:
    """Return a fitted classifier as a model, whose numbers are of a type."""
    n_features, classes = clf.n_features_in_, plain_classes(clf.classes_)
    names = getattr(clf, "feature_names_in_", None)
    scaler = stored_scaler(clf.scaler_)
    inputs = inputs_of(scaler, n_features, None if names is None else list(names), input_type)
    graph = Graph(value.name for value in inputs)
    outputs = _add_outputs(graph, clf, classes, inputs, input_type)
    domains = {"": OPSET}
    if isinstance(scaler, TableScaler) and scaler.levels:
        domains[ML_DOMAIN] = ML_OPSET
    model = onnx.helper.make_model(
        graph.to_proto(onnx, "FPCClassifier", inputs, outputs),
        producer_name="polysift",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid(*domain) for domain in domains.items()],
        doc_string=(
            f"Fast polynomial kernel classification of degree {clf.degree_} with "
            f"{clf.n_centers_} centers, {n_features} features and {len(classes)} classes."
        ),
    )
    about = {"classes": classes.tolist(), "degree": clf.degree_, "n_centers": clf.n_centers_}
    if names is not None:
        about = {"feature_names": list(names), **about}
    if isinstance(scaler, TableScaler) and scaler.by_column:
        about["column_kinds"] = scaler.kinds
        titles = (value.name for value in inputs)
        about["inputs"] = dict(zip(titles, scaler.inputs, strict=True))
    onnx.helper.set_model_props(model, {name: json.dumps(item) for name, item in about.items()})
    return model


def _add_outputs(
    graph: Graph,
    clf: FPCClassifier,
    classes: np.ndarray[Any, Any],
    inputs: list[Value],
    input_type: np.dtype[Any],
) -> list[Value]:
    """Add all that leads from the inputs to the outputs; returns them."""
    feature_map = feature_map_of(clf)

    def add_scores(block: Graph, parts: list[str]) -> str:
        x = read_rows(block, feature_map.scaler, parts, input_type)
        return onnx_graph.scored(block, onnx_graph.featured(block, x, feature_map), clf.coef_)

    two, per_class = len(classes) == 2, (ROWS, len(classes))
    n, D = clf.centers_.shape
    alive = 2 if feature_map.kernel.ranks else 1  # the larger ranks lie beside the base
    length = onnx_graph.block_rows(alive * n, D, len(inputs))
    names = [value.name for value in inputs]
    scores = graph.in_blocks(names, length, add_scores, "column" if two else "score")
    found = decided(graph, clf, classes, scores)
    which = f"The score of class {classes[1]!s}." if two else "One score per class."
    outputs = [
        Value("label", classes.dtype, (ROWS,), "The class of each row."),
        Value("score", float, (ROWS,) if two else per_class, which),
        Value("probabilities", float, per_class, "The probability of each class."),
    ]
    return outputs[: len(found)]


def decided(
    graph: Graph, clf: FPCClassifier, classes: np.ndarray[Any, Any], scores: str
) -> list[str]:
    """Add label, score and, if there are any, probabilities to scores (rows, K); returns them."""
    score = scores
    if len(classes) == 2:
        axis = graph.constant("axis", np.array([1]))
        score = graph.op("Squeeze", scores, axis, name="score")
    thresholds = getattr(clf, "decision_thresholds_", None)
    outputs = [onnx_graph.labelled(graph, score, classes, thresholds), score]
    calibrator = stored_calibrator(clf)
    if calibrator is not None:
        outputs.append(onnx_graph.probabilities(graph, scores, calibrator, len(classes)))
    return outputs


def plain_classes(classes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return classes in one of the types that a label can have, or raise."""
    plain = classes
    known = all(isinstance(item, str | bool | np.bool_ | Number) for item in classes.tolist())
    if classes.dtype.kind in "OT" and known:  # objects, or numpy's strings of any length
        plain = np.array(classes.tolist())
    kind = plain.dtype.kind
    if kind in "bU":
        return plain if kind == "b" else plain.astype(object)  # how onnx takes text
    if kind in "iu" and plain.max() <= np.iinfo(np.int64).max:
        return plain.astype(np.int64)
    if kind == "f":
        return plain.astype(np.float32 if plain.dtype.itemsize <= 4 else np.float64)
    item = type(classes[0]).__name__ if classes.dtype.kind == "O" else classes.dtype
    raise ValueError(
        f"Classes of type {item}, such as {classes[-1]!r}, cannot be exported: a label in ONNX is "
        "an integer of 64 bits, a float, text or a boolean. Fit with labels of such a type."
    )

"""Export of fitted classifiers to ONNX, for prediction without Python or scikit-learn."""

from __future__ import annotations

import json
from numbers import Number
from typing import Any

import numpy as np

from polysift import __version__
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import feature_map_of, stored_calibrator
from polysift.estimators.search import classifier_of
from polysift.features.scalers import ML_DOMAIN
from polysift.features.tables import TableScaler, stored_scaler
from polysift.persistence import onnx_graph
from polysift.persistence.onnx_graph import Graph, Value, load_onnx
from polysift.persistence.onnx_inputs import ROWS, inputs_of, read_rows
from polysift.runtime.outputs import check_output, replacing

INPUT_TYPES = ("float32", "float64")

OPSET, ML_OPSET = 17, 3
"""The versions of the operators, and of those on text; onnxruntime knows them since 1.12 (2022)."""

IR_VERSION = 8
"""The version of the file format that came with it."""


def to_onnx(
    model: Any, path: Any = None, *, input_type: str = "float64", overwrite: bool = False
) -> Any:
    """Return a fitted classifier as an ONNX model, and write it to a file if a path is given.

    Fitted to numbers, the graph has one input, "X" of shape (rows, d), with any number of rows; to
    a table, one input of shape (rows, 1) for each column that it uses, by name (see Notes). Its
    outputs are "label" of shape (rows,), as ``predict`` gives it; "score", as
    ``decision_function``; and, for a classifier with ``calibration`` or the logistic loss,
    "probabilities", as ``predict_proba``.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted classifier; of a search, its ``best_estimator_`` is exported.
    path : path, default=None
        The file to write. It appears when it is complete; on failure nothing is left.
    input_type : {"float64", "float32"}, default="float64"
        The type of X, or of a table's numbers. Inside, all is computed in float64: float32 rows are
        converted first, and get the scores that the classifier gives the same rows.
    overwrite : bool, default=False
        Whether to replace a file that exists.

    Returns
    -------
    onnx.ModelProto
        The model.

    Notes
    -----
    Only operators of the standard domain are used (opset 17), and for categories one of ai.onnx.ml
    (LabelEncoder), so any ONNX runtime that implements them for doubles can run the model. Scores
    differ from ``decision_function`` by the rounding of two matrix products, and those of dates by
    that of sines. A rounding error of a score is about 1e-16 times ``sum_j |u_j| (1 + x.c_j)^s``,
    which coefficients that cancel make much larger than the score. Isotonic probabilities are steep
    in parts, where the rounding of a score shows more.

    Classes that are integers come out as int64, text as string, booleans as bool, float32 as
    float32, and other floats as float64. Classes of other types cannot be exported.

    The inputs of a table are those of ``column_kinds_`` that are not left out:

    - a number of ``input_type``, NaN if it is missing;
    - a date as float64, whatever ``input_type`` is: seconds since 1970-01-01 in UTC, NaN if it is
      missing;
    - a category as text, "" or another word for a missing value ("NA", "nan", "null", "?", ...) if
      it is missing. A number is written as "3" or "2.5", a truth value as "True" or "False", in
      capitals or not. A level that no training row had counts as unknown, as in ``predict``. Unlike
      there, white space around a word for a missing value is not taken off.

    Their names are those of the columns; "x0", "x1", ... by position where these have none. A name
    that is taken, by an output or an earlier column, is followed by a number: a column "label" is
    the input "label_2". ``metadata_props`` has the column of each input, as "inputs".

    Unlike the classifier the graph cannot refuse rows that are not finite. A missing value counts
    as in the classifier, but without a warning; a scaler clips infinity as any value outside its
    range.
    Rows are computed in blocks (an ONNX Loop), so that the features of a call with many rows do not
    take more memory than those of one with few: some 16 MiB for each step.

    The same model gives the same bytes. ``metadata_props`` holds, as JSON, "feature_names" (where
    the training data had names), "classes", "degree" and "n_centers", and for a table
    "column_kinds" and "inputs".

    Examples
    --------
    >>> import onnxruntime
    >>> from polysift import FPCClassifier, to_onnx
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(2_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(degree=5, random_state=0).fit(X, y)
    >>> session = onnxruntime.InferenceSession(to_onnx(clf).SerializeToString())
    >>> labels, scores = session.run(["label", "score"], {"X": X})
    >>> bool((labels == clf.predict(X)).all())
    True
    >>> bool(abs(scores - clf.decision_function(X)).max() < 1e-10)
    True
    """
    clf = classifier_of("to_onnx exports", model)
    if input_type not in INPUT_TYPES:
        raise ValueError(f'input_type must be "float64" or "float32"; got {input_type!r}.')
    output = None if path is None else check_output(path, overwrite=overwrite)
    onnx = load_onnx()
    proto = _model_proto(onnx, clf, np.dtype(input_type))
    if output is not None:
        with replacing(output) as file:
            file.write(proto.SerializeToString(deterministic=True))
    return proto


def _model_proto(onnx: Any, clf: FPCClassifier, input_type: np.dtype[Any]) -> Any:
    n_features, classes = clf.n_features_in_, _plain_classes(clf.classes_)
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
    scaler = feature_map.scaler

    def add_scores(block: Graph, parts: list[str]) -> str:
        x = read_rows(block, scaler, parts, input_type)
        z = scaler.to_onnx(block, x)
        if not scaler.places_missing:
            z = onnx_graph.filled(block, x, z, feature_map.fill)
        return onnx_graph.scored(block, z, feature_map, clf.coef_)

    two, per_class = len(classes) == 2, (ROWS, len(classes))
    n, D = clf.centers_.shape
    alive = 2 if feature_map.kernel.ranks else 1  # the larger ranks lie beside the base
    length = onnx_graph.block_rows(alive * n, D, len(inputs))
    names = [value.name for value in inputs]
    scores = graph.in_blocks(names, length, add_scores, "column" if two else "score")
    if two:
        graph.op("Squeeze", scores, graph.constant("axis", np.array([1])), name="score")
    onnx_graph.labelled(graph, "score", classes, getattr(clf, "decision_thresholds_", None))
    which = f"The score of class {classes[1]!s}." if two else "One score per class."
    outputs = [
        Value("label", classes.dtype, (ROWS,), "The class of each row."),
        Value("score", float, (ROWS,) if two else per_class, which),
    ]
    calibrator = stored_calibrator(clf)
    if calibrator is not None:
        onnx_graph.probabilities(graph, scores, calibrator, len(classes))
        outputs.append(Value("probabilities", float, per_class, "The probability of each class."))
    return outputs


def _plain_classes(classes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
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

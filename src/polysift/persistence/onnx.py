"""Export of fitted classifiers to ONNX, for prediction without Python or scikit-learn."""

from __future__ import annotations

import json
from numbers import Number
from typing import Any

import numpy as np

from polysift import __version__
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.search import classifier_of
from polysift.features.scalers import scaler_from_dict
from polysift.persistence import onnx_graph as blocks
from polysift.persistence.onnx_graph import Graph, Value, load_onnx
from polysift.runtime.outputs import check_output, replacing
from polysift.training.calibration import calibrator_from_dict

INPUT_TYPES = ("float32", "float64")

OPSET = 17
"""The version of the operators; onnxruntime knows it since 1.12 (2022)."""

IR_VERSION = 8
"""The version of the file format that came with it."""

ROWS = "rows"


def to_onnx(
    model: Any, path: Any = None, *, input_type: str = "float64", overwrite: bool = False
) -> Any:
    """Return a fitted classifier as an ONNX model, and write it to a file if a path is given.

    The graph has one input, "X" of shape (rows, d), with any number of rows. Its outputs are
    "label" of shape (rows,), as ``predict`` gives it; "score", as ``decision_function``; and, for a
    classifier with ``calibration``, "probabilities", as ``predict_proba``.

    Parameters
    ----------
    model : FPCClassifier or FPCClassifierCV
        The fitted classifier; of a search, its ``best_estimator_`` is exported.
    path : path, default=None
        The file to write. It appears when it is complete; on failure nothing is left.
    input_type : {"float64", "float32"}, default="float64"
        The type of X. Inside, all is computed in float64: float32 rows are converted first, and
        get the scores that the classifier gives the same rows.
    overwrite : bool, default=False
        Whether to replace a file that exists.

    Returns
    -------
    onnx.ModelProto
        The model.

    Notes
    -----
    Only operators of the standard domain are used (opset 17), so any ONNX runtime that implements
    them for doubles can run the model. Scores differ from ``decision_function`` by the rounding of
    two matrix products. A rounding error of a score is about 1e-16 times
    ``sum_j |u_j| (1 + x.c_j)^s``, which coefficients that cancel make much larger than the score.
    Isotonic probabilities are steep in parts, where the rounding of a score shows more.

    Classes that are integers come out as int64, text as string, booleans as bool, float32 as
    float32, and other floats as float64. Classes of other types cannot be exported.

    Unlike the classifier the graph cannot refuse rows that are not finite. NaN gives a score of
    NaN and a label without meaning; a scaler clips infinity as any value outside its range.
    The features of all rows of a call are in memory at once, so pass at most some 10,000 rows.

    The same model gives the same bytes. ``metadata_props`` holds, as JSON, "feature_names" (where
    the training data had names), "classes", "degree" and "n_centers".

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
    n_features, classes = clf.centers_.shape[1], _plain_classes(clf.classes_)
    names = getattr(clf, "feature_names_in_", None)
    rows = Value("X", input_type, (ROWS, n_features), _input_doc(names))
    graph = Graph()
    outputs = _add_outputs(graph, clf, classes, input_type)
    model = onnx.helper.make_model(
        graph.to_proto(onnx, "FPCClassifier", [rows], outputs),
        producer_name="polysift",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        doc_string=(
            f"Fast polynomial kernel classification of degree {clf.degree_} with "
            f"{clf.n_centers_} centers, {n_features} features and {len(classes)} classes."
        ),
    )
    about = {"classes": classes.tolist(), "degree": clf.degree_, "n_centers": clf.n_centers_}
    if names is not None:
        about = {"feature_names": list(names), **about}
    onnx.helper.set_model_props(model, {name: json.dumps(item) for name, item in about.items()})
    return model


def _input_doc(names: Any) -> str:
    order = "in the order of training" if names is None else ", ".join(names)
    return f"The rows, in the units of the training data; their columns: {order}."


def _add_outputs(
    graph: Graph, clf: FPCClassifier, classes: np.ndarray[Any, Any], input_type: np.dtype[Any]
) -> list[Value]:
    """Add all that leads from X to the outputs; returns them."""
    x = "X" if input_type == np.float64 else graph.op("Cast", "X", to=blocks.DOUBLE)
    x = scaler_from_dict(clf.scaler_).to_onnx(graph, x)
    two, per_class = len(classes) == 2, (ROWS, len(classes))
    kernel = clf.centers_, clf.degree_, clf.coef_
    scores = blocks.scored(graph, x, *kernel, name="column" if two else "score")
    if two:
        graph.op("Squeeze", scores, graph.constant("axis", np.array([1])), name="score")
    blocks.labelled(graph, "score", classes)
    which = f"The score of class {classes[1]!s}." if two else "One score per class."
    outputs = [
        Value("label", classes.dtype, (ROWS,), "The class of each row."),
        Value("score", float, (ROWS,) if two else per_class, which),
    ]
    if clf.calibration is not None and hasattr(clf, "calibrator_"):
        calibrator = calibrator_from_dict(clf.calibrator_)
        blocks.probabilities(graph, scores, calibrator, len(classes))
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

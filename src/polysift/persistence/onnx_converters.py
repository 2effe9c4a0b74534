"""Converters of our estimators for skl2onnx, so that pipelines with them become ONNX models.

skl2onnx visits a model three times: a parser declares the outputs of each step, a shape calculator
gives them types, and a converter adds the nodes. These are those of ``onnx_classifier`` without its
loop over blocks of rows: skl2onnx orders nodes by their inputs, and does not look into loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.fitted import feature_map_of, stored_calibrator
from polysift.estimators.search import FPCClassifierCV, classifier_of
from polysift.estimators.transformer import PolynomialKernelMap
from polysift.features.tables import TableScaler
from polysift.persistence import onnx_graph
from polysift.persistence.onnx_classifier import OPSET, decided, plain_classes
from polysift.persistence.onnx_graph import DOUBLE, Graph
from polysift.persistence.onnx_inputs import OUTPUTS, input_names

FLOAT, STRING = 1, 8
"""How a Cast names its type, beside those of ``onnx_graph``."""

LABEL_ENCODER = 2
"""The version of the operator that reads words; the next one has other attributes."""

OPTIONS = {"zipmap": [True, False, "columns"]}
"""What skl2onnx sets for each classifier; probabilities are an array in any case."""


def register_onnx_converters() -> None:
    """Let skl2onnx convert our estimators, alone and in pipelines.

    ``to_onnx`` does it by itself; it is needed once in a process before ``skl2onnx.to_onnx`` or
    ``skl2onnx.convert_sklearn`` are called. A classifier has the outputs "label", "score" and, if
    it has any, "probabilities", an array whatever the option "zipmap" says; a
    ``PolynomialKernelMap`` has its features, of the float type of its input.

    A model of a table takes the inputs of ``to_onnx``, by their names, or all columns in order,
    of which an input may have several: text for categories (or integers and truth values, where
    they were so in training), seconds since 1970 for dates.

    Examples
    --------
    >>> import skl2onnx
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from polysift import FPCClassifier, register_onnx_converters
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(2_000, noise=0.1, random_state=0)
    >>> pipe = make_pipeline(PCA(2), FPCClassifier(degree=3, random_state=0)).fit(X, y)
    >>> register_onnx_converters()
    >>> proto = skl2onnx.to_onnx(pipe, X[:1])
    >>> [output.name for output in proto.graph.output][:2]
    ['label', 'score']
    """
    update = load_skl2onnx().update_registered_converter
    for kind in (FPCClassifier, FPCClassifierCV):
        update(
            kind,
            f"Polysift{kind.__name__}",
            _calculate_classifier,
            _convert_classifier,
            parser=_parse_classifier,
            options=OPTIONS,
        )
    update(
        PolynomialKernelMap,
        "PolysiftPolynomialKernelMap",
        _calculate_map,
        _convert_map,
        parser=_parse_map,
    )


def load_skl2onnx() -> Any:
    """Return the module skl2onnx, or say how to install it."""
    try:
        return import_module("skl2onnx")
    except ImportError as error:
        raise ImportError(
            "Pipelines are exported by skl2onnx. Install it with: pip install 'polysift[onnx]'"
        ) from error


def _types() -> Any:
    return import_module("skl2onnx.common.data_types")


# The four parameters of a parser are skl2onnx's.
def _parse_classifier(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of a classifier."""
    clf = classifier_of("skl2onnx converts", model)
    count = 2 if stored_calibrator(clf) is None else 3
    return _declared(scope, model, inputs, OUTPUTS[:count])


def _parse_map(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the features."""
    return _declared(scope, model, inputs, ["features"])


def _declared(scope: Any, model: Any, inputs: Any, outputs: Sequence[str]) -> Any:
    """Declare an operator with outputs, whose types are still open."""
    operator = scope.declare_local_operator(f"Polysift{type(model).__name__}", model)
    operator.inputs = inputs
    for name in outputs:
        operator.outputs.append(scope.declare_local_variable(name, _types().DoubleTensorType()))
    return operator.outputs


def _calculate_classifier(operator: Any) -> None:
    """Set the types of label, score and probabilities."""
    types = _types()
    classes = plain_classes(classifier_of("skl2onnx converts", operator.raw_operator).classes_)
    kinds = {"i": "Int64", "b": "Boolean", "O": "String", "f": "Double"}
    kind = "Float" if classes.dtype == np.float32 else kinds[classes.dtype.kind]
    for role, output in _roles(operator):
        if role == "label":
            output.type = getattr(types, f"{kind}TensorType")([None])
        else:
            shape: list[int | None] = [None]
            if role != "score" or len(classes) != 2:
                shape.append(len(classes))
            output.type = types.DoubleTensorType(shape)


def _calculate_map(operator: Any) -> None:
    """Set the type of the features: float32 if all inputs are, else float64."""
    types = _types()
    single = all(isinstance(value.type, types.FloatTensorType) for value in operator.inputs)
    kind = types.FloatTensorType if single else types.DoubleTensorType
    operator.outputs[0].type = kind([None, operator.raw_operator.n_centers_])


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a classifier."""
    clf = classifier_of("skl2onnx converts", operator.raw_operator)
    graph = _graph(scope, operator, container)
    features = _featured(graph, clf, operator)
    scores = onnx_graph.scored(graph, features, clf.coef_)
    found = decided(graph, clf, plain_classes(clf.classes_), scores)
    made = dict(zip(OUTPUTS, found, strict=False))
    roles = _roles(operator)
    if any(role not in made for role, _ in roles):
        raise ValueError(
            "A model around this FPCClassifier needs its probabilities, of which it has none. Set "
            'calibration="sigmoid" and fit.'
        )
    _add(container, graph, [(made[role], output.full_name) for role, output in roles])


def _roles(operator: Any) -> list[tuple[str, Any]]:
    """Return the outputs of a classifier with what they are.

    A model around it, such as a voting, declares a label and probabilities, of other names.
    """
    names = [output.raw_name for output in operator.outputs]
    own = set(names) <= set(OUTPUTS)
    return list(zip(names if own else ("label", "probabilities"), operator.outputs, strict=True))


def _convert_map(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a feature map."""
    graph = _graph(scope, operator, container)
    features = _featured(graph, operator.raw_operator, operator)
    (output,) = operator.outputs
    if isinstance(output.type, _types().FloatTensorType):
        features = graph.op("Cast", features, to=FLOAT)
    _add(container, graph, [(features, output.full_name)])


def _graph(scope: Any, operator: Any, container: Any) -> Graph:
    """Return an empty graph whose names are free in that of the pipeline."""
    if container.target_opset_onnx < OPSET:
        raise ValueError(
            f"target_opset must be at least {OPSET} for {type(operator.raw_operator).__name__}; "
            f"got {container.target_opset_onnx}."
        )
    prefix = scope.get_unique_operator_name("polysift")
    return Graph(prefix=f"{prefix}_")


def _featured(graph: Graph, model: Any, operator: Any) -> str:
    """Add what leads from the inputs of an operator to the features of a model."""
    feature_map = feature_map_of(model)
    scaler, inputs = feature_map.scaler, operator.inputs
    if isinstance(scaler, TableScaler) and scaler.by_column:
        x = _table_rows(graph, model, scaler, inputs)
    else:
        _check_width(model, sum(_width(value, inputs, model) for value in inputs))
        parts = [_numbers(graph, value, value.full_name, model, 0) for value in inputs]
        x = parts[0] if len(parts) == 1 else graph.op("Concat", *parts, axis=1)
    return onnx_graph.featured(graph, x, feature_map)


def _table_rows(graph: Graph, model: Any, scaler: TableScaler, inputs: Sequence[Any]) -> str:
    """Add float64 rows of the columns that a model of a table uses."""
    levels = {found.column: found for found in scaler.levels}
    made = []
    for j, (value, own) in _columns(graph, model, scaler, inputs).items():
        if j in levels:
            made.append(levels[j].words_to_onnx(graph, _words(graph, value, own, model, j)))
        else:
            made.append(_numbers(graph, value, own, model, j))
    return graph.op("Concat", *made, axis=1)


def _columns(
    graph: Graph, model: Any, scaler: TableScaler, inputs: Sequence[Any]
) -> dict[int, tuple[Any, str]]:
    """Return, for each column that is used, its input and the name of its values, (rows, 1).

    Inputs have the names of these columns, or are all columns in order, some of them together.
    """
    names = getattr(model, "feature_names_in_", None)
    titles = input_names(names if names is not None else [""] * len(scaler.kinds), scaler.inputs)
    named = {value.raw_name: value for value in inputs}
    if set(titles) <= set(named):
        pairs = zip(scaler.inputs, titles, strict=True)
        return {j: (named[title], named[title].full_name) for j, title in pairs}
    widths = [_width(value, inputs, model) for value in inputs]
    _check_width(model, sum(widths))
    every = [
        (value, width, at)
        for value, width in zip(inputs, widths, strict=True)
        for at in range(width)
    ]
    found = {}
    for j in scaler.inputs:
        value, width, at = every[j]
        own = value.full_name
        if width > 1:
            own = graph.op("Gather", own, graph.constant("column", np.array([at])), axis=1)
        found[j] = value, own
    return found


def _check_width(model: Any, width: int) -> None:
    if width != model.n_features_in_:
        raise ValueError(
            f"{type(model).__name__} was fitted to {model.n_features_in_} columns, but its inputs "
            f"have {width}."
        )


def _width(value: Any, inputs: Sequence[Any], model: Any) -> int:
    """Return the number of columns of an input; that of a single one may not be known."""
    width = value.type.shape[1] if len(value.type.shape) > 1 else None
    if isinstance(width, int) and width > 0:
        return width
    return int(model.n_features_in_) if len(inputs) == 1 else 1


def _numbers(graph: Graph, value: Any, own: str, model: Any, j: int) -> str:
    """Add values as float64."""
    types = _types()
    if isinstance(value.type, types.StringTensorType):
        raise TypeError(
            f"{_column(model, j)} is text in the inputs, but holds numbers or dates: declare the "
            "input as DoubleTensorType (a date in seconds since 1970-01-01)."
        )
    return own if isinstance(value.type, types.DoubleTensorType) else _cast(graph, own, DOUBLE)


def _words(graph: Graph, value: Any, own: str, model: Any, j: int) -> str:
    """Add values as text."""
    types = _types()
    if isinstance(value.type, types.StringTensorType):
        return own
    if isinstance(value.type, types.BooleanTensorType):
        words = (graph.constant("word", np.array([word], object)) for word in ("True", "False"))
        return graph.op("Where", own, *words)
    if isinstance(value.type, types.Int64TensorType | types.Int32TensorType):
        return _cast(graph, own, STRING)
    raise TypeError(
        f"{_column(model, j)} is a category, but of floats in the inputs: declare the input as "
        "StringTensorType."
    )


def _cast(graph: Graph, own: str, to: int) -> str:
    return graph.op("Cast", own, to=to)


def _column(model: Any, j: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return f"Column {j}" if names is None else f"Column {names[j]!r}"


def _add(container: Any, graph: Graph, outputs: Sequence[tuple[str, str]]) -> None:
    """Add a graph to that of the pipeline; its results get the names of the outputs."""
    onnx = onnx_graph.load_onnx()
    for name, array in graph.constants.items():
        container.initializers.append(onnx.numpy_helper.from_array(array, name))
    for kind, inputs, result, given in graph.nodes:
        attributes = {key: value for key, value in given.items() if key != "domain"}
        domain = given.get("domain", "")
        container.add_node(
            kind,
            list(inputs),
            [result],
            op_domain=domain,
            op_version=LABEL_ENCODER if domain else None,
            name=result,
            **attributes,
        )
    for result, name in outputs:
        container.add_node("Identity", [result], [name], name=f"{result}_output")

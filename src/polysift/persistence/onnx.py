"""Export of fitted classifiers and pipelines to ONNX, for prediction without Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from polysift.estimators.search import classifier_of
from polysift.estimators.transformer import PolynomialKernelMap
from polysift.persistence.onnx_classifier import classifier_proto
from polysift.persistence.onnx_graph import load_onnx
from polysift.persistence.onnx_pipelines import pipeline_proto
from polysift.runtime.outputs import check_output, replacing

INPUT_TYPES = ("float32", "float64")


def to_onnx(
    model: Any,
    path: Any = None,
    *,
    input_type: str = "float64",
    overwrite: bool = False,
    X: Any = None,
) -> Any:
    """Return a fitted model as an ONNX model, and write it to a file if a path is given.

    Fitted to numbers, the graph has one input, "X" of shape (rows, d), with any number of rows; to
    a table, one input of shape (rows, 1) for each column that it uses, by name (see Notes). Its
    outputs are "label" of shape (rows,), as ``predict`` gives it; "score", as
    ``decision_function``; and, for a classifier with ``calibration`` or the logistic loss,
    "probabilities", as ``predict_proba``.

    Parameters
    ----------
    model : FPCClassifier, FPCClassifierCV, PolynomialKernelMap or Pipeline
        The fitted classifier; of a search, its ``best_estimator_`` is exported. A pipeline of
        scikit-learn's steps and ours, and a feature map, are converted by skl2onnx (see Notes).
    path : path, default=None
        The file to write. It appears when it is complete; on failure nothing is left.
    input_type : {"float64", "float32"}, default="float64"
        The type of X, or of a table's numbers. Inside, all is computed in float64: float32 rows are
        converted first, and get the scores that the classifier gives the same rows.
    overwrite : bool, default=False
        Whether to replace a file that exists.
    X : array-like or frame, default=None
        Of a pipeline: some of its rows, by which the inputs are named and typed, where its first
        step is one of scikit-learn's that takes columns apart.

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

    A pipeline whose first step is a model of a table has the inputs of that model. Any other has
    one input "X", or with a frame as X one for each of its columns, in their order and with their
    names: numbers of ``input_type``, seconds for dates, text for all else. Its
    outputs are those of its last step: of ours as above (features, of a ``PolynomialKernelMap``),
    of others as skl2onnx has them, probabilities as an array. What skl2onnx cannot convert, it
    refuses. The steps before ours compute in ``input_type`` as far as skl2onnx has them so. There
    are no blocks: m rows take 8 m n bytes for their features, so send large batches in parts.
    ``register_onnx_converters`` lets ``skl2onnx.to_onnx`` do the same.

    The same model gives the same bytes. Of a classifier alone, ``metadata_props`` holds, as JSON,
    "feature_names" (where the training data had names), "classes", "degree" and "n_centers", and
    for a table "column_kinds" and "inputs".

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
    whole = hasattr(model, "steps") or isinstance(model, PolynomialKernelMap)
    clf = None if whole else classifier_of("to_onnx exports", model)
    if input_type not in INPUT_TYPES:
        raise ValueError(f'input_type must be "float64" or "float32"; got {input_type!r}.')
    output = None if path is None else check_output(path, overwrite=overwrite)
    onnx = load_onnx()
    if clf is None:
        proto = pipeline_proto(model, X, np.dtype(input_type))
    else:
        proto = classifier_proto(onnx, clf, np.dtype(input_type))
    if output is not None:
        with replacing(output) as file:
            file.write(proto.SerializeToString(deterministic=True))
    return proto

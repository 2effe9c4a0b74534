"""``FPCClassifier``: fast polynomial kernel classification as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polysift.data.inputs import keeping_features, rows_source, training_source
from polysift.data.labels import codes_among
from polysift.data.source import DataSource
from polysift.engine.sums import predicted_codes
from polysift.estimators.fitted import (
    FRAMES,
    CallbackHook,
    CallbackSupportMixin,
    FitTasks,
    check_warm_start,
    fitted_attributes,
    map_params,
    with_callbacks,
)
from polysift.estimators.prediction import score_shards
from polysift.estimators.prediction_files import Predictor, check_predictions, write_predictions
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import scaler_from_dict
from polysift.features.survey import checked_labels, checked_weights
from polysift.runtime.parallel import MIN_THREADED_FEATURES, Span, usable_jobs
from polysift.runtime.parameters import check_n_jobs
from polysift.runtime.progress import Monitor
from polysift.runtime.types import FloatArray
from polysift.solvers.result import Result
from polysift.training.calibration import Calibrator, calibrator_from_dict
from polysift.training.fit import Start, Trained, train
from polysift.training.job import check_solver_parameters, job_of, warn_about
from polysift.training.plan import Forecast, plan

R = TypeVar("R")


def is_calibrated(estimator: Any) -> bool:
    """Return whether probabilities were asked for, or raise as ``available_if`` wants it."""
    if estimator.calibration is None:
        raise AttributeError(
            f"{type(estimator).__name__} has predict_proba only with calibration: set "
            'calibration="sigmoid" or "isotonic", and fit.'
        )
    return True


class FPCClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Fast polynomial kernel classification (FPC).

    The score of a row x is ``sum_j u_j (1 + x.c_j)^s`` with n centers ``c_j``. The coefficients u
    minimise the hinge loss ``(1/m) sum_i max(0, 1 - y_i score(x_i))``, without a penalty, by the
    paper's proximal ADMM, or by Newton's method. Training takes O(m n (n + T)) time for T
    iterations and never needs the m x n feature matrix. More than two classes are learned
    one-vs-rest, all at once.

    Parameters
    ----------
    degree : int, default=3
        The degree s of the kernel, the parameter that matters most. ``degree_bound`` gives the
        largest the paper would try.
    n_centers : int or "auto", default="auto"
        The number of centers n; "auto" is min(C(s+d, s), 1000), or all rows of given centers.
        More than C(s+d, s), or than there are distinct rows, are never used; see ``n_centers_``.
    centers : {"auto", "uniform", "first", "random"} or array of shape (n, d), default="auto"
        Where the centers come from: points uniform in the box of the scaled data (the paper's
        Scheme 1), the first distinct rows (Scheme 2), random rows (Scheme 3: those with the
        smallest seeded hash of their content, so that neither order nor repetition matters), or
        the given points in the units of X. "auto" is "uniform" when n is the full dimension
        C(s+d, s), where all schemes span the same space, and "random" otherwise.
    scaler : {"minmax", "standard", "quantile", None}, default="minmax"
        "minmax" scales each column to [0, 1] (the paper) and clips to [-0.1, 1.1] at prediction;
        "standard" clips to four standard deviations and divides by sqrt(d); "quantile" maps to
        ``(2 q - 1) / sqrt(d)`` with q the column's distribution function; None leaves X alone.
    solver : {"paper", "converged", "newton"}, default="paper"
        "paper" is Algorithm 1 with its few iterations, which is early stopping: close to a ridge
        regression on the labels. "converged" goes on to the minimum of the hinge loss, with
        over-relaxation 1.7 and a stopping rule on residuals; it warns if it does not get there.
        "newton" goes there by Newton's method on the hinge loss with its kink rounded, ever less:
        with many rows per center it comes closer to the minimum, in far fewer passes, but takes
        float64 features and some n x n matrices per label column, and it warns likewise. Where rows
        are many it begins with some of them, and needs fewer passes over all.
    alpha : float, default=1.0
        The weight of the proximal term, which only damps the steps. For "paper" it is the
        paper's alpha. For "converged" it is relative to the smallest that rounding allows,
        beta x 10 eps trace(G): larger values take smaller steps. "newton" has no proximal term;
        there it counts in the same units in what is added to G to make coordinates of it.
    beta : float, default=None
        The augmented Lagrangian parameter; None is 1 for "paper", and 0.1 / m for "converged".
        "newton" has none, and does not look at it.
    rho : float, default=None
        The ratio alpha / beta relative to trace(G) / n, where G = A'A is the Gram matrix of the
        features; it overrides alpha, for "newton" too.
    max_iter : int, default=None
        Iterations at most, each of them a pass over the data; None is 5 for "paper", and 300 for
        "converged" and "newton".
    tol : float, default=None
        When to stop. For "paper": when the squared H-norm of the successive difference falls
        below it; None is 5e-4. With 0 it never does; the last iteration then skips what only the
        rule needs, and its row of ``history_`` is NaN. For "converged": when both residuals and
        the objective's relative change over ten iterations fall below it; None is 1e-3. For
        "newton": when the distance to the minimum, as it estimates it, and the objective's change
        over three steps fall below it, both relative to the objective; None is 1e-3. With 0.1 and
        many rows it often ends after a first pass over all of them, with a good model.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with the rows' in the loss (scalers do not see them).
        "balanced" gives each class the same.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the current coefficients, with the current scaler and
        centers, instead of starting anew.
    n_jobs : int, default=None
        Threads; None means all cores this process may use, and one inside a joblib worker. The
        model does not depend on it, to the last bit.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the centers.
    verbose : int, default=0
        With 1 or more, progress goes to standard error: a bar where rich is installed and standard
        error is a terminal, else lines.
    memory_limit : str, int or float, default=None
        What the fit may allocate beside its input: "2GB", bytes, or a fraction of the free memory;
        None is half of what is free. The model does not depend on it, to the last bit: it decides
        how many shards are worked on at once, whether the per-row state goes to a file, and, for
        "converged" and "newton", whether the features are kept from pass to pass: where they fit in
        a quarter of the limit.
    time_limit : float, default=None
        Seconds after which the latest model is returned, with status "time_limit".
    checkpoint : path, default=None
        A folder in which the state of the fit is saved every few seconds. After a crash the same
        call goes on from there, to the identical model. Remove the folder when it is done with.
    calibration : {"sigmoid", "isotonic", None}, default=None
        How scores become probabilities; without it there is no ``predict_proba``. The calibrator
        is learned from scores of rows by models that did not see them: five more models, each
        without a fifth of the rows, which advance in the same passes over the data.
    engine : {"local", "ray"} or an engine, default="local"
        Where the work is done: by threads of this process, or by the workers of a Ray cluster, the
        one that runs here or a new local one; ``RayCluster`` says which, and more. The model does
        not depend on it, to the last bit. With workers, ``memory_limit`` holds for each of them,
        and ``n_jobs`` for this process.
    gram : {"exact", "sampled", "auto"}, default="exact"
        How the equations of each step are solved. "exact" forms the Gram matrix of the features
        over all rows, which takes O(m n^2) time: most of it, where there are many centers.
        "sampled" forms that of 13 to 37 rows per center, and corrects it by a few passes over all
        rows, O(m n) time each, and in less memory. It pays from about a thousand centers on, where
        there are many more rows; with fewer than 24 per center "exact" is used. The model is not
        quite the same: scores of "paper" differ by some tenths of a percent, and "converged" ends
        at the same minimum. "auto" takes what should be faster, judged by the shape of the data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (K, n_centers_)
        The coefficients; K is 1 for two classes, else the number of classes.
    centers_ : ndarray of shape (n_centers_, n_features_in_)
        The centers, in scaled coordinates.
    n_centers_ : int
        The number of centers used.
    degree_ : int
        The degree.
    scaler_ : dict
        The learned scaler, as plain arrays.
    rho_ : float
        The ratio alpha / beta used: as asked for, or its floor.
    n_iter_ : int
        The iterations done.
    status_ : str
        Why they ended: "tolerance", "converged", "minimum" (by the rule of "newton"), "zero_loss",
        "max_iter", "time_limit", "interrupted" or "callback".
    status_message_ : str
        The same as a sentence.
    history_ : dict of str to ndarray of shape (n_iter_,)
        Per iteration: "objective" (the hinge loss; with more than two classes, the mean over the
        one-vs-rest problems), "training_error", "primal_residual", "dual_residual" (both relative,
        of the worst problem), "h_norm_difference" (the squared H-norm of the successive
        difference), "seconds" (since the solver's start). For "newton" the dual residual is the
        estimated distance to the minimum, relative to the objective, and there is no primal one
        and no H-norm (NaN); a pass may try a point that is not taken, and ``coef_`` are the best.
    gram_ : str
        "exact" or "sampled": how the steps were solved. If sampled, the dual residual is an
        estimate by the sample.
    n_products_ : int
        The passes over the data that conjugate gradients took; 0 for "exact".
    timings_ : dict of str to float
        Seconds by phase ("survey", "Gram matrix", "sweep"; for a sampled Gram matrix also "sample"
        and "product"; for "newton" also "curvature") and in all ("total").
    training_summary_ : dict
        What it was trained on and with: "rows", "class_counts" (in the order of ``classes_``, by
        the rows' weights), "dtype", "origin" (the file, or None), "threads", "workers"
        (of a cluster, else 0), and in bytes
        "memory_limit", "expected_memory" (None after a search) and "measured_memory": by how much
        the process grew at most, None where it was larger before.
    random_state_ : int
        The seed used.
    calibrator_ : dict
        With ``calibration``: the learned calibrator, as plain arrays.
    calibration_report_ : dict
        With ``calibration``, how good probabilities are on rows that were not seen: "brier_score",
        "log_loss", and "reliability", which holds the "predicted" and "observed" shares of bins
        and their "weight".
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had any.

    See Also
    --------
    PolynomialKernelMap : The feature map alone.
    degree_bound : The largest degree worth trying.

    Notes
    -----
    Entries of G grow like (1 + d)^(2 s), so the paper's alpha = 1 can vanish against rounding. rho
    therefore has a floor, 10 eps trace(G); a warning says when it acts.

    References
    ----------
    J. Zeng, M. Wu, S.-B. Lin, D.-X. Zhou: Fast Polynomial Kernel Classification for Massive Data.

    Examples
    --------
    >>> from polysift import FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(20_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(degree=9, random_state=0).fit(X, y)
    >>> X_test, y_test = make_bayes_curve(20_000, noise=0.0, random_state=1)
    >>> round(clf.score(X_test, y_test), 2)
    0.99
    """

    random_state_: int

    def __init__(
        self,
        degree: int = 3,
        n_centers: Any = "auto",
        centers: Any = "auto",
        scaler: str | None = "minmax",
        solver: str = "paper",
        alpha: float = 1.0,
        beta: float | None = None,
        rho: float | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        memory_limit: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        calibration: str | None = None,
        engine: Any = "local",
        gram: str = "exact",
    ) -> None:
        self.degree = degree
        self.n_centers = n_centers
        self.centers = centers
        self.scaler = scaler
        self.solver = solver
        self.alpha = alpha
        self.beta = beta
        self.rho = rho
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.calibration = calibration
        self.engine = engine
        self.gram = gram

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FPCClassifier:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows: arrays of float32 or float64 in any order, memory maps, scipy sparse
            matrices and arrays, pandas and polars frames, or what ``open_data`` returns.
        y : array-like of shape (m,)
            The labels, of any type; left out where X is a source, which brings its own.
        sample_weight : array-like of shape (m,), default=None
            How often each row counts: a weight of 2 equals the row given twice, and a row of
            weight zero is not there.

        Returns
        -------
        FPCClassifier
            The fitted classifier.

        Examples
        --------
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(degree=5, random_state=0).fit(X, y)
        >>> clf.classes_, clf.n_centers_, clf.n_iter_
        (array([-1,  1]), 21, 3)
        """
        check_solver_parameters(self)
        with keeping_features(self):
            result = self._fit(X, y, sample_weight)
        warn_about(self, result, 3 + FRAMES)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Result:
        going_on = self.warm_start and hasattr(self, "coef_")
        source = training_source(self, X, y, sample_weight, reset=not going_on)
        job = job_of(self, source, self.random_state_ if going_on else None)
        tasks = FitTasks(self, job.settings(1.0, source.dtype).max_iter, X, y)
        trained = train(
            source,
            job,
            start=self._warm_start if going_on else None,
            hook=partial(CallbackHook, tasks),
        )
        self.take_over(trained, job.spec.seed)
        tasks.end()
        return trained.result

    def take_over(self, trained: Trained, seed: int) -> None:
        """Set the fitted attributes to those of a training run; for polysift's own use."""
        made = fitted_attributes(trained) | {"random_state_": seed, "_map_params": map_params(self)}
        for name in ("calibrator_", "calibration_report_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        for name, value in made.items():
            setattr(self, name, value)

    def plan(self, X: Any, y: Any = None, *, show: bool = True) -> Forecast:
        """Tell what ``fit`` would cost, without fitting; prints the forecast and returns it.

        Parameters
        ----------
        X : DataSource or array-like of shape (m, d)
            The rows.
        y : array-like of shape (m,), optional
            The labels, where X is no source.
        show : bool, default=True
            Whether to print the forecast.

        Returns
        -------
        Forecast
            Rows, centers, peak memory, disk, passes, feature evaluations and time.

        Examples
        --------
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> forecast = FPCClassifier(degree=5, n_jobs=1).plan(X, y, show=False)
        >>> forecast.centers, forecast.passes
        (21, 7)
        """
        check_solver_parameters(self)
        probe = clone(self)
        source = training_source(probe, X, y, None, reset=True)
        expected = plan(source, job_of(self, source, 0))  # any seed: none is drawn
        if show:
            print(expected)
        return expected

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m,) or (m, n_classes)
            For two classes, the score of ``classes_[1]``; else one score per class.

        Examples
        --------
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(degree=5, random_state=0).fit(X, y)
        >>> clf.decision_function(X[:3]).round(2)
        array([0.56, 0.14, 0.2 ])
        """
        values = self._scores(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Any:
        """Return the class of each row; a score of exactly 0 counts as ``classes_[1]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m,)
            The classes.

        Examples
        --------
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(degree=5, random_state=0).fit(X, y)
        >>> clf.predict([[0.1, 0.1], [0.9, 0.9]])
        array([-1,  1])
        """
        codes = predicted_codes(self._scores(X))
        return self.classes_[codes]

    @available_if(is_calibrated)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class; only with ``calibration``.

        ``predict`` goes by the sign of the score, which need not be at even odds.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, n_classes)
            The probabilities, in the order of ``classes_``.

        Examples
        --------
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(degree=5, calibration="sigmoid", random_state=0).fit(X, y)
        >>> clf.predict_proba([[0.1, 0.1], [0.9, 0.9]]).round(2)
        array([[0.95, 0.05],
               [0.05, 0.95]])
        """
        check_is_fitted(self)
        return self._calibrator().probabilities(self._scores(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on rows and their labels.

        Parameters
        ----------
        X : DataSource or array-like of shape (m, d)
            The rows.
        y : array-like of shape (m,), optional
            The labels, where X is no source.
        sample_weight : array-like of shape (m,), default=None
            The rows' weights.

        Returns
        -------
        float
            The weighted share of the rows whose class is right.

        Examples
        --------
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(degree=5, random_state=0).fit(X, y)
        >>> round(clf.score(X, y), 2)  # one label in ten is reversed
        0.87
        """
        if not isinstance(X, DataSource):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        source = training_source(self, X, y, sample_weight, reset=False)

        def count(span: Span, part: Any, scores: FloatArray) -> tuple[float, float]:
            labels = checked_labels(source, span[0], part)
            right = predicted_codes(scores) == codes_among(labels, self.classes_, source.target)
            weights = checked_weights(source, span[0], source.weights(part))
            if weights is None:
                return float(np.sum(right)), float(len(right))
            return float(weights @ right), float(weights.sum())

        right, total = np.sum(list(self.score_shards(source, count)), axis=0)
        if total == 0:
            raise ValueError("All weights are zero: there is no accuracy to speak of.")
        return float(right / total)

    def predict_to(
        self,
        X: Any,
        path: Any,
        *,
        scores: bool = True,
        proba: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write the class of each row to a Parquet or CSV file or a folder, in row order.

        Rows are streamed, so neither they nor the predictions need fit in memory. What is written
        appears when it is complete; on failure nothing is left. ``verbose`` shows progress.

        A folder gets one Parquet file per shard, part-00000.parquet and so on, the same for any
        ``engine``, which ``open_data`` reads in row order. The workers of an engine read their own
        rows and write their own files: the folder must be in storage that all nodes share. A
        single file is always written by this process.

        Parameters
        ----------
        X : DataSource or array-like of shape (m, d)
            The rows.
        path : path
            The file, ending in .parquet or .csv, or the folder: a name without an ending, or with a
            slash at the end. The columns are "prediction"; for two classes "score", else "score_"
            with each class; "probability_" with each class.
        scores : bool, default=True
            Whether to write scores, too.
        proba : bool, default=False
            Whether to write probabilities, too; only with ``calibration``.
        overwrite : bool, default=False
            Whether to replace a file that exists, or a folder with nothing but such files in it.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from polysift import FPCClassifier
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(1_000, noise=0.1, random_state=0)
        >>> clf = FPCClassifier(degree=5, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "predictions.csv"
        ...     clf.predict_to(X[:2], path, scores=False)
        ...     path.read_text().split()
        ['"prediction"', '1', '1']
        """
        check_is_fitted(self)
        output = check_predictions(path, overwrite=overwrite)
        calibrator = self._calibrator() if proba and is_calibrated(self) else None
        write_predictions(
            Predictor(self._feature_map(), self.coef_, self.classes_, scores, calibrator),
            rows_source(self, X, reset=False),
            output,
            overwrite=overwrite,
            engine=self.engine,
            n_threads=usable_jobs(check_n_jobs(self.n_jobs)),
            show=bool(self.verbose),
        )

    def _scores(self, X: Any) -> FloatArray:
        if "coef_" not in vars(self):
            check_is_fitted(self)
        source = rows_source(self, X, reset=False)
        out = np.empty((source.n_rows, len(self.coef_)))
        for span, scores in self.score_shards(source, lambda span, _, scores: (span, scores)):
            out[span[0] : span[1]] = scores
        return out

    def score_shards(
        self,
        source: DataSource,
        finish: Callable[[Span, Any, FloatArray], R],
        *,
        show: bool = False,
    ) -> Iterator[R]:
        """Yield ``finish(span, part, scores)`` shard by shard; for polysift's own use."""
        n_jobs = check_n_jobs(self.n_jobs)
        few = source.n_rows * self.n_centers_ < MIN_THREADED_FEATURES  # counting cores is slower
        n_threads = 1 if few else usable_jobs(n_jobs)
        results = score_shards(source, self._feature_map(), self.coef_, n_threads, finish)
        if not show:
            yield from results
            return
        counts = (end - start for start, end in source.shards())
        with Monitor(show=True) as monitor:
            counted = zip(counts, results, strict=True)
            yield from monitor.watch("prediction", source.n_rows, counted)

    def _calibrator(self) -> Calibrator:
        if not hasattr(self, "calibrator_"):
            raise NotFittedError(
                "calibration was set after fit. Fit again to learn how scores become probabilities."
            )
        return calibrator_from_dict(self.calibrator_)

    def _feature_map(self) -> FeatureMap:
        return FeatureMap(scaler_from_dict(self.scaler_), self.centers_, self.degree_)

    def _warm_start(self, classes: Any) -> Start:
        check_warm_start(self, classes)
        return Start(self._feature_map(), self.coef_.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

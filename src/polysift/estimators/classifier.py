"""``FPCClassifier``: fast polynomial kernel classification as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from polysift.data.inputs import keeping_features, refuse_masked, rows_source, training_source
from polysift.data.source import DataSource
from polysift.estimators.batches import (
    check_partial_parameters,
    checked_classes,
    has_first_iterate,
    merged,
    set_sums,
    sums_of,
)
from polysift.estimators.conventions import PolysiftEstimator, available_when
from polysift.estimators.devices import Device, device_of
from polysift.estimators.few_rows import few_plain_scores
from polysift.estimators.fitted import (
    FRAMES,
    CallbackHook,
    CallbackSupportMixin,
    FitTasks,
    calibrator_of,
    check_warm_start,
    decided_codes,
    feature_map_of,
    is_calibrated,
    scores_by_shard,
    set_fitted_attributes,
    streamed_accuracy,
    with_callbacks,
)
from polysift.estimators.headline import HasHeldOut, ShowsHeadline
from polysift.estimators.prediction_files import Predictor, check_predictions, write_predictions
from polysift.features.feature_map import DEFAULT_MAX_LEVELS
from polysift.runtime.parallel import Span, usable_jobs
from polysift.runtime.parameters import check_n_jobs
from polysift.runtime.types import FloatArray
from polysift.solvers.result import Result
from polysift.training.batches import train_batch
from polysift.training.fit import WarmStart, train
from polysift.training.job import (
    check_initial_point,
    check_solver_parameters,
    job_of,
    warn_about,
)
from polysift.training.plan import Forecast, plan

PAPER: dict[str, Any] = {
    "loss": "hinge",
    "solver": "paper",
    "kernel": "polynomial",
    "degree": 3,
    "scaler": "minmax",
    "n_centers": 1000,
    "centers": "uniform",
    "alpha": 1.0,
    "beta": 1.0,
    "rho": None,
}
"""The paper's Algorithm 1 with nothing left to the data: ``FPCClassifier(**PAPER)``.

It is the paper's text to the letter: uniform centers, alpha = beta = 1, and by default five
iterations at most and tol = 5e-4. The degree, for which the paper has a search, and n are any:
``FPCClassifier(**PAPER | {"degree": 9, "n_centers": 55})``; the text's n is min(C(s+d, s), m).
"""


class FPCClassifier(
    HasHeldOut,
    ShowsHeadline,
    PolysiftEstimator,
    CallbackSupportMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Fast polynomial kernel classification (FPC).

    The score of a row x is ``sum_j u_j (1 + k(x, c_j))^s`` with n centers ``c_j`` and k a sum over
    columns: the product x.c_j, or splines beside it. The coefficients u minimise the hinge loss
    ``(1/m) sum_i max(0, 1 - y_i score(x_i))`` by the paper's proximal ADMM or by Newton's method.
    Training takes O(m n (n + T)) time for T iterations and never stores the m x n feature matrix.
    More than two classes are learned one-vs-rest, all in the same passes over the data.

    Nothing needs to be set: the kernel, its scaler and degree, the weights of the columns and the
    ratio rho are chosen by generalised cross-validation, from sums over a sample of the rows and
    the Gram matrix of all rows, at little more than the cost of one fit (see ``selection_``).
    ``FPCClassifier(**polysift.PAPER)`` leaves nothing to the data.

    Parameters
    ----------
    degree : int or "auto", default="auto"
        The degree s of the kernel. "auto" chooses among 1, 2, 3, 4, 6 and 8; ``degree_bound`` gives
        the largest value that the paper would try.
    n_centers : int or "auto", default="auto"
        The number of centers n; "auto" is a quarter of the rows, up to 2000, of small data half of
        them, up to 800, or fewer where the features have far fewer degrees of freedom; of given
        centers it is all. Never more than the number of distinct rows are used, or, by the
        polynomial kernel, than C(s+d, s); see ``n_centers_``.
    centers : {"auto", "uniform", "first", "random"} or array of shape (n, d), default="auto"
        How the centers are chosen: "uniform" points in the box of the scaled data (the paper's
        Scheme 1), the "first" distinct rows (Scheme 2), "random" rows (Scheme 3: those with the
        smallest seeded hash of their content, so that neither order nor repetition matters), or
        the given points in the units of X. "auto" is "uniform" when n is the full dimension
        C(s+d, s), where all schemes span the same space, and "random" otherwise.
    scaler : {"auto", "minmax", "symmetric", "standard", "quantile", None}, default="auto"
        The scaler of the polynomial kernel. "auto" chooses between "standard" and "quantile".
        "minmax" scales each column to [0, 1] (the paper) and clips to [-0.1, 1.1] at prediction;
        "symmetric" scales to [-1, 1], and clips to [-1.2, 1.2];
        "standard" clips to four standard deviations and divides by sqrt(d); "quantile" maps to
        ``(2 q - 1) / sqrt(d)`` with q the column's distribution function; None does not scale.
    solver : {"auto", "paper", "lbfgs", "minimum", "converged", "newton"}, default="auto"
        "paper" is Algorithm 1 with its few iterations, a form of early stopping: the model is close
        to a ridge regression on the labels. "lbfgs" goes on from a ridge regression whose scale
        fits the loss, by a few quasi-Newton steps in the metric of the Gram matrix; it stops
        early, too, and needs a smooth loss. "minimum" goes on to the minimum of the loss with its
        penalty, by one of the next two: "newton" up to 1,000 centers, else "converged", and
        ``solver_`` says which. "converged" iterates to the minimum by the ADMM, with
        over-relaxation 1.7 and a stopping rule on residuals; it warns if it does not converge.
        "newton" is Newton's method, for the hinge loss on a smoothed one whose smoothing is reduced
        step by step: with many rows per center it comes closer to the minimum, in far fewer
        passes, but needs float64 features and some n x n matrices per label column; it warns
        likewise. For many rows it starts on a subsample, and needs fewer passes over all of them.
        "auto" is "paper" for the hinge loss, else "lbfgs".
    alpha : float, default=None
        The weight of the proximal term, which only damps the steps; None is 1. For "paper" it is
        the paper's alpha; who gives it, or beta, leaves nothing of rho to the data. For "converged"
        it is relative to the smallest value that rounding allows, beta x 10 eps trace(G): larger
        values take smaller steps. "newton" has no proximal term; it scales, in the same units,
        what is added to G before its factorisation.
    beta : float, default=None
        The augmented Lagrangian parameter; None is 1 for "paper", and 0.1 / m for "converged".
        "newton" ignores it.
    rho : float, "auto" or None, default="auto"
        The ratio alpha / beta relative to trace(G) / n, where G = A'A is the Gram matrix of the
        features; a number overrides alpha, for "newton" too. "auto", where neither alpha nor beta
        is given, lets "paper" take the ratio with the least generalised cross-validation: the
        first iterate is a ridge regression on the labels with the penalty rho. None takes alpha and
        beta.
    max_iter : int, default=None
        The maximum number of iterations, each of them a pass over the data; None is 5 for "paper",
        and 300 for "converged" and "newton".
    tol : float, default=None
        The tolerance of the stopping rule. "paper" stops when the squared H-norm of the successive
        difference falls below it; None is 5e-4. With 0 it never does; the last iteration then
        skips what only the rule needs, and its row of ``history_`` is NaN. "converged" stops when
        both residuals and the objective's relative change over ten iterations fall below it; None
        is 1e-3. "newton" stops when its estimate of the distance to the minimum and the objective's
        change over three steps, both relative to the objective, fall below it; None is 1e-3. With
        0.1 and many rows it often stops after the first pass over all of them, with a good model.
    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with the rows' weights in the loss (scalers ignore them).
        "balanced" gives all classes the same total weight.
    warm_start : bool, default=False
        Whether ``fit`` continues from the current coefficients, with the current scaler and
        centers, instead of starting anew.
    n_jobs : int, default=None
        The number of threads; None is all cores that this process may use, and one inside a joblib
        worker. The model does not depend on it, to the last bit.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the centers.
    verbose : int, default=0
        With 1 or more, progress is shown on standard error: a bar where rich is installed and
        standard error is a terminal, else lines.
    memory_limit : str, int or float, default=None
        The memory that the fit may allocate beside its input: "2GB", bytes, or a fraction of the
        free memory; None is half of the free memory. The model does not depend on it, to the last
        bit: it decides how many shards are processed at once, whether the per-row state goes to a
        file, and, for "converged" and "newton", whether the features are kept from pass to pass:
        where they fit in a quarter of the limit.
    time_limit : float, default=None
        Seconds after which the latest model is returned, with status "time_limit".
    checkpoint : path, default=None
        A folder in which the state of the fit is saved every few seconds. After a crash the same
        call resumes from there, to the identical model. Remove the folder when it is not needed.
    calibration : {"sigmoid", "isotonic", None}, default=None
        How scores become probabilities; with None there is no ``predict_proba``, unless by
        ``loss="logistic"``. The calibrator is
        learned from out-of-fold scores: of five more models, each fitted without a fifth of the
        rows, in the same passes over the data. Equal rows are held out together.
    engine : {"local", "ray"} or an engine, default="local"
        Where the computation runs: in threads of this process, or in the workers of a Ray cluster,
        the one that runs here or a new local one; a ``RayCluster`` has more options. The model does
        not depend on it, to the last bit. With workers, ``memory_limit`` holds for each of them,
        and ``n_jobs`` for this process.
    gram : {"exact", "sampled", "auto"}, default="exact"
        How the linear equations of each step are solved. "exact" forms the Gram matrix of the
        features over all rows, which takes O(m n^2) time: most of the total with many centers.
        "sampled" forms that of 13 to 37 rows per center, and corrects it by a few passes over all
        rows, O(m n) time each, and in less memory. It pays from about a thousand centers on, with
        many more rows; with fewer than 24 rows per center "exact" is used. The model is not quite
        the same: scores of "paper" differ by some tenths of a percent, and "converged" ends at the
        same minimum. "auto" takes the faster one, as estimated from the shape of the data.
    columns : mapping of column to {"number", "category", "date", "drop"}, default=None
        The kinds of columns that are not found as wished, by name (or position, where columns have
        no names): ``{"zip": "category", "id": "drop"}``. See ``column_kinds_``. "decimal comma" and
        "thousands comma" say what 1,200 in text means, "day first" and "month first" what 1/2/2024
        does.
    max_levels : int, default=100
        The most levels of a category that have a coordinate each. For more of them the labels
        stand, learned from other rows (cross-fitted) and smoothed.
    kernel : {"auto", "polynomial", "spline"}, default="auto"
        "polynomial" is the paper's kernel, ``(1 + x.c)^s``. In "spline" each number has, beside
        its line, a spline of its rank among the rows: outliers matter little, functions need not
        be smooth, and there is no limit of C(s+d, s) to n. ``scaler`` has no part in it, and the
        centers are rows. "auto" chooses, and lets columns have different weights.
    loss : {"auto", "hinge", "logistic", "squared_hinge"}, default="auto"
        What is minimised, as a function of the margin t = y score: "hinge" is the paper's,
        ``max(0, 1 - t)``; "logistic" is ``log(1 + exp(-t))``, which ranks the rows of unbalanced
        classes better, and whose minimum has probabilities: ``predict_proba`` is there without
        calibration, for "converged" and "newton"; "squared_hinge" is ``max(0, 1 - t)^2 / 2``.
        The latter two are minimised with a penalty, ``(rho_ / 2) |u|^2`` beside the sum of
        "squared_hinge" over the rows, and a quarter of it beside that of "logistic": with few rows
        per center, raise ``rho``. "paper" remains close to a ridge regression with any loss.
    threshold : {"accuracy", "f1", "balanced"} or matrix of costs, default=None
        What ``predict`` chooses classes for: thresholds that are best for the accuracy, the F1 of
        the second class (with more classes, its mean over them), the mean recall, or the mean cost
        of a row, where ``costs[i][j]`` is that of a row of the i-th class taken for the j-th. They
        are learned from out-of-fold scores, as a calibrator is, and taken only if they help on rows
        held out. None is the class of the highest score.

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
    kernel_ : str
        "polynomial" or "spline".
    scaler_ : dict
        The learned scaler, as plain arrays.
    rho_ : float
        The ratio alpha / beta used: the given one, or its floor.
    selection_ : dict
        Where something was left to the choice: "trials", a dict for each feature map that was
        tried, in order, with "kernel", "scaler", "degree", "weights" ("equal", or "by importance"
        of the columns), "gcv" (the estimated error, relative to that of a score of zero; None if
        the features overflow) and "degrees_of_freedom"; "best", the number of the one that was
        taken; "rows" and "centers", the size of the sample; "column_weights".
    held_out_ : dict
        How good the model is on rows that it has not seen: "method", which is "out of fold" with
        ``calibration``, and else "leave-one-out": then the rows are training rows, and their scores
        those of the least-squares start of the solver without the row, which is known exactly.
        "figures", by name a list of the value and the ends of its interval of confidence (95 %):
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision" (of the rarer of two
        classes, whose position is "rare_class"), and with probabilities "log_loss" and
        "brier_score"; "training", the figures of the same rows where the model has seen them;
        "rows", "confusion", "roc" and "reliability". Not there after a warm start, nor for solvers
        that go to a minimum, unless with ``calibration``.
    n_iter_ : int
        The number of iterations.
    status_ : str
        Why the solver stopped: "tolerance", "converged", "minimum" (the rule of "newton"),
        "zero_loss", "max_iter", "time_limit", "interrupted", "callback", or "partial" for
        ``partial_fit``.
    status_message_ : str
        The status as a sentence.
    history_ : dict of str to ndarray of shape (n_iter_,)
        Per iteration: "objective" (the mean loss, with its penalty if there is one; with more than
        two classes, the mean over the one-vs-rest problems), "training_error", "primal_residual",
        "dual_residual" (both relative, of the worst problem), "h_norm_difference" (the squared
        H-norm of the successive difference), "seconds" (since the solver's start). For "newton"
        the dual residual is the estimated distance to the minimum, relative to the objective, and
        there is no primal one and no H-norm (NaN); a pass may try a point that is not accepted:
        ``coef_`` are the best.
    solver_ : str
        The solver that was taken.
    gram_ : str
        "exact" or "sampled": how the steps were solved. If sampled, the dual residual is an
        estimate from the sample.
    n_products_ : int
        The number of passes over the data that conjugate gradients took; 0 for "exact".
    timings_ : dict of str to float
        Seconds by phase ("survey", "Gram matrix", "sweep"; for a sampled Gram matrix also "sample"
        and "product"; for "newton" also "curvature") and in all ("total").
    training_summary_ : dict
        The data and resources of the fit: "rows", "class_counts" (in the order of ``classes_``, by
        the rows' weights), "dtype", "origin" (the file, or None), "label" (the column of the labels
        of a file, or None), "threads", "workers" (of a cluster, else 0), and in bytes
        "memory_limit", "expected_memory" (None after a search) and "measured_memory": the largest
        growth of the process, None where it was larger before; "columns", a dict for each column
        that is not just numbers, none of them missing: "column" (its position), "kind", "missing"
        (a share), and of a category "levels" (their number) and "frequent" (some words with their
        shares).
    partial_sums_ : dict
        After ``partial_fit``: the sums of all batches so far, from which the next one goes on.
    random_state_ : int
        The seed used.
    calibrator_ : dict
        With ``calibration``: the learned calibrator, as plain arrays. With the logistic loss alone:
        the plain sigmoid.
    calibration_report_ : dict
        With ``calibration``, the quality of the out-of-fold probabilities: "brier_score",
        "log_loss", and "reliability" with the "predicted" and "observed" shares of bins and their
        "weight".
    decision_thresholds_ : ndarray of shape (K,)
        With ``threshold``: what ``predict`` subtracts from the scores.
    threshold_report_ : dict
        With ``threshold``: the "measure", and its value on rows held out "before" and "after",
        without thresholds and with those of other folds. A cost has a minus sign.
    column_kinds_ : ndarray of shape (n_features_in_,)
        What each column was found to be: "number", "category", "date"; "encoded category", for
        whose many levels the labels stand; and columns that are left out: "empty", "constant",
        "identifier" (a named column that tells the rows apart, as a row number does) or "drop".
    column_notes_ : list of str
        Sentences on columns: how they were read, where a reader had to decide; which are left out,
        and why; and those with names that nearly decide the label alone, by a rule on a sample of
        the rows, which may be known only after it (leakage).
    column_ranges_ : ndarray of shape (2, n_features_in_)
        The smallest and the largest value of each number, and of each date in seconds since 1970;
        NaN for other columns. ``drift`` compares with them.
    unseen_shares_ : ndarray of shape (n_features_in_,)
        The share of further rows that may be expected to bring a new level of each category: that
        of the rows whose level occurs once.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the features, where X had any.

    See Also
    --------
    FPCClassifierCV : Chooses the parameters by cross-validation.
    PolynomialKernelMap : The feature map alone.
    degree_bound : The largest degree worth trying.
    drift : How rows to predict differ from the training rows.

    Notes
    -----
    Entries of G grow like (1 + d)^(2 s), so the paper's alpha = 1 can vanish in rounding errors.
    rho therefore has a floor, 10 eps trace(G); a warning says when it is used.

    References
    ----------
    J. Zeng, M. Wu, S.-B. Lin, D.-X. Zhou: Fast Polynomial Kernel Classification for Massive Data.

    Examples
    --------
    >>> from polysift import FPCClassifier
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(20_000, noise=0.1, random_state=0)
    >>> clf = FPCClassifier(random_state=0).fit(X, y)
    >>> clf.predict([[0.1, 0.1], [0.9, 0.9]])
    array([-1,  1])
    >>> X_test, y_test = make_bayes_curve(20_000, noise=0.0, random_state=1)
    >>> clf.score(X_test, y_test) > 0.98
    True
    """

    random_state_: int

    def __init__(
        self,
        degree: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "auto",
        scaler: str | None = "auto",
        solver: str = "auto",
        alpha: float | None = None,
        beta: float | None = None,
        rho: Any = "auto",
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
        columns: Any = None,
        max_levels: int = DEFAULT_MAX_LEVELS,
        kernel: str = "auto",
        loss: str = "auto",
        threshold: Any = None,
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
        self.columns = columns
        self.max_levels = max_levels
        self.kernel = kernel
        self.loss = loss
        self.threshold = threshold

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, initial_point: Any = None
    ) -> FPCClassifier:
        """Fit the model to rows and their labels.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows: arrays of float32 or float64 in any order, memory maps, scipy sparse
            matrices and arrays, pandas and polars frames, pyarrow tables, or what ``open_data``
            returns. Columns may hold numbers, text, truth values and dates; NaN, None and the
            like are missing values.
        y : array-like of shape (m,)
            The labels, of any type; omitted where X is a source, which has its own.
        sample_weight : array-like of shape (m,), default=None
            The weights of the rows. If all are whole numbers they are multiplicities: a weight of
            2 equals the row given twice. Any others are relative: they are divided by their mean
            over the rows of positive weight, so that a constant factor changes nothing but
            rounding. A weight of zero equals leaving the row out. ``class_weight`` multiplies the
            result.
        initial_point : tuple of three arrays, default=None
            The initial point (u0, v0, w0) of Algorithm 1, which ``solver="paper"`` runs: u0 of
            shape (K, n) as ``coef_``, v0 and w0 of shape (m, K); with two classes, (n,) and (m,)
            for labels of +1 (the second class) and -1. None, for all or for one of them, is the
            paper's choice: 0, the labels, 0.

        Returns
        -------
        FPCClassifier
            The fitted classifier.
        """
        check_solver_parameters(self)
        if initial_point is not None:
            check_initial_point(self)
        with keeping_features(self):
            result = self._fit(X, y, sample_weight, initial_point)
        warn_about(self, result, 3 + FRAMES)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, initial_point: Any) -> Result:
        resuming = self.warm_start and hasattr(self, "coef_")
        source = training_source(self, X, y, sample_weight, reset=not resuming)
        job = job_of(self, source, self.random_state_ if resuming else None)
        tasks = FitTasks(self, job.settings.max_iter, X, y)
        trained = train(
            source,
            job,
            start=self._warm_start if resuming else None,
            initial=initial_point,
            callback=partial(CallbackHook, tasks),
        )
        set_fitted_attributes(self, trained, job.spec.seed)
        tasks.end()
        return trained.result

    @available_when(has_first_iterate)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> FPCClassifier:
        """Add a batch of rows to the model: the sums over rows add up, and no row is kept.

        The first batch decides what the columns are, and learns the scaler and the centers, with
        the degree, the kernel and the number of centers if these are left to the data; so it should
        be large and mixed. A model that ``fit`` has fitted, to a sample for instance, gives all of
        that instead; the sums then begin with the first batch, without the rows of that sample.

        The model after each batch is that of all rows so far, whatever the batches, to rounding:
        for "paper" its first iterate, a ridge regression on the labels with the penalty rho; for
        "lbfgs" that regression, scaled to the loss batch by batch, without the steps that ``fit``
        takes from there. Other solvers have no such model. A batch costs what its share of the Gram
        matrix costs, and the solution O(n^3).

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows of the batch, as in ``fit``.
        y : array-like of shape (m,)
            Their labels; omitted where X is a source, which has its own.
        classes : array-like, default=None
            All classes; needed in the first call. A batch may lack some.
        sample_weight : array-like of shape (m,), default=None
            The weights of the rows, which count as they are: 0.5 is half a row. ``fit`` divides
            weights that are no whole numbers by their mean, which is not known here.

        Returns
        -------
        FPCClassifier
            The classifier.
        """
        check_partial_parameters(self)
        before = sums_of(self)
        first = not hasattr(self, "coef_")
        all_classes = checked_classes(self, classes)
        with keeping_features(self):
            source = training_source(self, X, y, sample_weight, reset=first)
            job = job_of(self, source, None if first else self.random_state_)
            trained, sums = train_batch(
                source,
                replace(job, classes=all_classes),
                before,
                None if first else partial(self._warm_start, by="partial_fit"),
            )
        if first:
            set_fitted_attributes(self, trained, job.spec.seed)
        else:
            self.__dict__.update(merged(self, trained, anew=before is None))
            for name in ("held_out_", "_unscored"):  # of a fit before
                self.__dict__.pop(name, None)
        set_sums(self, sums)
        warn_about(self, trained.result, 3)
        return self

    def plan(self, X: Any, y: Any = None, *, show: bool = True) -> Forecast:
        """Forecast the memory, passes and time of ``fit``, without fitting.

        No cluster is started: with ``engine="ray"`` and none that runs, the forecast is that of the
        workers that a new one would have on this machine, and says so.

        Parameters
        ----------
        X : DataSource or array-like of shape (m, d)
            The rows.
        y : array-like of shape (m,), optional
            The labels, where X is not a source.
        show : bool, default=True
            Whether to print the forecast.

        Returns
        -------
        Forecast
            Its rows, centers, peak memory, disk, passes, feature evaluations and time.
        """
        check_solver_parameters(self)
        probe = clone(self)
        source = training_source(probe, X, y, None, reset=True)
        expected = plan(
            source, job_of(self, source, 0, preview=True)
        )  # any seed: no centers are drawn
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
            For two classes, the score of ``classes_[1]``; else one score per class. With
            scikit-learn's ``array_api_dispatch`` scores, classes and probabilities are arrays of
            the library and on the device of X.
        """
        values, _ = self._scores(X)
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
        """
        scores, device = self._scores(X)
        if device is not None:
            thresholds = getattr(self, "decision_thresholds_", None)
            return device.labels(scores, self.classes_, thresholds)
        return self.classes_[decided_codes(self, scores)]

    @available_when(is_calibrated)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class; only with ``calibration`` or the logistic loss.

        ``predict`` uses the sign of the score, which need not agree with a probability of one half.
        Of the logistic loss, probabilities are those of the rows with their weights, those of
        ``class_weight`` included; with more than two classes, each class's probability against the
        rest is divided by their sum.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The rows.

        Returns
        -------
        ndarray of shape (m, n_classes)
            The probabilities, in the order of ``classes_``.
        """
        scores, device = self._scores(X)
        if device is not None:
            return device.probabilities(scores, calibrator_of(self))
        return calibrator_of(self).probabilities(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on rows and their labels.

        Parameters
        ----------
        X : DataSource or array-like of shape (m, d)
            The rows.
        y : array-like of shape (m,), optional
            The labels, where X is not a source.
        sample_weight : array-like of shape (m,), default=None
            The rows' weights.

        Returns
        -------
        float
            The weighted share of the rows that are classified correctly.
        """
        if not isinstance(X, DataSource):
            refuse_masked(y=y, sample_weight=sample_weight)
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        return streamed_accuracy(self, training_source(self, X, y, sample_weight, reset=False))

    def predict_to(
        self,
        X: Any,
        path: Any,
        *,
        scores: bool = True,
        proba: bool = False,
        overwrite: bool = False,
        safe_csv: bool = False,
    ) -> None:
        """Write the class of each row to a Parquet or CSV file or a folder, in row order.

        Rows are streamed, so neither they nor the predictions need to fit in memory. The output
        appears when it is complete; on failure nothing is left. ``verbose`` shows progress.

        A folder gets one Parquet file per shard, part-00000.parquet and so on, the same for any
        ``engine``; ``open_data`` reads them in row order. The workers of an engine read their own
        rows and write their own files, so the folder must be in storage that all nodes share. A
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
            Whether to write scores as well.
        proba : bool, default=False
            Whether to write probabilities as well; only with ``calibration`` or the logistic loss.
        overwrite : bool, default=False
            Whether to replace an existing file, or a folder that contains only such files.
        safe_csv : bool, default=False
            Whether classes in a CSV file that a spreadsheet may execute, since they begin with =,
            +, -, @, a tab or the end of a line, are preceded by an apostrophe. Numbers are not.
        """
        check_is_fitted(self)
        output = check_predictions(path, overwrite=overwrite)
        calibrator = calibrator_of(self) if proba and is_calibrated(self) else None
        predictor = Predictor(
            feature_map_of(self),
            self.coef_,
            self.classes_,
            scores,
            calibrator,
            getattr(self, "decision_thresholds_", 0.0),
        )
        write_predictions(
            predictor,
            rows_source(self, X, reset=False),
            output,
            overwrite=overwrite,
            engine=self.engine,
            n_threads=usable_jobs(check_n_jobs(self.n_jobs)),
            show=bool(self.verbose),
            safe_csv=safe_csv,
        )

    def _scores(self, X: Any) -> tuple[FloatArray, Device | None]:
        """Return the scores of rows, (rows, K), and where they lie if not in NumPy."""
        if "coef_" not in vars(self):
            check_is_fitted(self)
        few = few_plain_scores(self, X)
        if few is not None:
            return few, None
        device = device_of(self, X)
        if device is not None and device.usable:
            return device.scores(self.coef_), device
        source = rows_source(self, X, reset=False)
        out = np.empty((source.n_rows, len(self.coef_)))

        def fill(span: Span, _: Any, scores: FloatArray) -> None:
            out[span[0] : span[1]] = scores

        for _ in scores_by_shard(self, source, fill):
            pass
        return (out, None) if device is None else (device.moved(out), device)

    def _warm_start(self, classes: Any, by: str = "warm_start=True") -> WarmStart:
        check_warm_start(self, classes, by)
        selection = getattr(self, "selection_", None)
        return WarmStart(feature_map_of(self), self.coef_.T, selection)

"""``FPCClassifierCV``: the parameters chosen by cross-validation, at about the cost of one fit.

The checks at the end are for functions that take a fitted classifier or a search.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils.validation import check_is_fitted

from polysift.data.inputs import keeping_features, training_source
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.conventions import PolysiftEstimator, available_when
from polysift.estimators.fitted import (
    FRAMES,
    OPTIONAL_ATTRIBUTES,
    CallbackSupportMixin,
    FitTasks,
    calibrator_of,
    is_calibrated,
    set_fitted_attributes,
    with_callbacks,
)
from polysift.estimators.headline import ShowsHeadline
from polysift.features.feature_map import DEFAULT_MAX_LEVELS
from polysift.runtime import clock
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import Row, SearchResult, best_so_far, cv_results
from polysift.selection.forecast import plan_search
from polysift.selection.job import check_search_parameters, is_auto, search_job
from polysift.selection.levels import sample_sizes
from polysift.selection.scoring import check_scorers
from polysift.selection.search import search
from polysift.solvers.result import Status
from polysift.training.fit import Trained
from polysift.training.plan import Forecast

SHARED_PARAMETERS = (
    "alpha",
    "beta",
    "tol",
    "class_weight",
    "n_jobs",
    "memory_limit",
    "calibration",
    "threshold",
    "engine",
    "columns",
    "max_levels",
)
"""Parameters of the search that the refitted classifier gets unchanged."""


def _is_refitted(estimator: Any) -> bool:
    if isinstance(estimator.refit, bool | np.bool_) and not estimator.refit:
        raise AttributeError(
            f"{type(estimator).__name__}(refit=False) only searches. Set refit=True, or fit "
            "FPCClassifier(**search.best_params_)."
        )
    return True


def _has_probabilities(estimator: Any) -> bool:
    _is_refitted(estimator)
    if estimator.calibration is not None:
        return True
    model = getattr(estimator, "best_estimator_", None)
    if model is not None:
        return is_calibrated(model)
    open_pair = is_auto(estimator.solvers) and is_auto(estimator.losses)
    return (open_pair and estimator.effort == "normal") or is_calibrated(estimator)


def _outcome(search: Any, rows: list[Row], best: int, classes: Any) -> dict[str, Any]:
    """Return the fitted attributes that tell the candidates and the best of them."""
    several = isinstance(search.scoring, list | tuple | set | dict)
    metrics = tuple(check_scorers(search.scoring, search.refit)) if several else ()
    return {
        "classes_": classes,
        "cv_results_": cv_results(rows, metrics),
        "best_index_": best,
        "best_params_": {"centers": search.centers, **rows[best].params},
        "best_score_": float(rows[best].mean),
    }


WHY = {
    "time_limit": "time_limit struck",
    "interrupted": "interrupted",
    "callback": "a callback asked for it",
}
"""Why a search ended early, in words."""


def _sentence(found: SearchResult, status: str) -> str:
    """Return what became of a search, as a sentence."""
    finished, compared = (
        sum(getattr(row, name) for row in found.rows) for name in ("finished", "complete")
    )
    if status == "finished":
        rows = f"{found.rows[found.best].n_rows:,} rows"
        return f"All candidates were compared{'' if finished else f', on {rows}'}."
    what = f"the best of {finished} finished candidates was taken"
    if compared == 1:
        what = "the only candidate so far was taken"
    elif not finished:
        what = f"the best of {compared} candidates was taken, which were compared on a sample"
    if found.model is not None:
        rows = found.model.summary["rows"]
        if rows < found.n_rows:
            what += f", as it was fitted to {rows:,} rows: there was no time for all"
        elif found.model.result.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            what += ", and its refit was cut short, too"
    return f"The search ended early ({WHY[status]}): {what}."


class _StageHook:
    """Reports the stages of a search to callbacks, each with the candidates so far."""

    def __init__(self, search: Any, tasks: FitTasks, seed: int) -> None:
        self._search, self._tasks, self._seed = search, tasks, seed
        self._keep = getattr(search, "_keep_early", None)
        self.keeps_models = self._keep is not None

    def begin(self) -> None:
        """Report the begin of a stage."""
        self._tasks.begin_part()

    def end(self, rows: list[Row], classes: Any) -> bool:
        """Report the end of a stage; return whether to end the search."""
        best = best_so_far(rows)
        assert best is not None
        return self._tasks.end_part(lambda: _outcome(self._search, rows, best, classes))

    def model(self, found: SearchResult) -> None:
        """Pass on the search as it would be if it ended now, to whoever keeps early models."""
        assert self._keep is not None
        early = copy(self._search)
        early._store(found, self._seed)
        self._keep(early)


class FPCClassifierCV(
    ShowsHeadline, PolysiftEstimator, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """``FPCClassifier`` with its parameters chosen by cross-validation.

    With nothing set, the search begins with the automatic choice of ``FPCClassifier``, and compares
    it with rivals: the other kernel, other degrees, other ratios rho. All are tried on a small
    sample of the rows first, and only the best on larger ones and in the end on all rows, so that
    the search takes a few times as long as a fit. A rival is chosen only if it is ahead of the
    automatic choice by a standard error of the difference over the splits. The search has a model
    within seconds, and always returns the best one so far: after ``time_limit``, and after Ctrl-C.
    If either comes before the first model, a small one of a few rows is fitted at once.

    Where kernels, degrees or scalers are given, the candidates are all combinations. They share
    their computations: for each kernel, scaler and degree one pass over the data gives the Gram
    matrices of all folds, whose leading blocks are those of fewer centers. The first iterate of
    every candidate is a ridge solution in closed form, and one pass scores all of them on the rows
    that were held out. Those that continue advance together, as columns of one matrix, in the same
    passes.

    Parameters
    ----------
    degrees : {"auto", "paper"}, int or list of int, default="auto"
        The degrees. "auto" leaves them to the automatic choice, and to its neighbours; where
        kernels or scalers are given it is 1 to max(s_max, 5). "paper" is 1 to s_max of
        ``degree_bound``. Degrees that overflow are left out, with a warning.
    n_centers : "auto", int or list of int, default="auto"
        The numbers of centers; a smaller number uses the first of the larger. "auto" is that of
        the automatic choice; where there is none it is up to five numbers, each half of the one
        before, from 1000 or C(s+d, s) down.
    centers : {"auto", "uniform", "first", "random"} or array of shape (n, d), default="auto"
        As in ``FPCClassifier``; the same for all candidates.
    scalers : "auto", str, None or list, default="auto"
        The scalers of the polynomial kernel, as in ``FPCClassifier``. "auto" leaves them to the
        automatic choice; where kernels or degrees are given it is "minmax" and "quantile". Sparse
        rows take those that keep zeros.
    rhos : "auto", float, None or list, default="auto"
        The ratios rho relative to trace(G) / n; None takes alpha and beta, and "auto" in a list is
        that of ``FPCClassifier``. "auto" alone is that one, a tenth of it, and ten times as much.
    solvers : "auto", str or list of str, default="auto"
        The solvers: "paper", "lbfgs", "converged", "newton". "auto" is that of ``FPCClassifier``.
    max_iter : "auto", int or list of int, default="auto"
        The numbers of iterations at which candidates are evaluated, all in one run. "auto" is 7
        for "lbfgs", 30, 100 and 300 for "converged", and 300 for "newton". Candidates of "paper"
        have up to five iterations.
    cv : int, float, splitter or iterable, default=5
        How candidates are compared: a number of stratified folds, the share of a single validation
        part (such as 0.33), a scikit-learn splitter, or pairs of training and test rows.
    scoring : str, callable, list or dict, default=None
        A scikit-learn scorer, which may use classes, scores or probabilities, but not X; a list of
        names or a dict of several. None is the accuracy. Probabilities are computed from the
        scores by ``calibration``, or by a sigmoid, learned from other folds; classes by the
        thresholds that ``threshold`` asks for, likewise. Sample weights are used where the scorer
        takes any.
    refit : bool or str, default=True
        Whether to fit the best candidate to all rows, as ``best_estimator_``. This reuses the
        Gram matrix of the search, and does not warn: the number of iterations was searched over.
        Of several scorers it names the one that counts; with False that is the first.
    calibration : {"sigmoid", "isotonic", None} or list, default=None
        How scores become probabilities; with None there is ``predict_proba`` only where the best
        candidate has the logistic loss. Of a list the one with the least log loss out of fold is
        taken, by the scores of the best candidate.
    one_standard_error : bool, default=False
        Whether to choose the smallest model whose score is within one standard error of the best,
        instead of the best: on small noisy sets the best is often so by chance.
    screen : bool, default=True
        Whether bad candidates are stopped early, on a sample of the rows or after few iterations:
        by their first iterate the best three of each solver continue, and half of them are stopped
        at each number in ``max_iter``, as are those behind the best of other degrees. With False
        every candidate is finished on all rows.
    alpha, beta, tol
        As in ``FPCClassifier``.
    class_weight : dict, "balanced", None or list, default=None
        As in ``FPCClassifier``; a list of them is searched over. "balanced" uses the class counts
        of all rows, not of the folds.
    n_jobs, random_state, verbose
        As in ``FPCClassifier``.
    memory_limit, checkpoint
        As in ``FPCClassifier``. Candidates whose per-row state exceeds the limit advance in groups.
    time_limit : float, default=None
        Seconds after which the best candidate so far is returned; the refit is included. Where
        there is no time to fit it to all rows it is a model of a sample: ``n_refit_rows_`` says of
        how many rows, up to 2,000 if there was no candidate yet. What was not reached is not in
        ``cv_results_``. There is a ``TimeoutError`` only if rows of two classes could not be read.
    engine : {"local", "ray"} or an engine, default="local"
        As in ``FPCClassifier``. Labels, weights and the scores of held-out rows are sent to this
        process, which compares the candidates; samples are computed here.
    columns, max_levels
        As in ``FPCClassifier``. Where labels stand for the levels of a category, the folds of that
        are those of the search.
    kernels : "auto", str or list of str, default="auto"
        The kernels, "polynomial" and "spline". "auto" leaves them to the automatic choice; where
        degrees or scalers are given it is "polynomial".
    losses : "auto", str or list of str, default="auto"
        The losses, as in ``FPCClassifier``; "auto" is that which goes with the solver.
    effort : {"normal", "high"}, default="normal"
        How much is tried where nothing is given. "high" tries all degrees, kernels and scalers,
        three pairs of solvers and losses, and lets more of them see all rows.
    threshold : {"accuracy", "f1", "balanced"} or matrix of costs, default=None
        As in ``FPCClassifier``; scorers that use classes see those of the thresholds.

    Attributes
    ----------
    best_estimator_ : FPCClassifier
        The best candidate, fitted to all rows.
    best_params_ : dict
        Its parameters, as ``FPCClassifier`` takes them.
    best_score_ : float
        Its mean score over the splits.
    best_index_ : int
        Its position in ``cv_results_``.
    cv_results_ : dict of str to array
        One entry per candidate, under scikit-learn's names: "params", "param_..." for each,
        "split0_test_score" and so on, "mean_test_score", "std_test_score", "rank_test_score"; of
        several scorers these are of the one that counts, and there is "mean_test_..." with the
        name of each; "automatic", whether it has the feature map of the automatic choice, whose
        columns may have different weights ("params" are those that were chosen, ``best_params_``
        leave them to ``FPCClassifier`` again); "n_iter", the number of iterations (the mean over
        splits); "n_rows", the rows on which it was compared last; and "status": "finished";
        "screened" or "stopped" (by the
        time limit or an interrupt), where scores are those on ``n_rows`` rows after ``n_iter``
        iterations; "overflow", where features are too large for their type; or "not run".
        Candidates that were not finished rank behind all others. There are no times, since
        candidates share their computations.
    n_splits_ : int
        The number of splits.
    n_iter_ : int
        The number of iterations of the best candidate.
    n_refit_rows_ : int
        The rows to which ``best_estimator_`` was fitted: all, or a sample if time was short.
    status_ : str
        "finished", or why the search ended early: "time_limit", "interrupted" or "callback".
    status_message_ : str
        The status as a sentence.
    scores_over_time_ : ndarray of shape (k, 2)
        The seconds after which a best score was known, and that score; those on a sample come
        before those on more rows, and may be higher.
    time_saved_ : float
        Seconds that fitting every candidate alone on every split would have taken, minus those of
        the search; an estimate from the measured times of its parts.
    timings_ : dict of str to float
        Seconds by phase, and in all ("total").
    calibrator_, calibration_report_ : dict
        With ``calibration``: as in ``FPCClassifier``.
    classes_, n_features_in_, feature_names_in_, random_state_
        As in ``FPCClassifier``.

    See Also
    --------
    FPCClassifier : The classifier with given parameters.

    Notes
    -----
    Scalers and centers are learned from all rows, including the test folds, without the labels; and
    the automatic choice is made on a sample of all rows. scikit-learn's ``GridSearchCV`` would
    learn them from the training folds alone, at the cost of one Gram matrix per candidate. What is
    learned from labels, as the levels of categories are, is learned inside the folds.

    Which candidates see how many rows depends on the sizes of the data and on scores alone: without
    ``time_limit`` the result does not depend on the speed of the machine.

    Examples
    --------
    >>> from polysift import FPCClassifierCV
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(5_000, noise=0.1, random_state=0)
    >>> search = FPCClassifierCV(solvers="paper", scalers="minmax", random_state=0).fit(X, y)
    >>> search.best_params_["kernel"], round(search.best_score_, 1)
    ('polynomial', 0.9)
    """

    def __init__(
        self,
        degrees: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "auto",
        scalers: Any = "auto",
        rhos: Any = "auto",
        solvers: Any = "auto",
        max_iter: Any = "auto",
        cv: Any = 5,
        scoring: Any = None,
        refit: bool | str = True,
        calibration: Any = None,
        one_standard_error: bool = False,
        screen: bool = True,
        alpha: float | None = None,
        beta: float | None = None,
        tol: float | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        memory_limit: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        engine: Any = "local",
        columns: Any = None,
        max_levels: int = DEFAULT_MAX_LEVELS,
        kernels: Any = "auto",
        losses: Any = "auto",
        effort: str = "normal",
        threshold: Any = None,
    ) -> None:
        self.degrees = degrees
        self.n_centers = n_centers
        self.centers = centers
        self.scalers = scalers
        self.rhos = rhos
        self.solvers = solvers
        self.max_iter = max_iter
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.calibration = calibration
        self.one_standard_error = one_standard_error
        self.screen = screen
        self.alpha = alpha
        self.beta = beta
        self.tol = tol
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.engine = engine
        self.columns = columns
        self.max_levels = max_levels
        self.kernels = kernels
        self.losses = losses
        self.effort = effort
        self.threshold = threshold

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> FPCClassifierCV:
        """Search, and fit the best candidate to all rows (with ``refit``).

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.
        y : array-like of shape (m,)
            The labels; omitted where X is a source, which has its own.
        sample_weight : array-like of shape (m,), default=None
            The weights of the rows, in fitting and in scoring: multiplicities, or relative to
            their mean, as in ``FPCClassifier.fit``. The mean is that of all rows, for every fold.
        groups : array-like of shape (m,), default=None
            The groups of the rows, for splitters that keep groups together.

        Returns
        -------
        FPCClassifierCV
            The fitted search.
        """
        began = clock.now()
        check_search_parameters(self)
        with keeping_features(self):
            source = training_source(self, X, y, sample_weight, reset=True)
            job = search_job(self, source, groups)
            levels = len(sample_sizes(source, job)) + 1
            tasks = FitTasks(self, job.most_variants() * levels, X, y, "stage")
            found = search(source, job, _StageHook(self, tasks, job.seed), began)
        self._store(found, job.seed)
        tasks.end()
        self._warn_overflow()
        if self.status_ not in ("finished", "callback"):
            self._warn_stopped()
        return self

    def plan(self, X: Any, y: Any = None, *, show: bool = True) -> Forecast:
        """Return the expected memory and time of ``fit``, without fitting.

        Parameters
        ----------
        X, y
            As in ``fit``.
        show : bool, default=True
            Whether to print it.

        Returns
        -------
        Forecast
            As that of ``FPCClassifier.plan``; its phases are those of the fit with which the
            search ends, and "search".
        """
        check_search_parameters(self)
        source = training_source(clone(self), X, y, None, reset=True)
        expected = plan_search(source, search_job(self, source, None, preview=True))
        if show:
            print(expected)
        return expected

    def _store(self, found: SearchResult, seed: int) -> None:
        best = found.rows[found.best]
        self.__dict__.update(_outcome(self, found.rows, found.best, found.classes))
        self.n_splits_ = len(best.scores)
        self.n_iter_ = round(best.iterations)
        self.status_ = "finished" if found.status is None else found.status.word
        self.timings_ = found.timings
        self.time_saved_ = float(found.seconds_alone - found.timings["total"])
        self.scores_over_time_ = np.array(found.scores_over_time, dtype=float).reshape(-1, 2)
        self.random_state_ = seed
        for name in ("best_estimator_", "n_refit_rows_", *OPTIONAL_ATTRIBUTES):
            self.__dict__.pop(name, None)
        if found.model is not None:
            if found.model.result.status is Status.INTERRUPTED:
                self.status_ = "interrupted"
            self.best_estimator_ = self._refitted(found.model, seed)
            self.n_refit_rows_ = found.model.summary["rows"]
        self.status_message_ = _sentence(found, self.status_)

    def _refitted(self, trained: Trained, seed: int) -> FPCClassifier:
        params = {name: getattr(self, name) for name in SHARED_PARAMETERS}
        if isinstance(self.class_weight, list | tuple):
            params["class_weight"] = self.class_weight[0]
        if isinstance(self.calibration, list | tuple) and trained.calibration is not None:
            self.best_params_["calibration"] = trained.calibration.calibrator.kind
        model = FPCClassifier(**params | self.best_params_, random_state=seed)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        set_fitted_attributes(model, trained, seed)
        if trained.calibration is not None:
            self.calibrator_ = model.calibrator_
            self.calibration_report_ = model.calibration_report_
        return model

    def _warn_overflow(self) -> None:
        """Warn of degrees all of whose candidates overflow."""
        degrees, status = self.cv_results_["param_degree"].data, self.cv_results_["status"]
        fallen = sorted(set(degrees) - set(degrees[status != "overflow"]))
        if fallen:
            warnings.warn(
                f"All candidates of degree {', '.join(map(str, fallen))} overflow, and were left "
                "out. Leave these degrees out, or add a scaler ('standard' and 'quantile' keep "
                "x.c near 1).",
                FitFailedWarning,
                stacklevel=3,
            )

    def _warn_stopped(self) -> None:
        go_on = "" if self.checkpoint is None else " Fit again with the same checkpoint to go on."
        warnings.warn(f"{self.status_message_}{go_on}", ConvergenceWarning, stacklevel=3 + FRAMES)

    @available_when(_is_refitted)
    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of rows: see ``FPCClassifier.decision_function``."""
        return self._model().decision_function(X)

    @available_when(_is_refitted)
    def predict(self, X: Any) -> Any:
        """Return the class of each row: see ``FPCClassifier.predict``."""
        return self._model().predict(X)

    @available_when(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class: see ``FPCClassifier.predict_proba``."""
        calibrator_of(self._model())  # raises if calibration was set after the search
        return self._model().predict_proba(X)

    @available_when(_is_refitted)
    def predict_to(self, X: Any, path: Any, **options: Any) -> None:
        """Write predictions to a file: see ``FPCClassifier.predict_to``."""
        self._model().predict_to(X, path, **options)

    @available_when(_is_refitted)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the best estimator on rows and their labels, by ``scoring``.

        Parameters
        ----------
        X : array-like of shape (m, d), or DataSource
            The rows; a source can only be scored by the accuracy.
        y : array-like of shape (m,), optional
            The labels, where X is not a source.
        sample_weight : array-like of shape (m,), default=None
            The weights of the rows.

        Returns
        -------
        float
            The score.
        """
        model = self._model()
        scorer = next(iter(check_scorers(self.scoring, self.refit).values()))
        if scorer is None or isinstance(X, DataSource):
            if scorer is not None:
                raise ValueError(
                    f"scoring={self.scoring!r} cannot score a data source, which is read in parts. "
                    "Use best_estimator_.score for its accuracy, or pass arrays."
                )
            return model.score(X, y, sample_weight)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(model, X, y, **weights))

    def _model(self) -> FPCClassifier:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_


def check_type(does: str, estimator: Any, *kinds: type) -> None:
    """Raise a TypeError unless an estimator is of one of these kinds; ``does`` begins its text."""
    if isinstance(estimator, kinds):
        return
    hint = " Of a pipeline pass its last step, pipeline[-1]." if hasattr(estimator, "steps") else ""
    is_class = isinstance(estimator, type)
    came = f"the class {estimator.__name__}" if is_class else type(estimator).__name__
    expected = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{does} a fitted {expected}; got {came}.{hint}")


def classifier_of(does: str, estimator: Any) -> FPCClassifier:
    """Return a fitted classifier: the given one, or the best one of a search.

    ``does`` begins the text of errors, such as "to_onnx exports".
    """
    check_type(does, estimator, FPCClassifier, FPCClassifierCV)
    if isinstance(estimator, FPCClassifier):
        check_is_fitted(estimator, "coef_")
        return estimator
    check_is_fitted(estimator, "classes_")
    if not hasattr(estimator, "best_estimator_"):
        raise ValueError(
            f"{does} the refitted classifier of a search, but refit=False made none. Set "
            "refit=True, or fit FPCClassifier(**search.best_params_) and pass that."
        )
    return estimator.best_estimator_

"""``FPCClassifierCV``: the parameters chosen by cross-validation, at about the cost of one fit.

The checks at the end are for functions that take a fitted classifier or a search.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils.validation import check_is_fitted

from polysift.data.inputs import keeping_features, training_source
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier
from polysift.estimators.conventions import PolysiftEstimator, available_when
from polysift.estimators.fitted import (
    FRAMES,
    CallbackSupportMixin,
    FitTasks,
    calibrator_of,
    is_calibrated,
    set_fitted_attributes,
    with_callbacks,
)
from polysift.estimators.headline import ShowsHeadline
from polysift.features.feature_map import DEFAULT_MAX_LEVELS
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import Row, SearchResult, choose, cv_results
from polysift.selection.job import check_search_parameters, search_job
from polysift.selection.scoring import check_scorer
from polysift.selection.search import search
from polysift.solvers.result import Status
from polysift.training.fit import Trained

SHARED_PARAMETERS = (
    "alpha",
    "beta",
    "tol",
    "class_weight",
    "n_jobs",
    "memory_limit",
    "calibration",
    "engine",
    "columns",
    "max_levels",
)
"""Parameters of the search that the refitted classifier gets unchanged."""


def _is_refitted(estimator: Any) -> bool:
    if not estimator.refit:
        raise AttributeError(
            f"{type(estimator).__name__}(refit=False) only searches. Set refit=True, or fit "
            "FPCClassifier(**search.best_params_)."
        )
    return True


def _has_probabilities(estimator: Any) -> bool:
    return _is_refitted(estimator) and is_calibrated(estimator)


def _outcome(search: Any, rows: list[Row], best: int, classes: Any) -> dict[str, Any]:
    """Return the fitted attributes that tell the candidates and the best of them."""
    return {
        "classes_": classes,
        "cv_results_": cv_results(rows),
        "best_index_": best,
        "best_params_": {"centers": search.centers, **rows[best].params},
        "best_score_": float(rows[best].mean),
    }


class _StageHook:
    """Reports the stages of a search to callbacks, each with the candidates so far."""

    def __init__(self, search: Any, tasks: FitTasks) -> None:
        self._search, self._tasks = search, tasks

    def begin(self) -> None:
        """Report the begin of a stage."""
        self._tasks.begin_part()

    def end(self, rows: list[Row], classes: Any) -> bool:
        """Report the end of a stage; return whether to end the search."""
        best = choose(rows)
        assert best is not None
        return self._tasks.end_part(lambda: _outcome(self._search, rows, best, classes))


class FPCClassifierCV(
    ShowsHeadline, PolysiftEstimator, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """``FPCClassifier`` with its parameters chosen by cross-validation.

    The candidates are all combinations of scalers, degrees, numbers of centers, ratios rho,
    solvers and numbers of iterations. They share their computations. For each scaler and degree one
    pass over the data gives the Gram matrices of all folds, whose leading blocks are those of fewer
    centers. The first iterate of every candidate is a ridge solution in closed form, and one pass
    scores all of them on the rows that were held out. Those that continue advance together, as
    columns of one matrix, in the same passes.

    Parameters
    ----------
    degrees : {"auto", "paper"}, int or list of int, default="auto"
        The degrees. "paper" is 1 to s_max of ``degree_bound``; "auto" is 1 to max(s_max, 5), since
        with rows as centers degrees beyond s_max pay in high dimension. Degrees that overflow
        are left out, with a warning.
    n_centers : "auto", int or list of int, default="auto"
        The numbers of centers; a smaller number uses the first of the larger. "auto" is up to five,
        from min(C(s+d, s), 1000) down by halves. A number above the largest possible counts as
        that.
    centers : {"auto", "uniform", "first", "random"} or array of shape (n, d), default="auto"
        How the centers are chosen, as in ``FPCClassifier``; "auto" depends on the largest n.
    scalers : str, None or list of them, default=("minmax", "quantile")
        The scalers, as in ``FPCClassifier``; "quantile" is left out for sparse rows.
    rhos : float, None or list of them, default=(None, 1e-9, 1e-6, 1e-3)
        The ratios alpha / beta relative to trace(G) / n, as ``rho`` in ``FPCClassifier``; None is
        the solver's default: the paper's alpha = 1, or the floor of "converged".
    solvers : str or list of str, default=("paper", "converged")
        The solvers.
    max_iter : int or list of int, default=(30, 100, 300)
        The numbers of iterations at which candidates of "converged" are evaluated, all in one run.
        Candidates of "paper" have up to five iterations.
    cv : int, float, splitter or iterable, default=5
        How candidates are compared: a number of stratified folds, the share of a single validation
        part (such as 0.33), a scikit-learn splitter, or pairs of training and test rows.
    scoring : str or callable, default=None
        A scikit-learn scorer, which may use classes, scores or probabilities, but not X. None is
        the accuracy. Probabilities are computed from the scores by ``calibration``, or by a
        sigmoid, learned from other folds. Sample weights are used where the scorer takes any.
    refit : bool, default=True
        Whether to fit the best candidate to all rows, as ``best_estimator_``. This reuses the
        Gram matrix of the search, and does not warn: the number of iterations was searched over.
    calibration : {"sigmoid", "isotonic", None}, default=None
        How scores become probabilities; with None there is no ``predict_proba``.
    one_standard_error : bool, default=False
        Whether to choose the smallest model whose score is within one standard error of the best,
        instead of the best: on small noisy sets the best is often so by chance.
    screen : bool, default=True
        Whether bad candidates are stopped early: all are compared by their first iterate, the best
        three numbers of centers of each degree and solver continue, and half of them are stopped
        at each number in ``max_iter``, as are those behind the best of other degrees. With False
        every candidate is finished.
    alpha, beta, tol, class_weight
        As in ``FPCClassifier``. "balanced" uses the class counts of all rows, not of the folds.
    n_jobs, random_state, verbose
        As in ``FPCClassifier``.
    memory_limit, checkpoint
        As in ``FPCClassifier``. Candidates whose per-row state exceeds the limit advance in groups.
    time_limit : float, default=None
        Seconds after which the best candidate so far is chosen. The search tries to leave time for
        the refit, which is always finished. Degrees that were not reached are not in
        ``cv_results_``.
    engine : {"local", "ray"} or an engine, default="local"
        As in ``FPCClassifier``. Labels, weights and the scores of held-out rows are sent to this
        process, which compares the candidates.
    columns, max_levels
        As in ``FPCClassifier``. Where labels stand for the levels of a category, the folds of that
        are those of the search.

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
        "split0_test_score" and so on, "mean_test_score", "std_test_score", "rank_test_score"; and
        "n_iter", the number of iterations (the mean over splits), and "status": "finished";
        "screened" or "stopped" (by the time limit or an interrupt), where scores are those after
        ``n_iter`` iterations; "overflow", where features are too large for their type; or "not
        run". Candidates that were not finished rank behind all others. There are no times, since
        candidates share their computations.
    n_splits_ : int
        The number of splits.
    n_iter_ : int
        The number of iterations of the best candidate.
    status_ : str
        "finished", or why the search ended early: "time_limit", "interrupted" or "callback".
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
    Scalers and centers are learned from all rows, including the test folds, without the labels.
    scikit-learn's ``GridSearchCV`` would learn them from the training folds alone, at the cost of
    one Gram matrix per candidate.

    Examples
    --------
    >>> from polysift import FPCClassifierCV
    >>> from polysift.datasets import make_bayes_curve
    >>> X, y = make_bayes_curve(5_000, noise=0.1, random_state=0)
    >>> search = FPCClassifierCV(solvers="paper", scalers="minmax", random_state=0).fit(X, y)
    >>> search.best_params_["degree"] > 5
    True
    """

    def __init__(
        self,
        degrees: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "auto",
        scalers: Any = ("minmax", "quantile"),
        rhos: Any = (None, 1e-9, 1e-6, 1e-3),
        solvers: Any = ("paper", "converged"),
        max_iter: Any = (30, 100, 300),
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        calibration: str | None = None,
        one_standard_error: bool = False,
        screen: bool = True,
        alpha: float = 1.0,
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
        check_search_parameters(self)
        with keeping_features(self):
            source = training_source(self, X, y, sample_weight, reset=True)
            job = search_job(self, source, groups)
            tasks = FitTasks(self, len(job.degrees) * len(job.scalers), X, y, "stage")
            found = search(source, job, _StageHook(self, tasks))
        self._store(found, job.seed)
        tasks.end()
        self._warn_overflow()
        if self.status_ not in ("finished", "callback"):
            self._warn_stopped(found)
        return self

    def _store(self, found: SearchResult, seed: int) -> None:
        best = found.rows[found.best]
        self.__dict__.update(_outcome(self, found.rows, found.best, found.classes))
        self.n_splits_ = len(best.scores)
        self.n_iter_ = round(best.iterations)
        self.status_ = "finished" if found.status is None else found.status.word
        if found.model is not None and found.model.result.status is Status.INTERRUPTED:
            self.status_ = "interrupted"
        self.timings_ = found.timings
        self.time_saved_ = float(found.seconds_alone - found.timings["total"])
        self.random_state_ = seed
        for name in ("best_estimator_", "calibrator_", "calibration_report_"):
            self.__dict__.pop(name, None)
        if found.model is not None:
            self.best_estimator_ = self._refitted(found.model, seed)

    def _refitted(self, trained: Trained, seed: int) -> FPCClassifier:
        params = {name: getattr(self, name) for name in SHARED_PARAMETERS}
        model = FPCClassifier(**self.best_params_, **params, random_state=seed)
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

    def _warn_stopped(self, found: SearchResult) -> None:
        finished = sum(row.finished for row in found.rows)
        go_on = "" if self.checkpoint is None else " Fit again with the same checkpoint to go on."
        what = f"the best of {finished} finished candidates was taken"
        if found.model is not None and found.model.result.status is Status.INTERRUPTED:
            what += ", and its refit was cut short, too"
        why = "time_limit struck" if found.status is Status.TIME_LIMIT else "interrupted"
        warnings.warn(
            f"The search ended early ({why}): {what}.{go_on}",
            ConvergenceWarning,
            stacklevel=3 + FRAMES,
        )

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
        scorer = check_scorer(self.scoring)
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

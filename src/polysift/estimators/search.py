"""``FPCClassifierCV``: model selection for about the price of one fit.

The classifier behind what a user passes: a fitted classifier, or a search with its best one.
"""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polysift.data.inputs import keeping_features, training_source
from polysift.data.source import DataSource
from polysift.estimators.classifier import FPCClassifier, is_calibrated
from polysift.runtime.types import FloatArray
from polysift.selection.candidates import SearchResult, cv_results
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
)
"""What the refitted classifier takes over as it is."""


def _is_refitted(estimator: Any) -> bool:
    if not estimator.refit:
        raise AttributeError(
            f"{type(estimator).__name__}(refit=False) only searches. Set refit=True, or fit "
            "FPCClassifier(**search.best_params_)."
        )
    return True


def _has_probabilities(estimator: Any) -> bool:
    return _is_refitted(estimator) and is_calibrated(estimator)


class FPCClassifierCV(ClassifierMixin, BaseEstimator):
    """``FPCClassifier`` with its parameters chosen by cross-validation.

    The candidates are all combinations of scalers, degrees, numbers of centers, ratios rho,
    solvers and numbers of iterations. They share their work. For each scaler and degree one pass
    over the data gives the Gram matrices of all folds, whose leading blocks are those of fewer
    centers. The first iterate of every candidate is a ridge solution in closed form, and one pass
    scores all of them on the rows they did not see. Those that go on advance together, as columns
    of one matrix, through the same passes.

    Parameters
    ----------
    degrees : {"auto", "paper"}, int or list of int, default="auto"
        The degrees. "paper" is 1 to s_max of ``degree_bound``; "auto" is 1 to max(s_max, 5), since
        with rows as centers degrees beyond s_max pay in high dimension; those that overflow are
        left out.
    n_centers : "auto", int or list of int, default="auto"
        The numbers of centers; a smaller one takes the first of the larger. "auto" is up to five,
        from min(C(s+d, s), 1000) down by halves. More than there can be count as that many.
    centers : {"auto", "uniform", "first", "random"} or array of shape (n, d), default="auto"
        Where the centers come from, as in ``FPCClassifier``; "auto" looks at the largest n.
    scalers : str, None or list of them, default=("minmax", "quantile")
        The scalers, as in ``FPCClassifier``; sparse rows go without "quantile".
    rhos : float, None or list of them, default=(None, 1e-9, 1e-6, 1e-3)
        The ratios alpha / beta relative to trace(G) / n, as ``rho`` in ``FPCClassifier``; None is
        the solver's own: the paper's alpha = 1, or the floor of the converged mode.
    solvers : str or list of str, default=("paper", "converged")
        The solvers.
    max_iter : int or list of int, default=(30, 100, 300)
        The iterations at which candidates of the converged mode are read off, all from one run.
        Those of the paper's solver have up to five.
    cv : int, float, splitter or iterable, default=5
        How candidates are compared: by so many stratified folds, on a single validation part with
        this share of the rows (0.33, say), by a scikit-learn splitter, or by the given pairs of
        training and test rows.
    scoring : str or callable, default=None
        A scikit-learn scorer, which may look at classes, scores or probabilities, but not at X.
        None is the accuracy. Probabilities are made of the scores by ``calibration``, or a sigmoid,
        learned from other folds. Rows count by their sample weights where the scorer takes any.
    refit : bool, default=True
        Whether to fit the best candidate to all rows, as ``best_estimator_``. This reuses the
        Gram matrix of the search, and does not warn: whether to go on was part of the search.
    calibration : {"sigmoid", "isotonic", None}, default=None
        How scores become probabilities; without it there is no ``predict_proba``.
    one_standard_error : bool, default=False
        Whether to take the smallest model whose score is within one standard error of the best,
        not the best: on small noisy sets the best is often luck.
    screen : bool, default=True
        Whether candidates that do badly stop early: all are judged by their first iterate, the
        best three numbers of centers of each degree and solver go on, and half of them are left at
        each number in ``max_iter``, as is who is behind the best of other degrees. With False
        every candidate is run to its end.
    alpha, beta, tol, class_weight
        As in ``FPCClassifier``. "balanced" looks at all rows, not at the folds.
    n_jobs, random_state, verbose
        As in ``FPCClassifier``.
    memory_limit, checkpoint
        As in ``FPCClassifier``. Candidates whose per-row state exceeds the limit advance in groups.
    time_limit : float, default=None
        Seconds after which the best candidate so far is taken. The search tries to leave time for
        the refit, which is always done in full. Degrees that were not reached are not in
        ``cv_results_``.
    engine : {"local", "ray"} or an engine, default="local"
        As in ``FPCClassifier``. Labels, weights and the scores of rows that were held out come to
        this process, which compares the candidates.

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
        "n_iter", the iterations done (the mean over splits), and "status": "finished"; "screened"
        or "stopped" (by the time limit, or by hand), where scores are those after ``n_iter``
        iterations; or "not run". Candidates that were not finished rank behind all others. There
        are no times, since candidates share them.
    n_splits_ : int
        The number of splits.
    n_iter_ : int
        The iterations of the best candidate.
    status_ : str
        "finished", or why the search ended early: "time_limit" or "interrupted".
    time_saved_ : float
        Seconds that fitting every candidate alone on every split would have taken, beyond what the
        search took; an estimate by the measured times of its parts.
    timings_ : dict of str to float
        Seconds by phase, and in all ("total").
    calibrator_, calibration_report_ : dict
        With ``calibration``: as in ``FPCClassifier``.
    classes_, n_features_in_, feature_names_in_, random_state_
        As in ``FPCClassifier``.

    See Also
    --------
    FPCClassifier : One candidate.

    Notes
    -----
    Scalers and centers are learned from all rows, those of the test folds included; labels are not
    looked at. A pipeline in scikit-learn's ``GridSearchCV`` would learn them from the training
    folds alone, at the price of a Gram matrix per candidate.

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

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> FPCClassifierCV:
        """Search, and fit the best candidate to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or DataSource of shape (m, d)
            The rows.
        y : array-like of shape (m,)
            The labels; left out where X is a source, which brings its own.
        sample_weight : array-like of shape (m,), default=None
            How often each row counts, in learning and in scoring.
        groups : array-like of shape (m,), default=None
            For splitters that keep groups of rows together.

        Returns
        -------
        FPCClassifierCV
            The fitted search.

        Examples
        --------
        >>> from polysift import FPCClassifierCV
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(500, noise=0.1, random_state=0)
        >>> search = FPCClassifierCV(degrees=(1, 5), solvers="paper", random_state=0)
        >>> search.fit(X, y).best_params_["degree"]
        5
        """
        check_search_parameters(self)
        with keeping_features(self):
            source = training_source(self, X, y, sample_weight, reset=True)
            job = search_job(self, source, groups)
            found = search(source, job)
        self._store(found, job.seed)
        if self.status_ != "finished":
            self._warn_stopped(found)
        return self

    def _store(self, found: SearchResult, seed: int) -> None:
        best = found.rows[found.best]
        self.classes_ = found.classes
        self.cv_results_ = cv_results(found.rows)
        self.best_index_ = found.best
        self.best_params_ = {"centers": self.centers, **best.params}
        self.best_score_ = float(best.mean)
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
        model.take_over(trained, seed)
        if trained.calibration is not None:
            self.calibrator_ = model.calibrator_
            self.calibration_report_ = model.calibration_report_
        return model

    def _warn_stopped(self, found: SearchResult) -> None:
        finished = sum(row.finished for row in found.rows)
        go_on = "" if self.checkpoint is None else " Fit again with the same checkpoint to go on."
        what = f"the best of {finished} finished candidates was taken"
        if found.model is not None and found.model.result.status is Status.INTERRUPTED:
            what += ", and its refit was cut short, too"
        why = "time_limit struck" if found.status is Status.TIME_LIMIT else "interrupted"
        warnings.warn(
            f"The search ended early ({why}): {what}.{go_on}", ConvergenceWarning, stacklevel=3
        )

    @available_if(_is_refitted)
    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of rows: see ``FPCClassifier.decision_function``.

        Examples
        --------
        >>> from polysift import FPCClassifierCV
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(500, noise=0.1, random_state=0)
        >>> search = FPCClassifierCV(degrees=(1, 5), solvers="paper", random_state=0)
        >>> search.fit(X, y).decision_function(X[:3]).shape
        (3,)
        """
        return self._model().decision_function(X)

    @available_if(_is_refitted)
    def predict(self, X: Any) -> Any:
        """Return the class of each row: see ``FPCClassifier.predict``.

        Examples
        --------
        >>> from polysift import FPCClassifierCV
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(500, noise=0.1, random_state=0)
        >>> search = FPCClassifierCV(degrees=(1, 5), solvers="paper", random_state=0)
        >>> search.fit(X, y).predict([[0.1, 0.1], [0.9, 0.9]])
        array([-1,  1])
        """
        return self._model().predict(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class: see ``FPCClassifier.predict_proba``.

        Examples
        --------
        >>> from polysift import FPCClassifierCV
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(500, noise=0.1, random_state=0)
        >>> search = FPCClassifierCV(degrees=(1, 5), solvers="paper", random_state=0)
        >>> search.set_params(calibration="sigmoid").fit(X, y).predict_proba(X[:3]).shape
        (3, 2)
        """
        return self._model().predict_proba(X)

    @available_if(_is_refitted)
    def predict_to(self, X: Any, path: Any, **options: Any) -> None:
        """Write predictions to a file: see ``FPCClassifier.predict_to``.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from polysift import FPCClassifierCV
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(500, noise=0.1, random_state=0)
        >>> search = FPCClassifierCV(degrees=(1, 5), solvers="paper", random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "predictions.csv"
        ...     search.fit(X, y).predict_to(X[:2], path, scores=False)
        ...     path.read_text().split()
        ['"prediction"', '1', '1']
        """
        self._model().predict_to(X, path, **options)

    @available_if(_is_refitted)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the best estimator on other rows, by ``scoring``.

        Parameters
        ----------
        X : array-like of shape (m, d), or DataSource
            The rows; a source can only be scored by its accuracy.
        y : array-like of shape (m,), optional
            The labels, where X is no source.
        sample_weight : array-like of shape (m,), default=None
            The rows' weights.

        Returns
        -------
        float
            The score.

        Examples
        --------
        >>> from polysift import FPCClassifierCV
        >>> from polysift.datasets import make_bayes_curve
        >>> X, y = make_bayes_curve(500, noise=0.1, random_state=0)
        >>> search = FPCClassifierCV(degrees=(1, 5), solvers="paper", random_state=0)
        >>> round(search.fit(X, y).score(X, y), 2)  # one label in ten is reversed
        0.88
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_type(does: str, estimator: Any, *kinds: type) -> None:
    """Raise unless an estimator is of one of these kinds; ``does`` begins the message."""
    if isinstance(estimator, kinds):
        return
    hint = " Of a pipeline pass its last step, pipeline[-1]." if hasattr(estimator, "steps") else ""
    is_class = isinstance(estimator, type)
    came = f"the class {estimator.__name__}" if is_class else type(estimator).__name__
    expected = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{does} a fitted {expected}; got {came}.{hint}")


def classifier_of(does: str, estimator: Any) -> FPCClassifier:
    """Return a fitted classifier: the given one, or the best of a search.

    ``does`` is who needs it for what, such as "to_onnx exports".
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

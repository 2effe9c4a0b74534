"""scikit-learn's fit callbacks, which 1.9 and newer have."""

import numpy as np
import pytest

from polysift import FPCClassifierCV
from problems import noisy_problem, paper_classifier
from recording import Recorder

callback = pytest.importorskip(
    "sklearn.callback", reason="this scikit-learn has no callbacks (1.9 and newer have)"
)

X, Y = noisy_problem(np.random.default_rng(0), 30_000, 4)


def test_callbacks_see_each_iteration_and_may_stop():
    recorder = Recorder()
    paper_classifier(3, max_iter=4, tol=1e-300).set_callbacks(recorder).fit(X, Y)
    assert recorder.ended == ["iteration"] * 4 + ["fit"]
    assert sorted(recorder.begun) == sorted(recorder.ended)
    for settings in ({"max_iter": 5}, {"max_iter": 3, "tol": 0}):
        balanced = Recorder()
        paper_classifier(3, **settings).set_callbacks(balanced).fit(X, Y)
        assert sorted(balanced.begun) == sorted(balanced.ended)
    assert recorder.set_up == recorder.torn_down == 1
    assert min(recorder.scores) > 0.6
    stopper = Recorder(stop_after=2)
    clf = paper_classifier(3, max_iter=9, tol=1e-300).set_callbacks(stopper).fit(X, Y)
    assert clf.n_iter_ == 2 and clf.status_ == "callback"


def test_scikit_learns_progress_bar_works_alone_and_in_a_search(capsys):
    pytest.importorskip("rich")
    from sklearn.model_selection import GridSearchCV

    paper_classifier(2).set_callbacks(callback.ProgressBar()).fit(X[:2000], Y[:2000])
    search = GridSearchCV(paper_classifier(), {"degree": [1, 2]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X[:2000], Y[:2000])
    assert "FPCClassifier" in capsys.readouterr().out


class Follower(Recorder):
    """Records the best score after each stage of a search."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, X=None, y=None):
        self.ended.append(context.task_name)
        if context.task_name == "stage":
            tried = fitted_estimator.cv_results_["param_degree"]
            best = fitted_estimator.best_params_["degree"], fitted_estimator.best_score_
            self.scores.append((set(tried.tolist()), *best))
        return self.stop_after is not None and self.ended.count("stage") >= self.stop_after


def test_a_search_tells_its_stages_and_may_be_stopped():
    settings = {"degrees": (1, 2, 3), "scalers": "minmax", "n_centers": 4, "solvers": "paper"}
    make = FPCClassifierCV(**settings, cv=2, random_state=0)
    plain, follower = make.fit(X[:2000], Y[:2000]).best_score_, Follower()
    search = make.set_callbacks(follower).fit(X[:2000], Y[:2000])
    assert follower.ended == ["stage"] * 3 + ["fit"] and sorted(follower.begun) == sorted(
        follower.ended
    )
    tried, degrees, best = zip(*follower.scores, strict=True)
    assert tried == ({3}, {2, 3}, {1, 2, 3}) and list(best) == sorted(best)
    assert search.best_score_ == best[-1] == plain and search.best_params_["degree"] == degrees[-1]
    stopped = make.set_callbacks(Follower(stop_after=1)).fit(X[:2000], Y[:2000])
    assert stopped.status_ == "callback" and stopped.best_params_["degree"] == 3
    assert stopped.predict(X[:5]).shape == (5,)

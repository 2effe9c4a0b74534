"""Evaluations against scikit-learn's metrics; output files; what is kept of a training."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    roc_auc_score,
)

from polysift import FPCClassifierCV, open_data
from polysift.reporting.evaluation import evaluate
from polysift.runtime.memory import MemoryMeter, peak_memory
from polysift.runtime.outputs import check_output, replacing
from polysift.training.evaluation import MAX_CURVE_POINTS
from problems import noisy_problem, optional, paper_classifier

pd = optional("pandas")


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes(rng, weighted):
    X, y = noisy_problem(rng, 3000, 3)
    weights = rng.integers(0, 4, 1500).astype(float) if weighted else None
    clf = paper_classifier(degree=2, calibration="sigmoid", random_state=0).fit(X[:1500], y[:1500])
    found = evaluate(clf, X[1500:], y[1500:], weights)
    truth, predicted = y[1500:], clf.predict(X[1500:])
    p, scores = clf.predict_proba(X[1500:]), clf.decision_function(X[1500:])
    given = {"sample_weight": weights}
    assert found.accuracy == pytest.approx(accuracy_score(truth, predicted, **given))
    assert found.balanced_accuracy == pytest.approx(
        balanced_accuracy_score(truth, predicted, **given)
    )
    assert found.roc_auc == pytest.approx(roc_auc_score(truth, scores, **given))
    assert found.log_loss == pytest.approx(log_loss(truth, p, **given))
    assert found.brier_score == pytest.approx(brier_score_loss(truth, p[:, 1], **given))
    np.testing.assert_allclose(found.confusion, confusion_matrix(truth, predicted, **given))
    assert found.rows == 1500 and found.unknown == 0
    ((name, fpr, tpr),) = found.roc
    assert name == "1" and len(fpr) <= MAX_CURVE_POINTS
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert json.loads(json.dumps(found.to_dict()))["roc_auc"] == found.roc_auc


def test_many_classes_and_no_probabilities():
    X, y = load_digits(return_X_y=True)
    clf = paper_classifier(degree=2, n_centers=200, random_state=0).fit(X[::2], y[::2])
    found = evaluate(clf, X[1::2], y[1::2])
    scores, truth = clf.decision_function(X[1::2]), y[1::2]
    areas = [roc_auc_score(truth == k, scores[:, k]) for k in range(10)]
    assert found.roc_auc == pytest.approx(np.mean(areas))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(truth, clf.predict(X[1::2])))
    assert found.log_loss is None and found.reliability is None
    assert found.to_dict()["brier_score"] is None


def test_labels_the_model_does_not_know(rng):
    X, y = noisy_problem(rng, 400, 2)
    clf = paper_classifier(degree=2, random_state=0).fit(X, y)
    labels = y.copy()
    labels[:100] = 7
    found = evaluate(clf, X, labels)
    assert found.unknown == 100
    assert found.confusion.sum() == 300
    known = evaluate(clf, X[100:], y[100:])
    assert found.figures == known.figures, "rows of unknown classes count in no figure"
    alone = evaluate(clf, X, np.full(400, 7))
    assert alone.figures == {} and alone.accuracy is None
    one = evaluate(clf, X[y == 1], y[y == 1])
    assert one.roc_auc is None and one.balanced_accuracy == one.accuracy


def test_sources(rng):
    X, y = noisy_problem(rng, 500, 2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(label=np.where(y > 0, "yes", "no"))
    source = open_data(frame, target="label")
    clf = paper_classifier(degree=2, random_state=0).fit(source)
    found = evaluate(clf, open_data(frame[["b", "label", "a"]], target="label"))
    assert found.accuracy == clf.score(source)
    with pytest.raises(ValueError, match="can never be equal"):
        evaluate(clf, open_data(frame.assign(label=1), target="label"))
    with pytest.raises(ValueError, match="weights are zero"):
        evaluate(clf, open_data(frame.assign(w=0.0), target="label", weight="w"))


class TestTrainingSummary:
    def test_what_is_kept(self, rng, tmp_path):
        X, y = noisy_problem(rng, 300, 2)
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y, w=np.arange(300) % 2)
        frame.to_csv(tmp_path / "rows.csv", index=False)
        source = open_data(tmp_path / "rows.csv", target="y", weight="w")
        clf = paper_classifier(degree=2, random_state=0, memory_limit="1GB", n_jobs=1).fit(source)
        summary = clf.training_summary_
        assert summary["rows"] == 300
        assert summary["origin"] == str(tmp_path / "rows.csv")
        counts = [frame.w[frame.y == label].sum() for label in (-1, 1)]
        np.testing.assert_array_equal(summary["class_counts"], counts)
        assert summary["threads"] == 1 and summary["memory_limit"] == 1e9
        assert 0 < summary["expected_memory"] < 1e9

    def test_of_a_search(self, rng):
        X, y = noisy_problem(rng, 300, 2)
        search = FPCClassifierCV(degrees=2, solvers="paper", random_state=0).fit(X, y)
        summary = search.best_estimator_.training_summary_
        assert summary["rows"] == 300 and summary["origin"] is None
        assert summary["expected_memory"] is None

    def test_several_files(self, rng, tmp_path):
        X, y = noisy_problem(rng, 300, 2)
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
        for part in range(3):
            frame[part::3].to_parquet(tmp_path / f"{part}.parquet")
        clf = paper_classifier(degree=2, random_state=0)
        clf.fit(open_data(tmp_path / "*.parquet", target="y"))
        assert clf.training_summary_["origin"] == f"{tmp_path / '0.parquet'} and 2 more"


def test_memory_meter():
    if peak_memory() is None:
        pytest.skip("the system does not tell a process's peak memory")
    meter = MemoryMeter()
    block = np.ones(peak_memory() // 8)
    grown = meter.growth()
    assert grown is not None and grown > 0.9 * block.nbytes
    del block
    later = MemoryMeter()
    assert later.growth() is None, "what was larger before hides what is smaller now"


class TestFiles:
    def test_a_failure_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "x.txt"
        path.write_text("old")
        with pytest.raises(UnicodeEncodeError), replacing(path) as file:
            file.writelines(text.encode() for text in ("half ", "\ud800"))
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
        with replacing(path) as file:
            file.write(b"new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"

    def test_checks(self, tmp_path):
        path = tmp_path / "x.csv"
        assert check_output(path, overwrite=False, endings=(".csv",)) == path
        path.write_text("")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            check_output(path, overwrite=False)
        assert check_output(path, overwrite=True) == path
        with pytest.raises(ValueError, match=r"end in \.onnx"):
            check_output(path, overwrite=True, endings=(".onnx",))
        with pytest.raises(FileNotFoundError, match="create it first"):
            check_output(tmp_path / "no" / "x.csv", overwrite=False)
        with pytest.raises(IsADirectoryError, match="is a folder"):
            check_output(tmp_path, overwrite=True)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="device or a pipe"):
            check_output(tmp_path / "pipe", overwrite=True)

    def test_rows_are_not_replaced_by_their_predictions(self, rng, tmp_path):
        X, y = noisy_problem(rng, 100, 2)
        path = tmp_path / "rows.parquet"
        pd.DataFrame(X, columns=["a", "b"]).to_parquet(path)
        clf = paper_classifier(degree=2, random_state=0).fit(pd.read_parquet(path), y)
        before = path.read_bytes()
        with pytest.raises(ValueError, match="holds the rows themselves"):
            clf.predict_to(open_data(path), path, overwrite=True)
        assert path.read_bytes() == before

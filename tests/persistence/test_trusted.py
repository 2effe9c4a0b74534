"""Files of skops and MLflow, which load only what they are told to trust."""

import os

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polysift
from mixed_tables import mixed_table
from polysift import FPCClassifier, FPCClassifierCV, PolynomialKernelMap, RayCluster
from problems import noisy_problem, optional, paper_classifier

skops_io = optional("skops.io")

pytestmark = pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")


def models(rng):
    X, y = noisy_problem(rng, 200, 2)
    search = FPCClassifierCV(degrees=(1, 2), n_centers=5, cv=2, random_state=0)
    ray = paper_classifier(2, random_state=0).fit(X, y).set_params(engine=RayCluster(workers=2))
    return X, [
        FPCClassifier(random_state=0, n_centers=20).fit(X, y),
        paper_classifier(2, random_state=0).partial_fit(X, y, [-1, 1]),
        make_pipeline(StandardScaler(), search).fit(X, y),
        make_pipeline(PolynomialKernelMap(2, random_state=0), paper_classifier(1)).fit(X, y),
        ray,
    ]


def test_skops_needs_no_other_trust(rng):
    X, fitted = models(rng)
    for model in fitted:
        stored = skops_io.dumps(model)
        assert set(skops_io.get_untrusted_types(data=stored)) <= set(polysift.TRUSTED_TYPES)
        again = skops_io.loads(stored, trusted=polysift.TRUSTED_TYPES)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.needs("skops", "pandas")
def test_skops_with_a_table():
    frame, y = mixed_table()
    clf = FPCClassifier(n_centers=20, max_levels=20, random_state=0).fit(frame, y)
    again = skops_io.loads(skops_io.dumps(clf), trusted=polysift.TRUSTED_TYPES)
    np.testing.assert_array_equal(again.predict_proba(frame), clf.predict_proba(frame))


@pytest.mark.needs("mlflow", "skops", "pandas")
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow_with_a_file_store(tmp_path, monkeypatch, rng):
    import mlflow

    monkeypatch.setitem(os.environ, "MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    X, fitted = models(rng)
    options = {
        "serialization_format": "skops",
        "skops_trusted_types": polysift.TRUSTED_TYPES,
        "pip_requirements": ["polysift"],
    }
    for number, model in enumerate(fitted):
        mlflow.sklearn.save_model(model, tmp_path / f"model-{number}", **options)
        again = mlflow.sklearn.load_model(str(tmp_path / f"model-{number}"))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        served = mlflow.pyfunc.load_model(str(tmp_path / f"model-{number}"))
        np.testing.assert_array_equal(served.predict(X), model.predict(X))
    with mlflow.start_run():
        logged = mlflow.sklearn.log_model(fitted[0], name="model", **options)
    again = mlflow.sklearn.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.predict_proba(X), fitted[0].predict_proba(X))

"""The engine on Ray: real worker processes, and the same model to the last bit."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polysift import FPCClassifierCV, RayCluster, WorkersLostError, open_data
from polysift.cluster import held_rows, ray_cluster
from polysift.cluster.backend import ClusterBackend
from polysift.cluster.engine import ClusterEngine
from polysift.cluster.ray_cluster import RayWorkers
from polysift.cluster.scheduler import LostError
from polysift.engine import compiled
from polysift.runtime import checkpoints
from polysift.solvers import newton
from polysift.solvers.admm import Admm
from problems import paper_classifier
from searching import at_call

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

pytestmark = pytest.mark.usefixtures("four_workers")

M = 40_000
WORKERS = 1, 2, 4
CONVERGED = {"solver": "converged", "max_iter": 12, "tol": 0.0}
MODES = [
    pytest.param({}, id="paper"),
    pytest.param(CONVERGED, id="converged"),
    pytest.param({"calibration": "sigmoid"}, id="calibrated"),
]

ignore_unfinished = pytest.mark.filterwarnings("ignore:solver='converged' stopped")


@pytest.fixture(autouse=True)
def numpy_alone():
    """Leave the compiled loops out, which each new worker would compile or load first."""
    with compiled.disabled():
        yield


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.random((M, 4))
    z = X[:, 0] * X[:, 1] - 0.3 * X[:, 2]
    y = np.digitize(z + 0.05 * rng.normal(size=M), [0.0, 0.2])
    return X, y, rng.integers(0, 3, M) * rng.random(M)


@pytest.fixture(scope="module")
def parquet(problem, tmp_path_factory):
    """The problem as three files, whose row groups end anywhere."""
    X, y, weights = problem
    folder = tmp_path_factory.mktemp("rows")
    table = pa.table(
        {f"x{j}": X[:, j] for j in range(4)} | {"label": np.array(["a", "b", "c"])[y], "w": weights}
    )
    for number, (start, stop) in enumerate([(0, 9_999), (9_999, 30_001), (30_001, M)]):
        rows = table.slice(start, stop - start)
        pq.write_table(rows, folder / f"{number}.parquet", row_group_size=3_333)
    return folder


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.centers_, other.centers_)
    np.testing.assert_array_equal(one.history_["objective"], other.history_["objective"])
    assert one.rho_ == other.rho_
    assert list(one.classes_) == list(other.classes_)


class TestTheSameModel:
    @ignore_unfinished
    @pytest.mark.parametrize("params", MODES)
    @pytest.mark.parametrize("kind", ["binary", "multiclass", "weighted", "balanced"])
    def test_arrays(self, problem, params, kind):
        X, y, weights = problem
        labels = y if kind == "multiclass" else y > 0
        w = weights if kind == "weighted" else None
        chosen = params | ({"class_weight": "balanced"} if kind == "balanced" else {})
        local = paper_classifier(random_state=0, **chosen).fit(X, labels, w)
        for workers in WORKERS if kind == "weighted" else (3,):
            cluster = RayCluster(workers=workers)
            remote = paper_classifier(random_state=0, engine=cluster, **chosen).fit(X, labels, w)
            same(local, remote)
            if "calibration" in params:
                for name, value in local.calibrator_.items():
                    np.testing.assert_array_equal(value, remote.calibrator_[name])
            for key in ("rows", "class_counts", "dtype", "origin"):
                expected = local.training_summary_[key]
                np.testing.assert_array_equal(expected, remote.training_summary_[key])

    @ignore_unfinished
    @pytest.mark.slow
    @pytest.mark.parametrize("params", [*MODES, pytest.param({"solver": "newton"}, id="newton")])
    def test_compiled(self, problem, params):
        pytest.importorskip("numba")
        X, y, _ = problem
        with compiled.enabled():
            local = paper_classifier(random_state=0, **params).fit(X, y)
            same(local, paper_classifier(random_state=0, engine="ray", **params).fit(X, y))

    @pytest.mark.parametrize("calibration", [None, "sigmoid"])
    def test_newton_on_some_of_the_rows_first(self, problem, monkeypatch, calibration):
        monkeypatch.setattr(newton, "MIN_SUBSAMPLE_ROWS", 1000)  # they are drawn by workers
        monkeypatch.setattr(newton, "SUBSAMPLE_ROWS_PER_CENTER", 20)
        X, y, weights = problem
        params = {"degree": 2, "solver": "newton", "random_state": 0, "calibration": calibration}
        local = paper_classifier(**params).fit(X, y > 0, weights)
        assert "sample" in local.timings_
        same(local, paper_classifier(engine="ray", **params).fit(X, y > 0, weights))

    @ignore_unfinished
    @pytest.mark.parametrize("params", MODES)
    @pytest.mark.parametrize("weight", [None, "w"])
    def test_parquet(self, parquet, params, weight):
        source = open_data(parquet, target="label", weight=weight, columns=["x0", "x1", "x2", "x3"])
        local = paper_classifier(random_state=0, **params).fit(source)
        for workers in WORKERS if weight is not None else (3,):
            cluster = RayCluster(workers=workers)
            same(local, paper_classifier(random_state=0, engine=cluster, **params).fit(source))

    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("float32", lambda X: X.astype(np.float32)),
            ("integers", lambda X: (3 * X).astype(np.int16)),
            ("fortran", np.asfortranarray),
            ("sparse", lambda X: sp.csr_array(np.where(X > 0.5, X, 0.0))),
        ],
    )
    def test_forms_of_rows(self, problem, name, make):
        X, y, weights = problem
        rows = make(X)
        for centers, scaler in (("random", "minmax"), ("first", None)):
            params = {"centers": centers, "scaler": scaler, "n_centers": 30, "random_state": 1}
            local = paper_classifier(**params).fit(rows, y, weights)
            same(local, paper_classifier(**params, engine="ray").fit(rows, y, weights))

    def test_tables_memory_maps_and_few_rows(self, problem, tmp_path):
        X, y, _ = problem
        np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})
        with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=7_000)
        sources = [
            open_data(tmp_path / "rows.npy", target=4),
            open_data(table, target="y"),
            open_data(tmp_path / "rows.arrow", target="y"),
            open_data(table.slice(5, 11), target="y"),
        ]
        for source in sources:
            local = paper_classifier(random_state=0, scaler="quantile").fit(source)
            remote = paper_classifier(random_state=0, scaler="quantile", engine="ray").fit(source)
            same(local, remote)

    def test_search(self, problem):
        X, y, weights = problem
        params = {
            "degrees": (2, 3),
            "n_centers": (8, 15),
            "rhos": (None, 1e-3),
            "max_iter": (3, 6),
            "cv": 3,
            "calibration": "isotonic",
            "random_state": 0,
        }
        X, y, weights = X[:15_000], y[:15_000], weights[:15_000]
        local = FPCClassifierCV(**params).fit(X, y, weights)
        for workers in WORKERS:
            engine = RayCluster(workers=workers)
            remote = FPCClassifierCV(**params, engine=engine).fit(X, y, weights)
            assert local.best_params_ == remote.best_params_
            for key, value in local.cv_results_.items():
                if key != "params":
                    np.testing.assert_array_equal(value, remote.cv_results_[key])
            same(local.best_estimator_, remote.best_estimator_)
            assert remote.best_estimator_.engine == engine  # its predict_to a folder goes there

    def test_warm_start(self, problem):
        X, y, _ = problem
        params = {"random_state": 0, "warm_start": True, "tol": 0}
        local = paper_classifier(**params).fit(X, y).fit(X, y)
        remote = paper_classifier(**params, engine="ray").fit(X, y).fit(X, y)
        same(local, remote)


@contextlib.contextmanager
def stopped_after(iterations):
    """Stop a fit hard in an iteration, as a crash would."""
    if iterations is None:
        yield
        return
    step = Admm.step

    def counted(run, *args):
        if run.iterates == iterations:
            raise ZeroDivisionError
        step(run, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Admm, "step", counted)
        with contextlib.suppress(ZeroDivisionError):
            yield


@contextlib.contextmanager
def killing(name, folder, number):
    """Have worker processes killed at a certain task, with its work done and not yet told."""
    submit = RayWorkers.submit

    def deadly(task):
        def dying(*args):  # a function in a function is sent as it is, not by its name
            made = task(*args)
            for life in range(number):
                with contextlib.suppress(FileExistsError):
                    (folder / str(life)).touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)
            return made

        return dying

    made = {}

    def submit_deadly(self, task, *args, **options):
        if task.__name__ == name:
            task = made.setdefault(task, deadly(task))
        return submit(self, task, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RayWorkers, "submit", submit_deadly)
        yield


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(1)
    X = rng.random((300_000, 6))
    return X, X[:, 0] * X[:, 1] > 0.3 * X[:, 2]


class TestLosses:
    @ignore_unfinished
    @pytest.mark.parametrize("task", ["gram", "advance"])
    def test_a_killed_worker(self, large, caplog, tmp_path, task):
        X, y = large
        params = {"n_centers": 200, "random_state": 0, **CONVERGED}
        local = paper_classifier(**params).fit(X, y)
        with caplog.at_level(logging.WARNING, "polysift"), killing(task, tmp_path, 1):
            remote = paper_classifier(**params, engine=RayCluster(workers=2)).fit(X, y)
        assert (tmp_path / "0").exists()
        same(local, remote)
        phase = {"gram": "Gram matrix", "advance": "sweep"}[task]
        assert f"{phase}: rows " in caplog.text
        assert "are done again (attempt 2), since its worker process was lost" in caplog.text

    @ignore_unfinished
    @pytest.mark.parametrize("task", ["gram", "advance"])
    def test_all_workers_lost_then_resumed(self, large, tmp_path, monkeypatch, task):
        X, y = large
        params = {"n_centers": 100, "random_state": 0, **CONVERGED}
        local = paper_classifier(**params).fit(X, y)
        monkeypatch.setattr(checkpoints, "MIN_SECONDS_BETWEEN_SAVES", 0.0)
        remote = paper_classifier(
            **params, checkpoint=tmp_path / "state", engine=RayCluster(workers=1, retries=1)
        )
        phase = {"gram": "Gram matrix", "advance": "sweep"}[task]
        lost = pytest.raises(WorkersLostError, match=f"lost 2 times in the phase '{phase}'.*keeps")
        with lost, killing(task, tmp_path, 1000):
            remote.fit(X, y)
        same(local, remote.fit(X, y))

    @ignore_unfinished
    def test_either_engine_goes_on_from_the_others_checkpoint(self, problem, tmp_path, monkeypatch):
        X, y, weights = problem
        params = {"random_state": 0, **CONVERGED}
        expected = paper_classifier(**params).fit(X, y, weights)
        monkeypatch.setattr(checkpoints, "MIN_SECONDS_BETWEEN_SAVES", 0.0)
        for first, second in (("ray", "local"), ("local", "ray")):
            folder = tmp_path / first
            for engine, iterations in ((first, 5), (second, None)):
                model = paper_classifier(**params, checkpoint=folder, engine=engine)
                with stopped_after(iterations):
                    model.fit(X, y, weights)
            same(expected, model)
            assert model.n_iter_ == 12

    def test_no_node_has_enough_cpus(self, problem):
        X, y, _ = problem
        engine = RayCluster(cpus=64, patience=0.5)
        with pytest.raises(WorkersLostError, match="No node of the Ray cluster has had 64 CPUs"):
            paper_classifier(engine=engine).fit(X, y)

    @ignore_unfinished
    def test_a_lost_state_is_made_again(self, problem, monkeypatch):
        """Objects are lost with a node only, so here one is said to be lost."""
        X, y, weights = problem
        params = {"random_state": 0, **CONVERGED, "max_iter": 30}
        expected = paper_classifier(**params).fit(X, y, weights)
        monkeypatch.setattr(held_rows, "MAX_REPLAY_STEPS", 8)
        fetched, get = [], RayWorkers.get

        def losing(self, ref, check):
            value = get(self, ref, check)
            fetched.append(ref)
            if len(fetched) in (30, 61, 90):
                raise LostError("a test says so", objects=True)
            return value

        monkeypatch.setattr(RayWorkers, "get", losing)
        same(expected, paper_classifier(**params, engine="ray").fit(X, y, weights))
        assert len(fetched) > 100


class TestLimits:
    def test_time_limit_before_a_model(self, large, clock, monkeypatch):
        X, y = large
        clock.after(monkeypatch, ClusterBackend, "survey", 1.0)
        model = paper_classifier(n_centers=200, engine="ray", time_limit=0.5)
        with pytest.raises(TimeoutError, match="time_limit=0.5 s struck in the phase"):
            model.fit(X, y)

    def test_time_limit_after_it(self, large, clock, monkeypatch):
        """By a clock that stands still until the third iteration is done."""
        X, y = large
        clock.after(monkeypatch, Admm, "update", 5.0, lambda run, *_: run.iterates == 3)
        params = CONVERGED | {"max_iter": 10_000}
        model = paper_classifier(n_centers=50, engine="ray", time_limit=4.0, **params).fit(X, y)
        assert model.status_ == "time_limit"
        assert model.n_iter_ in (3, 4)  # the iteration after it may be cut short

    def test_interrupt(self, large, monkeypatch):
        """A real signal, with the tasks of the fourth sweep under way."""
        X, y = large

        def soon():
            at_call(monkeypatch, RayWorkers, "get", 1, lambda: signal.raise_signal(signal.SIGINT))

        at_call(monkeypatch, ClusterEngine, "sweep", 4, soon)
        params = CONVERGED | {"max_iter": 10_000}
        with pytest.warns(ConvergenceWarning, match="interrupted after"):
            model = paper_classifier(n_centers=50, engine="ray", **params).fit(X, y)
        assert model.status_ == "interrupted"
        assert model.score(X, y) > 0.8

    def test_memory_limit_decides_how_much_a_task_takes(self, large):
        X, y = large
        expected = paper_classifier(n_centers=20, random_state=0).fit(X, y)
        model = paper_classifier(n_centers=20, random_state=0, memory_limit="60MB", engine="ray")
        forecast = model.plan(X, y, show=False)
        assert forecast.workers == 4
        assert 0 < forecast.worker_memory < 60e6
        same(expected, model.fit(X, y))
        with pytest.raises(MemoryError, match="in each worker at the least"):
            model.set_params(memory_limit="1MB").fit(X, y)

    def test_forecast(self, large, capsys):
        X, y = large
        paper_classifier(n_centers=20, engine=RayCluster(workers=3)).plan(X, y)
        assert "workers              3, " in capsys.readouterr().out


class TestMistakes:
    def test_errors_of_tasks_are_those_of_the_local_engine(self, problem, parquet):
        X, y, _ = problem
        broken = X.copy()
        broken[31_234, 2] = np.inf
        for engine in ("local", "ray"):
            with pytest.raises(ValueError, match=r"infinity in column 2, first in row 31234 \(co"):
                paper_classifier(engine=engine).fit(broken, y)
            with pytest.raises(ValueError, match="one class only"):
                paper_classifier(engine=engine).fit(X, np.zeros(M))
            with pytest.raises(ValueError, match="sample_weight must not be negative"):
                paper_classifier(engine=engine).fit(X, y, -np.ones(M))

    @pytest.mark.parametrize("engine", ["dask", None, 3, RayCluster])
    def test_no_such_engine(self, problem, engine):
        X, y, _ = problem
        with pytest.raises(ValueError, match="engine must be 'local' or 'ray', or an engine"):
            paper_classifier(engine=engine).fit(X, y)

    @pytest.mark.parametrize(
        ("params", "name"),
        [({"workers": 0}, "workers"), ({"cpus": 1.5}, "cpus"), ({"retries": -1}, "retries"),
         ({"patience": -1.0}, "patience")],
    )  # fmt: skip
    def test_parameters(self, params, name):
        with pytest.raises(ValueError, match=f"{name} must be"):
            RayCluster(**params)

    def test_clone_and_words(self):
        engine = RayCluster("auto", 3, retries=1)
        copy = clone(paper_classifier(engine=engine)).engine
        assert copy == engine and copy is not engine
        assert repr(copy) == "RayCluster(address='auto', workers=3, retries=1)"


class TestBusy:
    def test_all_cpus_are_taken(self, four_workers, caplog):
        ray = four_workers

        @ray.remote(num_cpus=4)
        class Other:
            def works(self):
                return True

        workers = RayWorkers(ray, None, 1, 3, 0.5)
        caplog.clear()  # a worker's start may take longer
        other = Other.remote()
        assert ray.get(other.works.remote())
        workers._compare_nodes([node["NodeID"] for node in ray.nodes() if node["Alive"]])
        assert not caplog.text

        class Leaving(logging.Handler):
            def emit(self, record):  # once it was said that this process waits
                ray.kill(other)

        leaving = Leaving()
        logging.getLogger("polysift").addHandler(leaving)
        try:
            workers._wait_for_cpus()
        finally:
            logging.getLogger("polysift").removeHandler(leaving)
        assert "its CPUs may be taken by others. This process waits for 1 of them." in caplog.text
        assert len(caplog.records) == 1

    def test_a_module_that_workers_lack(self):
        text = "The remote function failed to import on the worker. This may be because [...]"
        text += "\n\nModuleNotFoundError: No module named 'polysift'"
        for cause in (RuntimeError(text), ModuleNotFoundError(name="polysift")):
            assert "has no module 'polysift'. Install" in str(ray_cluster._task_error(cause))
        other = RuntimeError("something else")
        assert ray_cluster._task_error(other) is other


class TestFinding:
    """Whether a cluster answers, before Ray tries to reach it for a quarter of an hour."""

    @pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "localhost:port"])
    def test_nobody_answers(self, address):
        with pytest.raises(ConnectionError, match=f"No Ray cluster answers at address='{address}'"):
            ray_cluster.find_cluster(address)

    def test_one_that_answers(self, four_workers):
        address = four_workers.get_runtime_context().gcs_address
        assert ray_cluster.find_cluster(address)[0] == address

    def test_an_address_of_another(self, four_workers):
        here = four_workers.get_runtime_context().gcs_address
        for address in (None, "auto", "local", here, f"localhost:{here.rsplit(':')[-1]}"):
            ray_cluster.connect(four_workers, address, None)
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            with pytest.raises(ConnectionError, match=f"'{address}', but this process.*{here}"):
                RayCluster(address).open()

    def test_nothing_listens_beyond_loopback(self, four_workers):
        assert {node["NodeManagerAddress"] for node in four_workers.nodes()} == {"127.0.0.1"}
        assert os.environ["RAY_AUTH_MODE"] == "token"

    def test_without_ray(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(ImportError, match=r"pip install 'polysift\[ray\]'"):
            paper_classifier(engine="ray").fit([[0.0], [1.0]], [0, 1])

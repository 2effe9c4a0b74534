"""The compiled loops, against NumPy's."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import solving
from clusters import Shaky
from polysift.cluster.engine import ClusterEngine
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import cut_into_partitions
from polysift.data.source import ArraySource
from polysift.engine import compiled
from polysift.engine.budget import Execution
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate, NewtonUpdate
from polysift.estimators.fitted import feature_map_of
from polysift.features.feature_map import BlockFeatures, MapSpec, build_feature_map
from polysift.features.kernels import power_in_place
from polysift.features.survey import survey
from polysift.losses import HINGE, LOGISTIC, LOSSES, SQUARED_HINGE
from polysift.runtime.parallel import Pool, single_threaded_blas
from polysift.runtime.progress import Monitor
from problems import paper_classifier
from solving import problem as example
from solving import spline_problem

pytest.importorskip("numba")
compiled_features = pytest.importorskip("polysift.engine.compiled_features")


@pytest.fixture(autouse=True)
def one_blas_thread():
    """Let BLAS take one thread, as every fit does: with more, bits depend on their number."""
    with single_threaded_blas():
        yield


def engines(data, feature_map, **options):
    return [
        LocalEngine(data, feature_map, Pool(1), Execution(compiled=compiled, **options))
        for compiled in (False, True)
    ]


def swept(engine, problems, u, times=3):
    """Return the sums of the last of some sweeps, and the state after it."""
    engine.begin(len(problems))
    for _ in range(times):
        sums = engine.sweep(problems, u)
    return {**vars(sums), "state": np.array(engine.state)}


def assert_alike(found, expected, dtype):
    """To rounding: sums of thousands of terms, of which some cancel."""
    rtol = 2e-4 if dtype == np.float32 else 1e-10
    for name, value in expected.items():
        scale = max(np.abs(value).max(initial=0.0), 1e-3)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=rtol * scale, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "d", "n", "degree"),
    [
        (1, 1, 1, 1),  # one of each
        (1000, 1, 1, 3),
        (33, 2, 55, 9),
        (257, 3, 64, 6),  # rows in the lanes: a tile and one row, and the most centers
        (5003, 5, 13, 4),
        (700, 8, 65, 6),  # centers in the lanes, of the fewest
        (33, 2, 65, 12),  # a tile and one row
        (5003, 8, 101, 6),  # nothing divides
        (3001, 17, 40, 3),  # just beyond what is unrolled
        (700, 60, 300, 2),
    ],
)
def test_gram_and_sweep_are_numpys_to_rounding(m, d, n, degree, dtype):
    data, feature_map = example(m, d, n, degree, dtype)
    plain, by_numba = engines(data, feature_map)
    expected, found = plain.gram(), by_numba.gram()
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(found.G, expected.G, rtol=rtol)
    largest = np.abs(expected.Aty).max()
    np.testing.assert_allclose(found.Aty, expected.Aty, rtol=0, atol=rtol * largest * m)
    u = np.random.default_rng(1).normal(size=(n, 1)) / expected.G.max() ** 0.5 * m**0.5
    for problem in (Problem(n, AdmmUpdate(0.1, 1.7)), Problem(n, AdmmUpdate(float(m)))):
        assert_alike(swept(by_numba, [problem], u), swept(plain, [problem], u), dtype)
    found, expected = ({"Gu": e.product([problem], u)} for e in (by_numba, plain))
    assert_alike(found, expected, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "d", "n", "degree"),
    [
        (3, 1, 1, 1),  # of two rows, one would have a base of zero, and any sign
        (33, 2, 33, 9),  # a tile and one row
        (1000, 4, 60, 2),  # a block of ranks
        (2503, 7, 101, 5),  # nothing divides
        (700, 61, 300, 2),
    ],
)
def test_splines_are_numpys_to_rounding(m, d, n, degree, dtype):
    data, feature_map = spline_problem(m, d, n, degree, dtype)
    assert feature_map.kernel.ranks > 0
    plain, by_numba = engines(data, feature_map)
    expected, found = plain.gram(), by_numba.gram()
    rtol = 1e-5 if dtype == np.float32 else 1e-13
    scale = np.abs(expected.G).max()
    np.testing.assert_allclose(found.G, expected.G, rtol=0, atol=degree * rtol * scale)
    largest = np.abs(expected.Aty).max()
    np.testing.assert_allclose(found.Aty, expected.Aty, rtol=0, atol=rtol * largest * m)
    u = np.random.default_rng(1).normal(size=(feature_map.n_centers, 1)) / scale**0.5 * m**0.5
    problem = Problem(feature_map.n_centers, AdmmUpdate(0.1, 1.7))
    assert_alike(swept(by_numba, [problem], u), swept(plain, [problem], u), dtype)


@pytest.mark.parametrize("rows", [1, 2, 5, 8])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 9, 10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_larger_of_ranks(rows, ranks, dtype):
    rng = np.random.default_rng(0)
    X = rng.random((rows, ranks + 3)).astype(dtype)
    C, A = rng.random((ranks + 3, 11)).astype(dtype), rng.random((rows, 11)).astype(dtype)
    C[:ranks, 0] = X[0, :ranks]
    expected = A - np.maximum(X[:, :ranks, None], C[:ranks]).sum(axis=1)
    compiled_features.subtract_larger(X, C, ranks, A)
    np.testing.assert_allclose(A, expected, atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("counts", [[1, 2, 3], [256, 5, 1]])
def test_interpolation_has_numpys_bits(counts):
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=(3, max(counts))))
    first, second = rng.normal(size=(2, *knots.shape))
    X = rng.normal(size=(2051, 3)) * 2.0
    for j, count in enumerate(counts):  # at knots, beyond them, and next to them
        own = knots[j, :count]
        special = np.concatenate([own, np.nextafter(own, -9), np.nextafter(own, 9), [-99, 99]])
        X[: len(special), j] = special
    found = np.empty((2, *X.shape))
    compiled_features.interpolate_pairs(X, knots, first, second, np.array(counts), *found)
    for values, made in zip((first, second), found, strict=True):
        for j, count in enumerate(counts):
            expected = np.interp(X[:, j], knots[j, :count], values[j, :count])
            np.testing.assert_array_equal(made[:, j], expected)


@pytest.mark.parametrize("loss", [HINGE, LOGISTIC, SQUARED_HINGE], ids=list(LOSSES))
@pytest.mark.parametrize("weighted", [False, True])
def test_steps_of_newtons_method_are_numpys_to_rounding(loss, weighted):
    m, n, rng = 3001, 40, np.random.default_rng(2)
    weights = rng.integers(0, 3, m).astype(float) if weighted else None
    data, feature_map = example(m, 8, n, 3, float, weights=weights)
    u = rng.normal(size=(n, 1)) * 0.05
    plain, by_numba = engines(data, feature_map)
    for engine in (plain, by_numba):
        engine.begin(1)
    for delta, line in ((0.5, -1.0), (0.5, 0.5), (0.25, 0.5), (0.25, 0.0)):
        problem = Problem(n, NewtonUpdate(((delta, line),), loss))
        u = u + rng.normal(size=(n, 1)) * 0.01
        found, expected = ({"r": e.sweep([problem], u).r} for e in (by_numba, plain))
        assert_alike(found, expected, float)
        curved = [e.curvature(problem, 0, 0, 0.0, np.eye(n)) for e in (by_numba, plain)]
        rough = 1e-4 if loss is HINGE else 1e-9  # multipliers have 16 bits
        np.testing.assert_allclose(curved[0], curved[1], rtol=0, atol=rough * curved[1].max())
    again = u + rng.normal(size=(n, 1)) * 0.01
    problem = Problem(n, NewtonUpdate(((0.25, 0.25),), loss))
    found, expected = (vars(e.sweep([problem], again)) for e in (by_numba, plain))
    if loss is HINGE:
        del found["curved"], expected["curved"]
    assert_alike(found, expected, float)


@pytest.mark.parametrize("kind", ["minmax", "symmetric", "standard", "quantile", None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaling(kind, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)).astype(dtype)
    X[:, 1], X[:100, 2] = 2.0, X[0, 2]  # a constant, and ties
    source = ArraySource(X)
    spec = MapSpec(2, 5, "random", kind, 0)
    with Pool(1) as pool:
        found = survey(source, spec.questions(3, labels=False), pool)
    features = BlockFeatures(build_feature_map(spec, found, dtype), dtype)
    rows = (3 * rng.normal(size=(200, 3))).astype(dtype)  # some lie outside
    expected = features.rows(rows)
    same = np.testing.assert_array_equal
    if kind == "quantile":
        same = partial(np.testing.assert_allclose, rtol=1e-6 if dtype == np.float32 else 1e-12)
    by_numba = compiled.CompiledRows(features)
    rows.flags.writeable = False
    for given in (rows, np.asfortranarray(rows), rows[::-1][::-1]):
        same(by_numba._scaled(given)[0], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loops_of_splines_alone_are_those_of_all_loops(dtype):
    data, feature_map = spline_problem(2503, 7, 101, 3, dtype)
    plain, every = engines(data, feature_map)
    some = LocalEngine(data, feature_map, Pool(1), Execution(compiled_splines=True))
    np.testing.assert_array_equal(some.gram().G, every.gram().G)
    u = np.random.default_rng(1).normal(size=(feature_map.n_centers, 1))
    problem = Problem(feature_map.n_centers, AdmmUpdate(0.1, 1.7))
    assert_alike(swept(some, [problem], u), swept(plain, [problem], u), dtype)
    kept = Execution(compiled_splines=True, keep_features=True)
    keeping = LocalEngine(data, feature_map, Pool(1), kept)
    keeping.gram()
    found, expected = (swept(engine, [problem], u) for engine in (keeping, some))
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_the_loops_of_splines_leave_polynomials_to_numpy():
    data, feature_map = example(503, 4, 31, 3, float)
    plain, _ = engines(data, feature_map)
    some = LocalEngine(data, feature_map, Pool(1), Execution(compiled_splines=True))
    np.testing.assert_array_equal(some.gram().G, plain.gram().G)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 7, 10, 13])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_in_place(degree, dtype):
    A = np.random.default_rng(0).normal(size=(5, 19)).astype(dtype)
    expected = A.copy()
    power_in_place(expected, degree, np.empty_like(A))
    none = np.empty((5, 0), np.int64)
    compiled_features.raise_to_power(A, np.empty((0, 19), dtype), none, degree)
    np.testing.assert_allclose(A, expected, rtol=1e-5 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("degree", [1, 4, 5, 7, 10])
def test_powers(degree):
    data, feature_map = example(50, 3, 7, degree, float)
    plain, by_numba = engines(data, feature_map)
    np.testing.assert_allclose(by_numba.gram().G, plain.gram().G, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_problems_folds_and_classes(dtype):
    m, n = 2500, 40
    rng = np.random.default_rng(3)
    more = {"fold_parts": rng.integers(-1, 3, m), "n_fold_parts": 3, "weights": rng.random(m)}
    data, feature_map = example(m, 8, n, 6, dtype, **more)
    data = replace(data, codes=rng.integers(0, 3, m), n_classes=3)
    problems = [
        Problem(n, AdmmUpdate(0.1, 1.7)),
        Problem(n, AdmmUpdate(0.5, 1.0), 0),
        Problem(20, AdmmUpdate(3.0, 1.5), 2),
    ]
    u = rng.normal(size=(n, 9)) * 1e-2
    u[20:, 6:] = 0.0
    plain, by_numba = engines(data, feature_map)
    assert_alike(swept(by_numba, problems, u), swept(plain, problems, u), dtype)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(40, AdmmUpdate(0.1, 1.7)),
        Problem(40, AdmmUpdate(0.1, 1.7), 1),
        Problem(25, AdmmUpdate(0.1, 1.7)),
    ],
)
def test_one_problem_with_weights(problem):
    m, n = 2500, 40
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 3, m).astype(float)
    fold_parts = rng.integers(-1, 3, m)
    data, feature_map = example(
        m, 8, n, 6, float, fold_parts=fold_parts, n_fold_parts=3, weights=weights
    )
    u = np.zeros((n, 1))
    u[: problem.n] = rng.normal(size=(problem.n, 1)) * 1e-2
    plain, by_numba = (
        {**swept(e, [problem], u), "Gu": e.product([problem], u)}
        for e in engines(data, feature_map)
    )
    here = weights > 0  # the state of the others is not used
    plain["state"], by_numba["state"] = plain["state"][here], by_numba["state"][here]
    assert_alike(by_numba, plain, np.float64)


def test_rows_without_weight_may_be_anything():
    weights = np.ones(3000)
    weights[5:7] = 0.0
    data, feature_map = example(3000, 8, 40, 6, np.float32, weights=weights, scaler=None)
    data.source.rows(next(data.source.parts())[1])[5:7] = 3e38  # their features overflow
    u = np.full((40, 1), 1e-4)
    with np.errstate(over="ignore"):
        sums = swept(engines(data, feature_map)[1], [Problem(40, AdmmUpdate(0.1, 1.7))], u)
    assert all(np.isfinite(value).all() for value in sums.values())


@pytest.mark.parametrize(
    ("make", "d", "n", "degree"),
    [(example, 8, 40, 6), (example, 8, 70, 6), (example, 60, 40, 2), (spline_problem, 7, 40, 3)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("threaded")
def test_same_bits_with_kept_features_threads_and_workers(make, d, n, degree, dtype):
    data, feature_map = make(9000, d, n, degree, dtype)
    u, problems = np.full((n, 1), 1e-3), [Problem(n, AdmmUpdate(0.1, 1.7))]
    first = engines(data, feature_map)[1]
    expected, product = swept(first, problems, u), first.product(problems, u)
    pieces = PartitionedSource(Shaky(), data.source, cut_into_partitions(data.source.shards(), 1))
    others = [
        LocalEngine(data, feature_map, Pool(1), Execution(compiled=True, keep_features=True)),
        LocalEngine(data, feature_map, Pool(3), Execution(compiled=True)),
        ClusterEngine(
            data, feature_map, pieces, monitor=Monitor(), execution=Execution(compiled=True)
        ),
        ClusterEngine(
            data,
            feature_map,
            pieces,
            monitor=Monitor(),
            execution=Execution(compiled=True, keep_features=True),
        ),
    ]
    for engine in others:
        engine.begin(1)
        for _ in range(2):
            engine.sweep(problems, u)
        for name, value in vars(engine.sweep(problems, u)).items():
            np.testing.assert_array_equal(value, expected[name])
        np.testing.assert_array_equal(engine.product(problems, u), product)


@pytest.mark.parametrize(
    "parameters", [{}, {"solver": "converged", "max_iter": 40}, {"kernel": "spline"}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_fit(parameters, classes):
    rng = np.random.default_rng(0)
    X = rng.random((4000, 8))
    y = (X[:, :2].sum(axis=1) * classes / 2).astype(int)
    fits = []
    for by_numba in (False, True):
        with compiled.enabled(by_numba), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # forty iterations are few
            fits.append(paper_classifier(6, 100, random_state=0, **parameters).fit(X, y))
    plain, by_numba = fits
    assert np.any(plain.coef_ != by_numba.coef_)  # other loops, other rounding
    np.testing.assert_allclose(
        by_numba.history_["objective"], plain.history_["objective"], rtol=1e-5
    )
    np.testing.assert_allclose(by_numba.decision_function(X), plain.decision_function(X), atol=1e-3)


def test_sparse_rows_are_left_to_numpy():
    rng = np.random.default_rng(0)
    X = sp.random_array((500, 30), density=0.2, format="csr", rng=rng)
    y = rng.integers(0, 2, 500)
    plain = paper_classifier(2, 40, random_state=0).fit(X, y)
    with compiled.enabled():
        by_numba = paper_classifier(2, 40, random_state=0).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, by_numba.coef_)


def test_the_choice_depends_on_the_shape_alone(monkeypatch):
    assert compiled.worthwhile(2_000_000, 400, 5)
    assert compiled.worthwhile(50_000, 276, 300)
    assert not compiled.worthwhile(50_000, 276, 5)
    assert not compiled.worthwhile(1000, 50, 10**6)
    with compiled.disabled():
        assert not compiled.worthwhile(2_000_000, 400, 5)
    loops = compiled.with_loops(Execution(2, 4), 20_000, 1000, 5, 20)
    assert loops == Execution(2, 4, compiled_splines=True)
    assert compiled.with_loops(Execution(2, 4), 20_000, 1000, 5, 19) == Execution(2, 4)
    monkeypatch.setattr(compiled, "find_spec", lambda name: None)
    assert not compiled.worthwhile(2_000_000, 400, 5)
    assert compiled.with_loops(Execution(2, 4), 20_000, 1000, 5, 20) == Execution(2, 4)


def test_numba_is_imported_late_and_needs_no_folder_for_its_cache():
    code = """
import sys
import numpy as np
from polysift import PAPER, FPCClassifier
from polysift.engine import compiled
X = np.random.default_rng(0).random((100, 2))
y = X[:, 0] > 0.5
FPCClassifier(**PAPER, random_state=0).fit(X, y)
assert "numba" not in sys.modules
with compiled.enabled():
    print(FPCClassifier(**PAPER, random_state=0).fit(X, y).score(X, y))
assert "numba" in sys.modules
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "", "NUMBA_CACHE_DIR": "/proc/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) > 0.9


def test_no_loop_leaves_its_arrays():
    """Numba checks no index unless it is asked to: what lies outside would be overwritten."""
    code = """
import numpy as np
from polysift.engine.local import LocalEngine
from polysift.engine.budget import Execution
from polysift.engine.problems import Problem
from polysift.engine.row_updates import AdmmUpdate, NewtonUpdate
from polysift.runtime.parallel import Pool
from problems import paper_classifier
from solving import problem as example
from solving import spline_problem
admm = AdmmUpdate(0.1, 1.7)
for make, d, n in ((example, 3, 7), (example, 3, 70), (example, 20, 7), (spline_problem, 5, 7)):
    data, feature_map = make(2051, d, n, 6, np.float32)
    u = np.full((n, 1), 1e-3)
    for kept in (False, True):
        execution = Execution(compiled=True, keep_features=kept)
        engine = LocalEngine(data, feature_map, Pool(1), execution)
        engine.begin(1)
        engine.gram()
        for update in (admm, NewtonUpdate(((0.5, 0.5),))):
            problem = Problem(n, update)
            for _ in range(2):
                engine.sweep([problem], u)
        engine.product([problem], u)
        engine.begin(2)
        engine.sweep([Problem(n, admm), Problem(5, admm)], np.hstack([u, u]))
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(solving.__file__).parent,
        env={"PATH": "", "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": "/proc/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("scaler", ["minmax", "quantile", None])
def test_missing_values_are_filled_in_alike(scaler):
    """A fit has none, but a warm start may meet some that the first fit did not know."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    y = X[:, 0] > X[:, 1]
    clf = paper_classifier(2, scaler=scaler, random_state=0).fit(X, y)
    X[::7, 1] = np.nan
    features = BlockFeatures(feature_map_of(clf), np.float64)
    found, _ = compiled.CompiledRows(features)._scaled(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, features.rows(X), rtol=0, atol=1e-15)

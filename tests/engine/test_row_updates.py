"""The pieces of Newton's method: the rounded loss, its sums over rows, its curvature."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp

from clusters import Shaky
from oracles import kernel
from polysift.cluster.engine import ClusterEngine
from polysift.cluster.held_rows import PartitionedSource
from polysift.cluster.partitions import cut_into_partitions
from polysift.data.source import ArraySource
from polysift.data.training_set import TrainingSet
from polysift.engine.budget import Execution
from polysift.engine.local import LocalEngine
from polysift.engine.problems import Problem
from polysift.engine.row_updates import (
    MULTIPLIER_LEVELS,
    NewtonColumns,
    NewtonUpdate,
    draw_by_curvature,
    keep_multipliers,
    multipliers,
)
from polysift.engine.sums import STEP_LENGTHS, NewtonSums
from polysift.features.feature_map import FeatureMap
from polysift.features.scalers import AffineScaler
from polysift.losses import HINGE, next_multiplier
from polysift.runtime.parallel import Pool
from polysift.runtime.progress import Monitor
from polysift.solvers.newton_column import FULL_STEP

F = np.linspace(-2, 4, 1201)
LEAST_CURVED = 0.2


def rounded(f, delta):
    """Return the rounded loss, as printed."""
    return ((1 - f) + np.sqrt((1 - f) ** 2 + 4 * delta**2)) / 2


@pytest.mark.parametrize("delta", [1.0, 0.3, 1e-3])
def test_slope_and_curvature_are_slopes_of_the_rounded_loss(delta):
    h = 1e-4 * delta
    slope = (rounded(F + h, delta) - rounded(F - h, delta)) / (2 * h)
    c = HINGE.slope(F, delta)
    np.testing.assert_allclose(c, -slope, atol=1e-6)
    assert ((c >= 0) & (c <= 1)).all()
    change = (HINGE.slope(F - h, delta) - HINGE.slope(F + h, delta)) / (2 * h)
    np.testing.assert_allclose(HINGE.curvature(F, delta, c), 4 * delta * change, atol=1e-6)
    assert HINGE.curvature(np.ones(1), delta, np.full(1, 0.5))[0] == 1.0


def test_a_row_that_has_crossed_the_margin_is_curved_all_the_way():
    """It has the multiplier of where it was, so its curvature is not that of where it is."""
    far, there = np.array([-3.0]), np.array([5.0])
    at_home = HINGE.curvature(there, 0.01, HINGE.slope(there, 0.01))
    assert HINGE.curvature(there, 0.01, HINGE.slope(far, 0.01)) > 1000 * at_home


def test_drawn_rows_stand_for_all(rng):
    curved, B = rng.random(20_000) ** 4, rng.normal(size=(20_000, 3))
    rows, share = draw_by_curvature(curved, 0.5, 7)
    assert len(rows) == pytest.approx(np.minimum(curved / 0.5, 1).sum(), rel=0.05)
    assert set(np.flatnonzero(curved > 0.5)) <= set(rows)
    H, found = B.T @ (curved[:, None] * B), B[rows].T @ (share[:, None] * B[rows])
    np.testing.assert_allclose(found, H, atol=0.05 * np.abs(H).max())
    assert (
        len(draw_by_curvature(np.full(1, 1e-12), 1.0, 0)[0]) == 0
    )  # row 0, too, is not for certain
    tail, _ = draw_by_curvature(curved[500:], 0.5, 507)  # another shard
    np.testing.assert_array_equal(tail + 500, rows[rows >= 500])
    assert len(draw_by_curvature(np.zeros(9), 0.0, 0)[0]) == 0


@pytest.mark.parametrize("delta", [1.0, 0.3, 1e-3])
def test_a_multiplier_follows_the_slope(delta, rng):
    c = HINGE.slope(F, delta)
    way = 1e-4 * delta * rng.normal(size=F.shape)
    np.testing.assert_allclose(
        next_multiplier(HINGE, F, way, delta, c), HINGE.slope(F + way, delta), atol=1e-7
    )
    wild = next_multiplier(HINGE, F, rng.normal(size=F.shape), delta, rng.random(F.shape))
    assert ((wild >= 0) & (wild <= 1)).all()


@pytest.mark.parametrize("delta", [1.0, 0.3, 1e-3])
def test_the_rounded_loss_tends_to_the_hinge_loss(delta):
    loss = rounded(F, delta)
    assert (loss >= HINGE.value(F)).all()
    assert (loss - HINGE.value(F)).max() <= delta + 1e-15


def test_what_a_multiplier_leaves_of_the_loss(rng):
    assert (HINGE.duality_gap(F, rng.random(F.shape)) >= 0).all()
    for delta in (1.0, 0.1):
        gap = HINGE.duality_gap(F, HINGE.slope(F, delta))
        assert gap.min() >= -1e-15 and gap.max() <= delta / 2
    assert STEP_LENGTHS[FULL_STEP] == 1.0 and (np.diff(STEP_LENGTHS) > 0).all()


def test_margins_keep_multipliers(rng):
    t, c = rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-8, 9, (50, 3)), rng.random((50, 3))
    c[0], c[1], before = 0.0, 1.0, t.copy()
    keep_multipliers(t[:, 1:], c[:, 1:])
    np.testing.assert_array_equal(t[:, 0], before[:, 0])
    np.testing.assert_allclose(t, before, rtol=1e-10)
    found = multipliers(t[:, 1])
    np.testing.assert_allclose(found, c[:, 1], atol=0.5 / MULTIPLIER_LEVELS * (1 + 1e-9))
    assert found[0] == 0.0 and found[1] == 1.0
    keep_multipliers(t, multipliers(t))  # as they are
    np.testing.assert_array_equal(multipliers(t[:, 1]), found)
    assert multipliers(np.ones(1))[0] == 0.0


@pytest.mark.parametrize("counted", ["once", "rows", "problems"])
def test_moving_is_a_plain_loop(rng, counted):
    t, f = rng.normal(1, 1, (2, 60, 4))
    delta, line = np.array([1.0, 0.5, 0.1, 1e-3]), np.array([0.5, 0.0, 0.2, -1.0])
    keep_multipliers(t, rng.random(t.shape))
    own = multipliers(t)
    t[:, 3] = np.inf  # nobody asks for slopes from there
    counts = {"once": None, "rows": rng.random(60), "problems": rng.random((60, 4))}[counted]
    each = np.ones((60, 4)) if counts is None else np.broadcast_to(counts.T, (4, 60)).T
    expected = {"loss": np.zeros(4), "gap": np.zeros(4), "curved": np.zeros(4)}
    slopes, kept = np.zeros((len(STEP_LENGTHS), 4)), np.zeros((60, 4))

    def c(f, delta):
        return (1 + (1 - f) / np.sqrt((1 - f) ** 2 + 4 * delta**2)) / 2

    for i, k in np.ndindex(60, 4):
        loss = max(0.0, 1 - f[i, k])
        expected["loss"][k] += each[i, k] * loss
        expected["gap"][k] += each[i, k] * (loss - c(f[i, k], delta[k]) * (1 - f[i, k]))
        if line[k] > 0:
            ahead = next_multiplier(HINGE, t[i, k], f[i, k] - t[i, k], line[k], own[i, k])
        else:
            ahead = own[i, k] if line[k] == 0 else c(f[i, k], delta[k])
        kept[i, k] = ahead
        expected["curved"][k] += each[i, k] * HINGE.curvature(f[i, k], delta[k], ahead)
        for s in range(len(STEP_LENGTHS)):
            if line[k] > 0:
                way = f[i, k] - t[i, k]
                slopes[s, k] -= each[i, k] * c(t[i, k] + STEP_LENGTHS[s] * way, line[k]) * way
    sums = NewtonSums.zeros(1, 4, 2)
    with np.errstate(invalid="ignore"):
        found = NewtonColumns(delta, line, HINGE).apply(t, f, counts, sums)
    np.testing.assert_array_equal(found, HINGE.slope(f, delta))
    np.testing.assert_allclose(t, f, rtol=1e-10)
    np.testing.assert_allclose(multipliers(t), kept, atol=0.5 / MULTIPLIER_LEVELS * (1 + 1e-9))
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(sums, name), value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.slopes, slopes, rtol=1e-12, atol=1e-12)


def test_the_sums_of_one_problem(rng):
    whole = NewtonSums.zeros(5, 6, 2)
    for f in fields(whole):
        getattr(whole, f.name)[...] = rng.random(getattr(whole, f.name).shape)
    second = whole.of_problem(1, 3)
    np.testing.assert_array_equal(second.r, whole.r[:3, 3:])
    np.testing.assert_array_equal(second.slopes, whole.slopes[:, 3:])
    np.testing.assert_array_equal(second.wrong, whole.wrong[1:])


def example(m, d, n, degree, *, K=1, weighted=False, fold_parts=False, dtype=float, sparse=False):
    """Return a training set, its feature map, and problems with coefficients for it."""
    rng = np.random.default_rng(m + d)
    X = rng.random((m, d)).astype(dtype)
    if sparse:
        X = sp.csr_array(X * (rng.random((m, d)) < 0.2))
    more = {"weights": rng.integers(0, 3, m) * rng.random(m)} if weighted else {}
    if fold_parts:
        more |= {"fold_parts": rng.integers(0, 3, m), "n_fold_parts": 3}
        if weighted:  # rows that are not there are in no fold_part
            more["fold_parts"][more["weights"] == 0] = -1
    classes = 2 if K == 1 else K
    data = TrainingSet(ArraySource(X), rng.integers(0, classes, m).astype(np.int8), classes, **more)
    same = AffineScaler(np.zeros(d), np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))
    feature_map = FeatureMap(same, rng.random((n, d)), degree)
    scale = float((1 + 0.25 * d) ** degree * np.sqrt(n))
    u = rng.normal(size=(n, K * (2 if fold_parts else 1))) / scale
    smooth = ((0.5, 0.25), (0.3, -1.0), (1.0, 1.0))[:K]
    problems = [Problem(n, NewtonUpdate(smooth), None)]
    if fold_parts:
        problems = [
            Problem(n, NewtonUpdate(smooth), 1),
            Problem(n, NewtonUpdate(smooth[::-1]), None),
        ]
    return data, feature_map, problems, u


def visited(engine, problems, u, between=lambda: None):
    """Return the sums and Hessians of a few sweeps; ``between`` is called after each sweep."""
    K = len(problems[0].update.roundings)
    T = np.triu(np.random.default_rng(0).normal(size=(len(u), len(u))))
    engine.begin(len(problems))
    for factor in (0.5, 1.0):
        found = dict(vars(engine.sweep(problems, factor * u)))
        between()
    for i, problem in enumerate(problems):
        for k in range(K):
            found[f"H{i}{k}"] = engine.curvature(problem, i, k, LEAST_CURVED, T)
    return found


SHAPES = [
    {"m": 1, "d": 1, "n": 1, "degree": 1},
    {"m": 5003, "d": 3, "n": 20, "degree": 3, "weighted": True},
    {"m": 4001, "d": 2, "n": 15, "degree": 4, "fold_parts": True, "weighted": True, "K": 3},
    {"m": 2001, "d": 20, "n": 31, "degree": 2, "fold_parts": True},
]


@pytest.mark.parametrize("keep_features", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_sweep_and_curvature_against_the_formulas(shape, keep_features):
    data, feature_map, problems, u = example(**shape)
    found = visited(
        LocalEngine(data, feature_map, Pool(1), Execution(keep_features=keep_features)), problems, u
    )
    X = np.concatenate([data.source.rows(part) for _, part in data.source.parts()])
    A, y = kernel(X, feature_map.centers, feature_map.degree), data.labels_of(slice(0, len(X)))
    T = np.triu(np.random.default_rng(0).normal(size=(len(u), len(u))))
    for i, problem in enumerate(problems):
        omega = np.ones(len(X)) if data.weights is None else data.weights
        if problem.without is not None:
            omega = omega * (data.fold_parts != problem.without)
        for k, (delta, line) in enumerate(problem.update.roundings):
            column = i * len(problem.update.roundings) + k
            f = y[:, k] * (A @ u[:, column])
            c = own = HINGE.slope(f, delta)
            if line > 0:  # from multipliers of 0 at t = 1, in two steps
                half = next_multiplier(HINGE, np.ones_like(f), f / 2 - 1, line, 0.0 * f)
                own = next_multiplier(
                    HINGE, f / 2, f / 2, line, np.rint(half * MULTIPLIER_LEVELS) / MULTIPLIER_LEVELS
                )
            own = np.rint(own * MULTIPLIER_LEVELS) / MULTIPLIER_LEVELS
            curved = omega * HINGE.curvature(f, delta, own)
            rows, share = draw_by_curvature(curved, LEAST_CURVED, 0)
            B = A[rows] @ T
            H = B.T @ (share[:, np.newaxis] * B)
            H_found = found[f"H{i}{k}"]
            np.testing.assert_allclose(H_found, H, rtol=0, atol=1e-8 * max(np.abs(H).max(), 1e-9))
            r = A.T @ (omega * c * y[:, k])
            np.testing.assert_allclose(found["r"][:, column], r, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(found["loss"][column], omega @ HINGE.value(f), rtol=1e-10)
            np.testing.assert_allclose(found["curved"][column], curved.sum(), rtol=1e-3)
            way = f / 2
            slope = -omega @ (HINGE.slope(f, line) * way) if line > 0 else 0.0
            np.testing.assert_allclose(
                found["slopes"][FULL_STEP, column], slope, rtol=1e-8, atol=1e-9
            )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_compiled_loops_are_numpys_to_rounding(shape):
    pytest.importorskip("numba")
    data, feature_map, problems, u = example(**shape)
    plain, compiled = (
        visited(LocalEngine(data, feature_map, Pool(1), Execution(compiled=compiled)), problems, u)
        for compiled in (False, True)
    )
    for name, value in plain.items():
        scale = max(np.abs(value).max(), 1e-3)
        np.testing.assert_allclose(compiled[name], value, rtol=0, atol=1e-10 * scale, err_msg=name)


BITS = [
    {"m": 20_011, "d": 8, "n": 31, "degree": 3, "weighted": True},
    {"m": 9001, "d": 20, "n": 31, "degree": 2, "K": 3, "fold_parts": True},
    {"m": 9001, "d": 20, "n": 9, "degree": 2, "dtype": np.float32},
    {"m": 6001, "d": 30, "n": 15, "degree": 2, "sparse": True},
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", BITS)
@pytest.mark.usefixtures("threaded")
def test_same_bits_with_kept_features_threads_and_workers(shape, compiled):
    if compiled:
        pytest.importorskip("numba")
    data, feature_map, problems, u = example(**shape)
    how = {"compiled": compiled, "float64": True}
    expected = visited(LocalEngine(data, feature_map, Pool(1), Execution(**how)), problems, u)
    cluster = Shaky()
    pieces = PartitionedSource(cluster, data.source, cut_into_partitions(data.source.shards(), 1))
    others = [
        LocalEngine(data, feature_map, Pool(1), Execution(keep_features=True, **how)),
        LocalEngine(data, feature_map, Pool(3), Execution(**how)),
        ClusterEngine(data, feature_map, pieces, monitor=Monitor(), execution=Execution(**how)),
        ClusterEngine(
            data,
            feature_map,
            pieces,
            monitor=Monitor(),
            execution=Execution(keep_features=True, **how),
        ),
    ]
    for engine in others:
        for between in (lambda: None, lambda: cluster.lose(cluster.made)):
            for name, value in visited(engine, problems, u, between).items():
                np.testing.assert_array_equal(value, expected[name], err_msg=name)

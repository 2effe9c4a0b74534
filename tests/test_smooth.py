"""The pieces of Newton's method: the rounded loss, its sums over rows, its curvature."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import kernel
from polysift._data import ArraySource, TrainingSet
from polysift._distributed import DistributedEngine
from polysift._engine import LocalEngine
from polysift._feature_map import FeatureMap
from polysift._hinge import hinge_loss
from polysift._lanes import Lane
from polysift._monitor import Monitor
from polysift._parallel import Pool
from polysift._pieces import Pieces
from polysift._scalers import AffineScaler
from polysift._smooth import FULL, STEPS, duality_gap, in_band, steepness
from polysift._stretches import cut_into_stretches
from polysift._sums import SmoothSums, move_smoothly
from test_distributed import Shaky

F = np.linspace(-2, 4, 1201)


def rounded(f, delta):
    """Return the rounded loss, as printed."""
    if f >= 1 + delta:
        return 0.0
    return 1 - f if f <= 1 - delta else (1 + delta - f) ** 2 / (4 * delta)


@pytest.mark.parametrize("delta", [1.0, 0.3, 1e-3])
def test_steepness_is_minus_the_slope_of_the_rounded_loss(delta):
    h = 1e-5 * delta
    slope = [(rounded(f + h, delta) - rounded(f - h, delta)) / (2 * h) for f in F]
    np.testing.assert_allclose(steepness(F, delta), np.negative(slope), atol=1e-4)
    curved = in_band(F, delta)
    np.testing.assert_array_equal(curved, np.abs(F - 1) < delta)
    assert set(steepness(F, delta)[~curved]) <= {0.0, 1.0}


@pytest.mark.parametrize("delta", [1.0, 0.3, 1e-3])
def test_the_rounded_loss_tends_to_the_hinge_loss(delta):
    loss = np.array([rounded(f, delta) for f in F])
    assert (loss >= hinge_loss(F)).all()
    assert (loss - hinge_loss(F)).max() <= delta / 4 + 1e-15


def test_what_a_multiplier_leaves_of_the_loss(rng):
    assert (duality_gap(F, rng.random(F.shape)) >= 0).all()
    for delta in (1.0, 0.1):
        gap = duality_gap(F, steepness(F, delta))
        assert gap.min() >= -1e-15 and gap.max() <= delta / 8 + 1e-15
    assert STEPS[FULL] == 1.0 and (np.diff(STEPS) > 0).all()


@pytest.mark.parametrize("counted", ["once", "rows", "lanes"])
def test_moving_is_a_plain_loop(rng, counted):
    t, f = rng.normal(1, 1, (2, 60, 4))
    delta, line = np.array([1.0, 0.5, 0.1, 1e-3]), np.array([0.5, 0.0, 0.2, 0.0])
    t[:, 1] = np.inf  # nobody asks for slopes from there
    counts = {"once": None, "rows": rng.random(60), "lanes": rng.random((60, 4))}[counted]
    each = np.ones((60, 4)) if counts is None else np.broadcast_to(counts.T, (4, 60)).T
    expected = {"loss": np.zeros(4), "gap": np.zeros(4), "band": np.zeros(4)}
    slopes = np.zeros((len(STEPS), 4))

    def c(f, delta):
        return min(max((1 + delta - f) / (2 * delta), 0.0), 1.0)

    for i, k in np.ndindex(60, 4):
        loss = max(0.0, 1 - f[i, k])
        expected["loss"][k] += each[i, k] * loss
        expected["gap"][k] += each[i, k] * (loss - c(f[i, k], delta[k]) * (1 - f[i, k]))
        expected["band"][k] += each[i, k] * (abs(f[i, k] - 1) < delta[k])
        for s in range(len(STEPS)):
            if line[k] > 0:
                way = f[i, k] - t[i, k]
                slopes[s, k] -= each[i, k] * c(t[i, k] + STEPS[s] * way, line[k]) * way
    sums = SmoothSums.zeros(1, 4, 2)
    with np.errstate(invalid="ignore"):
        found = move_smoothly(t, f, delta, line, counts, sums)
    np.testing.assert_array_equal(found, steepness(f, delta))
    np.testing.assert_array_equal(t, f)
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(sums, name), value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sums.slopes, slopes, rtol=1e-12, atol=1e-12)


def test_the_sums_of_one_lane(rng):
    whole = SmoothSums.zeros(5, 6, 2)
    for f in fields(whole):
        getattr(whole, f.name)[...] = rng.random(getattr(whole, f.name).shape)
    second = whole.of_lane(1, 3)
    np.testing.assert_array_equal(second.r, whole.r[:3, 3:])
    np.testing.assert_array_equal(second.slopes, whole.slopes[:, 3:])
    np.testing.assert_array_equal(second.wrong, whole.wrong[1:])


def problem(m, d, n, degree, *, K=1, weighted=False, cells=False, dtype=float, sparse=False):
    """Return a training set, its feature map, and lanes with coefficients for it."""
    rng = np.random.default_rng(m + d)
    X = rng.random((m, d)).astype(dtype)
    if sparse:
        X = sp.csr_array(X * (rng.random((m, d)) < 0.2))
    more = {"weights": rng.integers(0, 3, m) * rng.random(m)} if weighted else {}
    if cells:
        more |= {"cells": rng.integers(0, 3, m), "n_cells": 3}
        if weighted:  # rows that are not there are in no cell
            more["cells"][more["weights"] == 0] = -1
    classes = 2 if K == 1 else K
    data = TrainingSet(ArraySource(X), rng.integers(0, classes, m).astype(np.int8), classes, **more)
    same = AffineScaler(np.zeros(d), np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))
    feature_map = FeatureMap(same, rng.random((n, d)), degree)
    scale = float((1 + 0.25 * d) ** degree * np.sqrt(n))
    u = rng.normal(size=(n, K * (2 if cells else 1))) / scale
    smooth = ((0.5, 0.25), (0.3, 0.0), (1.0, 1.0))[:K]
    lanes = [Lane(n, 1.0, 1.0, None, smooth)]
    if cells:
        lanes = [Lane(n, 1.0, 1.0, 1, smooth), Lane(n, 1.0, 1.0, None, smooth[::-1])]
    return data, feature_map, lanes, u


def visited(engine, lanes, u, between=lambda: None):
    """Return all that an engine tells of a few sweeps; something may happen between its verbs."""
    K = len(lanes[0].smooth)
    T = np.random.default_rng(0).normal(size=(len(u), len(u)))
    engine.begin(len(lanes))
    for factor in (0.5, 1.0):
        found = dict(vars(engine.sweep(lanes, factor * u)))
        between()
    for i, lane in enumerate(lanes):
        for k in range(K):
            found[f"H{i}{k}"] = engine.curvature(lane, i, k, T)
    return found


SHAPES = [
    {"m": 1, "d": 1, "n": 1, "degree": 1},
    {"m": 5003, "d": 3, "n": 20, "degree": 3, "weighted": True},
    {"m": 4001, "d": 2, "n": 15, "degree": 4, "cells": True, "weighted": True, "K": 3},
    {"m": 2001, "d": 20, "n": 31, "degree": 2, "cells": True},
]


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_sweep_and_curvature_against_the_formulas(shape, store):
    data, feature_map, lanes, u = problem(**shape)
    found = visited(LocalEngine(data, feature_map, Pool(1), store=store), lanes, u)
    X = np.concatenate([data.source.rows(part) for _, part in data.source.parts()])
    A, y = kernel(X, feature_map.centers, feature_map.degree), data.labels_of(slice(0, len(X)))
    T = np.random.default_rng(0).normal(size=(len(u), len(u)))
    for i, lane in enumerate(lanes):
        omega = np.ones(len(X)) if data.weights is None else data.weights
        if lane.without is not None:
            omega = omega * (data.cells != lane.without)
        for k, (delta, line) in enumerate(lane.smooth):
            column = i * len(lane.smooth) + k
            f = y[:, k] * (A @ u[:, column])
            c, near = steepness(f, delta), in_band(f, delta)
            B = A[near] @ T
            H = B.T @ (omega[near, np.newaxis] * B)
            H_found = found[f"H{i}{k}"]
            np.testing.assert_allclose(H_found, H, rtol=0, atol=1e-10 * max(np.abs(H).max(), 1e-9))
            r = A.T @ (omega * c * y[:, k])
            np.testing.assert_allclose(found["r"][:, column], r, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(found["loss"][column], omega @ hinge_loss(f), rtol=1e-10)
            np.testing.assert_allclose(found["band"][column], omega @ near, rtol=1e-10)
            way = f / 2
            slope = -omega @ (steepness(f, line or 1.0) * way) if line else 0.0
            np.testing.assert_allclose(found["slopes"][FULL, column], slope, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_compiled_loops_are_numpys_to_rounding(shape):
    pytest.importorskip("numba")
    data, feature_map, lanes, u = problem(**shape)
    plain, fused = (
        visited(LocalEngine(data, feature_map, Pool(1), fused=fused), lanes, u)
        for fused in (False, True)
    )
    for name, value in plain.items():
        scale = max(np.abs(value).max(), 1e-3)
        np.testing.assert_allclose(fused[name], value, rtol=0, atol=1e-10 * scale, err_msg=name)


BITS = [
    {"m": 20_011, "d": 8, "n": 31, "degree": 3, "weighted": True},
    {"m": 9001, "d": 20, "n": 31, "degree": 2, "K": 3, "cells": True},
    {"m": 9001, "d": 20, "n": 9, "degree": 2, "dtype": np.float32},
    {"m": 6001, "d": 30, "n": 15, "degree": 2, "sparse": True},
]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("shape", BITS)
def test_same_bits_with_kept_features_threads_and_workers(shape, fused):
    if fused:
        pytest.importorskip("numba")
    data, feature_map, lanes, u = problem(**shape)
    how = {"fused": fused, "precise": True}
    expected = visited(LocalEngine(data, feature_map, Pool(1), **how), lanes, u)
    cluster = Shaky()
    pieces = Pieces(cluster, data.source, cut_into_stretches(data.source.shards(), 1))
    others = [
        LocalEngine(data, feature_map, Pool(1), store=True, **how),
        LocalEngine(data, feature_map, Pool(3), **how),
        DistributedEngine(data, feature_map, pieces, monitor=Monitor(), **how),
        DistributedEngine(data, feature_map, pieces, monitor=Monitor(), store=True, **how),
    ]
    for engine in others:
        for between in (lambda: None, lambda: cluster.lose(cluster.made)):
            for name, value in visited(engine, lanes, u, between).items():
                np.testing.assert_array_equal(value, expected[name], err_msg=name)

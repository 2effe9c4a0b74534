"""The parts of columns in the spline kernel: centred, scaled and bounded by their distributions."""

from __future__ import annotations

import numpy as np
import pytest

from polysift import FPCClassifier, PolynomialKernelMap
from polysift.features.knots import ColumnPieces
from polysift.features.level_columns import MAX_SELF_KERNEL
from polysift.features.splines import SPLINE_KNOTS, SplineScaler
from polysift.features.statistics import column_statistics, quantile_sketch
from polysift.features.tables import TableScaler, stored_scaler
from polysift.runtime.arrays import InvalidFieldError

M = 4_000


def learned(x, weights=None):
    """Return the scaler of one column."""
    x = np.asarray(x, dtype=float)[:, np.newaxis]
    counts = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    return SplineScaler.learn(column_statistics(x, counts), quantile_sketch(x, counts))


def kappa(scaler, a, b):
    """Return the kernel of values a and b of a column, (len(a), len(b))."""
    a, b = (np.asarray(side, dtype=float)[:, np.newaxis] for side in (a, b))
    q, own = scaler.transform(a), scaler.transform(b)
    heights, own_heights = scaler.ranks_and_heights(a)[1], scaler.ranks_and_heights(b)[1]
    return heights + own_heights.T - np.maximum(q, own.T)


def line(column, x):
    """Return the values x of a column, centred, scaled and bounded."""
    bound = np.sqrt(MAX_SELF_KERNEL)
    own, x = ((side - column.mean()) / column.std() for side in (column, x))
    return np.clip(x, -bound, bound) - np.clip(own, -bound, bound).mean()


def column(kind, m=M):
    rng = np.random.default_rng(1)
    return {
        "binary": lambda: (rng.random(m) < 0.3).astype(float),
        "rare": lambda: (np.arange(m) < m // 100).astype(float),
        "counts": lambda: rng.poisson(2.0, m).astype(float),
        "zero-inflated": lambda: np.where(rng.random(m) < 0.8, 0.0, rng.integers(1, 200, m)),
        "few": lambda: np.round(rng.normal(size=m), 1),
    }[kind]()


KINDS = ["binary", "rare", "counts", "zero-inflated", "few"]


@pytest.mark.parametrize("kind", KINDS)
def test_means_over_the_rows(kind):
    x = column(kind)
    scaler = learned(x)
    values, shares = np.unique(x, return_counts=True)
    shares = shares / M
    K = kappa(scaler, values, values)
    np.testing.assert_allclose(K @ shares, 0.0, atol=1e-12)
    np.testing.assert_allclose(shares @ K, 0.0, atol=1e-12)
    assert np.diag(K).max() <= MAX_SELF_KERNEL + 1e-9
    size = shares @ np.diag(K)
    assert size == pytest.approx(1.0) if kind != "rare" else 0 < size < 1
    assert np.linalg.eigvalsh(K).min() > -1e-9, "a kernel is positive semidefinite"


@pytest.mark.parametrize("distribution", ["normal", "lognormal", "uniform"])
def test_a_continuous_column_has_the_formula(distribution):
    rng = np.random.default_rng(0)
    x = getattr(rng, distribution)(size=M)
    scaler = learned(x)
    assert scaler.counts[0] == SPLINE_KNOTS
    rank = (np.argsort(np.argsort(x)) + 0.5) / M
    a, b = rank[:, np.newaxis], rank[np.newaxis]
    expected = 6.0 * (a**2 / 2 + b**2 / 2 - np.maximum(a, b) + 1 / 3)
    K = kappa(scaler, x, x)
    np.testing.assert_allclose(K, expected, rtol=0, atol=12 / SPLINE_KNOTS)
    assert np.abs(K.mean(axis=0)).max() < 1 / SPLINE_KNOTS
    assert np.trace(K) / M == pytest.approx(1.0, abs=2 / SPLINE_KNOTS)


@pytest.mark.parametrize("share", [1e-2, 1e-3, 1e-4])
def test_a_column_that_hardly_varies_is_bounded(share):
    scaler = learned([0.0, 1.0], [1.0 - share, share])
    K = kappa(scaler, [0.0, 1.0], [0.0, 1.0])
    assert K.max() == pytest.approx(MAX_SELF_KERNEL)
    np.testing.assert_allclose(K @ [1.0 - share, share], 0.0, atol=1e-12)
    assert kappa(scaler, [1e9], [1.0])[0, 0] == K[1, 1], "beyond the rows it stays"


def test_a_binary_column_is_a_category():
    """The kernel of two values is that of their centred indicator."""
    x, p = column("binary"), column("binary").mean()
    indicator = (np.array([0.0, 1.0]) - p) / np.sqrt(p * (1 - p))
    expected = np.outer(indicator, indicator)
    np.testing.assert_allclose(kappa(learned(x), [0, 1], [0, 1]), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_multiplicities(kind):
    x = column(kind, 500)
    counts = np.random.default_rng(2).integers(0, 4, 500)
    one, other = learned(np.repeat(x, counts)), learned(x[counts > 0], counts[counts > 0])
    for name, value in vars(one).items():
        np.testing.assert_allclose(getattr(other, name), value, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("bend", [np.exp, lambda x: x**3, lambda x: 1e9 * x - 7])
def test_monotone_transforms_change_nothing(bend):
    x = column("few")
    values = np.unique(x)
    np.testing.assert_allclose(
        kappa(learned(bend(x)), bend(values), bend(values)),
        kappa(learned(x), values, values),
        atol=1e-12,
    )
    x = np.random.default_rng(0).normal(size=M)
    np.testing.assert_allclose(
        kappa(learned(bend(x)), bend(x), bend(x)),
        kappa(learned(x), x, x),
        atol=12 / SPLINE_KNOTS,
        err_msg="between knots ranks are interpolated",
    )


def test_a_constant_and_an_empty_column_have_no_part():
    X = np.column_stack([np.full(50, 3.0), np.full(50, np.nan), np.arange(50.0)])
    scaler = SplineScaler.learn(column_statistics(X, np.ones(50)), quantile_sketch(X, np.ones(50)))
    assert scaler.counts.tolist() == [1, 1, 50] and scaler.middle.tolist() == [3.0, 0.0, 24.0]
    filled = scaler.filled(X)
    for part in (scaler.transform(filled), scaler.ranks_and_heights(filled)[1]):
        assert (part[:, :2] == 0).all() and (part[:, 2] != 0).any()
    scaler.validate(3)


def test_heights_at_ranks_and_slopes_are_those_of_values():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros(50), rng.normal(size=300)])
    scaler = learned(x)
    rows = np.concatenate([x, rng.normal(size=200), [-10.0, 10.0]])[:, np.newaxis]
    np.testing.assert_allclose(
        scaler.heights_at(scaler.transform(rows)[:, 0], 0),
        scaler.ranks_and_heights(rows)[1][:, 0],
        atol=1e-12,
    )
    step = 1e-9
    below, above = scaler.side_slopes(rows)
    mean = (scaler.transform(rows + step) - scaler.transform(rows - step)) / (2 * step)
    np.testing.assert_allclose((below + above) / 2, scaler.slope(rows))
    close = np.abs(scaler.slope(rows) - mean) < 1e-3 * np.abs(mean).max()
    assert close.mean() > 0.99
    assert (scaler.height_slope(rows)[-2:] == 0).all()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ranks", np.array([[0.0, -1.0]]), "must ascend"),
        ("ranks", np.array([[-1.0, 0.0]]), "must not be negative"),
        ("heights", np.array([[0.0]]), "heights"),
        ("heights", np.array([[0.0, np.nan]]), "heights"),
        ("middle", np.array([np.inf]), "middle"),
        ("counts", np.array([3]), "within bounds"),
    ],
)
def test_fields_of_a_file_are_checked(name, value, message):
    fields = vars(learned([0.0, 1.0, 1.0]))
    with pytest.raises(InvalidFieldError, match=message):
        SplineScaler(**(fields | {name: value})).validate(1)


class TestTables:
    def fitted(self, X, **params):
        made = PolynomialKernelMap(1, 30, kernel="spline", scaler=None, random_state=0, **params)
        return made.fit(X)

    def rows(self, m=400):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(m, 3))
        X[:, 1] = rng.integers(0, 5, m)
        X[rng.random(m) < 0.3, 2] = np.nan
        return X

    def test_the_base_is_the_sum_over_columns(self):
        X = self.rows()
        made = self.fitted(X, centers=np.nan_to_num(X[:20]))
        scaler = stored_scaler(made.scaler_)
        assert isinstance(scaler, TableScaler) and scaler.spline is not None
        expected = np.ones((len(X), 20))
        for j in range(3):
            there = ~np.isnan(X[:, j])
            x, c = np.nan_to_num(X[:, j]), np.nan_to_num(X[:20, j])
            a, b = line(X[there, j], x), line(X[there, j], c)
            own = (kappa(learned(X[there, j]), x, c) + np.outer(a, b)) / 2
            expected += np.where(there[:, np.newaxis], own, 0.0) / 3
        p = np.isnan(X[:, 2]).mean()
        indicator = (np.isnan(X[:, 2]) - p) / np.sqrt(p * (1 - p))
        expected += np.outer(indicator, np.full(20, -p / np.sqrt(p * (1 - p)))) / 4 / 3
        np.testing.assert_allclose(made.transform(X), expected, atol=1e-10)

    def test_a_missing_value_says_nothing_whatever_the_other_is(self):
        X = self.rows()
        rows = np.repeat(X[:50], 2, axis=0)
        rows[:, 2] = np.nan
        lacking = X[np.isnan(X[:, 2])][:15]
        made = self.fitted(X)
        scaler = stored_scaler(made.scaler_)
        C = scaler.kernel.parted(scaler.kernel.facing(scaler.transform(lacking)))
        values = []
        for third in (-50.0, 0.1, 9.0):  # of rows, where the centers' values are missing
            rows[:, 2] = third
            Z = np.column_stack([scaler.transform(rows), np.ones(len(rows))])
            out, scratch = np.empty((2, len(Z), len(lacking)))
            scaler.kernel.base(Z, C, out, scratch)
            values.append(out)
        np.testing.assert_allclose(values[1:], values[:1] * 2, atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_base_by_distances_is_that_of_larger_ranks(self, dtype):
        X = self.rows()
        scaler = stored_scaler(self.fitted(X).scaler_)
        kernel, Z = scaler.kernel, scaler.transform(X[:37])
        C = kernel.facing(scaler.transform(X[40:61]))
        Z = np.column_stack([Z, np.ones(len(Z))])
        expected = Z[:, kernel.ranks :] @ C[kernel.ranks :]
        for k in range(kernel.ranks):
            expected -= np.maximum(Z[:, k : k + 1], C[k])
        Z, parted = Z.astype(dtype), kernel.parted(C.astype(dtype))
        out, scratch = np.empty((2, len(Z), C.shape[1]), dtype)
        kernel.base(Z, parted, out, scratch)
        np.testing.assert_allclose(out, expected, atol=1e-6 if dtype == np.float32 else 1e-14)

    def test_a_column_has_the_weight_of_one_whatever_it_becomes(self):
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**8, 600), unit="s")
        frame = pd.DataFrame({"when": when, "x": rng.normal(size=600)})
        scaler = stored_scaler(self.fitted(frame).scaler_)
        assert scaler.kernel.ranks == 8
        Z = scaler.transform(
            np.column_stack([when.to_numpy("datetime64[s]").astype(float), frame["x"]])
        )
        spline = 2.0 * Z[:, -1] - Z[:, :8].sum(axis=1)
        lines = (Z[:, 8:16] ** 2).sum(axis=1)
        assert spline.mean() == pytest.approx(0.5, abs=0.01)
        assert lines.mean() == pytest.approx(0.5, abs=0.01)
        alone = 2.0 * scaler.spline.heights_at(Z[:, 7], 7) - Z[:, 7] + Z[:, 15] ** 2
        assert alone.mean() == pytest.approx(0.5, abs=0.01), "of x, as much as of all of the date"


class TestModels:
    def fit(self, X, y, **params):
        given = {
            "kernel": "spline",
            "degree": 3,
            "n_centers": 60,
            "scaler": "minmax",
            "alpha": 1.0,
            "solver": "paper",
        }
        return FPCClassifier(**(given | params), random_state=0).fit(X, y)

    def problem(self, m=1500):
        rng = np.random.default_rng(5)
        X = rng.normal(size=(m, 3))
        return X, X[:, 0] * X[:, 1] + 0.5 * np.sin(3 * X[:, 2]) > 0

    @pytest.mark.parametrize("scale", [1e6, -1e-3])
    def test_units_do_not_matter(self, scale):
        X, y = self.problem()
        X = np.clip(np.round(20 * X), -60, 60) / 20
        moved = scale * X - 7 * scale
        one, other = (self.fit(rows, y, centers=rows[:60]) for rows in (X, moved))
        np.testing.assert_allclose(
            one.decision_function(X), other.decision_function(moved), atol=1e-7
        )

    def test_outliers_do_not_matter(self):
        X, y = self.problem()
        spoilt = X.copy()
        spoilt[::150, 0] *= 1e12
        plain = self.fit(X, y, centers=X[1:61])
        model = self.fit(spoilt, y, centers=spoilt[1:61])
        assert model.score(spoilt, y) > plain.score(X, y) - 0.02
        others = np.setdiff1d(np.arange(len(X)), np.arange(0, len(X), 150))
        changed = model.decision_function(X[others]) - plain.decision_function(X[others])
        assert np.abs(changed).mean() < 0.1

    def test_there_is_no_limit_by_the_dimension(self):
        X, y = self.problem(300)
        assert self.fit(X, y, degree=1, n_centers=50).n_centers_ == 50
        assert self.fit(X, y, degree=1, centers=X[:50], n_centers="auto").n_centers_ == 50


@pytest.mark.parametrize("rows", [1, 3])
def test_all_columns_at_once_have_the_bits_of_interp(rows):
    rng = np.random.default_rng(5)
    counts = np.array([1, 2, 7, 30])
    knots, first, second = np.zeros((3, 4, 30))
    for j, count in enumerate(counts):
        knots[j, :count] = np.sort(rng.normal(size=count))
        first[j, :count], second[j, :count] = rng.normal(size=(2, count))
    pieces = ColumnPieces.of(knots, counts, first, second)
    blocks = rng.normal(scale=2.0, size=(200, rows, 4))
    at_knots = np.stack([knots[np.arange(4), rng.integers(0, counts)] for _ in range(rows)])
    for block in (*blocks, at_knots, np.full((rows, 4), 9e9), np.full((rows, 4), -9e9)):
        expected = [
            [np.interp(block[:, j], knots[j, :c], f[j, :c]) for j, c in enumerate(counts)]
            for f in (first, second)
        ]
        np.testing.assert_array_equal(pieces(block), np.transpose(expected, (0, 2, 1)))

"""Simulation 6: three types of noise, by where in the square labels are reversed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

from polysift.datasets import bayes_curve, make_noisy_curve
from polysift.plots.base import COLOURS, GREY, INK
from polysift.runtime.types import FloatArray
from polysift_paper.studies.averages import average, column, seeds, where
from polysift_paper.studies.degrees import error_of, fit_quietly
from polysift_paper.studies.pictures import TEXT_SIZE, legend, line, name_axes, new_figure
from polysift_paper.studies.study import ONE_RUN, Row, Study, Verdict
from polysift_paper.studies.toy import ROWS, toy_classifier, toy_data

WIDTHS = {"inside": (0.05, 0.1, 0.2), "outside": (0.2, 0.3, 0.4), "everywhere": (0.0,)}
"""By where the noise is: the paper's types 1, 2 and 3. The last has no width."""

RATIOS = tuple(i / 20 for i in range(11))

GRID_SIDE = 200
"""Points along a side of the grid on which pieces of the boundary are counted."""

MIN_REGION_SHARE = 0.005
"""Regions that fill a smaller share of the square do not count."""

COMPARED_TRAINING_ERROR = 0.12
"""The training error at which the types are compared; most widths get there."""

MODERATE_RATIO = 0.3
"""The ratio up to which noise counts as moderate."""

MAX_SLOPE_ERROR, MAX_MEAN_ERROR = 0.1, 0.02
"""How far training errors and noise levels may be apart to count as almost equal."""

MAJORITY_SHARE = 0.5
"""What happens in a larger share of the runs happens "generally"."""


FIGURE_SEED = 0
"""Of the data and centers behind the boundaries."""

BLUE, ORANGE, GREEN = COLOURS[:3]

CASES = (
    ("(a) Type 1: width 0.2, ratio 0.3", "inside", 0.2, 0.3),
    ("(b) Type 3: ratio 0.2", "everywhere", 0.0, 0.2),
    ("(c) Type 2: width 0.3, ratio 0.5", "outside", 0.3, 0.5),
    ("(d) Detail of (c)", "outside", 0.3, 0.5),
)

ERRORS = (
    ("inside", "type 1", ("(e)", "(f)")),
    ("outside", "type 2", ("(g)", "(h)")),
    ("everywhere", "type 3", ("(i)", "(j)")),
)


def cells(runs: int, base: int = 0) -> list[Row]:
    """Return one cell per run, type of noise and width."""
    return [
        {**seed, "kind": kind, "width": width}
        for seed in seeds(runs, base)
        for kind, widths in WIDTHS.items()
        for width in widths
    ]


def measure(cell: Row) -> list[Row]:
    """Return errors and pieces of the boundary for all ratios; the points are the same for all."""
    kind, width, seed = cell["kind"], cell["width"], cell["seed"]
    X_test, y_test = toy_data(seed)[2:]
    rows = []
    for ratio in RATIOS:
        X, y = make_noisy_curve(ROWS, kind=kind, width=width, ratio=ratio, random_state=seed)
        model = toy_classifier(seed)
        fit_quietly(model, X, y)
        pieces = count_pieces(model)
        rows.append(
            {
                "ratio": ratio,
                "level": float(np.mean((X[:, 1] >= bayes_curve(X[:, 0])) != (y > 0))),
                "training_error": error_of(model, X, y),
                "test_error": error_of(model, X_test, y_test),
                "pieces": pieces,
                "one": pieces == 1,
                "three": pieces == 3,
            }
        )
    return rows


def count_pieces(model: Any) -> int:
    """Count the curves that make up a boundary: one fewer than the regions they cut apart."""
    steps = (np.arange(GRID_SIDE) + 0.5) / GRID_SIDE
    points = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    above = model.decision_function(points).reshape(GRID_SIDE, GRID_SIDE) >= 0
    regions = 0
    for mask in (above, ~above):
        areas = np.bincount(ndimage.label(mask)[0].ravel())[1:]  # 0 is what the mask leaves out
        regions += int(np.sum(areas >= MIN_REGION_SHARE * GRID_SIDE**2))
    return regions - 1


def summarise(rows: list[Row]) -> list[Row]:
    """Return averages for each type, width and ratio, with the shares of one and three pieces."""
    shares = ("one", "three")
    names = ("level", "training_error", "test_error", "pieces", *shares)
    lines = average(rows, ("kind", "width", "ratio"), names)
    unused = {"level_spread", "pieces_spread", *(f"{name}_spread" for name in shares)}
    return [{name: entry[name] for name in entry if name not in unused} for entry in lines]


def draw(summary: list[Row], _rows: list[Row]) -> Any:
    """Draw four boundaries (Fig. 11), and below them the errors of the three types (Fig. 12)."""
    figure, axes = new_figure(5, 2, height=15.5)
    for ax, (title, kind, width, ratio) in zip(axes[:2].flat, CASES, strict=True):
        _draw_boundary(ax, kind, width, ratio)
        name_axes(ax, "$x(1)$", "$x(2)$", title)
    axes[1, 1].set_ylim(0, 0.3)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=2,
        markerscale=2.0,
        fontsize=TEXT_SIZE,
        frameon=False,
    )
    for (kind, name, letters), pair in zip(ERRORS, axes[2:], strict=True):
        _draw_errors(pair, where(summary, kind=kind), name, letters)
    return figure


def _draw_boundary(ax: Any, kind: str, width: float, ratio: float) -> None:
    """Draw rows, the Bayes curve, the borders of the noise, and what FPC learns from the rows."""
    X, y = make_noisy_curve(ROWS, kind=kind, width=width, ratio=ratio, random_state=FIGURE_SEED)
    wrong = (X[:, 1] >= bayes_curve(X[:, 0])) != (y > 0)
    for sign, colour, marker, label in ((1, ORANGE, "o", "$+1$"), (-1, BLUE, "s", "$-1$")):
        for rows, alpha, what in ((~wrong, 0.25, "true label"), (wrong, 0.9, "label reversed to")):
            points = X[rows & (y == sign)]
            settings = {"s": 7, "linewidths": 0, "alpha": alpha, "label": f"{what} {label}"}
            ax.scatter(*points.T, color=colour, marker=marker, **settings)
    t = np.linspace(0, 1, 400)
    if width:
        dashed = {"color": GREY, "linestyle": "--", "linewidth": 1.2}
        ax.plot(t, bayes_curve(t) - width, label="border of the noise", **dashed)
        ax.plot(t, bayes_curve(t) + width, **dashed)
    ax.plot(t, bayes_curve(t), color=INK, linewidth=1.6, label="Bayes curve")
    points = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    scores: FloatArray = toy_classifier(FIGURE_SEED).fit(X, y).decision_function(points)
    ax.contour(t, t, scores.reshape(len(t), -1), levels=[0.0], colors=GREEN, linewidths=2.2)
    ax.plot([], [], color=GREEN, linewidth=2.2, label="learned boundary")  # for the legend
    ax.set(xlim=(0, 1), ylim=(0, 1))


def _draw_errors(pair: Any, lines: list[Row], name: str, letters: tuple[str, str]) -> None:
    """Draw the training errors of one type of noise beside its test errors."""
    widths = list(dict.fromkeys(column(lines, "width")))
    names = (("training_error", "Training"), ("test_error", "Test"))
    for ax, (key, what), letter in zip(pair, names, letters, strict=True):
        for number, width in enumerate(widths):
            these = where(lines, width=width)
            x, label = column(these, "ratio"), f"width {width:g}" if width else "FPC"
            values = column(these, key), column(these, f"{key}_spread")
            line(ax, x, *values, number=number, label=label)
            if what == "Training":
                level = "noise level" if width == widths[-1] else None
                ax.plot(x, column(these, "level"), color=GREY, lw=1.0, zorder=1, label=level)
        ax.set_ylim(bottom=0)
        x_name = "noise ratio in the region" if widths[0] else "noise ratio"
        name_axes(ax, x_name, "error", f"{letter} {what} error, {name}")
        legend(ax, loc="upper left")


def judge(summary: list[Row], _rows: list[Row]) -> Verdict:
    """Compare training errors with noise levels, types with one another, and count pieces."""
    if summary[0]["runs"] < 2:
        return ONE_RUN
    linear, first = _judge_level(summary)
    best, second = _judge_types(summary)
    split, third = _judge_pieces(summary)
    return Verdict(linear and best and split, f"{first} {second} {third}")


def _judge_level(summary: list[Row]) -> tuple[bool, str]:
    """Compare training errors with noise levels, over all settings."""
    level, error = (np.array(column(summary, name)) for name in ("level", "training_error"))
    slope, offset = np.polyfit(level, error, 1)
    off = error - level
    worst = summary[int(np.argmax(abs(off)))]
    agrees = bool(abs(slope - 1) < MAX_SLOPE_ERROR and abs(off).mean() < MAX_MEAN_ERROR)
    band = where(summary, kind="inside", width=WIDTHS["inside"][-1], ratio=RATIOS[-1])[0]
    text = (
        f"Training error against noise level, over {len(summary)} settings: slope {slope:.3f}, "
        f"offset {offset:.4f}, mean absolute deviation {abs(off).mean():.4f}, largest deviation "
        f"{off[np.argmax(abs(off))]:+.4f} ({_name(worst)}, ratio {worst['ratio']:g}). They are "
        f"{'' if agrees else 'not '}almost equal: a slope of 1 to within {MAX_SLOPE_ERROR:g}, and "
        f"a mean deviation below {MAX_MEAN_ERROR:g}. The band reaches as far on either side of the "
        "curve as its width says, so that the level of type 1 is "
        f"{band['level'] / (band['width'] * band['ratio']):.1f} times width times ratio, not once "
        "as in the paper's text."
    )
    return agrees, text


def _judge_types(summary: list[Row]) -> tuple[bool, str]:
    """Compare test errors at one training error, for those widths that reach it."""
    errors: dict[str, list[float]] = {}
    growth = []
    for kind, widths in WIDTHS.items():
        for width in widths:
            lines = where(summary, kind=kind, width=width)
            x, y = column(lines, "training_error"), column(lines, "test_error")
            growth.append(f"{y[-1]:.4f} ({_name(lines[0])})")
            if max(x) >= COMPARED_TRAINING_ERROR:
                errors.setdefault(kind, []).append(float(np.interp(COMPARED_TRAINING_ERROR, x, y)))
    others = [error for kind in errors for error in errors[kind] if kind != "everywhere"]
    agrees = all(errors["everywhere"][0] <= error for error in others)
    found = "; ".join(
        f"{', '.join(f'{error:.4f}' for error in errors[kind])} (type {_TYPES[kind]})"
        for kind in errors
    )
    text = (
        f"The test error grows from {summary[0]['test_error']:.4f} without noise to these at ratio "
        f"{RATIOS[-1]:g}: {', '.join(growth)}. At a training error of {COMPARED_TRAINING_ERROR:g} "
        f"it is {found}, for the widths that get there: type 3 "
        f"{'has' if agrees else 'does not have'} the smallest (the best of the others: "
        f"{min(others):.4f}). The paper calls types 1 and 2 similar then; what we see of type 2 "
        "depends on the width."
    )
    return agrees, text


def _judge_pieces(summary: list[Row]) -> tuple[bool, str]:
    """Compare how often the boundary has three pieces, and how often one."""
    shares = []
    for width in WIDTHS["outside"]:
        lines = where(summary, kind="outside", width=width)
        found = ", ".join(
            f"{entry['three']:.0%}" for entry in lines if entry["ratio"] >= MODERATE_RATIO
        )
        shares.append(f"{found} (width {width:g})")
    three = column(where(summary, kind="outside", ratio=RATIOS[-1]), "three")
    others = [entry for entry in summary if entry["kind"] != "outside"]
    whole = np.mean([entry["one"] for entry in others if entry["ratio"] <= MODERATE_RATIO])
    weak = [
        entry["one"] for entry in where(summary, kind="outside") if entry["ratio"] < MODERATE_RATIO
    ]
    agrees = bool(np.mean(three) > MAJORITY_SHARE and whole > MAJORITY_SHARE)
    text = (
        f"Share of runs in which type 2 leaves a boundary of exactly three pieces, for ratios "
        f"{', '.join(f'{ratio:g}' for ratio in RATIOS if ratio >= MODERATE_RATIO)}: "
        f"{'; '.join(shares)}. Below these ratios it is one piece in {np.mean(weak):.0%} of the "
        f"runs. With types 1 and 3 and ratios up to {MODERATE_RATIO:g} it is one piece in "
        f"{whole:.0%}. The boundary counts as split by type 2 alone if three pieces at ratio "
        f"{RATIOS[-1]:g}, and one piece here, are found in more than {MAJORITY_SHARE:.0%}. Regions "
        f"of less than {MIN_REGION_SHARE:.1%} of the square do not count."
    )
    return agrees, text


_TYPES = {"inside": 1, "outside": 2, "everywhere": 3}


def _name(entry: Row) -> str:
    width = "" if entry["kind"] == "everywhere" else f", width {entry['width']:g}"
    return f"type {_TYPES[entry['kind']]}{width}"


STUDIES: tuple[Study, ...] = (
    Study(
        name="6",
        title="Three types of noise",
        figure="Figs. 11 and 12",
        claim=(
            "Whether labels are reversed within a band about the Bayes curve (type 1), outside it "
            "(type 2) or everywhere (type 3), the training error is almost equal to the noise "
            "level, and the test error grows with it; at the same training error FPC does best "
            "with type 3, and about as well with the other two. With types 1 and 3 the learned "
            "boundary stays close to the Bayes curve, with type 2 it falls into three pieces."
        ),
        runs=50,
        cells=cells,
        measure=measure,
        summarise=summarise,
        draw=draw,
        judge=judge,
    ),
)

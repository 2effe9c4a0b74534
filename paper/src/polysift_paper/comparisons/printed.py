"""The paper's figures on real data, as printed: Tables II to IV, VI and VII.

Cells are kept as text, for their digits tell how far a figure was rounded. An accuracy is in
percent, a time in seconds (Tables IV and VII) or minutes (Table VI).
"""

from __future__ import annotations

from dataclasses import dataclass

from polysift_paper.algorithm import VARIANTS

SYSTEMS = {
    "svm_rbf": "SVM-RBF",
    "svm_poly": "SVM-Poly",
    "linear_svm": "linear-SVM",
    "l1_svm": "l1-SVM",
    "random_forest": "RF",
    "prox_pfgm": "PROX-PFGM",
    "falkon": "FALKON",
    "rr_fourier": "RR-Fourier",
    "tensor_sketch": "TS",
    "fpc": "FPC",
}
"""The ten systems, in the paper's order and by its names."""

FAST_SYSTEMS = ("prox_pfgm", "falkon", "rr_fourier", "tensor_sketch", "fpc")
"""Those of Tables VI and VII."""

SETS = {
    "breast_cancer": "breast",
    "banknote": "banknote",
    "seismic_bumps": "seismic",
    "musk2": "musk2",
    "htru2": "HTRU2",
    "magic": "MAGIC",
    "occupancy": "occupancy",
    "credit_default": "default",
    "skin": "Skin",
    "susy": "SUSY",
    "higgs": "HIGGS",
    "gisette": "Gisette",
    "mnist38": "MNIST38",
    "dogs_vs_cats": "Dogs_vs_Cats",
}
"""The data sets, in the paper's order and by its short names."""

UCI = tuple(SETS)[:9]

MASSIVE = ("susy", "higgs")

HIGHDIM = ("gisette", "mnist38", "dogs_vs_cats")

UCI_ROWS = dict(zip(UCI, (683, 1372, 2584, 6598, 17898, 19020, 20560, 30000, 245057), strict=True))
"""Table I: how many rows the sets have, all parts together."""

UCI_ACCURACY = """
97.19±0.71 98.07±0.71 93.84±0.37 91.11±0.41 97.53±0.06 85.69±0.26 98.63±0.08 81.60±1.05 98.80±0.02
96.84±1.05 97.72±0.99 93.59±0.74 92.82±0.32 97.42±0.08 86.00±0.11 98.95±0.08 82.10±0.32 99.06±0.01
96.38±0.82 97.43±0.77 93.42±0.62 91.05±0.48 97.32±0.08 85.44±0.28 98.46±0.08 81.42±0.96 98.53±0.04
96.73±0.78 97.84±0.81 93.62±0.56 92.44±0.46 97.56±0.08 85.83±0.18 98.55±0.06 81.80±0.64 98.77±0.05
96.81±1.40 98.99±0.57 92.88±0.78 95.56±0.51 97.88±0.18 86.90±0.53 99.14±0.10 81.01±0.40 99.94±0.01
97.24±0.82 98.62±0.46 93.86±0.42 95.12±0.66 97.58±0.06 86.34±0.41 98.71±0.07 82.32±0.43 99.12±0.02
96.93±0.88 98.74±0.62 93.48±0.65 95.46±0.36 97.93±0.08 86.92±0.44 98.74±0.08 82.09±0.50 98.84±0.02
96.82±0.69 98.64±0.54 93.75±0.75 94.21±0.52 97.24±0.12 86.09±0.54 98.33±0.09 81.85±0.64 98.46±0.03
96.64±0.77 98.43±0.66 93.46±0.68 94.61±0.36 97.26±0.10 85.69±0.46 98.26±0.07 81.63±0.46 98.13±0.04
96.83±0.86 99.91±0.20 94.12±0.39 99.27±0.28 97.64±0.11 86.52±0.30 98.77±0.06 81.81±0.23 99.24±0.06
"""
"""Table II: a line for each system, a column for each set."""

UCI_AUC = """
0.995±2e-3 0.998±2e-3 0.762±3e-2 0.942±1e-3 0.977±4e-3 0.882±2e-3 0.992±2e-4 0.752±3e-3 0.990±2e-4
0.993±2e-3 0.995±2e-3 0.755±4e-2 0.956±1e-3 0.975±5e-3 0.908±2e-3 0.994±3e-4 0.758±3e-3 0.992±8e-5
0.986±1e-3 0.989±3e-3 0.752±3e-2 0.933±2e-3 0.968±4e-3 0.880±2e-3 0.993±2e-4 0.738±4e-3 0.988±5e-4
0.987±2e-3 0.994±2e-3 0.758±3e-2 0.952±1e-3 0.972±5e-3 0.879±4e-3 0.989±4e-4 0.751±3e-3 0.989±4e-4
0.994±2e-3 0.998±1e-3 0.753±3e-2 0.968±1e-3 0.977±2e-3 0.926±2e-3 0.998±2e-4 0.732±5e-3 1.000±0
0.995±8e-4 0.998±1e-3 0.771±2e-2 0.961±1e-3 0.978±4e-3 0.921±2e-3 0.996±2e-4 0.758±2e-3 0.998±1e-4
0.995±2e-3 0.998±1e-3 0.768±2e-2 0.973±1e-3 0.976±3e-3 0.927±2e-3 0.996±2e-4 0.752±4e-3 0.993±5e-4
0.992±3e-3 0.996±2e-3 0.761±3e-2 0.956±2e-3 0.971±4e-3 0.913±3e-3 0.992±2e-4 0.746±4e-3 0.991±4e-4
0.988±3e-3 0.992±3e-3 0.758±4e-2 0.948±1e-3 0.971±3e-3 0.915±2e-3 0.990±3e-4 0.741±3e-3 0.989±1e-4
0.996±2e-3 1.000±0 0.780±3e-2 0.998±7e-4 0.976±4e-3 0.916±2e-3 0.995±3e-4 0.744±3e-3 0.999±4e-5
"""
"""Table III."""

UCI_SECONDS = """
5.42 8.35 30.12 1350.4 638.8 4561.8 846.0 9817.2 9760.2
1.10 6.07 12.94 845.89 78.55 12011.5 2991.6 35902.2 851.6
0.52 2.32 6.12 303.12 40.15 2018.5 362.1 6754.2 246.7
0.64 2.28 4.55 315.24 50.15 819.23 402.15 1892.3 252.6
0.99 1.21 1.86 7.36 8.11 18.18 6.57 30.65 64.23
0.38 2.23 4.15 102.5 36.1 129.3 96.5 387.1 114.5
0.068 0.37 1.23 2.84 1.43 3.21 2.34 2.21 15.63
0.08 0.12 1.08 3.64 4.21 3.89 4.06 3.89 18.64
0.018 0.15 0.62 1.23 1.65 2.03 1.46 2.32 10.13
3e-6 7.5e-3 0.025 2.91 0.34 0.58 0.075 0.32 7.74
"""
"""Table IV."""

MASSIVE_CELLS = """
78.88 0.859 62.4 64.87 0.826 212.9
79.12 0.871 46.7 65.42 0.883 163.4
78.34 0.847 16.5 64.65 0.814 21.4
77.55 0.828 11.6 64.17 0.814 18.3
78.99 0.876 10.2 65.39 0.878 4.6
"""
"""Table VI: of each set the accuracy, the AUC and the minutes."""

HIGHDIM_CELLS = """
96.62 28.4 99.1 32.6 96.32 14.3
96.66 32.6 99.3 21.5 96.73 8.7
96.52 17.3 99.2 15.6 96.68 6.5
96.44 11.6 98.9 8.6 96.12 4.3
96.63 10.2 99.2 6.2 96.82 1.08
"""
"""Table VII: of each set the accuracy and the seconds."""

FigureKey = tuple[str, str, str]
"""What was measured ("accuracy", "auc", "seconds" or "minutes"), the data set, the system."""


def _cells(
    text: str, sets: tuple[str, ...], systems: tuple[str, ...], kinds: tuple[str, ...]
) -> dict[FigureKey, str]:
    heads = [(kind, data) for data in sets for kind in kinds]
    return {
        (*head, system): cell
        for system, line in zip(systems, text.split("\n")[1:-1], strict=True)
        for head, cell in zip(heads, line.split(), strict=True)
    }


CELLS: dict[FigureKey, str] = {
    **_cells(UCI_ACCURACY, UCI, tuple(SYSTEMS), ("accuracy",)),
    **_cells(UCI_AUC, UCI, tuple(SYSTEMS), ("auc",)),
    **_cells(UCI_SECONDS, UCI, tuple(SYSTEMS), ("seconds",)),
    **_cells(MASSIVE_CELLS, MASSIVE, FAST_SYSTEMS, ("accuracy", "auc", "minutes")),
    **_cells(HIGHDIM_CELLS, HIGHDIM, FAST_SYSTEMS, ("accuracy", "seconds")),
}
"""All cells, as printed."""

SCALES = {"accuracy": 0.01, "auc": 1.0, "seconds": 1.0, "minutes": 60.0}
"""What a printed figure is multiplied with, to become a share or a number of seconds."""


@dataclass(frozen=True)
class Printed:
    """A figure of the paper: shares between 0 and 1, or seconds.

    Attributes
    ----------
    mean : float
        The figure.
    std : float or None
        Its standard deviation, where one is printed.
    unit : float
        One in the last digit of the mean.
    text : str
        As printed.
    """

    mean: float
    std: float | None
    unit: float
    text: str


def printed(kind: str, data: str, system: str) -> Printed | None:
    """Return a figure of the paper, or None where it has none.

    Parameters
    ----------
    kind : {"accuracy", "auc", "seconds"}
        What was measured.
    data, system : str
        Where, and by what; the settings of FPC all stand beside the one that is printed.
    """
    system = "fpc" if system in VARIANTS else system
    text = CELLS.get((kind, data, system))
    if text is None:
        return None if kind != "seconds" else printed("minutes", data, system)
    mean, _, std = text.partition("±")
    scale, decimals = SCALES[kind], len(mean.partition(".")[2])
    return Printed(
        _scaled(mean, scale),
        _scaled(std, scale) if std else None,
        scale * 10.0**-decimals,
        text.replace("±", " ± ") + (" min" if kind == "minutes" else ""),
    )


def _scaled(number: str, scale: float) -> float:
    return float(f"{scale * float(number):.9g}")  # 0.9719, not 0.9719000000000001

"""The sections on the model: what it has learned, its parameters, how to reproduce it, versions."""

from __future__ import annotations

import inspect
import os
import platform
import re
from datetime import datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from polysift import __version__
from polysift.estimators.fitted import kernel_of
from polysift.explanation.explanation import Explanation
from polysift.explanation.levels import level_rows
from polysift.explanation.tables import MAX_LEVEL_TABLES, notes_of
from polysift.losses import solver_and_loss
from polysift.reporting.case import MAX_LISTED_CLASSES, Case, Section, noted
from polysift.reporting.choice import scaler_of
from polysift.reporting.page import (
    SPACE,
    Markup,
    bars,
    beside,
    facts,
    joined,
    listing,
    paragraph,
    share_text,
    shortened,
    table,
)

MAX_LISTED_IMPORTANCES = 10
"""The maximum number of features, pairs and terms."""

UNREPEATABLE = {
    "time_limit": "time_limit was reached",
    "interrupted": "it was interrupted",
    "callback": "a callback stopped it",
}
"""Reasons to stop that another run need not meet at the same iteration."""


def explanation_section(case: Case) -> Section | None:
    """Return the section on features, pairs and terms; None without an explanation."""
    found = case.explanation
    if found is None:
        return None
    pieces = [_feature_bars(found)]
    if found.reason is None and len(found.feature_names) > 1 and case.model.degree_ > 1:
        pieces.append(_pair_bars(found))
    words = (
        "The attribution (Shapley value) of a feature is its contribution to the score of a row, "
        "compared with the mean row; those of all features add up to the difference of the two "
        "scores. They are exact, since the kernel's base is a sum over features."
    )
    parts = [paragraph(words), beside(*pieces)]
    if levels := [_levels(found, name) for name in found.categories()[:MAX_LEVEL_TABLES]]:
        parts.append(beside(*levels))
    if found.reason is None:
        parts.append(_terms(found))
    parts.append(paragraph(" ".join(notes_of(found)), kind="note"))
    return "importance", "What matters", joined(parts)


def _feature_bars(found: Explanation) -> Markup:
    shown = found.features(MAX_LISTED_IMPORTANCES)
    both = ("attribution", "shuffled")
    entries = [(e["feature"], [(e[name], f"{e[name]:.3g}") for name in both]) for e in shown]
    caption = (
        "Mean absolute attributions (above) and changes of the score when the column is shuffled "
        "(below), in units of the score"
    )
    return bars(entries, caption=caption)


def _pair_bars(found: Explanation) -> Markup:
    entries = [
        (" & ".join(e["pair"]), [(e["share"], share_text(e["share"]))])
        for e in found.pairs(MAX_LISTED_IMPORTANCES)
    ]
    return bars(entries, caption="Interactions of two features, their shares of the variance")


def _levels(found: Explanation, name: str) -> Markup:
    """Return the levels of a category that move the score most."""
    classes = len(found.classes) > 1
    rows = [
        (word, share_text(share), *([label] if classes else []), f"{value:+.3g}")
        for word, share, label, value in level_rows(
            found.levels(name, MAX_LISTED_IMPORTANCES), found.classes
        )
    ]
    heads = ("level", "rows", *(["class"] if classes else []), "attribution")
    return table(heads, rows, caption=f"Levels of {name}, and the mean attribution of their rows")


def _terms(found: Explanation) -> Markup:
    classes = len(found.classes) > 1
    rows = [
        (
            e["term"],
            *([e["class"]] if classes else []),
            f"{e['coefficient']:.4g}",
            f"{e['spread']:.3g}",
        )
        for e in found.terms(MAX_LISTED_IMPORTANCES)
    ]
    heads = ("term", *(["class"] if classes else []), "coefficient", "spread")
    caption = f"Terms of the polynomial in scaled features that vary most, of {found.n_monomials:,}"
    return table(heads, rows, caption=caption, kind="pairs" if classes else "")


def model_section(case: Case) -> Section:
    """Return the section on the model and its parameters."""
    model, fitted = case.model, case.fitted
    entries = [
        ("Kernel", kernel_of(model)),
        ("Degree", f"{model.degree_}"),
        ("Centers", f"{model.n_centers_:,}"),
        ("Solver", solver_and_loss(model)[0]),
    ]
    if kernel_of(model) == "polynomial":
        entries.insert(3, ("Scaler", scaler_of(model)))
    if hasattr(model, "rho_"):
        entries.append(("rho, absolute", f"{model.rho_:.4g}"))
    if getattr(model, "gram_", "exact") == "sampled":
        entries.append(("Gram matrix", f"of a sample of the rows, {model.n_products_} products"))
    if case.seed is not None:
        entries.append(("Seed", f"{case.seed}"))
    if hasattr(model, "n_iter_"):
        entries.append(("Iterations", f"{model.n_iter_:,}"))
        entries.append(("Status", model.status_message_))
    defaults = _defaults(fitted)
    params = fitted.get_params(deep=False)
    changed = [name for name in defaults if not _same(params[name], defaults[name])]
    rows = [
        (name, noted(value, f"default: {_code(defaults[name])}") if name in changed else value)
        for name, value in ((name, _code(params[name])) for name in defaults)
    ]
    marked = [number for number, name in enumerate(defaults) if name in changed]
    caption = f"Parameters of {case.kind}; marked where not the default"
    heads = ("parameter", "value")
    shown = table(heads, rows, caption=caption, kind="parameters", marked=marked)
    return "model", "Model", beside(facts(entries), shown)


def _defaults(fitted: Any) -> dict[str, Any]:
    found = inspect.signature(type(fitted).__init__).parameters.values()
    return {item.name: item.default for item in found if item.name != "self"}


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and repr(value) == repr(default)


def _code(value: Any) -> str:
    """Return a parameter as Python code; an array by its shape."""
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_code(k)}: {_code(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple) and len(value) <= MAX_LISTED_CLASSES:
        inside = ", ".join(map(_code, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list | tuple) or hasattr(value, "shape"):
        size = f"shape {value.shape}" if hasattr(value, "shape") else f"length {len(value)}"
        return f"{type(value).__name__} of {size}"
    if isinstance(value, str):
        text = repr(value)
        return text if '"' in text or "\\" in text else f'"{text[1:-1]}"'
    shown = getattr(value, "__name__", None) or repr(value)
    return shortened(re.sub(" at 0x[0-9a-fA-F]+", "", shown), 200)


def _is_literal(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_literal, [*value.keys(), *value.values()]))
    if isinstance(value, list | tuple):
        return len(value) <= MAX_LISTED_CLASSES and all(map(_is_literal, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def reproduce_section(case: Case) -> Section:
    """Return the section on how to reproduce the model."""
    parts = []
    if case.command is not None:
        parts.append(listing(case.command))
    else:
        parts.append(listing(_snippet(case, case.fitted)))
        if case.search is not None:
            parts.append(paragraph("The chosen model alone, without the search:"))
            parts.append(listing(_snippet(case, case.model)))
    status = case.fitted.__dict__.get("status_")
    if status in UNREPEATABLE:
        words = f"It ended early ({UNREPEATABLE[status]}), so another run may end elsewhere."
        parts.append(paragraph(words, kind="note"))
    if getattr(case.fitted, "warm_start", False):
        words = (
            "With warm_start=True a fit continues from the one before, which must be repeated too."
        )
        parts.append(paragraph(words, kind="note"))
    return "reproduce", "Reproduce", joined(parts)


def _snippet(case: Case, fitted: Any) -> str:
    """Return Python code that makes the same model."""
    defaults, params = _defaults(fitted), fitted.get_params(deep=False)
    lines = []
    for name, default in defaults.items():
        if name in ("random_state", "verbose", "checkpoint") or _same(params[name], default):
            continue
        known, text = _is_literal(params[name]), _code(params[name])
        lines.append(f"    {name}={text}," if known else f"    {name}=...,  # {text}")
    if case.seed is not None:
        lines.append(f"    random_state={case.seed},")
    kind, origin = type(fitted).__name__, case.summary.get("origin")
    size = f"{case.model.n_features_in_:,} features"
    if "rows" in case.summary:
        size = f"{case.summary['rows']:,} rows, {size}"
    made = "\n".join(["model = " + kind + "(", *lines, ")"])
    if origin is None:
        return f"from polysift import {kind}\n\n{made}\nmodel.fit(X, y)  # {size}"
    opened = f"data = open_data({_code(str(origin))}, target=...)  # {size}"
    return f"from polysift import {kind}, open_data\n\n{opened}\n{made}\nmodel.fit(data)"


def versions_section(case: Case) -> Section:
    """Return the section on versions and dates."""
    now = datetime.now().astimezone()
    stamp = f"{now:%Y-%m-%d %H:%M} (UTC{now:%z})"
    made = Markup(f'<time datetime="{now.isoformat(timespec="seconds")}">{stamp}</time>')
    packages = ("numpy", "scipy", "scikit-learn", "matplotlib")
    entries: list[tuple[str, Any]] = [("This report was made", made), ("polysift", __version__)]
    entries += [(name, version(name)) for name in packages]
    entries.append(("Python", platform.python_version()))
    machine = f"{platform.system()}{SPACE}{platform.release()}, {platform.machine()}"
    entries.append(("Machine", f"{machine}, {os.cpu_count()} cores"))
    return "versions", "Versions", facts(entries)

"""The sections on the training: automatic choice, convergence, search, cost."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from polysift.estimators.search import FPCClassifierCV
from polysift.losses import loss_of, solver_and_loss
from polysift.plots.base import number_text
from polysift.reporting.case import Case, Section, splits_text
from polysift.reporting.choice import choice_text, trials_table
from polysift.reporting.figures import convergence_picture, search_pictures
from polysift.reporting.page import (
    NONE,
    Markup,
    bars,
    beside,
    facts,
    figure_text,
    joined,
    markup,
    paragraph,
    picture,
    seconds_text,
    share_text,
    size_text,
    table,
)
from polysift.selection.scoring import score_name
from polysift.training.plan import Forecast

MAX_LISTED_CANDIDATES = 10

OTHER_WORK = "everything else"
"""The phase of all work between passes over the data, such as solving for the coefficients."""


def choice_section(case: Case) -> Section | None:
    """Return the section on the automatic choice, where something was left to it."""
    shown = trials_table(case.model)
    if shown is None:
        return None
    words = f"The feature map was chosen {choice_text(case.model)}, without a search."
    return "choice", "Automatic choice", joined((paragraph(words), shown))


def convergence_section(case: Case) -> Section | None:
    """Return the section on the iterations."""
    model = case.model
    history = getattr(model, "history_", None)
    if not history:
        return None
    entries = [("Solver", solver_and_loss(model)[0]), ("Iterations", f"{model.n_iter_:,}")]
    entries.append(("Why it stopped", model.status_message_))
    loss = f"{loss_of(model).name} loss"
    for name, label in (("objective", loss), ("training_error", "training error")):
        values = np.asarray(history.get(name, ()), dtype=float)
        values = values[np.isfinite(values)]
        if len(values):
            text = share_text(values[-1], 2) if name == "training_error" else f"{values[-1]:.6g}"
            entries.append((f"Last {label}", text))
    address = convergence_picture(model)
    if address is None:
        why = paragraph(
            "There is no picture, since no iteration has all values: with tol=0 the paper's "
            "solver skips what the last iteration does not need. Fit with tol=None to see it."
        )
        return "convergence", "Convergence", Markup(why + facts(entries))
    words = f"Objective and residuals over {model.n_iter_} iterations. {model.status_message_}"
    which = (
        "both residuals"
        if np.isfinite(history["primal_residual"]).any()
        else "the estimated distance to the minimum"
    )
    shown = picture(address, words, f"The objective (left axis) and {which} (right axis).")
    return "convergence", "Convergence", beside(shown, facts(entries))


def search_section(case: Case) -> Section | None:
    """Return the section on the search, where there was one."""
    search = case.search
    if search is None or not hasattr(search, "cv_results_"):
        return None
    results = search.cv_results_
    score = score_name(search.scoring)
    parts = [paragraph(_search_words(search, score))]
    varied = {"degree": "degree", "n_centers": "number of centers", "rho": "rho"}
    pictures = [
        picture(
            address,
            f"Validation curve: the best {score} at each {param}",
            f"The best {score} at each {varied.get(param, 'number of iterations')}, whatever the "
            "other parameters.",
        )
        for param, address in search_pictures(search).items()
    ]
    if pictures:
        parts.append(beside(*pictures))
    order = np.argsort(results["rank_test_score"], kind="stable")[:MAX_LISTED_CANDIDATES].tolist()
    if search.best_index_ not in order:
        order.append(search.best_index_)
    rows = [_candidate(results, i, score) for i in order]
    heads = ("rank", "scaler", "degree", "centers", "solver", "rho", "max_iter", "iterations")
    parts.append(
        table(
            (*heads, f"mean {score}", "\u00b1 std. error"),
            rows,
            caption="The best candidates; the chosen one is marked",
            kind="best",
            marked=[order.index(search.best_index_)],
        )
    )
    return "search", "Search", joined(parts)


def _search_words(search: FPCClassifierCV, score: str) -> str:
    status = search.cv_results_["status"]
    kinds = {
        "finished": "finished",
        "screened": "screened out because others did better",
        "stopped": "stopped before they were finished",
        "overflow": "left out because they overflow",
        "not run": "not run",
    }
    counts = {kind: int(np.sum(status == kind)) for kind in kinds}
    listed = ", ".join(f"{counts[kind]:,} {kinds[kind]}" for kind in kinds if counts[kind])
    words = f"{len(status):,} candidates were compared by their {score} on {splits_text(search)}: "
    words += f"{listed}."
    seconds, saved = search.timings_.get("total"), search.time_saved_
    if seconds is not None and saved > 0:
        words += (
            f" This took {seconds_text(seconds)}. Fitting each of them alone would have taken "
            f"about {seconds_text(seconds + saved)}: {seconds_text(saved)} were saved."
        )
    if search.status_ != "finished":
        words += f" The search ended early ({search.status_})."
    return words


def _candidate(results: dict[str, Any], i: int, score: str) -> list[str]:
    params, mean = results["params"][i], results["mean_test_score"][i]
    splits = [results[name][i] for name in results if re.fullmatch(r"split\d+_test_score", name)]
    n = int(np.sum(~np.isnan(splits)))
    error = results["std_test_score"][i] / np.sqrt(n - 1) if n > 1 else float("nan")
    percent = score == "accuracy"
    rho = params["rho"]
    return [
        f"{results['rank_test_score'][i]}",
        params["scaler"] or "none",
        f"{params['degree']}",
        f"{params['n_centers']:,}",
        params["solver"],
        "solver's own" if rho is None else rho if rho == "auto" else number_text(rho),
        f"{params['max_iter']}",
        f"{results['n_iter'][i]:.0f}",
        share_text(mean, 2) if percent else figure_text(mean),
        share_text(error, 2) if percent else figure_text(error),
    ]


def cost_section(case: Case) -> Section | None:
    """Return the section on time and memory."""
    timings, summary, forecast = case.timings, case.summary, case.forecast
    parts = []
    if "total" in timings:
        parts.append(_phases(timings, forecast))
    if summary:
        entries = [("Threads", f"{summary['threads']}")]
        if forecast is not None:
            entries.append(("Passes over the data", f"{forecast.passes:,} at most (forecast)"))
            entries.append(("Kernel features", f"{forecast.feature_evaluations:.3g} (forecast)"))
            entries.append(
                ("Temporary files", size_text(forecast.disk) if forecast.disk else "none")
            )
        parts.append(joined((_memory(case), facts(entries))))
    return ("cost", "Cost", beside(*parts)) if parts else None


def _phases(timings: dict[str, float], forecast: Forecast | None) -> Markup:
    """Return the time by phase; the time outside of all phases comes last."""
    measured = {name: value for name, value in timings.items() if name != "total"}
    measured[OTHER_WORK] = max(0.0, timings["total"] - sum(measured.values()))
    whole = f"Time: {seconds_text(timings['total'])}"
    if forecast is None:
        entries = [(name, [(value, seconds_text(value))]) for name, value in measured.items()]
        return Markup(bars(entries, caption=f"{whole}, by phase") + _key("measured"))
    expected = dict(forecast.seconds_by_phase)
    expected[OTHER_WORK] = max(0.0, forecast.seconds - sum(expected.values()))
    both = []
    for name in sorted({**expected, **measured}, key=lambda name: name == OTHER_WORK):
        pair = (measured.get(name), expected.get(name))
        both.append(
            (name, [(value, NONE if value is None else seconds_text(value)) for value in pair])
        )
    caption = f"{whole}; the forecast was {seconds_text(forecast.seconds)}"
    return Markup(bars(both, caption=caption) + _key("measured", "forecast"))


def _memory(case: Case) -> Markup:
    summary, forecast = case.summary, case.forecast
    measured, limit = summary["measured_memory"], summary["memory_limit"]
    expected = summary["expected_memory"] if forecast is None else forecast.peak_memory
    known = {"measured": measured, "expected": expected}
    entries = [
        (name, [(size, "not known" if size is None else size_text(size))])
        for name, size in known.items()
    ]
    entries.append(("limit", [(limit, size_text(limit))]))
    notes = []
    if measured is None:
        notes.append("The memory used is not known: the process had been larger before.")
    if expected is None:
        notes.append("The expected memory is not known: a search makes no forecast.")
    shown = bars(entries, caption="Memory beside the input, at most", muted=("limit",))
    return joined((shown, paragraph(" ".join(notes), kind="note"))) if notes else shown


def _key(*names: str) -> Markup:
    """Return the key of the bars, and what the last phase is."""
    marks = "".join(f'<i class="bar{k}"></i>{markup(name)}' for k, name in enumerate(names))
    key = f'<p class="key note">{marks}</p>\n' if len(names) > 1 else ""
    what = f"\u201c{OTHER_WORK}\u201d is the work between passes over the data."
    return Markup(key + paragraph(what.replace("e", "E", 1), kind="note"))

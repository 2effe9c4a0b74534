"""The section of a report on what the model has learned."""

from __future__ import annotations

from polysift.explanation.explanation import Explanation
from polysift.reporting.case import Case, Section
from polysift.reporting.page import Markup, bars, beside, joined, paragraph, share_text, table

SHOWN = 10


def explanation_section(case: Case) -> Section | None:
    """Return the most important features, pairs and terms; None where nothing was explained."""
    found = case.explanation
    if found is None:
        return None
    pieces = [_feature_bars(found)]
    if found.reason is None and len(found.feature_names) > 1 and case.model.degree_ > 1:
        pieces.append(_pair_bars(found))
    words = (
        "An attribution (Shapley value) is what a feature adds to the score of a row, compared "
        "with the mean row; those of all features add up to the score's difference. They are "
        "exact, since the score is a polynomial."
    )
    parts = [paragraph(words), beside(*pieces)]
    if found.reason is None:
        parts.append(_terms(found))
    parts.append(paragraph(" ".join(found.notes()), kind="note"))
    return "importance", "What matters", joined(parts)


def _feature_bars(found: Explanation) -> Markup:
    shown = found.features(SHOWN)
    entries = [(e["feature"], [(e["attribution"], f"{e['attribution']:.3g}")]) for e in shown]
    return bars(entries, caption="Mean size of attributions, in units of the score")


def _pair_bars(found: Explanation) -> Markup:
    entries = [
        (" & ".join(e["pair"]), [(e["share"], share_text(e["share"]))]) for e in found.pairs(SHOWN)
    ]
    return bars(entries, caption="Interactions of two features, their shares of the variance")


def _terms(found: Explanation) -> Markup:
    classes = len(found.classes) > 1
    rows = [
        (
            e["term"],
            *([e["class"]] if classes else []),
            f"{e['coefficient']:.4g}",
            f"{e['spread']:.3g}",
        )
        for e in found.terms(SHOWN)
    ]
    heads = ("term", *(["class"] if classes else []), "coefficient", "spread")
    caption = f"Terms of the polynomial in scaled features that vary most, of {found.n_monomials:,}"
    return table(heads, rows, caption=caption, kind="pairs" if classes else "")

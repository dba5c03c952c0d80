"""Click rates by position and relevance group, and how far they are from a product of two numbers."""

from __future__ import annotations

import numpy as np

from ultr.bias.factorization import fit_rank_one, raw_rates
from ultr.bias.relevance_groups import group_table, score_groups
from ultr.diagnosis.figures import draw_rates, draw_singular_values
from ultr.pages import Drawing, Section, Table, blank
from ultr.pages.drawing import NARROW
from ultr.reporting.material import Material
from ultr.reporting.part import Part

GROUPS = 5


def click_matrix(material: Material) -> Part:
    """The matrix by the log's grades, or by groups of the subject's scores, with its singular values."""
    title = "The click matrix"
    log = material.log
    if log is None:
        return Part("click matrix", Section(title, advice="This needs the log: give --log FOLDER."), {})
    graded = log.grades is not None and bool((log.grades.values[log.documents] >= 0).any())
    if log.grades is not None and graded:
        groups, names, what = log.grades.values[log.documents], list(log.grades.levels), "grade"
    else:
        weights = np.repeat(log.impressions, log.lengths)
        groups, what = score_groups(material.scores[log.documents], weights, count=GROUPS), "score group"
        names = [str(number + 1) for number in range(int(groups.max()) + 1)]
    clicks, shown = (table.astype(np.float64) for table in group_table(log, groups))
    kept, places = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    clicks, shown = clicks[np.ix_(kept, places)], shown[np.ix_(kept, places)]
    rates = np.where(shown > 0, raw_rates(clicks, shown), fit_rank_one(clicks[None], shown[None]).rates[0])
    values = np.linalg.svd(rates, compute_uv=False).astype(np.float64)
    rows, columns = [names[row] for row in kept], [log.position.levels[place] for place in places]
    left, axes = blank(NARROW, 0.3 * len(rates) + 1.2)
    draw_rates(axes, rates, rows=rows, columns=columns, ylabel=what)
    axes.set_title("click rates", loc="left", fontsize=10)
    right, axes = blank(NARROW, 0.3 * len(rates) + 1.2)
    draw_singular_values(axes, values)
    axes.set_title("singular values", loc="left", fontsize=10)
    told = ", ".join(f"{value:.3f}" for value in values)
    share = values[0] ** 2 / (values**2).sum()
    source = (
        "Groups are the grades that a judge gave the documents"
        if graded
        else "The log has no grades, so groups are fifths of the impressions, from the lowest to the highest scores of "
        f"{material.subject.name}"
    )
    text = (
        f"{source}. If clicks were relevance times observation, two numbers, all singular values but the first would "
        f"be 0; the first holds {share:.1%} of the sum of squares. Noise alone makes the others more than 0, and the "
        "better documents of a group may stand higher: the examination below tests it with care."
    )
    table = [
        {what: row} | {column: f"{rate:.4f}" for column, rate in zip(columns, by, strict=True)}
        for row, by in zip(rows, rates, strict=True)
    ]
    return Part(
        "click matrix",
        Section(
            title,
            text,
            drawings=[
                Drawing(left, f"Click rates by {what} and position, from {rates.min():.3f} to {rates.max():.3f}"),
                Drawing(right, f"Singular values of the click rates: {told}"),
            ],
            tables=[
                Table("click rates by position", table, folded=True),
                Table("impressions by position", _counts(shown, rows, columns, what), folded=True),
            ],
        ),
        {"groups": what, "rates": rates.tolist(), "singular_values": values.tolist()},
    )


def _counts(shown: np.ndarray, rows: list[str], columns: list[str], what: str) -> list[dict[str, str]]:
    return [
        {what: row} | {column: f"{count:,.0f}" for column, count in zip(columns, by, strict=True)}
        for row, by in zip(rows, shown, strict=True)
    ]

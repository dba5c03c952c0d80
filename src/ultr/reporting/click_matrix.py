"""Click rates by position and relevance group, and how far they are from a product of two numbers."""

from __future__ import annotations

import numpy as np

from ultr.bias.factorization import fit_rank_one, raw_rates
from ultr.bias.relevance_groups import group_table, score_groups
from ultr.pages import Section, Table, log_figures
from ultr.reporting.inputs import ReportInputs

GROUPS = 5


def click_matrix(inputs: ReportInputs) -> Section:
    """The matrix by the log's grades, or by groups of the subject's scores, with its singular values."""
    title = "The click matrix"
    log = inputs.log
    if log is None:
        return Section(title, advice="This needs the log: give --log FOLDER.")
    if log.grades is not None and (log.grades.values[log.documents] >= 0).any():
        groups, names, what = log.grades.values[log.documents], list(log.grades.levels), "grade"
        source = "Groups are the grades that a judge gave the documents"
    else:
        source = (
            "The log has no grades, so groups are fifths of the impressions, from the lowest to the highest scores of "
            f"{inputs.subject.name}"
        )
        weights = np.repeat(log.impressions, log.lengths)
        groups, what = score_groups(inputs.scores[log.documents], weights, count=GROUPS), "score group"
        names = [str(number + 1) for number in range(int(groups.max()) + 1)]
    clicks, shown = (table.astype(np.float64) for table in group_table(log, groups))
    kept, places = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    clicks, shown = clicks[np.ix_(kept, places)], shown[np.ix_(kept, places)]
    rates = np.where(shown > 0, raw_rates(clicks, shown), fit_rank_one(clicks[None], shown[None]).rates[0])
    values = np.linalg.svd(rates, compute_uv=False).astype(np.float64)
    rows, columns = [names[row] for row in kept], [log.position.levels[place] for place in places]
    share = values[0] ** 2 / (values**2).sum()
    text = (
        f"{source}. If clicks were relevance times observation, two numbers, all singular values but the first would "
        f"be 0; the first holds {share:.1%} of the sum of squares. Noise alone makes the others more than 0, and the "
        "better documents of a group may stand higher: the examination below tests it with care."
    )
    tables = {
        "click rates by position": [[f"{rate:.4f}" for rate in by] for by in rates],
        "impressions by position": [[f"{count:,.0f}" for count in by] for by in shown],
    }
    return Section(
        title,
        text,
        drawings=log_figures.narrow_click_matrix(rates, values, rows=rows, columns=columns, ylabel=what),
        tables=[
            Table.of_cells(name, what, dict(zip(rows, cells, strict=True)), columns, folded=True)
            for name, cells in tables.items()
        ],
        numbers={"groups": what, "rates": rates.tolist(), "singular_values": values.tolist()},
    )

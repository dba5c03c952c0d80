"""Queries whose order changes most: as they were shown and as a model ranks them, or as two models do."""

from __future__ import annotations

from functools import partial

from ultr.evaluation import shift_from_log
from ultr.pages import Section, Table
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model
from ultr.reporting.moved import moved_lists
from ultr.reporting.reasons import in_words, reasons

EXAMPLES = 4


def orders(inputs: ReportInputs, *, against: Model | None = None) -> Section:
    """Example queries with both orders side by side."""
    title = "Which queries change most?" if against is None else "Where do the two orders differ most?"
    if inputs.log is None:
        return Section(title, advice="This needs the log: give --log FOLDER.", name="orders")
    subject = inputs.subject
    first, second = (None, subject) if against is None else (subject, against)
    sides = ("as shown", "new order") if first is None else (f"by {first.name}", f"by {second.name}")
    moved_all = inputs.moved if first is None else moved_lists(inputs.log, first, second)
    found = [moved for moved in moved_all[:EXAMPLES] if moved.distance]
    shift = inputs.shift if first is None else shift_from_log(second.ranker, inputs.frequent, base=first.ranker)
    text = (
        "The queries with the largest moves, each with its most frequent list. A green line is a document that rises, "
        "a dashed red one falls; the share on the left is how often it was clicked. The tables also name the features "
        "that moved a document most against the mean score of its list: their contributions add up to its score less "
        "that mean."
    )
    if not found:
        text = "Both orders are the same for every query."
    else:
        text = f"{text} {shift.sentence(second.name, 'the most frequent lists' if first is None else first.name)}"
    # In the second order, as that is how the explained model ranks them.
    why = [reasons(second, inputs.log, moved.documents[moved.order]) for moved in found]
    tables = [
        Table(moved.caption, moved.rows(sides, inputs.names(moved.documents), list(map(in_words, each))), folded=True)
        for moved, each in zip(found, why, strict=True)
    ]
    numbers = [
        {
            "query": moved.query,
            "impressions": moved.impressions,
            "distance": moved.distance,
            "first_order": moved.documents.tolist(),
            "second_order": moved.documents[moved.order].tolist(),
            "clicks": moved.clicks.tolist(),
            "reasons": each,
        }
        for moved, each in zip(found, why, strict=True)
    ]
    return Section(
        title,
        text,
        figures={moved.caption: partial(moved.drawing, sides, inputs.names(moved.documents)) for moved in found},
        tables=tables,
        numbers={"queries": numbers, "exposure_shift": vars(shift)},
        name="orders",
    )

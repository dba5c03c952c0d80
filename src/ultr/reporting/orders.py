"""Queries whose order changes most: as they were shown and as a model ranks them, or as two models do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.frequent_lists import frequent_lists
from ultr.evaluation import shift_from_log
from ultr.evaluation.comparison import AS_SHOWN
from ultr.pages import Drawing, Section, Table, figures
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model
from ultr.reporting.reasons import Reasons

EXAMPLES = 4
LONGEST = 15
"""Most documents of a list that are shown, from the top."""
MOST_LISTS = 5_000
"""Most lists that are looked at; of a larger log, those with the most impressions."""


@dataclass(frozen=True, eq=False)
class Moved:
    """A list in two orders."""

    query: str
    impressions: int
    documents: Integers
    """In the first order, rows of the log's features."""
    clicks: Integers
    grades: tuple[str, ...]
    """Empty where the log has none."""
    order: Integers
    """For each place of the second order, the place of its document in the first."""

    @property
    def distance(self) -> int:
        """By how many places all documents move together, Spearman's footrule."""
        return int(np.abs(self.order - np.arange(len(self.order))).sum())

    @property
    def caption(self) -> str:
        """The query and how often this list of it was shown."""
        return f"query {self.query} · {self.impressions:,} impressions"

    def rows(self, sides: tuple[str, str], reasons: Sequence[str] = ()) -> list[dict[str, str]]:
        """A row for each place: who stood there, how often it was clicked, who stands there now, from where and why."""
        return [
            {
                "place": str(place + 1),
                sides[0]: f"document {self.documents[place]}",
                "clicks": f"{self.clicks[place]:,}",
                **({"grade": self.grades[place]} if self.grades else {}),
                sides[1]: f"document {self.documents[before]}",
                "move": arrow(int(before) - place),
                **({"because of": reasons[place]} if reasons else {}),
            }
            for place, before in enumerate(self.order)
        ]

    def drawing(self, sides: tuple[str, str]) -> Drawing:
        """Both orders side by side, from the top."""
        order = self.order[:LONGEST].tolist()
        rates = self.clicks / self.impressions
        return figures.moves(
            [f"{place + 1}. d{self.documents[place]}  {rates[place]:.0%}" for place in range(len(order))],
            [f"d{self.documents[before]} {arrow(before - place)}" for place, before in enumerate(order)],
            order,
            sides=sides,
        )


def arrow(places: int) -> str:
    """Places that a document moves, up or down.

    >>> arrow(3), arrow(-2), arrow(0)
    ('▲ 3', '▼ 2', '=')
    """
    return "=" if places == 0 else f"{'▲' if places > 0 else '▼'} {abs(places)}"


def most_moved(log: ClickLog, first: Model | None, second: Model, *, count: int = EXAMPLES) -> list[Moved]:
    """The lists that two orders differ on most, one for each query, the largest moves first.

    The first order is that of a model, or as shown; equal scores keep their order.
    """
    lists = frequent_lists(log, most=MOST_LISTS)
    rows = ragged.rows_of(lists, log.offsets)
    offsets = ragged.from_lengths(log.lengths[lists])
    features = log.features[log.documents[rows]]
    before, after = (
        np.arange(len(rows)) if each is None else _order(each, features, offsets) for each in (first, second)
    )
    found = []
    for start, end, each in zip(offsets[:-1], offsets[1:], lists, strict=True):
        left, right = before[start:end], after[start:end]
        shown = rows[left]
        grades: tuple[str, ...] = ()
        if log.grades is not None:
            values = log.grades.values[log.documents[shown]]
            grades = tuple("" if value < 0 else log.grades.levels[value] for value in values)
        found.append(
            Moved(
                query=str(log.query_ids[log.queries[each]]),
                impressions=int(log.impressions[each]),
                documents=log.documents[shown],
                clicks=log.clicks[shown],
                grades=grades,
                order=np.argsort(left)[right - start],
            )
        )
    return sorted(found, key=lambda moved: (-moved.distance, -moved.impressions, moved.query))[:count]


def orders(inputs: ReportInputs, *, against: Model | None = None) -> Section:
    """Example queries with both orders side by side."""
    title = "Which queries change most?" if against is None else "Where do the two orders differ most?"
    if inputs.log is None:
        return Section(title, advice="This needs the log: give --log FOLDER.", name="orders")
    subject = inputs.subject
    first, second = (None, subject) if against is None else (subject, against)
    sides = ("as shown", "new order") if first is None else (f"by {first.name}", f"by {second.name}")
    found = [moved for moved in most_moved(inputs.log, first, second) if moved.distance]
    shift = shift_from_log(
        second.ranker,
        inputs.log.part(frequent_lists(inputs.log, most=MOST_LISTS), inputs.log.splits),
        base=None if first is None else first.ranker,
    )
    text = (
        "The queries with the largest moves, each with its most frequent list. A green line is a document that rises, "
        "a dashed red one falls; the share on the left is how often it was clicked. Documents are named by their row "
        "in the log. The tables also name the features that moved a document most against the mean score of its list: "
        "their contributions add up to its score less that mean."
    )
    if not found:
        text = "Both orders are the same for every query."
    else:
        text = f"{text} {shift.sentence(second.name, AS_SHOWN if first is None else first.name)}"
    # In the second order, as that is how the explained model ranks them.
    reasons = [Reasons.of(second, inputs.log, moved.documents[moved.order]) for moved in found]
    tables = [
        Table(moved.caption, moved.rows(sides, why.texts()), folded=True)
        for moved, why in zip(found, reasons, strict=True)
    ]
    numbers = [
        {
            "query": moved.query,
            "impressions": moved.impressions,
            "distance": moved.distance,
            "first_order": moved.documents.tolist(),
            "second_order": moved.documents[moved.order].tolist(),
            "clicks": moved.clicks.tolist(),
            "reasons": why.numbers(),
        }
        for moved, why in zip(found, reasons, strict=True)
    ]
    return Section(
        title,
        text,
        figures={moved.caption: partial(moved.drawing, sides) for moved in found},
        tables=tables,
        numbers={"queries": numbers, "exposure_shift": vars(shift)},
        name="orders",
    )


def _order(model: Model, features: Floats, offsets: Integers) -> Integers:
    """Rows of each list from its first to its last by score."""
    scores = model.ranker.score(features, offsets).astype(np.float64)
    return np.lexsort((-scores, ragged.list_numbers(offsets)))

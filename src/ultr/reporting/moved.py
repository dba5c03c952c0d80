"""Lists in two orders: as they were shown and as a model ranks them, or as two models do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.counted import counted
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.frequent_lists import frequent_lists
from ultr.pages import Drawing, figures
from ultr.reporting.model import Model

LONGEST = 15
"""Most documents of a list that are drawn, from the top."""
SHARED = 8
"""Letters that all names of a list may begin with before they are left out of a drawing."""
MOST_LISTS = 5_000
"""Most lists that are looked at; of a larger log, those with the most impressions."""


@dataclass(frozen=True, eq=False)
class Moved:
    """A list in two orders."""

    query: str
    pages: int
    """Impressions of all lists of the query."""
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
        cut = f" · the first {LONGEST} of {len(self.order)} results are drawn" if len(self.order) > LONGEST else ""
        return f"query {self.query} · {counted(self.impressions, 'impression')}{cut}"

    def rows(
        self, sides: tuple[str, str], names: Sequence[str], reasons: Sequence[str] = (), *, most: int | None = None
    ) -> list[dict[str, str]]:
        """A row for each place: who stood there with which clicks, who stands there, from where, and why.

        `names` are those of the documents in the first order.
        """
        return [
            {
                "place": str(place + 1),
                sides[0]: names[place],
                "clicks": f"{self.clicks[place]:,} ({self.clicks[place] / self.impressions:.0%})",
                **({"grade": self.grades[place]} if self.grades else {}),
                sides[1]: names[before],
                "move": arrow(int(before) - place),
                **({"because of": reasons[place]} if reasons else {}),
            }
            for place, before in enumerate(self.order[:most].tolist())
        ]

    def drawing(self, sides: tuple[str, str], names: Sequence[str]) -> Drawing:
        """Both orders side by side, from the top."""
        order = self.order[:LONGEST].tolist()
        rates, short = self.clicks / self.impressions, [brief_start(name, 15) for name in apart(names)]
        return figures.moves(
            [f"{place + 1}. {short[place]} {rates[place]:.0%}" for place in range(len(order))],
            [f"{short[before]} {arrow(before - place)}" for place, before in enumerate(order)],
            order,
            [
                f"{names[before]}: {sides[0]} at place {before + 1}, {sides[1]} at place {place + 1}; clicked on "
                f"{rates[before]:.0%} of {counted(self.impressions, 'impression')}"
                for place, before in enumerate(order)
            ],
            sides=sides,
        )


def apart(names: Sequence[str]) -> list[str]:
    """Names without the words that all of them begin with, if they would not be told apart for these.

    >>> apart(["blue shirt for kids, size 3", "blue shirt for kids, size 4"]), apart(["a b", "a c"])
    (['…3', '…4'], ['a b', 'a c'])
    """
    # The last word of a name stays, whatever it is.
    starts = zip(*(name.split(" ")[:-1] for name in names), strict=False)
    shared = sum(len(words[0]) + 1 for words in takewhile(lambda words: len(set(words)) == 1, starts))
    return [f"…{name[shared:]}" for name in names] if shared >= SHARED else list(names)


def brief_start(name: str, most: int) -> str:
    """The start of a name that is too long, which says most of a title."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def arrow(places: int) -> str:
    """Places that a document moves, up or down.

    >>> arrow(3), arrow(-2), arrow(0)
    ('▲ 3', '▼ 2', '=')
    """
    return "=" if places == 0 else f"{'▲' if places > 0 else '▼'} {abs(places)}"


def moved_lists(log: ClickLog, first: Model | None, second: Model) -> list[Moved]:
    """The most frequent list of each query in two orders, the queries with the largest moves first.

    The first order is that of a model, or as shown; equal scores keep their order.
    """
    pages = np.bincount(log.queries, log.impressions)
    lists = frequent_lists(log, most=MOST_LISTS)
    features = log.features[lists.documents]
    before, after = (
        np.arange(len(lists.documents)) if each is None else _order(each, features, lists.offsets)
        for each in (first, second)
    )
    found = []
    for start, end, query, impressions in zip(
        lists.offsets[:-1], lists.offsets[1:], lists.queries, lists.impressions, strict=True
    ):
        left, right = before[start:end], after[start:end]
        documents = lists.documents[left]
        grades: tuple[str, ...] = ()
        if log.grades is not None:
            values = log.grades.values[documents]
            grades = tuple("" if value < 0 else log.grades.levels[value] for value in values)
        found.append(
            Moved(
                query=str(log.query_ids[query]),
                pages=int(pages[query]),
                impressions=int(impressions),
                documents=documents,
                clicks=lists.clicks[left],
                grades=grades,
                order=np.argsort(left)[right - start],
            )
        )
    return sorted(found, key=lambda moved: (-moved.distance, -moved.impressions, moved.query))


def _order(model: Model, features: Floats, offsets: Integers) -> Integers:
    """Rows of each list from its first to its last by score."""
    scores = model.ranker.score(features, offsets).astype(np.float64)
    return np.lexsort((-scores, ragged.list_numbers(offsets)))

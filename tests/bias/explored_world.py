"""A world small enough to be enumerated: every outcome of exploration has its exact share of the pages and clicks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ultr.data.click_log import ClickLog

THETA = (1.0, 0.5, 0.25)
Exchanges = Mapping[tuple[int, int], float]
"""Probability that two ranks, from 0, are exchanged."""


@dataclass(frozen=True)
class Context:
    """Pages of one kind: how relevant each document is there, and how they are explored.

    The base ranking knows the relevance: it is confounded with it.
    """

    relevance: Mapping[str, float]
    exchanges: Exchanges
    pages: int = 80_000
    query: str = "q"
    above: int = 0
    """Places above the documents that are something else's, such as an advertisement's."""

    def outcomes(self) -> Iterator[tuple[float, list[str], list[float], list[int]]]:
        """Probability, documents, placement propensities and base positions of each list that may be shown."""
        base = sorted(self.relevance, key=lambda name: -self.relevance[name])
        ranks = list(range(len(base)))
        orders = [(1 - sum(self.exchanges.values()), ranks)]
        for (first, second), chance in self.exchanges.items():
            order = list(ranks)
            order[first], order[second] = second, first
            orders.append((chance, order))
        for chance, order in orders:
            # By definition, a sum over everything that might have been shown.
            placed = [sum(other for other, shown in orders if shown[rank] == order[rank]) for rank in range(len(order))]
            yield chance, [base[rank] for rank in order], placed, [self.above + rank + 1 for rank in order]


def adjacent(shown: int, chance: float) -> Exchanges:
    """Each adjacent pair with this probability."""
    return {(rank, rank + 1): chance for rank in range(shown - 1)}


def expected_log(
    contexts: Sequence[Context], *, theta: Sequence[float] = THETA, logged: bool = True, bases: bool = True
) -> ClickLog:
    """The log in which everything happens as often as it is expected to."""
    names = sorted({name for context in contexts for name in context.relevance})
    documents, offsets, clicks, impressions, queries = [], [0], [], [], []
    positions, chances, before = [], [], []
    for context in contexts:
        for chance, shown, placed, base in context.outcomes():
            pages = context.pages * chance
            places = range(context.above, context.above + len(shown))
            clicked = [
                pages * theta[place] * context.relevance[name] for place, name in zip(places, shown, strict=True)
            ]
            assert np.allclose([pages, *clicked], np.rint([pages, *clicked])), "expectations must be whole numbers"
            documents += [names.index(name) for name in shown]
            positions += [place + 1 for place in places]
            offsets.append(len(documents))
            clicks += np.rint(clicked).astype(int).tolist()
            impressions.append(round(pages))
            queries.append(context.query)
            chances += placed
            before += base
    return ClickLog.of(
        features=np.eye(len(names)),
        documents=documents,
        offsets=offsets,
        clicks=clicks,
        positions=positions,
        impressions=impressions,
        queries=queries,
        placement_propensities=chances if logged else None,
        base_positions=before if logged and bases else None,
    )

"""Graphs and sets of bias values, made up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ultr.bias.identifiability import BiasGraph, Link
from ultr.bias.value_sets import ValueSets


def graph(*links: tuple[int, int, int, int], names: Sequence[str], impressions: Sequence[float] = ()) -> BiasGraph:
    """Values with links of (first, second, documents, clicks), from the weakest; positions from 1."""
    count = len(names)
    return BiasGraph(
        names=tuple(names),
        levels=np.arange(count)[:, None],
        impressions=np.array(impressions or [1_000.0] * count),
        click_rates=np.arange(count, 0, -1) / 1_024,
        parts=np.zeros(count, dtype=np.int64),
        links=tuple(
            Link(first - 1, second - 1, documents, 1_000.0 * (number + 1), clicks, bridge=False)
            for number, (first, second, documents, clicks) in enumerate(links)
        ),
    ).with_clicks(0)


def places(count: int) -> list[str]:
    return [f"position {place}" for place in range(1, count + 1)]


def sets(values: int, *seen: tuple[str, int, int]) -> ValueSets:
    """Sets such as "124" of positions, with so many documents and clicks."""
    rows = [[str(place) in under for place in range(1, values + 1)] for under, _, _ in seen]
    documents, clicks = (np.array([each[column] for each in seen], dtype=np.int64) for column in (1, 2))
    return ValueSets(np.array(rows, dtype=np.bool_).reshape(-1, values), documents, clicks)

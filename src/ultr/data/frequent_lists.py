"""The lists of a click log that were shown most."""

from __future__ import annotations

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.data.collapsing import collapsed
from ultr.data.log_checks import trusted
from ultr.data.same_lists import same_lists


def frequent_lists(log: ClickLog, *, most: int) -> ClickLog:
    """The list of each query with the most impressions, of the `most` queries with the most, those of one document
    left out; the most frequent first.

    A list is the same documents at the same positions: its impressions under all other bias factors, in all periods
    and with all placements are added up, and the log that is returned knows none of these.

    >>> log = ClickLog.of(
    ...     features=[[0.1], [0.7]],
    ...     documents=[0, 1, 1, 0, 1, 0],
    ...     offsets=[0, 2, 4, 6],
    ...     impressions=[3, 2, 2],
    ...     clicks=[1, 0, 2, 0, 1, 1],
    ...     queries=["shoes", "shoes", "shoes"],
    ...     device=["desk", "desk", "desk", "desk", "phone", "phone"],
    ... )
    >>> found = frequent_lists(log, most=1)
    >>> found.documents.tolist(), found.impressions.tolist(), found.clicks.tolist()
    ([1, 0], [4], [3, 1])
    """
    groups = same_lists(log.offsets, (log.documents, log.position.values), (log.queries,))
    firsts = np.unique(groups, return_index=True)[1]
    shown, queries = np.bincount(groups, log.impressions), log.queries[firsts]
    order = np.lexsort((-shown, queries))
    heads = order[np.unique(queries[order], return_index=True)[1]]
    often = np.bincount(log.queries, log.impressions)
    chosen = heads[np.argsort(-often[queries[heads]], kind="stable")][:most]
    chosen = chosen[log.lengths[firsts[chosen]] > 1]
    plain = trusted(log, factors=(log.position,), periods=None, period_names=(), placements=None, pair_clicks=None)
    lists = np.flatnonzero(np.isin(groups, chosen))
    # Those of the first of the chosen come first, so that it is the first of what they are collapsed to.
    rank = np.empty(len(firsts), dtype=np.int64)
    rank[chosen] = np.arange(len(chosen))
    return collapsed(plain.part(lists[np.argsort(rank[groups[lists]], kind="stable")], log.splits))

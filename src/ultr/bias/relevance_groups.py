"""Groups of documents that are alike in relevance: by labels, by a score, or by the clicks on half the impressions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.bias.position_based_fit import poisson_relevance
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed
from ultr.errors import DataError
from ultr.seeding import generator


def group_table(log: ClickLog, groups: Integers) -> tuple[Integers, Integers]:
    """Clicks and impressions [groups, positions] of a log.

    `groups` has one number for each shown document: its label, or a group of `score_groups`; below 0 = leave it out.
    """
    if groups.shape != log.documents.shape:
        raise DataError(f"{len(log.documents)} shown documents, but {len(groups)} groups")
    count, positions = int(groups.max(initial=-1)) + 1, len(log.position.levels)
    if not count:
        raise DataError("no shown document has a group, so there is nothing to tabulate")
    cell = computed(
        lambda group, place: np.where(group < 0, -1, group * positions + place), groups, log.position.values
    )
    shown, clicked = log.totals(cell, count=count * positions)
    shape = count, positions
    return clicked.astype(np.int64).reshape(shape), shown.astype(np.int64).reshape(shape)


def merge_small(groups: Integers, clicks: Integers, *, fewest: int) -> Integers:
    """The groups with neighbours made one until each has so many clicks, or two are left; below 0 = left out.

    `clicks` has those of each group. The smallest group joins the smaller of its neighbours.

    >>> merge_small(np.array([0, 1, 2, 3, -1]), np.array([30, 400, 60, 10]), fewest=50).tolist()
    [0, 0, 1, 1, -1]
    """
    parts = [[number] for number in range(len(clicks))]
    while len(parts) > 2:
        sizes = [int(clicks[part].sum()) for part in parts]
        small = int(np.argmin(sizes))
        if sizes[small] >= fewest:
            break
        around = [place for place in (small - 1, small + 1) if 0 <= place < len(parts)]
        other = min(around, key=lambda place: sizes[place])
        first, second = sorted((small, other))
        parts[first : second + 1] = [parts[first] + parts[second]]
    merged = np.full(len(clicks) + 1, -1, dtype=np.int64)
    for number, part in enumerate(parts):
        merged[part] = number
    return merged[np.maximum(groups, -1)]


def score_groups(scores: Doubles, weights: Integers | Doubles, *, count: int = 5) -> Integers:
    """Groups 0 (lowest scores) to count - 1 with about the same weight each; equal scores share a group.

    >>> score_groups(np.array([0.1, 0.9, 0.5, 0.1]), np.ones(4), count=2).tolist()
    [0, 1, 1, 0]
    """
    checks.integer("count", count, at_least=1)
    inverse = np.unique(scores, return_inverse=True)[1]
    weight = np.bincount(inverse, weights)
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    groups: Integers = np.minimum((middle * count).astype(np.int64), count - 1)[inverse]
    return groups


def click_groups(cells: Cells, *, count: int = 5, seed: int = 0) -> tuple[Integers, Cells]:
    """Groups of the documents by the clicks on a random half of the impressions, and the cells of the other half.

    The groups go by the relevance of the position-based model, so that a document at the top is no better for standing
    there. They are known from one half only, so on the other half a group is what it is: had the same clicks made the
    groups, lucky documents would be in the upper ones and seem to lose clicks wherever their luck was not.
    """
    random = generator(seed, "click groups")
    clicks = random.binomial(cells.clicks.astype(np.int64), 0.5).astype(np.float64)
    skips = random.binomial((cells.impressions - cells.clicks).astype(np.int64), 0.5)
    first = replace(cells, impressions=clicks + skips, clicks=clicks)
    second = replace(cells, impressions=cells.impressions - first.impressions, clicks=cells.clicks - clicks)
    second = replace(second, together=second.together / 2)
    return _by_clicks(first, count=count), second.choose(np.flatnonzero(second.impressions > 0), renumber=False)


def list_click_groups(log: ClickLog, *, count: int = 5, seed: int = 0) -> tuple[Integers, Cells]:
    """Groups of documents as by `click_groups`, but by a random half of the lists of each query.

    Clicks of one list may share their luck (see `ultr.bias.dispersion`). Both halves of its impressions would have it,
    and the documents with such luck in the upper groups; another list has luck of its own.
    """
    random = generator(seed, "list click groups")
    order = np.lexsort((random.random(log.lists), log.queries))
    aside = np.zeros(log.lists, dtype=np.bool_)
    # Every other list, and the first of each query by chance, so that a query with an odd number favours no side.
    place = np.arange(log.lists) - np.searchsorted(log.queries[order], log.queries[order])
    aside[order] = (place + random.integers(2, size=len(log.query_ids))[log.queries[order]]) % 2 == 1
    first, second = log.select(aside).cells(), log.select(~aside).cells()
    # One more group than there are documents, for those that the first half does not have.
    groups = np.append(_by_clicks(first, count=count), -1)
    place = np.searchsorted(first.ids, second.ids)
    place[~np.isin(second.ids, first.ids)] = len(first.ids)
    return groups[place], second


def _by_clicks(cells: Cells, *, count: int) -> Integers:
    """[documents of the cells], groups by relevance of those shown at several positions, -1 for the others."""
    groups = np.full(len(cells.ids), -1, dtype=np.int64)
    several = np.flatnonzero((np.bincount(cells.documents) > 1)[cells.documents])
    if not len(several):
        return groups
    moved = cells.choose(several)
    relevance, _ = poisson_relevance(moved, moved.clicks)
    shown = np.bincount(moved.documents, moved.impressions)
    known = np.flatnonzero(shown > 0)
    numbers = np.unique(cells.documents[several])
    groups[numbers[known]] = score_groups(relevance[known], shown[known], count=count)
    return groups

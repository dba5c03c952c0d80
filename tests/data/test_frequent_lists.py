"""The lists of a log that were shown most, against a count by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from tests.data.test_click_log import random_log

from ultr.data.click_log import ClickLog
from ultr.data.frequent_lists import frequent_lists


def _by_hand(log: ClickLog) -> dict[int, tuple[int, list[tuple[int, ...]]]]:
    """For each query the most impressions of a list, and the lists with as many."""
    shown: dict[int, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for number, (start, end) in enumerate(zip(log.offsets[:-1], log.offsets[1:], strict=True)):
        shown[int(log.queries[number])][tuple(log.documents[start:end].tolist())] += int(log.impressions[number])
    found = {}
    for query, lists in shown.items():
        most = max(lists.values())
        found[query] = most, [each for each in lists if lists[each] == most]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_impressions_and_clicks_of_a_list_are_added_up_over_factors_and_periods(seed: int) -> None:
    drawn = random_log(seed, lists=300)
    days = np.random.default_rng(seed).integers(0, 3, drawn.lists)
    log = replace(drawn, periods=days, period_names=("a", "b", "c")).collapse()
    expected, found = _by_hand(log), frequent_lists(log, most=100)
    often = np.bincount(log.queries, log.impressions)[found.queries]
    assert often.tolist() == sorted(often.tolist(), reverse=True)
    seen = set()
    for number, (start, end) in enumerate(zip(found.offsets[:-1], found.offsets[1:], strict=True)):
        query = int(found.queries[number])
        seen.add(query)
        documents = found.documents[start:end]
        impressions, lists = expected[query]
        assert found.impressions[number] == impressions
        assert tuple(documents.tolist()) in lists
        rows = [
            slice(*log.offsets[each : each + 2])
            for each in np.flatnonzero(log.queries == query)
            if np.array_equal(log.documents[slice(*log.offsets[each : each + 2])], documents)
        ]
        np.testing.assert_array_equal(found.clicks[start:end], sum(log.clicks[each] for each in rows))
    alone = {query for query, (_, lists) in expected.items() if any(len(each) == 1 for each in lists)}
    assert seen | alone == set(expected)


def test_lists_that_begin_at_another_position_are_others() -> None:
    log = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1, 0, 1],
        offsets=[0, 2, 4],
        positions=[1, 2, 2, 3],
        impressions=[3, 2],
        clicks=[0, 0, 0, 0],
        queries=["a", "a"],
    )
    found = frequent_lists(log, most=5)
    assert (found.impressions.tolist(), found.positions.tolist()) == ([3], [1, 2])


def test_a_query_whose_pages_all_differ_is_as_frequent_as_its_pages() -> None:
    log = ClickLog.of(
        features=[[1.0], [2.0], [3.0]],
        documents=[0, 1, 1, 2, 2, 0, 0, 2, 0, 1],
        offsets=[0, 2, 4, 6, 8, 10],
        impressions=[1, 1, 1, 1, 3],
        clicks=[0] * 10,
        queries=["head", "head", "head", "head", "tail"],
    )
    found = frequent_lists(log, most=1)
    assert (log.query_ids[found.queries].tolist(), found.impressions.tolist()) == (["head"], [1])


def test_of_more_queries_the_most_frequent_are_taken() -> None:
    log = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1] * 4,
        offsets=[0, 2, 4, 6, 8],
        impressions=[3, 2, 2, 1],
        clicks=[0] * 8,
        queries=["a", "b", "b", "c"],
        device=["desk"] * 4 + ["phone"] * 4,
    )
    found = frequent_lists(log, most=2)
    assert log.query_ids[found.queries].tolist() == ["b", "a"]
    assert [factor.name for factor in found.factors] == ["position"]

"""Groups of documents and halves of lists, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.bias import click_groups, list_click_groups, score_groups
from ultr.bias.relevance_groups import _by_clicks, group_table, merge_small
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.errors import DataError


@pytest.mark.parametrize(
    ("weights", "count", "groups"),
    [
        ([1, 1, 1, 1], 2, [0, 0, 1, 1]),
        ([1, 1, 1, 1], 4, [0, 1, 2, 3]),
        ([1, 1, 1, 1], 1, [0, 0, 0, 0]),
        ([6, 1, 1, 2], 2, [0, 1, 1, 1]),  # middles 0.3, 0.65, 0.75, 0.9
        ([1, 1, 6, 2], 2, [0, 0, 1, 1]),  # middles 0.05, 0.15, 0.5, 0.9
        ([0, 0, 0, 5], 5, [0, 0, 0, 2]),
    ],
)
def test_a_score_is_in_the_group_of_the_middle_of_its_weight(weights: list[int], count: int, groups: list[int]) -> None:
    assert score_groups(np.array([1.0, 2.0, 3.0, 4.0]), np.array(weights), count=count).tolist() == groups
    backwards = score_groups(np.array([4.0, 3.0, 2.0, 1.0]), np.array(weights[::-1]), count=count)
    assert backwards.tolist() == groups[::-1]


def test_five_groups_are_the_default() -> None:
    assert score_groups(np.arange(10.0), np.ones(10)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("clicks", "merged"),
    [
        ([10, 20, 30, 40], [0, 0, 1, 2]),
        ([10, 19, 30, 40], [0, 0, 0, 1]),  # 10 + 19, which is below 30, joins the smaller neighbour
        ([40, 10, 20, 60], [0, 1, 1, 2]),
        ([60, 60, 10, 60], [0, 1, 1, 2]),
        ([5, 60, 60, 5], [0, 0, 1, 1]),
        ([60], [0]),
    ],
)
def test_the_smallest_group_joins_the_smaller_of_its_neighbours(clicks: list[int], merged: list[int]) -> None:
    found = merge_small(np.array([*range(len(clicks)), -1, -3]), np.array(clicks), fewest=30)
    assert found.tolist() == [*merged, -1, -1]


def test_a_table_without_a_group_is_refused() -> None:
    log = ClickLog.of(features=np.zeros((2, 1)), documents=[0, 1], offsets=[0, 2], clicks=[1, 0], impressions=[3])
    clicks, shown = group_table(log, np.array([0, -1]))
    assert (clicks.tolist(), shown.tolist()) == ([[1, 0]], [[3, 0]])
    with pytest.raises(DataError) as caught:
        group_table(log, np.array([-1, -2]))
    assert str(caught.value) == "no shown document has a group, so there is nothing to tabulate"
    with pytest.raises(DataError) as caught:
        group_table(log, np.array([0]))
    assert str(caught.value) == "2 shown documents, but 1 groups"


def test_relevance_orders_the_groups_and_not_the_position() -> None:
    """Documents with a click rate of 0.2, 0.4 and 0.6 at the first of two positions, and half of that at the other."""
    cells = Cells.of(
        np.array([0, 0, 1, 1, 2, 2, 3]),
        np.array([0, 1, 0, 1, 0, 1, 0]),
        np.array([10, 90, 50, 50, 90, 10, 20]),
        np.array([6, 27, 20, 10, 18, 1, 20]),
        count=2,
    )
    assert _by_clicks(cells, count=3).tolist() == [2, 1, 0, -1]
    assert _by_clicks(cells.choose(np.array([0, 2, 6])), count=3).tolist() == [-1, -1, -1]


def test_both_halves_of_the_impressions_add_up_and_a_list_has_half_of_its_luck_in_each() -> None:
    cells = Cells.of(np.repeat(np.arange(50), 2), np.tile([0, 1], 50), np.full(100, 40), np.full(100, 10), count=2)
    groups, half = click_groups(cells, seed=1)
    assert sorted(set(groups.tolist())) == [0, 1, 2, 3, 4]
    assert half.together.tolist() == [39 / 2] * 100
    # Twenty of forty impressions and five of ten clicks, a coin each: four standard deviations of a mean of a hundred.
    assert half.impressions.mean() == pytest.approx(20, abs=4 * np.sqrt(10 / 100))
    assert half.clicks.mean() == pytest.approx(5, abs=4 * np.sqrt(2.5 / 100))
    assert (half.clicks <= half.impressions).all()
    assert (half.impressions - half.clicks <= 30).all()
    assert click_groups(cells, seed=1, count=2)[0].max() == 1


def _lists(per_query: list[int]) -> ClickLog:
    """Lists of two documents each, with other documents in each list, so that one is known by its own."""
    lists = sum(per_query)
    return ClickLog.of(
        features=np.zeros((2 * lists, 1)),
        documents=np.arange(2 * lists),
        offsets=np.arange(0, 2 * lists + 1, 2),
        clicks=np.ones(2 * lists),
        queries=np.repeat([f"{number:03}" for number in range(len(per_query))], per_query),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_every_other_list_of_a_query_is_put_aside(count: int) -> None:
    log = _lists([count] * 60)
    _, half = list_click_groups(log, seed=2)
    kept = np.isin(log.documents[::2], half.ids)
    sizes = np.bincount(log.queries[kept], minlength=60)
    assert set(sizes.tolist()) == ({count // 2} if count % 2 == 0 else {count // 2, count // 2 + 1})
    if count % 2:
        # The odd one falls on either side by a coin: four standard deviations of sixty.
        assert abs((sizes > count // 2).sum() - 30) < 4 * np.sqrt(60 / 4)
    assert len(list_click_groups(log, seed=3)[1].ids) > 0


def test_documents_are_known_by_the_other_half_or_have_no_group() -> None:
    """Each query shows its two documents in both orders twice, and a third one in one list only."""
    queries = 40
    orders = [[0, 1], [1, 0], [0, 1, 2], [1, 0]]
    documents = np.concatenate([[3 * query + place for order in orders for place in order] for query in range(queries)])
    log = ClickLog.of(
        features=np.zeros((3 * queries, 1)),
        documents=documents,
        offsets=np.cumsum([0, *([2, 2, 3, 2] * queries)]),
        clicks=np.ones(9 * queries),
        impressions=np.full(4 * queries, 2),
        queries=np.repeat([f"{query:02}" for query in range(queries)], 4),
        device=np.tile(np.repeat(["a", "b"], [4, 5]), queries),
    )
    groups, half = list_click_groups(log, count=2, seed=0)
    assert len(groups) == len(half.ids)
    assert (groups[half.ids % 3 == 2] == -1).all()
    assert {-1, 0, 1} >= set(groups.tolist()) > {-1}

"""Graphs of bias values: links, backbones and what would join their parts, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.bias.explored_world import Context, adjacent, expected_log

from ultr.bias import BiasGraph, ExploredCells, Link, SwapTable, bias_graph
from ultr.bias.identifiability import _bridges, _forest, _parts
from ultr.data.click_log import ClickLog


def _link(first: int, second: int, strength: float, clicks: int = 5) -> Link:
    return Link(first, second, 1, strength, clicks, bridge=False)


def _graph(links: list[Link], *, count: int = 4, rates: list[float] | None = None) -> BiasGraph:
    impressions = np.arange(10.0 * count, 0, -10).astype(np.float64)
    return BiasGraph(
        names=tuple(str(number) for number in range(count)),
        levels=np.arange(count)[:, None],
        impressions=impressions,
        click_rates=np.linspace(0.5, 0.1, count) if rates is None else np.array(rates),
        parts=_parts([(link.first, link.second) for link in links], impressions),
        links=tuple(sorted(links, key=lambda link: link.strength)),
    )


def test_the_backbone_has_the_strongest_links_from_the_weakest() -> None:
    links = [_link(0, 1, 1.0), _link(1, 2, 5.0), _link(0, 2, 3.0), _link(2, 3, 2.0), _link(0, 3, 1.5)]
    graph = _graph(links)
    assert [(link.first, link.second) for link in graph.backbone] == [(2, 3), (0, 2), (1, 2)]
    assert graph.connected
    assert graph.shares.tolist() == [1.0]


@pytest.mark.parametrize(
    ("fewest", "left"), [(0, [(0, 1), (1, 2), (2, 3)]), (1, [(1, 2), (2, 3)]), (2, [(2, 3)]), (3, [])]
)
def test_links_need_so_many_clicks(fewest: int, left: list[tuple[int, int]]) -> None:
    graph = _graph([_link(0, 1, 1.0, 0), _link(1, 2, 2.0, 1), _link(2, 3, 3.0, 2)])
    found = graph.with_clicks(fewest)
    assert [(link.first, link.second) for link in found.links] == left
    assert all(link.bridge for link in found.links)
    assert found.connected is (fewest == 0)
    assert [(link.first, link.second) for link in graph.with_clicks().links] == [(1, 2), (2, 3)]


def test_parts_are_numbered_from_the_one_with_the_most_impressions() -> None:
    graph = _graph([_link(2, 3, 1.0)], count=4)
    # 40, 30 and 20 + 10 impressions: of equals, the first comes first.
    assert graph.parts.tolist() == [0, 1, 2, 2]
    assert graph.shares.tolist() == [0.4, 0.3, 0.3]
    assert _parts([(2, 3), (1, 2)], np.array([10.0, 1.0, 5.0, 5.0])).tolist() == [1, 0, 0, 0]


def test_values_with_the_nearest_click_rates_are_merged_first() -> None:
    graph = _graph([], rates=[0.5, 0.1, 0.48, 0.3])
    # Neighbouring rates differ by 0.02 (0 and 2), 0.18 (3 and 2) and 0.2 (1 and 3).
    assert graph.merges() == ((0, 2), (2, 3), (1, 3))


def test_positions_that_nothing_is_next_to_are_joined_with_the_busiest_value() -> None:
    graph = replace(_graph([]), levels=np.array([[0], [2], [4], [5]]), impressions=np.array([5.0, 9.0, 2.0, 3.0]))
    graph = replace(graph, parts=_parts([], graph.impressions))
    # Only the two last are neighbours; the others are joined with the second, which has the most impressions.
    assert graph.swaps() == ((2, 3), (0, 1), (1, 3))


def test_the_busiest_value_of_a_part_stands_for_it() -> None:
    graph = _graph([_link(0, 2, 1.0)], count=3)
    graph = replace(
        graph,
        levels=np.array([[0, 0], [3, 0], [0, 1]]),
        impressions=np.array([10.0, 8.0, 20.0]),
        parts=np.array([0, 1, 0]),
    )
    assert graph.swaps() == ((1, 2),)


def test_only_positions_of_the_same_kind_are_neighbours() -> None:
    graph = replace(_graph([]), levels=np.array([[0, 0], [1, 1], [1, 0], [2, 1]]))
    assert sorted(map(tuple, graph._adjacent().tolist())) == [(0, 2), (1, 3)]


@pytest.mark.parametrize(("values", "links"), [(33, 33 * 32 // 2), (34, 34 * 33 // 2 - 1), (40, 40 * 39 // 2 - 28)])
def test_each_value_of_a_document_is_linked_with_the_32_that_follow(values: int, links: int) -> None:
    """Of n values those that are 33 or more apart are not: (n - 33) (n - 32) / 2 pairs."""
    log = ClickLog.of(
        features=[[0.0]],
        documents=np.zeros(values),
        offsets=np.arange(values + 1),
        clicks=np.zeros(values),
        slot=[f"{number:03}" for number in range(values)],
    )
    graph = bias_graph(log, factors=("slot",))
    assert len(graph.links) == links
    assert graph.names[:2] == ("slot 000", "slot 001")


def test_bridges_of_a_graph_with_a_ring_and_two_tails() -> None:
    links = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 6), (6, 5)]
    assert _bridges(links, count=8) == {3, 4}
    assert _bridges([(0, 1), (2, 3)], count=4) == {0, 1}
    assert _bridges([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 3), (0, 1)], count=6) == {6}
    chosen, roots = _forest(8, links)
    assert chosen == [0, 1, 3, 4, 5]
    assert [len({roots[value] for value in part}) for part in ([0, 1, 2, 3, 4], [5, 6], [7])] == [1, 1, 1]
    assert len(set(roots)) == 3


def test_a_link_of_exploration_is_as_strong_as_the_stronger_of_two() -> None:
    """Twice the weight of its swaps, which is the harmonic mean of impressions; documents and clicks are kept."""
    log = expected_log([Context({"x": 0.8, "y": 0.4, "z": 0.1}, adjacent(3, 0.1))])
    explored = ExploredCells.of_log(log)
    assert explored is not None
    table = SwapTable.of(explored.cells())
    plain = {(link.first, link.second): link for link in bias_graph(replace(log, placements=None)).links}
    both = {(link.first, link.second): link for link in bias_graph(log).links}
    assert both.keys() == plain.keys()
    for (first, second), link in both.items():
        other = plain[first, second]
        assert link.documents == other.documents
        assert link.strength == pytest.approx(max(other.strength, 2 * table.weights[first, second]))
        clicked = table.clicks[first, second] + table.clicks[second, first]
        assert link.clicks == max(other.clicks, int(np.floor(clicked)))
    # Other documents on every page: exploration alone links the positions.
    alone = replace(
        log, documents=np.arange(len(log.documents)), features=np.ones((len(log.documents), 3), dtype=np.float32)
    )
    for link in bias_graph(alone).links:
        assert link.documents == 0
        assert link.strength == pytest.approx(2 * table.weights[link.first, link.second])
        clicked = table.clicks[link.first, link.second] + table.clicks[link.second, link.first]
        assert link.clicks == int(np.floor(clicked))

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.data.test_click_log import random_log

from ultr.bias import SwapTable, bias_graph, same_features
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError


def _log(pages: list[list[int]], *, impressions: list[int] | None = None, clicks: list[int] | None = None) -> ClickLog:
    """Pages of documents; each page is one query's."""
    documents = [document for page in pages for document in page]
    return ClickLog.of(
        features=np.arange(max(documents) + 1)[:, None],
        documents=documents,
        offsets=np.cumsum([0, *map(len, pages)]),
        clicks=[0] * len(documents) if clicks is None else clicks,
        impressions=impressions,
        queries=["q"] * len(pages),
    )


def _connected(count: int, links: list[tuple[int, int]]) -> bool:
    reached = {0}
    for _ in range(count):
        reached |= {b for a, b in links if a in reached} | {a for a, b in links if b in reached}
    return len(reached) == count


def test_links_are_what_a_loop_over_documents_counts() -> None:
    log = _log([[0, 1, 2], [1, 0, 2], [2, 3, 0]], impressions=[10, 30, 5], clicks=[3, 0, 1, 9, 2, 2, 1, 0, 0])
    found = {(link.first, link.second): link for link in bias_graph(log).links}
    # Document 0: 10, 30 and 5 impressions at positions 1, 2, 3; 1: 30 and 10 at 1, 2; 2: 5 at 1 and 40 at 3.
    assert found.keys() == {(0, 1), (0, 2), (1, 2)}
    assert [found[pair].documents for pair in ((0, 1), (0, 2), (1, 2))] == [2, 2, 1]
    assert found[0, 1].strength == pytest.approx(2 * (10 * 30 / 40 + 30 * 10 / 40))
    assert found[0, 2].strength == pytest.approx(2 * (10 * 5 / 15 + 5 * 40 / 45))
    assert [found[pair].clicks for pair in ((0, 1), (0, 2), (1, 2))] == [3 + 2 + 9 + 0, 3 + 0 + 1 + 3, 2 + 0]
    assert not any(link.bridge for link in found.values())


def test_the_strength_is_twice_the_weight_of_the_swaps(small_log: ClickLog) -> None:
    graph, table = bias_graph(small_log), SwapTable.of_log(small_log)
    assert graph.connected
    for link in graph.links:
        assert link.strength == pytest.approx(2 * table.weights[link.first, link.second])
    assert len(graph.links) == np.count_nonzero(table.weights) / 2
    assert [link.strength for link in graph.links] == sorted(link.strength for link in graph.links)
    assert len(graph.backbone) == 9


def test_a_graph_that_falls_apart_says_what_would_connect_it() -> None:
    # Positions 1 and 2 are linked, and so are 4 and 5; nothing else is.
    log = _log([[0, 1, 2, 3, 4], [1, 0, 2, 4, 3]], impressions=[60, 40], clicks=[30, 20, 18, 5, 4, 20, 10, 12, 2, 2])
    graph = bias_graph(log)
    assert not graph.connected
    assert graph.names == tuple(f"position {number}" for number in range(1, 6))
    assert graph.parts.tolist() == [0, 0, 2, 1, 1]
    np.testing.assert_allclose(graph.shares, [0.4, 0.4, 0.2])
    assert graph.swaps() == ((1, 2), (2, 3))
    # Click rates .5 .3 .3 .07 .06: the third is nearest to the second, then to the fourth.
    assert graph.merges() == ((1, 2), (2, 3))
    assert [(link.first, link.second) for link in graph.links if link.bridge] == [(0, 1), (3, 4)]


def test_swaps_are_asked_for_where_there_is_most_traffic() -> None:
    # Two factors: on a phone, no document is ever seen at two positions, on a desk all are.
    pages = [[0, 1, 2], [1, 2, 0], [3, 4, 5]]
    log = ClickLog.of(
        features=np.zeros((6, 1)),
        documents=np.concatenate(pages),
        offsets=[0, 3, 6, 9],
        clicks=np.zeros(9),
        impressions=[5, 5, 100],
        device=["desk"] * 6 + ["phone"] * 3,
    )
    graph = bias_graph(log, factors=("position", "device"))
    assert len(graph.names) == 6
    assert "position 1, device phone" in graph.names
    assert graph.parts.max() == 3
    swaps = [tuple(graph.names[value] for value in pair) for pair in graph.swaps()]
    assert len(swaps) == 3
    assert swaps[:2] == [
        ("position 1, device phone", "position 2, device phone"),
        ("position 2, device phone", "position 3, device phone"),
    ]
    assert {name.split(", ")[1] for name in swaps[2]} == {"device desk", "device phone"}
    assert bias_graph(log, factors=("device",)).parts.tolist() == [1, 0]


def test_the_proposed_pairs_connect_any_graph_and_none_is_spare() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        pages = [
            random.permutation(np.arange(4) + 4 * seed_page)[: random.integers(1, 5)].tolist() for seed_page in range(4)
        ]
        graph = bias_graph(_log(pages, impressions=random.integers(1, 50, size=4).tolist()))
        links = [(link.first, link.second) for link in graph.links]
        count = len(graph.names)
        for pairs in (graph.swaps(), graph.merges()):
            assert len(pairs) == graph.parts.max()
            assert _connected(count, links + list(pairs))


def test_bridges_are_the_links_whose_loss_adds_a_part() -> None:
    for seed in range(10):
        graph = bias_graph(random_log(seed, lists=6), factors=("position",))
        links = [(link.first, link.second) for link in graph.links]
        for number, link in enumerate(graph.links):
            rest = links[:number] + links[number + 1 :]
            reached = {link.first}
            for _ in graph.names:
                reached |= {b for a, b in rest if a in reached} | {a for a, b in rest if b in reached}
            assert link.bridge == (link.second not in reached)


def test_a_document_under_many_values_keeps_them_connected() -> None:
    log = ClickLog.of(
        features=[[0.0]],
        documents=np.zeros(200),
        offsets=np.arange(201),
        clicks=np.zeros(200),
        slot=[f"{number:03}" for number in range(200)],
    )
    graph = bias_graph(log, factors=("slot",))
    assert graph.connected
    assert len(graph.names) == 200
    assert len(graph.links) < 200 * 32


def test_documents_with_the_same_features_are_the_same() -> None:
    features = np.array([[0.0, 1.0], [2.0, 1.0], [-0.0, 1.0]], dtype=np.float32)
    identities = same_features(features)
    assert identities[0] == identities[2] != identities[1]
    log = ClickLog.of(features=features, documents=[0, 1, 1, 2], offsets=[0, 2, 4], clicks=[0] * 4)
    apart = ClickLog.of(features=features, documents=[0, 1, 2], offsets=[0, 2, 3], clicks=[0] * 3, positions=[1, 2, 3])
    assert len(bias_graph(log).links) == 1
    assert not bias_graph(apart).links
    linked = bias_graph(apart, identities=identities).links
    assert [(link.first, link.second) for link in linked] == [(0, 2)]


def test_the_same_features_are_found_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    features = random.integers(-1, 2, size=(500, 4)).astype(np.float32) * np.float32(0.1)
    features[random.random(features.shape) < 0.2] = np.nan
    monkeypatch.setattr("ultr.data.row_blocks.BLOCK", 20)
    monkeypatch.setattr("ultr.bias.identities._VALUES", 40)
    expected = np.unique(features.view(np.uint32), axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(same_features(features), expected[1][expected[2].reshape(-1)])
    # Not a number is the same as not a number, whatever bits it has.
    negative = np.where(np.isnan(features) & (np.arange(500) % 2 == 0)[:, None], -features, features)
    assert negative.tobytes() != features.tobytes()
    np.testing.assert_array_equal(same_features(negative), same_features(features))


def test_strange_requests_are_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="did you mean 'position'"):
        bias_graph(small_log, factors=("positon",))
    with pytest.raises(DataError, match="at least one bias factor"):
        bias_graph(small_log, factors=())
    with pytest.raises(DataError, match="shows no document"):
        bias_graph(small_log.select(np.array([], dtype=np.int64)))


def test_every_pair_of_positions_is_linked_by_random_pages() -> None:
    random = np.random.default_rng(0)
    graph = bias_graph(_log([random.permutation(5).tolist() for _ in range(60)]))
    assert {(link.first, link.second) for link in graph.links} == set(combinations(range(5), 2))
    assert graph.shares.tolist() == [1.0]
    assert graph.swaps() == graph.merges() == ()


def test_links_with_too_few_clicks_can_be_left_out() -> None:
    """Document 0 links positions 1 and 2 with three clicks, document 1 links 2 and 3 with none."""
    log = ClickLog.of(
        features=[[0.0], [1.0]],
        documents=[0, 1, 0, 1],
        offsets=[0, 2, 4],
        positions=[1, 2, 2, 3],
        clicks=[2, 0, 1, 0],
        impressions=[5, 5],
    )
    graph = bias_graph(log)
    assert graph.connected
    assert all(link.bridge for link in graph.links)
    clicked = graph.with_clicks(3)
    assert clicked.parts.tolist() == [0, 0, 1]
    assert [(link.first, link.second) for link in clicked.links] == [(0, 1)]
    assert not graph.with_clicks(4).links

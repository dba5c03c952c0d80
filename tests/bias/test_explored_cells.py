from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from tests.bias.explored_world import THETA, Context, adjacent, expected_log

from ultr.bias import ExploredCells, ResampledPropensities, bias_curves, bias_graph, estimate_propensities
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable
from ultr.data.click_log import ClickLog

SWAPS = adjacent(3, 0.1)
MORNING = Context({"x": 0.8, "y": 0.4, "z": 0.1}, SWAPS)
EVENING = Context({"x": 0.1, "y": 0.2, "z": 0.4}, SWAPS)
"""The ranking puts each document where it is relevant: z is first where it is clicked and last where it is not."""


def with_documents_of_their_own(log: ClickLog) -> ClickLog:
    count = len(log.documents)
    width = len(log.feature_names)
    features = np.arange(count * width, dtype=np.float32).reshape(count, width)
    return replace(log, documents=np.arange(count), features=features)


def without_placements(log: ClickLog) -> ClickLog:
    return replace(log, placements=None)


@pytest.mark.parametrize("estimator", ["all-pairs", "adjacent-chain", "em"])
@pytest.mark.parametrize(
    "evening",
    [EVENING, replace(EVENING, exchanges=adjacent(3, 0.2)), replace(EVENING, pages=20_000)],
    ids=["alike", "explored more", "fewer pages"],
)
def test_curves_are_exact_where_the_ranking_is_confounded_with_relevance(estimator: str, evening: Context) -> None:
    log = expected_log([MORNING, evening])
    assert estimate_propensities(log, estimator) == pytest.approx(THETA, rel=1e-6)
    plain = estimate_propensities(without_placements(log), estimator)
    assert np.abs(plain / THETA - 1).max() > 0.3, "without propensities the ranking's own moves decide"


def test_pages_of_other_lengths_are_other_strata() -> None:
    # At 2 of 2 a document cannot go down; counted with those at 2 of 3 it would dilute what is seen there.
    short = Context({"x": 0.1, "y": 0.05}, adjacent(2, 0.1), pages=160_000)
    log = expected_log([MORNING, EVENING, short])
    assert estimate_propensities(log, "adjacent-chain") == pytest.approx(THETA, rel=1e-6)


@pytest.mark.parametrize("estimator", ["all-pairs", "adjacent-chain", "em"])
def test_pages_below_advertisements_are_other_strata(estimator: str) -> None:
    # Place 3 is the last of a page of three documents and the first below two advertisements: other positions are
    # possible there, for documents of another relevance.
    theta = (1.0, 0.5, 0.25, 0.25, 0.125)
    log = expected_log([MORNING, EVENING, replace(MORNING, above=2)], theta=theta)
    assert estimate_propensities(log, estimator) == pytest.approx(theta, rel=1e-6)


def test_no_document_has_to_be_seen_twice() -> None:
    contexts = [Context({f"{page}x": 0.8, f"{page}y": 0.4, f"{page}z": 0.1}, SWAPS, query=str(page)) for page in "ab"]
    log = expected_log(contexts)
    # Every explored page gets documents of its own, so that nothing is at two positions.
    other = with_documents_of_their_own(log)
    assert not log.cells(documents=np.arange(len(log.documents)), fewest_positions=2).documents.size
    assert estimate_propensities(other) == pytest.approx(THETA, rel=1e-6)


def test_one_exploration_makes_weights_cancel() -> None:
    log = expected_log([MORNING, EVENING])
    found = ExploredCells.of_log(log)
    assert found is not None
    cells = found.cells()
    assert log.placements is not None
    rows = zip(log.placements.bases, log.position.values, np.repeat(log.impressions, 3), log.clicks, strict=True)
    counted: dict[tuple[int, int], list[int]] = {}
    for base, position, shown, clicks in rows:
        sums = counted.setdefault((int(base), int(position)), [0, 0])
        sums[0] += int(shown)
        sums[1] += int(clicks)
    assert cells.impressions == pytest.approx([counted[key][0] for key in sorted(counted)])
    assert cells.clicks == pytest.approx([counted[key][1] for key in sorted(counted)])


def test_two_explorations_make_them_matter() -> None:
    log = expected_log([MORNING, replace(EVENING, exchanges=adjacent(3, 0.2))])
    assert log.placements is not None
    # All that is known but the propensities themselves.
    same = np.where(log.placements.explored, 0.5, 1.0)
    blind = replace(log, placements=replace(log.placements, propensities=same))
    assert np.abs(estimate_propensities(blind) / THETA - 1).max() > 0.02
    assert estimate_propensities(log) == pytest.approx(THETA, rel=1e-6)


def test_what_could_stand_nowhere_else_says_nothing() -> None:
    fixed = Context({"x": 0.025, "y": 0.1, "z": 0.05}, {}, pages=800_000)
    assert estimate_propensities(expected_log([MORNING, EVENING, fixed])) == pytest.approx(THETA, rel=1e-6)
    assert ExploredCells.of_log(expected_log([fixed])) is None


def test_positions_that_exploration_does_not_link_are_linked_by_documents() -> None:
    # The two last are exchanged; x and y are where they are by different rankers, as relevant as ever.
    first = Context({"x": 0.4, "y": 0.2, "z": 0.1}, {(1, 2): 0.1})
    log = expected_log([first, replace(first, relevance={"y": 0.2, "x": 0.1, "z": 0.05}, query="r")])
    table = SwapTable.of_log(log)
    plain = SwapTable.of(log.cells(fewest_positions=2))
    explored = ExploredCells.of_log(log)
    assert explored is not None
    exact = SwapTable.of(explored.cells())
    assert exact.apart().tolist() == [[False, True, True], [True, False, False], [True, False, False]]
    for pair in ((0, 1), (0, 2)):
        assert table.clicks[pair] == plain.clicks[pair]
    assert table.clicks[1, 2] == exact.clicks[1, 2]
    assert table.clicks[1, 2] / table.clicks[2, 1] == pytest.approx(THETA[1] / THETA[2])


def test_few_clicks_by_chance_count_more_than_many_that_are_confounded() -> None:
    log = expected_log([replace(MORNING, pages=400), replace(EVENING, pages=400)])
    explored = ExploredCells.of_log(log)
    assert explored is not None
    assert 0 < SwapTable.of(explored.cells()).clicks[2, 1] < 10
    assert estimate_propensities(log) == pytest.approx(THETA, rel=1e-6)


def _shuffled(*, bases: bool) -> ClickLog:
    """Any document anywhere: orders have different probabilities, and documents that are relevant stand high."""
    relevance, pages = {"x": 0.8, "y": 0.4, "z": 0.1}, 80_000
    orders = dict(zip(permutations("xyz"), (0.3, 0.25, 0.2, 0.15, 0.05, 0.05), strict=True))
    chance = {
        (name, rank): sum(p for order, p in orders.items() if order[rank] == name)
        for name in "xyz"
        for rank in range(3)
    }
    shown = [name for order in orders for name in order]
    ranks = [rank for _ in orders for rank in range(3)]
    often = [round(pages * p) for p in orders.values()]
    clicks = [
        round(often[place // 3] * THETA[rank] * relevance[name])
        for place, (name, rank) in enumerate(zip(shown, ranks, strict=True))
    ]
    return ClickLog.of(
        features=np.eye(3),
        documents=["xyz".index(name) for name in shown],
        offsets=range(0, 19, 3),
        clicks=clicks,
        impressions=often,
        queries=["q"] * 6,
        placement_propensities=[chance[name, rank] for name, rank in zip(shown, ranks, strict=True)],
        base_positions=["xyz".index(name) + 1 for name in shown] if bases else None,
    )


@pytest.mark.parametrize("bases", [True, False])
def test_where_all_documents_were_possible_everywhere_base_positions_are_not_needed(*, bases: bool) -> None:
    log = _shuffled(bases=bases)
    explored = ExploredCells.of_log(log)
    assert explored is not None
    assert (explored.used, explored.left_out) == (240_000, 0)
    for estimator in SWAP_ESTIMATORS:
        assert estimate_propensities(log, estimator) == pytest.approx(THETA, rel=1e-6)


def test_without_base_positions_swaps_are_left_out_and_said_so() -> None:
    log = expected_log([MORNING, EVENING], bases=False)
    explored = ExploredCells.of_log(log)
    assert explored is not None
    assert (explored.used, explored.left_out) == (0, 480_000)
    assert estimate_propensities(log) == pytest.approx(estimate_propensities(without_placements(log)))
    assert bias_curves(log, samples=5).left_out == 480_000


def test_resamples_are_those_of_the_placements() -> None:
    # Forty queries of two kinds, which differ in how they are clicked but not in what is seen.
    theta = (1.0, 0.5, 0.25)
    contexts = [replace(MORNING if number % 2 else EVENING, query=str(number), pages=8_000) for number in range(40)]
    log = expected_log(contexts, theta=theta)
    found = ResampledPropensities.of_log(log, samples=50)
    assert found.explored == 40 * 8_000 * 3
    assert found.estimate == pytest.approx(THETA, rel=1e-6)
    assert found.draws == pytest.approx(np.tile(THETA, (50, 1)), rel=1e-6), "every query says the same exactly"
    curves = bias_curves(log, samples=20)
    for name in ("all-pairs", "adjacent-chain", "em"):
        assert curves.of(name).low == pytest.approx(THETA, rel=1e-6)
    assert (curves.units, curves.count, curves.explored) == ("queries", 40, 40 * 8_000 * 3)
    some = ResampledPropensities.of_log(log, among=np.array([True, False, False]), samples=5)
    assert some.explored == 40 * 8_000


def test_exploration_links_positions_in_the_graph() -> None:
    log = expected_log([MORNING])
    alone = with_documents_of_their_own(log)
    graph = bias_graph(alone).with_clicks()
    assert graph.connected
    assert not bias_graph(without_placements(alone)).connected
    link = next(link for link in graph.links if (link.first, link.second) == (1, 2))
    assert link.documents == 0
    # Of 8,000 exchanged pages each, those that stood at 3 are clicked at 2 at 0.5 * 0.1, at 3 when 2 went there at ...
    weight = 8_000 * 64_000 / 72_000, 8_000 * 72_000 / 80_000
    expected = weight[0] * 0.75 * 0.4 + weight[1] * 0.75 * 0.1
    assert link.clicks == pytest.approx(expected, abs=1)

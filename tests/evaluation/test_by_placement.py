from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.bias.explored_world import THETA, Context, adjacent, expected_log

from ultr.data.click_log import ClickLog
from ultr.evaluation import Evidence
from ultr.evaluation.by_placement import FEWEST_POSSIBLE, PlacementValue, answer_by_placement, placement_value
from ultr.evaluation.trial import CANNOT_TELL, Certainty
from ultr.metrics import bootstrap_ratio

MORNING = Context({"x": 0.8, "y": 0.4, "z": 0.2}, adjacent(3, 0.1))
EVENING = replace(MORNING, relevance={"x": 0.4, "y": 0.8, "z": 0.2}, exchanges=adjacent(3, 0.2))
"""The ranking puts x first in the morning and y in the evening: relevance and place go together."""


def value_of(log: ClickLog, scores: list[float]) -> Any:
    evidence = Evidence.of(log)
    return placement_value(np.array(scores * len(evidence.query_numbers)), evidence)


def value(found: PlacementValue) -> float:
    return float(found.totals.sum() / found.bases.sum())


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (0, 2, 1)])
def test_the_value_is_exact_where_exploration_might_have_made_all_placements(order: tuple[int, ...]) -> None:
    contexts = [MORNING] if order == (0, 2, 1) else [MORNING, EVENING]
    found = value_of(expected_log(contexts), [-float(order.index(number)) for number in range(3)])
    relevance = [np.mean([each.relevance[name] for each in contexts]) for name in "xyz"]
    assert value(found) == pytest.approx(sum(THETA[rank] * relevance[number] for rank, number in enumerate(order)))
    assert found.possible == pytest.approx(1.0)


def test_documents_that_tie_share_their_ranks() -> None:
    log = expected_log([MORNING])
    tied = value_of(log, [1.0, 1.0, 0.0])
    apart = [value_of(log, scores) for scores in ([2.0, 1.0, 0.0], [1.0, 2.0, 0.0])]
    assert value(tied) == pytest.approx(np.mean([value(each) for each in apart]))


def test_placements_that_exploration_could_not_make_are_counted_and_end_in_no_answer() -> None:
    # z first: it could not be there, nor x second and y third both.
    log = expected_log([MORNING])
    far, near = value_of(log, [1.0, 0.0, 2.0]), value_of(log, [2.0, 1.0, 0.0])
    assert far.possible == pytest.approx(2 / 3)
    answer = answer_by_placement(("far", far), ("near", near), Certainty())
    assert answer.verdict == CANNOT_TELL
    assert "67% of the placements of far" in answer.reason


def test_what_was_not_logged_is_not_possible() -> None:
    log = expected_log([MORNING])
    assert log.placements is not None
    unknown = replace(log.placements, propensities=np.full(len(log.documents), np.nan))
    assert value_of(replace(log, placements=unknown), [2.0, 1.0, 0.0]).possible == 0


def test_the_better_ranker_is_found_by_placement() -> None:
    contexts = [replace(MORNING, pages=800 + 400 * (number % 2), query=str(number)) for number in range(60)]
    log = expected_log(contexts)
    worse, better = value_of(log, [1.0, 2.0, 0.0]), value_of(log, [2.0, 1.0, 0.0])
    answer = answer_by_placement(("better", better), ("worse", worse), Certainty())
    assert answer.winner == "better"
    assert answer.difference is not None
    assert answer.difference.mean == pytest.approx((1 - 0.5) * (0.8 - 0.4))


def valued(gains: list[float], possible: float) -> PlacementValue:
    impressions = np.array([4.0, 8.0, 4.0])
    return PlacementValue(np.array(gains), impressions, 2 * possible * impressions, 2 * impressions, highest=0.75)


@pytest.mark.parametrize(
    ("ours", "theirs", "blamed"),
    [
        (1.0, 1.0, None),
        (0.9, 0.9, None),
        (0.899, 1.0, "exploration could have made 90% of the placements of new"),
        (1.0, 0.86, "exploration could have made 86% of the placements of old"),
        (0.5, 0.4, "exploration could have made 50% of the placements of new"),
    ],
)
def test_nine_of_ten_placements_of_both_must_have_been_possible(ours: float, theirs: float, blamed: str | None) -> None:
    new, old = valued([4.0, 6.0, 3.0], ours), valued([2.0, 3.0, 1.0], theirs)
    answer = answer_by_placement(("new", new), ("old", old), Certainty())
    if blamed is not None:
        assert (answer.verdict, answer.reason, answer.difference) == (CANNOT_TELL, blamed, None)
        return
    assert answer.difference is not None
    if ours == 1.0:
        lead = bootstrap_ratio(np.array([2.0, 3.0, 2.0]), np.array([4.0, 8.0, 4.0]))
        assert (answer.winner, answer.difference, lead.mean) == ("new", lead, 7 / 16)
        assert answer.reason == (
            f"the difference in clicks on an impression is +0.4375, 95% interval {lead.low:+.4f} to {lead.high:+.4f}"
        )


def test_what_exploration_could_not_make_is_filled_in_and_doubted() -> None:
    """Of two documents on each of 16 pages, a tenth could not be placed: 3.2 of 32."""
    new, old = valued([4.0, 6.0, 3.0], 0.9), valued([2.0, 3.0, 1.0], 1.0)
    answer = answer_by_placement(("new", new), ("old", old), Certainty())
    rate = 13 / 28.8
    assert new.completed.sum() == pytest.approx(32 * rate)
    assert new.doubt(level=0.95) == pytest.approx((3.2 / 16 * rate, 3.2 / 16 * (0.75 - rate)))
    assert old.doubt(level=0.95) == (0, 0)
    plain = bootstrap_ratio(new.completed - old.completed, new.bases)
    assert answer.difference is not None
    found = [answer.difference.mean, answer.difference.low, answer.difference.high]
    assert found == pytest.approx([plain.mean, plain.low - 0.2 * rate, plain.high + 0.2 * (0.75 - rate)])
    assert "with room for placements that exploration could not make" in answer.reason
    # The doubt of the second one counts the other way round.
    turned = answer_by_placement(("old", old), ("new", new), Certainty()).difference
    assert turned is not None
    assert [-turned.high, -turned.low] == pytest.approx(found[1:])


def test_a_few_placements_too_few_by_chance_are_no_doubt() -> None:
    impressions = np.full(30, 4.0)
    some = PlacementValue(impressions / 2, impressions, np.tile([3.2, 4.4, 4.0], 10), impressions, highest=0.75)
    assert some.possible == pytest.approx(0.967, abs=0.001)
    assert some.doubt(level=0.95) == (0, 0)
    assert min(replace(some, placed=np.tile([3.7, 4.0, 3.9], 10)).doubt(level=0.95)) > 0


def test_equal_documents_are_worth_the_same_in_orders_that_exploration_could_not_make() -> None:
    """All documents are clicked alike everywhere, and one in fifteen placements of one ranker was impossible."""
    explored = replace(MORNING, relevance=dict.fromkeys("xyz", 0.5), pages=900)
    fixed = replace(explored, exchanges={}, pages=100)
    log = expected_log(
        [replace(each, query=str(number)) for number in range(40) for each in (explored, fixed)], theta=(1, 1, 1)
    )
    kept, moved = value_of(log, [2.0, 1.0, 0.0]), value_of(log, [1.0, 2.0, 0.0])
    assert FEWEST_POSSIBLE <= moved.possible < 1
    assert value(moved) < value(kept) - 0.05
    answer = answer_by_placement(("kept", kept), ("moved", moved), Certainty())
    assert answer.verdict == CANNOT_TELL
    assert answer.difference is not None
    assert answer.difference.mean == pytest.approx(0, abs=1e-9)


def test_clicks_of_a_few_queries_of_their_own_length_by_hand() -> None:
    """Clicks over probabilities where a document stands at its rank, and placements over all that are ranked."""
    log = ClickLog.of(
        features=np.arange(5.0)[:, None],
        documents=[0, 1, 1, 0, 2, 3, 4, 3, 2, 4],
        offsets=[0, 2, 4, 7, 10],
        clicks=[3, 1, 2, 1, 4, 2, 1, 3, 1, 0],
        impressions=[6, 2, 8, 4],
        queries=["short", "short", "long", "long"],
        placement_propensities=[0.75, 0.75, 0.25, 0.25, 0.5, 0.5, 1.0, 0.5, 0.5, 1.0],
    )
    # Lower rows first, so that the first list of each query is the ranking: "long" is query 0.
    evidence = Evidence.of(log)
    found = placement_value(-log.features[evidence.documents, 0].astype(np.float64), evidence)
    assert log.query_ids.tolist() == ["long", "short"]
    assert found.totals.tolist() == pytest.approx([4 / 0.5 + 2 / 0.5 + 1 / 1.0 + 0 / 1.0, 3 / 0.75 + 1 / 0.75])
    assert found.bases.tolist() == [12, 8]
    possible = 8 / 0.5 + 8 / 0.5 + 8 / 1.0 + 4 / 1.0 + 6 / 0.75 + 6 / 0.75
    assert found.possible == pytest.approx(possible / (3 * 12 + 2 * 8))

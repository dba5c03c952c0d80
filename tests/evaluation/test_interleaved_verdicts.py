"""The winner of interleaved lists: counts in, answer and every number out."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest

from ultr.errors import DataError
from ultr.evaluation.interleaved import InterleavedComparison, _difference, compare_interleaved
from ultr.evaluation.trial import Answer
from ultr.metrics.always_valid import contests_needed, mean_interval, share_interval
from ultr.preparation.interleaved_lists import InterleavedLists


def lists_of(outcomes: dict[tuple[int, int], int], young: int = 0) -> InterleavedLists:
    return InterleavedLists("a", "b", 0, outcomes, young)


def expected_difference(outcomes: dict[tuple[int, int], int], level: float = 0.95) -> tuple[float, ...]:
    """The interval of the mean of what the new one won more, list by list."""
    gains = np.repeat([new - old for old, new in outcomes], list(outcomes.values()))
    return astuple(mean_interval(len(gains), gains.mean(), gains.var(ddof=1), level=level))


@pytest.mark.parametrize(
    ("wins", "losses", "winner"),
    [
        (600, 400, "new"),  # from 54.6 %
        (400, 600, "old"),  # to 45.4 %
        (52_000, 48_000, "new"),  # 52 %
        (48_000, 52_000, "old"),
        (55, 45, None),
        (45, 55, None),
        (500, 500, None),
    ],
)
def test_the_winner_is_on_whose_side_of_a_half_the_whole_interval_lies(
    wins: int, losses: int, winner: str | None
) -> None:
    found = compare_interleaved(lists_of({(0, 1): wins, (1, 0): losses}))
    share = share_interval(wins, losses)
    assert found.share == share
    assert (share.low <= 0.5 <= share.high) is (winner is None)
    numbers = (
        f"new won {wins:,} of {wins + losses:,} lists that one of both won, {wins / (wins + losses):.1%} "
        f"({share.low:.1%} to {share.high:.1%})"
    )
    assert found.answer.winner == winner
    if winner is None:
        assert (found.answer.verdict, found.answer.reason) == ("cannot tell", f"{numbers}, which holds 50%")
    else:
        assert (found.answer.verdict, found.answer.reason) == (f"{winner} is better", numbers)
        assert (found.lists_needed, found.clicks_needed) == (None, None)
    assert found.difference == found.answer.difference


def test_every_number_of_a_comparison_by_hand() -> None:
    outcomes = {(0, 0): 30, (0, 2): 11, (2, 1): 7, (1, 1): 5, (0, 1): 4, (3, 0): 2}
    found = compare_interleaved(lists_of(outcomes), names=("served", "fresh"), level=0.9)
    lists, wins, losses = 59, 15, 9
    clicks = 11 * 2 + 7 * 3 + 5 * 2 + 4 + 2 * 3
    needed = contests_needed(wins / (wins + losses), level=0.9)
    more = math.ceil((needed - 24) * 59 / 24)
    share = share_interval(wins, losses, level=0.9)
    assert found == InterleavedComparison(
        answer=Answer(
            "cannot tell",
            f"fresh won 15 of 24 lists that one of both won, 62.5% ({share.low:.1%} to {share.high:.1%}), which holds "
            "50%",
            None,
            found.difference,
        ),
        lists=lists,
        wins=wins,
        losses=losses,
        clicks=clicks,
        share=share,
        difference=found.difference,
        lists_needed=more,
        clicks_needed=math.ceil(more * clicks / lists),
    )
    # Neither is a whole number before it is rounded up.
    assert (needed - 24) * 59 % 24
    assert more * clicks % lists
    assert found.difference is not None
    assert astuple(found.difference) == pytest.approx(expected_difference(outcomes, 0.9))


@pytest.mark.parametrize("outcomes", [{(0, 1): 1, (2, 0): 1}, {(0, 3): 2, (1, 0): 1, (0, 0): 4}])
def test_the_difference_is_a_mean_over_lists_with_its_variance(outcomes: dict[tuple[int, int], int]) -> None:
    found = _difference(lists_of(outcomes), level=0.95)
    assert astuple(found) == pytest.approx(expected_difference(outcomes))


def test_one_list_tells_no_interval() -> None:
    found = compare_interleaved(lists_of({(0, 1): 1})).difference
    assert found is not None
    assert found.mean == 1.0
    assert math.isnan(found.low)


@pytest.mark.parametrize(
    ("outcomes", "clicks", "reason"),
    [
        (
            {(0, 0): 1_200},
            0,
            "nobody won a list: no place of the interleaved lists that was clicked gives credit (1,200 lists)",
        ),
        ({(0, 0): 5, (1, 1): 7, (2, 2): 1}, 18, "both won the same clicks in every list (13 lists)"),
    ],
)
def test_where_nobody_won_a_list_it_is_said_why(outcomes: dict[tuple[int, int], int], clicks: int, reason: str) -> None:
    lists = sum(outcomes.values())
    assert compare_interleaved(lists_of(outcomes)) == InterleavedComparison(
        Answer("cannot tell", reason), lists, 0, 0, clicks, None, None, math.inf, math.inf
    )


def test_as_many_wins_as_losses_are_a_share_of_a_half_and_never_enough() -> None:
    found = compare_interleaved(lists_of({(0, 1): 50, (1, 0): 50}))
    assert found.answer.reason.startswith("new won 50 of 100 lists that one of both won, 50.0% (")
    assert (found.lists_needed, found.clicks_needed) == (math.inf, math.inf)
    assert (found.wins, found.losses) == (50, 50)


def test_lists_that_are_too_young_are_counted_in_a_sentence() -> None:
    with pytest.raises(DataError) as caught:
        compare_interleaved(lists_of({}, young=1_234))
    assert str(caught.value).startswith("all 1,234 interleaved lists are too young to count: what users did with")
    assert str(caught.value).endswith("serve on, or count what comes in a shorter time (--minutes)")


@pytest.mark.parametrize(("per_client", "unit"), [(False, "lists"), (True, "clients")])
def test_what_is_too_young_is_called_what_was_counted(per_client: bool, unit: str) -> None:  # noqa: FBT001
    found = lists_of({(0, 1): 50, (1, 0): 20}, young=8)
    section = compare_interleaved(found).section(found, action="click", per_client=per_client)
    assert f"8 {unit} are too young to count" in section.advice

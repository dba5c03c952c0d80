"""The winner of interleaved lists: counts in, answer and every number out."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from tests.evaluation.interleaved_log import outcomes_of

from ultr.arrays import Doubles
from ultr.errors import DataError
from ultr.evaluation.interleaved import InterleavedComparison, _difference, compare_interleaved
from ultr.evaluation.trial import Answer
from ultr.metrics.always_valid import mean_interval, vote_interval, votes_needed
from ultr.preparation.interleaved_lists import CreditedClicks, InterleavedLists


def lists_of(outcomes: dict[tuple[int, int], int], young: int = 0, *, per_client: bool = False) -> InterleavedLists:
    return InterleavedLists("a", "b", 0, outcomes_of(outcomes), young, per_client=per_client)


def votes_of(*votes: tuple[float, int]) -> tuple[Doubles, Doubles]:
    """Votes and how many there are of each."""
    return np.array([vote for vote, _ in votes]), np.array([float(count) for _, count in votes])


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
    share = vote_interval(*votes_of((1, wins), (0, losses)))
    assert found.share == share
    assert (share.low <= 0.5 <= share.high) is (winner is None)
    numbers = (
        f"new has {wins / (wins + losses):.1%} ({share.low:.1%} to {share.high:.1%}) "
        f"of the votes of {wins + losses:,} lists"
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
    lists, decided = 59, 29
    clicks = 11 * 2 + 7 * 3 + 5 * 2 + 4 + 2 * 3
    # Of three clicks one was the new one's; of two, one.
    votes = votes_of((1, 11), (1 / 3, 7), (1 / 2, 5), (1, 4), (0, 2))
    mean = (11 + 7 / 3 + 5 / 2 + 4) / 29
    needed = votes_needed(*votes, level=0.9)
    more = math.ceil((needed - 29) * 59 / 29)
    share = vote_interval(*votes, level=0.9)
    assert share.mean == pytest.approx(mean)
    # Votes are added up in another order there, which the last digit tells.
    assert found.share is not None
    assert astuple(found.share) == pytest.approx(astuple(share), rel=1e-12)
    assert found == InterleavedComparison(
        answer=Answer(
            "cannot tell",
            f"fresh has 68.4% ({share.low:.1%} to {share.high:.1%}) of the votes of 29 lists, which holds 50%",
            None,
            found.difference,
        ),
        lists=lists,
        votes=decided,
        clicks=clicks,
        share=found.share,
        difference=found.difference,
        lists_needed=more,
        clicks_needed=math.ceil(more * clicks / lists),
    )
    assert round(mean, 3) == 0.684
    # Neither is a whole number before it is rounded up.
    assert (needed - 29) * 59 % 29
    assert more * clicks % lists
    assert found.difference is not None
    assert astuple(found.difference) == pytest.approx(expected_difference(outcomes, 0.9))


@pytest.mark.parametrize(
    ("outcome", "vote"),
    [
        (CreditedClicks(0, 1, 1), 1.0),
        (CreditedClicks(1, 0, 1), 0.0),
        (CreditedClicks(1, 0, 2), 0.25),  # the other click gives no credit, and is half a vote for nobody
        (CreditedClicks(0, 1, 4), 0.625),
        (CreditedClicks(2, 2, 4), 0.5),
        (CreditedClicks(0, 0, 3), 0.5),
        (CreditedClicks(0, 0, 0), 0.5),
    ],
)
def test_a_vote_is_shared_between_all_that_was_clicked(outcome: CreditedClicks, vote: float) -> None:
    assert outcome.vote == vote


def test_clicks_that_give_no_credit_are_no_vote_alone_and_weaken_one_beside_others() -> None:
    alone = InterleavedLists(
        "a", "b", 0, {CreditedClicks(0, 0, 2): 90, CreditedClicks(0, 1, 1): 60, CreditedClicks(1, 0, 1): 30}
    )
    found = compare_interleaved(alone)
    assert (found.votes, found.lists, found.clicks) == (90, 180, 90)
    assert found.share == vote_interval(*votes_of((1, 60), (0, 30)))
    beside = compare_interleaved(
        InterleavedLists("a", "b", 0, {CreditedClicks(0, 1, 2): 60, CreditedClicks(1, 0, 2): 30})
    )
    assert beside.share == vote_interval(*votes_of((0.75, 60), (0.25, 30)))


@pytest.mark.parametrize("outcomes", [{(0, 1): 1, (2, 0): 1}, {(0, 3): 2, (1, 0): 1, (0, 0): 4}])
def test_the_difference_is_a_mean_over_lists_with_its_variance(outcomes: dict[tuple[int, int], int]) -> None:
    found = _difference(lists_of(outcomes), level=0.95)
    assert astuple(found) == pytest.approx(expected_difference(outcomes))


def test_one_list_tells_no_interval() -> None:
    found = compare_interleaved(lists_of({(0, 1): 1})).difference
    assert found is not None
    assert found.mean == 1.0
    assert math.isnan(found.low)


def test_where_nobody_won_a_click_it_is_said_why() -> None:
    reason = "nobody won a click: no place of the interleaved lists that was clicked gives credit (1,200 lists)"
    without = InterleavedLists("a", "b", 0, {CreditedClicks(0, 0, 0): 700, CreditedClicks(0, 0, 3): 500})
    assert compare_interleaved(without) == InterleavedComparison(
        Answer("cannot tell", reason), 1_200, 0, 0, None, None, math.inf, math.inf
    )


def test_one_list_per_client_has_no_difference_since_more_are_won_as_time_goes_by() -> None:
    found = compare_interleaved(lists_of({(0, 1): 50, (1, 0): 20}, per_client=True))
    assert found.difference is None
    assert found.answer.difference is None
    assert found.share == vote_interval(*votes_of((1, 50), (0, 20)))
    assert "of the votes of 70 clients" in found.answer.reason


def test_as_many_wins_as_losses_are_a_share_of_a_half_and_never_enough() -> None:
    found = compare_interleaved(lists_of({(0, 1): 50, (1, 0): 50}))
    assert found.answer.reason.startswith("new has 50.0% (")
    assert found.answer.reason.endswith(" of the votes of 100 lists, which holds 50%")
    assert (found.lists_needed, found.clicks_needed) == (math.inf, math.inf)
    assert found.votes == 100


def test_lists_that_are_too_young_are_counted_in_a_sentence() -> None:
    with pytest.raises(DataError) as caught:
        compare_interleaved(lists_of({}, young=1_234))
    assert str(caught.value).startswith("all 1,234 interleaved lists are too young to count: what users did with")
    assert str(caught.value).endswith("serve on, or count what comes in a shorter time (--minutes)")


@pytest.mark.parametrize(("per_client", "unit"), [(False, "lists"), (True, "clients")])
def test_what_is_too_young_is_called_what_was_counted(per_client: bool, unit: str) -> None:  # noqa: FBT001
    found = lists_of({(0, 1): 50, (1, 0): 20}, young=8, per_client=per_client)
    section = compare_interleaved(found).section(found, action="click")
    assert f"8 {unit} are too young to count" in section.advice

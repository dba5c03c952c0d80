from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultr.serving import team_draft
from ultr.serving.team_draft import DRAFTED, NEW, OLD, Draft, _round, coin_flips, placements


def naive(old: list[str], new: list[str], coins: list[bool], *, size: int) -> list[tuple[str, str]]:
    """Team draft as Radlinski et al. write it down: documents with their teams."""
    shown: list[tuple[str, str]] = []
    for new_first in coins:
        for team in (NEW, OLD) if new_first else (OLD, NEW):
            taken = [document for document, _ in shown]
            left = [document for document in (new if team == NEW else old) if document not in taken]
            if left and len(shown) < size:
                shown.append((left[0], team))
    return shown


def outcomes(rival: list[int]) -> list[Draft]:
    rounds = (len(rival) + 1) // 2
    return [Draft.of(rival, flips=flips) for flips in range(2**rounds)]


@pytest.mark.parametrize("candidates", [2, 3, 4, 5])
def test_a_draft_is_that_of_the_paper_for_all_orders_and_coins(candidates: int) -> None:
    old = [chr(97 + number) for number in range(candidates)]
    for new_ranks, size in product(permutations(range(candidates)), range(1, candidates + 1)):
        new = [old[rank] for rank in new_ranks]
        for coins in product([False, True], repeat=(size + 1) // 2):
            flips = sum(coin << number for number, coin in enumerate(coins))
            draft = Draft.of(new_ranks[:size], flips=flips)
            found = [(old[pick.rank], str(pick.team)) for pick in draft.picks]
            assert found == naive(old, new, list(coins), size=size)


@settings(max_examples=60, derandomize=True)
@given(st.permutations(range(9)), st.integers(1, 9))
def test_propensities_are_the_frequencies_over_all_coins(rival: list[int], size: int) -> None:
    drafts = outcomes(rival[:size])
    counts: Counter[tuple[int, int]] = Counter()
    for draft in drafts:
        assert len({pick.rank for pick in draft.picks}) == size, "no document is shown twice"
        counts.update((place, pick.rank) for place, pick in enumerate(draft.picks))
    chances = placements(rival[:size])
    assert {(place, rank): chance for place, each in enumerate(chances) for rank, chance in each.items()} == {
        key: count / len(drafts) for key, count in counts.items()
    }, "exactly: they are sums of powers of one half"
    assert all(sum(each.values()) == 1 for each in chances)
    for draft in drafts:
        assert draft.propensities == [chances[place][pick.rank] for place, pick in enumerate(draft.picks)]


@settings(max_examples=60, derandomize=True)
@given(st.permutations(range(7)), st.integers(0, 15))
def test_exchanged_rankers_exchange_their_teams_and_nothing_else(rival: list[int], flips: int) -> None:
    turned = np.argsort(rival).tolist()
    one, other = Draft.of(rival, flips=flips), Draft.of(turned, flips=~flips)
    for pick, mirrored in zip(one.picks, other.picks, strict=True):
        assert pick.rank == rival[mirrored.rank]
        assert {pick.team, mirrored.team} == {OLD, NEW}
        assert pick.is_credited == mirrored.is_credited


@pytest.mark.parametrize("size", [1, 2, 5, 10])
def test_equal_orders_show_that_order_and_give_no_credit(size: int) -> None:
    for draft in outcomes(list(range(size))):
        assert [pick.rank for pick in draft.picks] == list(range(size))
        assert not any(pick.is_credited for pick in draft.picks)
        assert draft.propensities == [1.0] * size


def test_a_common_prefix_gives_no_credit_and_the_rest_does() -> None:
    for draft in outcomes([0, 1, 3, 2]):
        assert [pick.is_credited for pick in draft.picks] == [False, False, True, True]
    # After three in common, the third place is the same whoever goes first; the fourth is not.
    for draft in outcomes([0, 1, 2, 4, 3]):
        assert [pick.is_credited for pick in draft.picks][:4] == [False, False, False, True]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_users_who_click_at_random_favour_nobody(size: int) -> None:
    """Whatever the orders, each place is credited to both teams with the same probability."""
    for rival in permutations(range(5), size):
        drafts = outcomes(list(rival))
        for place in range(size):
            teams = Counter(draft.picks[place].team for draft in drafts if draft.picks[place].is_credited)
            assert teams[OLD] == teams[NEW]


def test_the_credit_that_is_left_out_is_a_coin() -> None:
    """Whatever was taken before, a place without credit holds the same document for either side of its coin."""
    for rival in permutations(range(5)):
        for flips, number in product(range(8), range(3)):
            one = Draft.of(rival, flips=flips).picks[2 * number : 2 * number + 2]
            other = Draft.of(rival, flips=flips ^ (1 << number)).picks[2 * number : 2 * number + 2]
            for pick, turned in zip(one, other, strict=True):
                assert pick.is_credited == (pick.rank != turned.rank)
                assert pick.team != turned.team


def test_places_below_the_drafted_ones_keep_the_old_order() -> None:
    size = DRAFTED + 7
    rival = np.random.default_rng(0).permutation(40)[:size].tolist()
    draft = Draft.of(rival, flips=12345)
    top, rest = draft.picks[:DRAFTED], draft.picks[DRAFTED:]
    taken = {pick.rank for pick in top}
    assert [pick.rank for pick in rest] == [rank for rank in range(40) if rank not in taken][: len(rest)]
    assert all(pick.team is None and not pick.is_credited for pick in rest)
    assert all(sum(each.values()) == 1 for each in placements(rival))
    assert all(chance > 0 for chance in draft.propensities)


def test_states_that_leave_the_same_documents_taken_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten coins have a thousand outcomes and, one round after the other, far fewer states."""
    random, rounds = np.random.default_rng(1), 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return _round(*given, **named)

    monkeypatch.setattr(team_draft, "_round", counted)
    for noise in (0.5, 2, 8, 1_000):
        rounds = 0
        for _ in range(50):
            placements(np.argsort(np.arange(60) + random.normal(0, noise, 60))[:40].tolist())
        assert rounds / 50 < 30


def test_a_share_of_the_queries_is_drawn_alike_each_time_and_not_with_another_secret() -> None:
    def drawn(secret: bytes) -> list[int | None]:
        return [coin_flips(str(number), share=0.3, secret=secret) for number in range(4_000)]

    one, two = drawn(b"one"), drawn(b"two")
    assert one == drawn(b"one")
    for each in (one, two):
        share = sum(flips is not None for flips in each) / 4_000
        assert abs(share - 0.3) < 4 * np.sqrt(0.21 / 4_000)
    both = sum(a is not None and b is not None for a, b in zip(one, two, strict=True)) / 4_000
    assert abs(both - 0.09) < 4 * np.sqrt(0.09 * 0.91 / 4_000)
    assert all(coin_flips(str(number), share=1.0, secret=b"s") is not None for number in range(100))


def test_coins_are_fair_and_do_not_depend_on_being_drawn() -> None:
    flips = [found for number in range(8_000) if (found := coin_flips(str(number), share=0.5, secret=b"s")) is not None]
    for bit in range(DRAFTED // 2):
        ones = sum(each >> bit & 1 for each in flips) / len(flips)
        assert abs(ones - 0.5) < 4 * np.sqrt(0.25 / len(flips))

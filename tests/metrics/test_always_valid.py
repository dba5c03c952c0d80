from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.errors import DataError
from ultr.metrics.always_valid import PRIOR, log_e_value, mean_interval, vote_interval, votes_needed

CONTEST = np.array([1.0, 0.0])
"""Votes that are won or lost."""


def results(wins: float, losses: float) -> Doubles:
    return np.array([wins, losses], dtype=np.float64)


def closed_form(wins: float, losses: float, *, share: float = 0.5, prior: float = PRIOR) -> float:
    """The evidence of wins and losses by Beta functions."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    mixture = log_beta(prior + wins, prior + losses) - log_beta(prior, prior)
    return mixture - wins * math.log(share) - losses * math.log(1 - share)


@pytest.mark.parametrize("share", [0.5, 0.3, 0.9])
@pytest.mark.parametrize(("wins", "losses"), [(1, 0), (0, 3), (600, 400), (51_000, 49_000), (5_000_000, 4_990_000)])
def test_the_evidence_of_wins_and_losses_is_that_of_beta_functions(wins: int, losses: int, share: float) -> None:
    for prior in (10.0, PRIOR):
        found = log_e_value(CONTEST, results(wins, losses), share=share, prior=prior)
        assert found == pytest.approx(closed_form(wins, losses, share=share, prior=prior), rel=1e-9, abs=1e-7)


def test_the_evidence_of_votes_between_is_a_martingale_whatever_their_distribution() -> None:
    """All sequences of three kinds of votes with the mean 0.4."""
    votes, chances = np.array([0.0, 0.3, 1.0]), np.array([0.4, 0.4, 0.2])
    share = float(votes @ chances)
    assert share != 0.5
    total = 0.0
    for sequence in product(range(3), repeat=6):
        counts = np.bincount(sequence, minlength=3).astype(np.float64)
        total += math.prod(chances[list(sequence)]) * math.exp(log_e_value(votes, counts, share=share, prior=3.0))
    assert total == pytest.approx(1)


def test_votes_for_nobody_say_nothing_against_a_half() -> None:
    votes = np.array([1.0, 0.5, 0.0])
    few = log_e_value(votes, np.array([30.0, 0.0, 10.0]))
    assert log_e_value(votes, np.array([30.0, 500.0, 10.0])) == pytest.approx(few)
    both = log_e_value(votes, np.array([[30.0, 0.0, 10.0], [10.0, 5.0, 30.0]]))
    assert both == pytest.approx([few, few])


def test_half_votes_are_less_uncertain_than_whole_ones() -> None:
    whole = vote_interval(CONTEST, results(300, 300))
    half = vote_interval(np.array([0.75, 0.25]), results(300, 300))
    assert half.mean == whole.mean == 0.5
    assert half.high - half.low < 0.75 * (whole.high - whole.low)


def chance_ever_outside(share: float, *, contests: int, level: float, prior: float) -> float:
    """The exact probability that the interval ever misses the share: a walk over wins and losses, summed up.

    >>> chance_ever_outside(0.5, contests=1, level=0.95, prior=1.0)
    0.0
    """
    alive, missed = np.array([1.0]), 0.0
    for count in range(1, contests + 1):
        alive = np.concatenate([alive * (1 - share), [0.0]]) + np.concatenate([[0.0], alive * share])
        for wins in range(count + 1):
            if alive[wins] and closed_form(wins, count - wins, share=share, prior=prior) >= -math.log(1 - level):
                missed += float(alive[wins])
                alive[wins] = 0.0
    return missed


@pytest.mark.parametrize("prior", [1.0, 10.0, PRIOR])
@pytest.mark.parametrize("share", [0.5, 0.3, 0.9])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_truth_is_ever_missed_as_seldom_as_promised(prior: float, share: float, level: float) -> None:
    missed = chance_ever_outside(share, contests=200, level=level, prior=prior)
    assert 0 < missed <= 1 - level


def test_the_evidence_is_a_martingale_over_all_sequences() -> None:
    for share in (0.5, 0.2):
        total = 0.0
        for sequence in product([0, 1], repeat=10):
            wins = sum(sequence)
            total += (
                share**wins
                * (1 - share) ** (10 - wins)
                * math.exp(log_e_value(CONTEST, results(wins, 10 - wins), share=share))
            )
        assert total == pytest.approx(1)


def test_the_evidence_is_the_integral_over_the_mixture() -> None:
    grid = (np.arange(200_000) + 0.5) / 200_000
    density = (grid * (1 - grid)) ** (PRIOR - 1)
    likelihoods = (grid / 0.4) ** 30 * ((1 - grid) / 0.6) ** 20
    expected = (density * likelihoods).sum() / density.sum()
    assert math.exp(log_e_value(CONTEST, results(30, 20), share=0.4)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("wins", "losses"), [(0, 5), (7, 0), (600, 400), (51_000, 49_000)])
def test_the_ends_of_an_interval_are_where_the_evidence_is_enough(wins: int, losses: int) -> None:
    found = vote_interval(CONTEST, results(wins, losses))
    assert found.low <= wins / (wins + losses) <= found.high
    for end, inward in ((found.low, 1e-9), (found.high, -1e-9)):
        if 0 < end < 1:
            assert log_e_value(CONTEST, results(wins, losses), share=end) == pytest.approx(math.log(20), abs=1e-6)
            assert log_e_value(CONTEST, results(wins, losses), share=end + inward) < math.log(20)
    mirrored = vote_interval(CONTEST, results(losses, wins))
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high))


def test_the_votes_needed_are_the_first_that_are_enough() -> None:
    for share in (0.7, 0.55, 0.45, 0.02):
        needed = votes_needed(CONTEST, results(share, 1 - share))
        assert closed_form(share * needed, (1 - share) * needed) >= math.log(20)
        assert closed_form(share * (needed - 1), (1 - share) * (needed - 1)) < math.log(20)
    assert math.isinf(votes_needed(CONTEST, results(5, 5)))


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="at least one vote"):
        vote_interval(CONTEST, results(0, 0))
    for wrong in ([-0.1, 1.0], [0.0, 1.1]):
        with pytest.raises(DataError, match="between 0 and 1"):
            vote_interval(np.array(wrong), results(1, 1))


def test_means_are_ever_missed_as_seldom_as_promised() -> None:
    """Values such as clicks won in a list, mostly 0; looked at every 100 of them."""
    random = np.random.default_rng(0)
    values = random.choice([-1.0, 0.0, 1.0, 2.0], p=[0.12, 0.76, 0.1, 0.02], size=(1_000, 3_000))
    looks = np.arange(100, 3_001, 100)
    sums, squares = values.cumsum(1)[:, looks - 1], (values**2).cumsum(1)[:, looks - 1]
    means, missed = sums / looks, np.zeros(1_000, dtype=bool)
    truth = -0.12 + 0.1 + 0.04
    for row, column in product(range(1_000), range(len(looks))):
        count = int(looks[column])
        variance = (squares[row, column] - count * means[row, column] ** 2) / (count - 1)
        found = mean_interval(count, means[row, column], variance)
        missed[row] |= not found.low <= truth <= found.high
    assert missed.mean() <= 0.05


def test_a_mean_of_one_value_has_no_interval() -> None:
    assert math.isnan(mean_interval(1, 0.5, 0.0).low)


@pytest.mark.parametrize(("count", "level"), [(2, 0.95), (800, 0.95), (1_000, 0.8), (10**6, 0.95)])
def test_the_interval_of_a_mean_is_that_of_the_formula_and_mirrored(count: int, level: float) -> None:
    """With rho^2 = (-2 log alpha + log(1 - 2 log alpha)) / 800."""
    alpha = 1 - level
    rho = math.sqrt((-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / 800)
    grown = count * rho**2 + 1
    half = math.sqrt(0.09 * 2 * grown / (count**2 * rho**2) * math.log(math.sqrt(grown) / alpha))
    found = mean_interval(count, 0.5, 0.09, level=level)
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5 - half, 0.5 + half), rel=1e-9)


def test_the_level_of_an_interval_is_95_percent_unless_another_is_asked_for() -> None:
    assert mean_interval(50, 0.5, 0.09) == mean_interval(50, 0.5, 0.09, level=0.95)
    contests = CONTEST, results(60, 40)
    assert vote_interval(*contests) == vote_interval(*contests, level=0.95) != vote_interval(*contests, level=0.9)
    assert votes_needed(*contests) == votes_needed(*contests, level=0.95) > votes_needed(*contests, level=0.9)


@pytest.mark.parametrize(("wins", "losses"), [(-1, 5), (5, -1), (-1, 1), (1, -1)])
def test_votes_cannot_be_fewer_than_none(wins: int, losses: int) -> None:
    with pytest.raises(DataError, match="at least one vote"):
        vote_interval(CONTEST, results(wins, losses))


def test_a_share_of_nothing_or_all_reaches_the_end() -> None:
    """Five losses do not speak against any small share, nor seven wins against any large one."""
    assert vote_interval(CONTEST, results(0, 5)).low == 0.0
    assert vote_interval(CONTEST, results(7, 0)).high == 1.0
    assert log_e_value(CONTEST, results(1, 0), share=0.0) > 30
    assert log_e_value(CONTEST, results(0, 1), share=1.0) > 30


def test_as_many_wins_as_losses_are_a_half_with_as_much_doubt_on_either_side() -> None:
    found = vote_interval(CONTEST, results(5, 5))
    assert found.mean == 0.5
    assert found.low == pytest.approx(1 - found.high)
    assert 0 < found.low < 0.5

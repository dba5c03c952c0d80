"""Interleaving: false winners of tests that are looked at daily, and the clicks that a winner takes, beside A/B tests.

    python -m benchmarks.interleaving                      # 1,000 tests of equals, 100 of each difference
    python -m benchmarks.interleaving --tests 100 --differences 20

Users with trust bias (`ultr.clicks`) see lists of ten out of `letor_like`. A ranker orders a list by its grades plus
normal noise, drawn anew for each list, some of which both rankers may have in common; less noise is a better ranker.
Every list is drafted as the service does it (`ultr.serving.team_draft`, all coin flips of each pair of orders), and
judged as `ultr compare --interleaved` does it, once a day of 200 lists until there is a winner.

Equals are two rankers of the same noise, which is which being drawn for each list; a better and a worse ranker whose
users click by position alone; or, with such users, a ranker that lifts one document from the fifth place to the second.
Beside them stands what a binomial test of lists by who won more clicks would say at 5 %, looked at as often.

Differences are also judged as if every place gave credit, for what the rule of credit gains.

The A/B test shows each list to one of two groups and compares one list of each group at a time by the sign of the
difference (`sign`, the same evidence), or by the mean of the differences (`mean`, `mean_interval`).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles, Integers
from ultr.clicks.trust_bias import TrustBias
from ultr.datasets.letor_like import letor_like
from ultr.metrics import ndcg
from ultr.metrics.always_valid import log_e_value, mean_interval
from ultr.preparation.interleaved_lists import CreditedClicks
from ultr.serving.team_draft import NEW, Draft

SHOWN, COINS = 10, 5
PER_DAY = 200
MOST_LABEL = 4
ENOUGH = log(20)
EQUAL = (0.0, 1.5, 1.5)
DIFFERENCES = ((0.0, 1.5, 1.3), (0.0, 1.5, 1.0), (1.4, 0.6, 0.2), (1.4, 0.9, 0.2))
"""Noise that both rankers have in common, that of the old one alone, and that of the new one alone."""
DAYS_OF_EQUALS, DAYS, CHUNK = 60, 2_000, 100


Noises = tuple[float, float, float]
KINDS = [(won, clicks) for clicks in range(SHOWN + 1) for won in range(-clicks, clicks + 1)]
"""Clicks won by new less those won by old, and all clicks: what decides the vote of a list."""
VOTES = np.array([CreditedClicks(max(-won, 0), max(won, 0), clicks).vote for won, clicks in KINDS])
SIGNS = np.array([np.sign(won) for won, _ in KINDS])


@dataclass(frozen=True)
class Drafts:
    """All drafts of some pairs of orders: chances of clicks and the team of each place, 1 for new and -1 for old."""

    chances: Doubles
    teams: npt.NDArray[np.int8]
    credited: npt.NDArray[np.int8]
    """0 where a place gives no credit."""
    alone: tuple[Doubles, Doubles]
    """Chances of clicks on the lists of the old and the new ranker alone."""

    def days(self, days: int, random: np.random.Generator) -> tuple[Doubles, Doubles, Integers]:
        """How many random lists of each day are of each kind, the same if every place gave credit, and its clicks."""
        drawn = random.integers(len(self.chances), size=(days, PER_DAY))
        clicks = random.random((days, PER_DAY, SHOWN), dtype=np.float32) < self.chances[drawn]
        every = clicks * self.teams[drawn]
        made = clicks.sum(-1)
        credited = (every * self.credited[drawn]).sum(-1, dtype=np.int64)
        return _kinds(credited, made), _kinds(every.sum(-1, dtype=np.int64), made), made.sum(-1)


def _kinds(won: Integers, clicks: Integers) -> Doubles:
    """How many lists of each day, [days, lists], are of each of `KINDS`, [days, kinds]."""
    kinds = clicks * clicks + clicks + won
    days = np.arange(len(won))[:, None] * len(KINDS)
    return np.bincount((kinds + days).ravel(), minlength=len(won) * len(KINDS)).reshape(len(won), -1).astype(np.float64)


def drafts_of(noises: Noises, *, lists: int, by_position: bool, seed: int) -> Drafts:
    random = np.random.default_rng(seed)
    data = letor_like(train_queries=lists, validation_queries=1, test_queries=1, seed=seed).train
    model = TrustBias()
    labels, teams, credited, alone = [], [], [], []
    for start, end in zip(data.offsets.tolist(), data.offsets[1:].tolist(), strict=False):
        grades = data.labels[start:end]
        common, *own = (random.normal(0, noise, len(grades)) for noise in noises)
        orders = [np.argsort(-(grades + common + alone_noise)) for alone_noise in own]
        rank_of = np.argsort(orders[0])
        rival = rank_of[orders[1]][:SHOWN].tolist()
        alone.append([grades[order[:SHOWN]] for order in orders])
        for flips in range(2**COINS):
            picks = Draft.of(rival, flips=flips).picks
            labels.append([grades[orders[0][pick.rank]] for pick in picks])
            teams.append([1 if pick.team == NEW else -1 for pick in picks])
            credited.append([pick.is_credited for pick in picks])

    def chances(shown: npt.ArrayLike) -> Doubles:
        if by_position:
            return np.broadcast_to(0.5 / np.arange(1, SHOWN + 1), np.shape(shown)).astype(np.float32)
        return model.probabilities(np.asarray(shown), max_label=MOST_LABEL).astype(np.float32)

    apart = np.array(alone)
    return Drafts(
        chances(labels),
        np.array(teams, dtype=np.int8),
        np.array(credited, dtype=np.int8),
        (chances(apart[:, 0]), chances(apart[:, 1])),
    )


def lifted() -> Drafts:
    """All drafts of an order and one with its fifth document in the second place, clicked by position alone."""
    drafts = [Draft.of([0, 4, 1, 2, 3, 5, 6, 7, 8, 9], flips=flips).picks for flips in range(2**COINS)]
    chances: Doubles = np.broadcast_to(0.5 / np.arange(1, SHOWN + 1), (len(drafts), SHOWN))
    teams = np.array([[1 if pick.team == NEW else -1 for pick in picks] for picks in drafts], dtype=np.int8)
    credited = np.array([[pick.is_credited for pick in picks] for picks in drafts], dtype=np.int8)
    return Drafts(chances, teams, credited, (chances[:1], chances[:1]))


def quality(common: float, own: float, *, lists: int, seed: int) -> float:
    random = np.random.default_rng(seed)
    data = letor_like(train_queries=lists, validation_queries=1, test_queries=1, seed=seed).train
    scores = data.labels + random.normal(0, np.hypot(common, own), len(data.labels))
    return float(np.nanmean(ndcg(scores, data.labels, data.offsets, cutoff=10)))


def first_day(kinds: Doubles) -> int:
    """The day at which a test has a winner, by the rule of `compare`: negative if it is the old one, 0 if never."""
    used = np.flatnonzero(kinds.any(0) & (VOTES != 0.5))
    counts, evidence = kinds[:, used].cumsum(0), np.empty(0)
    for part in np.array_split(counts, max(1, len(counts) // CHUNK)):
        evidence = np.concatenate([evidence, log_e_value(VOTES[used], part)])
        if (enough := evidence >= ENOUGH).any():
            day = int(enough.argmax())
            return day + 1 if counts[day] @ (VOTES[used] - 0.5) > 0 else -(day + 1)
    return 0


def is_ever_beyond(kinds: Doubles) -> bool:
    """True if a test for a number of lists that was fixed before says at any day that one is better."""
    sums, decided = (kinds @ SIGNS).cumsum(), (kinds @ np.abs(SIGNS)).cumsum()
    return bool((np.abs(sums) > 1.96 * np.sqrt(decided)).any())


def equals(name: str, drafts: Drafts, tests: int, *, swap: bool, seed: int) -> list[Measurement]:
    random = np.random.default_rng(seed)
    mirrored = [KINDS.index((-won, clicks)) for won, clicks in KINDS]
    ours = plain = 0
    for _ in range(tests):
        kinds = drafts.days(DAYS_OF_EQUALS, random)[0]
        if swap:
            turned = random.binomial(kinds.astype(np.int64), 0.5)
            kinds = kinds - turned + turned[:, mirrored]
        ours += first_day(kinds) != 0
        plain += is_ever_beyond(kinds)
    error = sqrt(ours / tests * (1 - ours / tests) / tests)
    print(f"| {name} | {ours / tests:.1%} | {error:.1%} | {plain / tests:.1%} |", flush=True)
    return [Measurement(f"{name}: false winners", ours / tests, "share", headline=True)]


def difference(noises: Noises, tests: int, *, lists: int, seed: int) -> tuple[str, list[Measurement]]:
    drafts = drafts_of(noises, lists=lists, by_position=False, seed=seed)
    random = np.random.default_rng(seed)
    days, all_credited = np.zeros(tests, dtype=np.int64), np.zeros(tests, dtype=np.int64)
    clicks = np.zeros(tests)
    for test in range(tests):
        days[test], all_credited[test], clicks[test] = race(drafts, random)
    by_sign, by_mean = groups(drafts, tests, random)
    needed = _median(days, DAYS)
    means = [float(chances.sum(1).mean()) for chances in drafts.alone]
    cells = [
        ", ".join(f"{quality(noises[0], own, lists=lists, seed=seed):.3f}" for own in noises[1:]),
        f"{drafts.credited.mean():.0%}",
        f"{means[1] / means[0] - 1:+.1%}",
        _shown(days, DAYS),
        f"{np.median(clicks):,.0f}",
        _shown(all_credited, DAYS),
        _shown(by_sign, DAYS),
        _shown(by_mean, DAYS),
    ]
    name = f"nDCG@10 {cells[0]}"
    found = [
        Measurement(f"{name}: lists to a winner, interleaved", needed, "lists", headline=True),
        Measurement(f"{name}: lists to a winner, every place credited", _median(all_credited, DAYS), "lists"),
        Measurement(f"{name}: lists to a winner, A/B by sign", _median(by_sign, DAYS), "lists"),
        Measurement(f"{name}: lists to a winner, A/B by mean", _median(by_mean, DAYS), "lists"),
        Measurement(f"{name}: wrong winners", float((days < 0).mean()), "share"),
    ]
    return "| " + " | ".join(cells) + " |", found


def race(drafts: Drafts, random: np.random.Generator) -> tuple[int, int, int]:
    """The day of the winner, that with credit for every place, and the clicks up to the winner."""
    kinds = every = np.empty((0, len(KINDS)))
    clicks = np.empty(0, dtype=np.int64)
    day = other = 0
    while len(clicks) < DAYS and not (day and other):
        more, more_of_every, more_clicks = drafts.days(CHUNK, random)
        kinds, every = np.concatenate([kinds, more]), np.concatenate([every, more_of_every])
        clicks = np.concatenate([clicks, more_clicks])
        day, other = day or first_day(kinds), other or first_day(every)
    return day, other, int(clicks[: abs(day) or DAYS].sum())


def groups(drafts: Drafts, tests: int, random: np.random.Generator) -> tuple[Integers, Integers]:
    """The days of A/B tests: half of the lists of a day for each ranker, compared one by one."""
    counts = [_click_counts(chances) for chances in drafts.alone]
    by_sign, by_mean = np.zeros(tests, dtype=np.int64), np.zeros(tests, dtype=np.int64)
    for test in range(tests):
        shape = (DAYS, PER_DAY // 2)
        old, new = (random.choice(SHOWN + 1, p=each, size=shape).astype(np.int8) for each in counts)
        apart = new - old
        by_sign[test] = first_day(_kinds(np.sign(apart).astype(np.int64), np.ones_like(apart, dtype=np.int64)))
        sums, squares = np.cumsum(apart.sum(1)), np.cumsum((apart.astype(np.int64) ** 2).sum(1))
        for day, (total, square) in enumerate(zip(sums.tolist(), squares.tolist(), strict=True), start=1):
            pairs = day * PER_DAY // 2
            mean = total / pairs
            found = mean_interval(pairs, mean, (square - pairs * mean**2) / (pairs - 1))
            if found.low > 0 or found.high < 0:
                by_mean[test] = day if mean > 0 else -day
                break
    return by_sign, by_mean


def _click_counts(chances: Doubles) -> Doubles:
    """The probability of each number of clicks on a random list."""
    found = np.zeros((len(chances), SHOWN + 1))
    found[:, 0] = 1
    for place in range(SHOWN):
        chance = chances[:, place : place + 1].astype(np.float64)
        found[:, 1:] = found[:, 1:] * (1 - chance) + found[:, :-1] * chance
        found[:, 0] *= 1 - chance[:, 0]
    mean: Doubles = found.mean(0)
    mean /= mean.sum()
    return mean


def _median(days: Integers, most: int) -> float:
    """The median number of lists to a winner; that of all days where there is none."""
    return float(np.median(np.where(days == 0, most, np.abs(days)))) * PER_DAY


def _shown(days: Integers, most: int) -> str:
    right, wrong = (days > 0).mean(), (days < 0).mean()
    above = "more than " if (days != 0).mean() <= 0.5 else ""
    return f"{above}{_median(days, most):,.0f} ({right:.0%} right, {wrong:.0%} wrong)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=1_000, help="of equals")
    parser.add_argument("--differences", type=int, default=100, help="tests of each difference")
    parser.add_argument("--lists", type=int, default=1_000, help="different lists")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    print(
        f"False winners in {asked.tests:,} tests of {DAYS_OF_EQUALS} days\n\n"
        "| tests of | false winners | standard error | by a binomial test each day |\n|---|---|---|---|"
    )
    same = drafts_of(EQUAL, lists=asked.lists, by_position=False, seed=asked.seed)
    found = equals("equal rankers", same, asked.tests, swap=True, seed=asked.seed)
    blind = drafts_of(DIFFERENCES[1], lists=asked.lists, by_position=True, seed=asked.seed)
    found += equals("clicks by position alone", blind, asked.tests, swap=False, seed=asked.seed)
    found += equals("the same, one lifted", lifted(), asked.tests, swap=False, seed=asked.seed)
    print(
        "\nLists to a winner\n"
        "\n| nDCG@10 | places with credit | clicks on a list | lists, interleaved | clicks on them "
        "| every place credited | lists, A/B by sign | lists, A/B by mean |"
        "\n|---|---|---|---|---|---|---|---|"
    )
    for noises in DIFFERENCES:
        line, numbers = difference(noises, asked.differences, lists=asked.lists, seed=asked.seed)
        print(line, flush=True)
        found += numbers
    write(found, asked.json)


if __name__ == "__main__":
    main()

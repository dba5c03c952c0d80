"""Interleaving: false winners of tests that are looked at daily, and the clicks that a winner takes, beside A/B tests.

    python -m benchmarks.interleaving                      # 1,000 tests of equals, 100 of each difference
    python -m benchmarks.interleaving --tests 100 --differences 20

Users with trust bias (`ultr.clicks`) see lists of ten out of `letor_like`. A ranker orders a list by its grades plus
normal noise, drawn anew for each list, some of which both rankers may have in common; less noise is a better ranker.
Every list is drafted as the service does it (`ultr.serving.team_draft`, all coin flips of each pair of orders), and
judged as `ultr compare --interleaved` does it, once a day of 200 lists until there is a winner.

Equals are two rankers of the same noise, which is which being drawn for each list, or a better and a worse ranker
whose users click by position alone. Beside them stands what a binomial test at 5 % would say, looked at as often.

Differences are also judged as if every place gave credit, for what the rule of credit gains.

The A/B test shows each list to one of two groups and compares one list of each group at a time by the same rule, the
sign of the difference (`sign`), or by the mean of the differences (`mean`, `mean_interval`).
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
from ultr.serving.team_draft import NEW, Draft

SHOWN, COINS = 10, 5
PER_DAY = 200
MOST_LABEL = 4
ENOUGH = log(20)
EQUAL = (0.0, 1.5, 1.5)
DIFFERENCES = ((0.0, 1.5, 1.3), (0.0, 1.5, 1.0), (1.4, 0.6, 0.2), (1.4, 0.9, 0.2))
"""Noise that both rankers have in common, that of the old one alone, and that of the new one alone."""
DAYS_OF_EQUALS, DAYS, CHUNK = 60, 2_000, 100


Signs = npt.NDArray[np.int8]
Noises = tuple[float, float, float]


@dataclass(frozen=True)
class Drafts:
    """All drafts of some pairs of orders: chances of clicks and the team of each place, 1 for new and -1 for old."""

    chances: Doubles
    teams: npt.NDArray[np.int8]
    credited: npt.NDArray[np.int8]
    """0 where a place gives no credit."""
    alone: tuple[Doubles, Doubles]
    """Chances of clicks on the lists of the old and the new ranker alone."""

    def preferences(self, days: int, random: np.random.Generator) -> tuple[Signs, Signs, Integers]:
        """The sign of the clicks won in random lists, the same if every place gave credit, and the clicks per day."""
        drawn = random.integers(len(self.chances), size=(days, PER_DAY))
        clicks = random.random((days, PER_DAY, SHOWN), dtype=np.float32) < self.chances[drawn]
        won = clicks * self.teams[drawn]
        with_coins = np.sign(won.sum(-1, dtype=np.int8))
        won *= self.credited[drawn]
        return np.sign(won.sum(-1, dtype=np.int8)), with_coins, clicks.sum((1, 2))


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


def quality(common: float, own: float, *, lists: int, seed: int) -> float:
    random = np.random.default_rng(seed)
    data = letor_like(train_queries=lists, validation_queries=1, test_queries=1, seed=seed).train
    scores = data.labels + random.normal(0, np.hypot(common, own), len(data.labels))
    return float(np.nanmean(ndcg(scores, data.labels, data.offsets, cutoff=10)))


def first_days(wins: Integers, losses: Integers) -> Integers:
    """The day at which each test has a winner, by the rule of `compare`: negative if it is the old one, 0 if never."""
    found = np.zeros(len(wins), dtype=np.int64)
    for number, (won, lost) in enumerate(zip(wins, losses, strict=True)):
        for day, (a, b) in enumerate(zip(won.tolist(), lost.tolist(), strict=True), start=1):
            if log_e_value(a, b) >= ENOUGH:
                found[number] = day if a > b else -day
                break
    return found


def first_day(signs: Signs) -> int:
    """The same for one test, by the signs of the lists of each day."""
    wins, losses = (np.cumsum((signs == sign).sum(1))[None] for sign in (1, -1))
    return int(first_days(wins, losses)[0])


def binomial_days(wins: Integers, losses: Integers) -> Integers:
    """The first day at which a test for a number of lists that was fixed before says that one is better."""
    beyond = np.abs(wins - losses) > 1.96 * np.sqrt(wins + losses)
    return np.where(beyond.any(1), beyond.argmax(1) + 1, 0)


def equals(name: str, drafts: Drafts, tests: int, *, swap: bool, seed: int) -> list[Measurement]:
    random = np.random.default_rng(seed)
    signs = np.empty((tests, DAYS_OF_EQUALS, PER_DAY), dtype=np.int8)
    for test in range(tests):
        signs[test] = drafts.preferences(DAYS_OF_EQUALS, random)[0]
    if swap:
        signs *= random.choice(np.array([-1, 1], dtype=np.int8), size=signs.shape)
    wins, losses = (np.cumsum((signs == sign).sum(2), axis=1) for sign in (1, -1))
    ours = int(np.count_nonzero(first_days(wins, losses)))
    plain = int(np.count_nonzero(binomial_days(wins, losses)))
    error = sqrt(ours / tests * (1 - ours / tests) / tests)
    print(
        f"{name:24} {tests:,} tests of {DAYS_OF_EQUALS} days: {ours / tests:.1%} (s.e. {error:.1%}) false winners; "
        f"{plain / tests:.1%} by a binomial test each day",
        flush=True,
    )
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
    signs, with_coins = np.empty((0, PER_DAY), dtype=np.int8), np.empty((0, PER_DAY), dtype=np.int8)
    clicks = np.empty(0, dtype=np.int64)
    day = other = 0
    while len(clicks) < DAYS and not (day and other):
        more_signs, more_with_coins, more_clicks = drafts.preferences(CHUNK, random)
        signs, with_coins = np.concatenate([signs, more_signs]), np.concatenate([with_coins, more_with_coins])
        clicks = np.concatenate([clicks, more_clicks])
        day, other = first_day(signs), first_day(with_coins)
    return day, other, int(clicks[: abs(day) or DAYS].sum())


def groups(drafts: Drafts, tests: int, random: np.random.Generator) -> tuple[Integers, Integers]:
    """The days of A/B tests: half of the lists of a day for each ranker, compared one by one."""
    counts = [_click_counts(chances) for chances in drafts.alone]
    by_sign, by_mean = np.zeros(tests, dtype=np.int64), np.zeros(tests, dtype=np.int64)
    for test in range(tests):
        shape = (DAYS, PER_DAY // 2)
        old, new = (random.choice(SHOWN + 1, p=each, size=shape).astype(np.int8) for each in counts)
        apart = new - old
        by_sign[test] = first_day(np.sign(apart))
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
    same = drafts_of(EQUAL, lists=asked.lists, by_position=False, seed=asked.seed)
    found = equals("equal rankers", same, asked.tests, swap=True, seed=asked.seed)
    blind = drafts_of(DIFFERENCES[1], lists=asked.lists, by_position=True, seed=asked.seed)
    found += equals("clicks by position alone", blind, asked.tests, swap=False, seed=asked.seed)
    print(
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

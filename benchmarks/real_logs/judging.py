"""Rankers judged by what users did in searches that were shown in random order.

Where the order is random, no ranker decided who was seen: a click says less about a hotel at the bottom, but just as
little about all hotels alike. So the nDCG of the clicks compares rankers fairly, though it is lower than that of
relevance would be. Where the order is not quite random, clicks weighted by the inverse of a known examination do so, at
the price of more noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.signal import CLICK
from ultr.metrics import Interval, PairedTest, bootstrap_interval, bootstrap_ratio, ndcg, paired_test

CUTOFF = 10
POWER = 0.8


@dataclass(frozen=True, eq=False)
class Judgement:
    """A ranker's nDCG@10 in each search, averaged over the seeds that it was trained with."""

    by_seed: Doubles
    """[seeds, searches]; NaN for searches without the signal."""

    @property
    def values(self) -> Doubles:
        """[searches]."""
        means: Doubles = self.by_seed.mean(axis=0)
        return means

    @property
    def interval(self) -> Interval:
        """The mean over searches, and its bootstrap interval."""
        return bootstrap_interval(self.values)

    @property
    def spread(self) -> float:
        """The standard deviation of the means of single seeds."""
        means = np.nanmean(self.by_seed, axis=1)
        return float(means.std(ddof=1)) if len(means) > 1 else float("nan")

    def against(self, other: Judgement) -> PairedTest:
        """The lead over another ranker on the same searches."""
        return paired_test(self.values, other.values)


def judge(scores: Sequence[Doubles], log: ClickLog, *, signal: str = CLICK) -> Judgement:
    """The judgement of a ranker with these scores of the shown documents, one array for each seed."""
    labels = np.minimum(log.signal(signal), 1)
    return Judgement(np.stack([ndcg(each, labels, log.offsets, cutoff=CUTOFF) for each in scores]))


@dataclass(frozen=True, eq=False)
class WeightedJudgement:
    """The discount at which a ranker puts a click, averaged over clicks by their weights."""

    gains: Doubles
    """[searches], the weighted sum of 1 / log2(rank + 1) of the clicks up to the cutoff, averaged over seeds."""
    weights: Doubles
    """[searches], the weight of all clicks."""

    @property
    def interval(self) -> Interval:
        """The mean over clicks, and its bootstrap interval over searches."""
        return bootstrap_ratio(self.gains, self.weights)

    def against(self, other: WeightedJudgement) -> Interval:
        """The lead over another ranker on the same searches."""
        return bootstrap_ratio(self.gains - other.gains, self.weights)


def judge_weighted(scores: Sequence[Doubles], log: ClickLog, *, examination: Doubles) -> WeightedJudgement:
    """The judgement by clicks, each weighted by one over the examination [positions] of its position.

    Under the position-based model, E[c / theta_p] is the relevance of a document wherever it stood.
    """
    lists = ragged.list_numbers(log.offsets)
    weights = log.clicks / examination[log.position.values]
    gains = [weights * click_discounts(each, log.clicks, log.offsets, cutoff=CUTOFF) for each in scores]
    totals = (np.bincount(lists, each, minlength=log.lists) for each in (np.mean(gains, axis=0), weights))
    return WeightedJudgement(*(each.astype(np.float64) for each in totals))


def weighted_by_chance(log: ClickLog, *, examination: Doubles) -> WeightedJudgement:
    """What random orders have on average: every rank of a list is as likely for a click as any other."""
    lists = ragged.list_numbers(log.offsets)
    weighted = log.clicks / examination[log.position.values]
    weights = np.bincount(lists, weighted, minlength=log.lists).astype(np.float64)
    discounts = _discounts_up_to(CUTOFF)[np.minimum(log.lengths, CUTOFF)] / np.maximum(log.lengths, 1)
    return WeightedJudgement(weights * discounts, weights)


def click_discounts(scores: Doubles, clicks: Integers, offsets: Integers, *, cutoff: int) -> Doubles:
    """1 / log2(rank + 1) of each document, 0 beyond the cutoff; of equal scores, clicked documents come last."""
    order = np.lexsort((clicks, -scores, ragged.list_numbers(offsets)))
    ranks = ragged.ranks(offsets)
    discounts = np.zeros(len(scores))
    discounts[order] = np.where(ranks < cutoff, 1 / np.log2(ranks + 2), 0.0)
    return discounts


def by_chance(log: ClickLog, *, signal: str = CLICK) -> Judgement:
    """What random orders have on average."""
    return Judgement(chance_ndcg(np.minimum(log.signal(signal), 1), log.offsets, cutoff=CUTOFF)[None])


def chance_ndcg(labels: Integers, offsets: Integers, *, cutoff: int) -> Doubles:
    """The mean nDCG of each list over all orders, for labels 0 and 1.

    A rank holds one of the m relevant among n documents with chance m / n:

        m / n sum_{r <= min(n, k)} 1 / log2(r + 1) / sum_{r <= min(m, k)} 1 / log2(r + 1)
    """
    lengths = np.diff(offsets)
    relevant = np.bincount(ragged.list_numbers(offsets)[labels > 0], minlength=len(lengths))
    gained = _discounts_up_to(cutoff)
    ideal = gained[np.minimum(relevant, cutoff)]
    met = gained[np.minimum(lengths, cutoff)] * relevant / np.maximum(lengths, 1)
    found: Doubles = np.divide(met, ideal, out=np.full(len(lengths), np.nan), where=ideal > 0)
    return found


def _discounts_up_to(cutoff: int) -> Doubles:
    """The sum of 1 / log2(r + 1) over the first 0, 1, ... ranks, up to the cutoff."""
    return np.concatenate([[0], np.cumsum(1 / np.log2(np.arange(cutoff) + 2))])


def detectable(test: PairedTest, *, level: float = 0.95) -> float:
    """The smallest true difference that such a comparison finds with a chance of 80 %.

    Its standard error e is taken from the bootstrap interval; a difference of (z_0.975 + z_0.8) e is found that often.
    """
    normal = NormalDist()
    half = normal.inv_cdf((1 + level) / 2)
    return (test.high - test.low) / (2 * half) * (half + normal.inv_cdf(POWER))

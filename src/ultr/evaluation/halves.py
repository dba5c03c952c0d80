"""The bias of documents that rankers put high among those shown at the same place, and of those that they put low.

The halves are made by ranks, so that they differ in relevance and not in the luck of their clicks. If one number
for each position is enough, both have the same. If the chance of a click is a line in relevance at each position,

    P = theta_p gamma_d + beta_p

as under trust bias, the click rates R_high and R_low of the halves at each position give that line, whatever unit and
zero relevance is measured in: theta_p = R_high,p - R_low,p and beta_p = R_low,p. That is not exact: a rate is the curve
of a half, which goes by documents with many clicks, times the mean of all its documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Mask
from ultr.bias import EM, ResampledPropensities, score_groups
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.errors import DataError
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import ranks_of, scores_of
from ultr.seeding import generator

MOST_FAILED = 0.05
"""The most resamples of the log in which the swaps may fail to link all positions."""
SAMPLES = 200
FEWEST_ERRORS = 4.0
"""The click rates of the halves must differ by so many standard errors for lines to be drawn through them."""
MOST_SHOWN = 2_000_000
"""Most shown documents that the halves are made of; of a larger log, queries are chosen at random."""
_SMALLEST = 0.01


@dataclass(frozen=True, eq=False)
class Half:
    """The propensities of half the documents and their click rates, had all of them been shown at each position."""

    propensities: ResampledPropensities
    rates: Doubles
    """[positions]."""
    draws: Doubles
    """[draws of the propensities, positions], the rates of each."""

    @classmethod
    def of(cls, log: ClickLog, among: Mask, estimator: str, *, seed: int) -> Half:
        """The half of the documents that are `among` the rows of the log's features."""
        found = ResampledPropensities.of_log(log, estimator, among=among, samples=SAMPLES, seed=seed)
        cells = log.cells(documents=log.documents_within(found.groups[log.queries]))
        rows = len(log.features)
        used = np.flatnonzero(among[cells.ids % rows][cells.documents])
        group, size = cells.ids[cells.documents[used]] // rows, found.counts.shape[1]
        clicks = np.bincount(group, cells.clicks[used], minlength=size)
        place = group * cells.count + cells.positions[used]
        shown = np.bincount(place, cells.impressions[used], minlength=size * cells.count).reshape(size, cells.count)
        rate = clicks.sum() / (shown.sum(axis=0) @ found.estimate)
        drawn = (found.counts @ clicks) / ((found.counts @ shown) * found.draws).sum(axis=1)
        return cls(found, rate * found.estimate, drawn[:, None] * found.draws)


@dataclass(frozen=True, eq=False)
class Halves:
    """Both halves, in the draws of queries that told the propensities of both."""

    high: Half
    low: Half

    @classmethod
    def of(cls, rankers: Iterable[RankerLike], log: ClickLog, estimator: str = EM, *, seed: int = 0) -> Halves | None:
        """The halves of a log's documents by the ranks of all rankers together; None where a half has too few swaps."""
        log = _some_queries(log, seed=seed)
        try:
            high, low = (Half.of(log, among, estimator, seed=seed) for among in ranked_halves(rankers, log))
        except DataError:
            return None
        both = cls(high, low)
        return both if max(each.propensities.failed for each in (high, low)) <= MOST_FAILED else None

    @property
    def common(self) -> tuple[Mask, Mask]:
        """Which draws of either half are also among those of the other."""
        high, low = (each.propensities.linked for each in (self.high, self.low))
        return low[high], high[low]

    def separation(self, clicks: Doubles) -> float:
        """Distance of the halves' click rates in standard errors, positions weighted by their clicks."""
        high, low = self.common
        draws = np.log(self.high.draws[high] / self.low.draws[low]) @ clicks
        return float(np.log(self.high.rates / self.low.rates) @ clicks / draws.std())

    def lines(self) -> tuple[Doubles, Doubles, Doubles, Doubles]:
        """Theta and beta by position, and those of each common draw."""
        high, low = self.common
        theta, draws = self.high.rates - self.low.rates, self.high.draws[high] - self.low.draws[low]
        return _positive(theta[None])[0], self.low.rates, _positive(draws), self.low.draws[low]


def _some_queries(log: ClickLog, *, seed: int) -> ClickLog:
    """The log, or as many of its queries as are looked at, with the features of their documents alone."""
    if len(log.documents) <= MOST_SHOWN:
        return log
    share = MOST_SHOWN / len(log.documents)
    chosen = generator(seed, "queries").random(len(log.query_ids)) < share
    part = log.part(np.flatnonzero(chosen[log.queries]), log.splits)
    rows, documents = np.unique(part.documents, return_inverse=True)
    return trusted(part, features=log.features[rows], documents=documents, grades=None)


def _positive(theta: Doubles) -> Doubles:
    """Slopes, [lines, positions], with those that chance made flat or falling hardly rising."""
    rising: Doubles = np.maximum(theta, _SMALLEST * np.abs(theta).max(axis=1, keepdims=True))
    return rising


def ranked_halves(rankers: Iterable[RankerLike], log: ClickLog) -> tuple[Mask, Mask]:
    """[rows of the features], those that are ranked high on the whole, and the rest.

    The ranks of all rankers are added up, so that the halves favour none of them. Documents are set against others with
    the same mean position, so that both halves were shown at all positions, with about as many clicks each.
    """
    evidence = Evidence.of(log)
    rows, cells = len(log.features), evidence.cells
    ranks = np.zeros(rows)
    for ranker in rankers:
        first, ties = ranks_of(scores_of(ranker, evidence), evidence)
        # Candidates that tie share the middle of their ranks.
        ranks += np.bincount(evidence.documents, first + (ties - 1) / 2, minlength=rows)
    ranks /= np.maximum(np.bincount(evidence.documents, minlength=rows), 1)
    of_cell = evidence.documents[cells.documents]
    clicks, shown, places = (
        np.bincount(of_cell, values, minlength=rows)
        for values in (cells.clicks, cells.impressions, cells.impressions * cells.positions)
    )
    position = np.rint(places / np.maximum(shown, 1))
    high = np.zeros(rows, dtype=np.bool_)
    for place in range(cells.count):
        here = np.flatnonzero((shown > 0) & (position == place))
        clicked = here[clicks[here] > 0]
        if len(clicked):
            upper = clicked[score_groups(-ranks[clicked], clicks[clicked], count=2) == 1]
            # A rank decides, so that documents without a click are in the half of their equals.
            high[here] = ranks[here] <= ranks[upper].max(initial=-1)
    return high, (shown > 0) & ~high

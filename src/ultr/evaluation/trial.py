"""A comparison of two rankers by their values on one log, and its answer in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ultr.arrays import Doubles
from ultr.bias import ResampledPropensities
from ultr.data.click_log import ClickLog
from ultr.evaluation.counterfactual import Valuation
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.placement import Placement
from ultr.metrics import Interval, bootstrap_ratio
from ultr.metrics.looks import for_looks
from ultr.metrics.query_bootstrap import FEW_QUERIES, percentiles

CANNOT_TELL = "cannot tell"
FEWEST_EFFECTIVE_CLICKS = 100
MOST_UNSUPPORTED = 0.1
"""The most of a ranker's rank weight that may lie on documents the log never showed."""
MOST_CLIPPED = 0.1
MOST_FAILED = 0.05
"""The most resamples of the log in which the swaps may fail to link all positions."""

Valued: TypeAlias = Sequence[tuple[Placement, Evidence]]
"""A ranker's placements, one for each part of a log."""
Known: TypeAlias = Doubles | ResampledPropensities
"""Propensities that are taken for known, or those of a log with their resamples."""


@dataclass(frozen=True)
class Answer:
    """A plain answer with its reason and the number behind it."""

    verdict: str
    """`... is better`, or `cannot tell`."""
    reason: str
    winner: str | None = None
    """The name of the better one."""
    difference: Interval | None = None
    """The lead of the first one, with its interval; None where there is nothing to compare."""


@dataclass(frozen=True)
class Judge:
    """The certainty that is asked of an answer."""

    level: float = 0.95
    looks: int = 1
    """How often the log is looked at in all while it grows; see `ultr.metrics.looks`."""

    @property
    def interval_name(self) -> str:
        """A name for the intervals, such as `95 % interval for 10 looks`."""
        return f"{self.level:.0%} interval" + (f" for {self.looks} looks" if self.looks > 1 else "")

    def widened(self, interval: Interval) -> Interval:
        """An interval of this level, made wide enough for all looks."""
        return interval if self.looks == 1 else for_looks(interval, self.looks, level=self.level)

    def answer(
        self, difference: Interval, first: str, second: str, *, what: str, over: str = "", hint: str = ""
    ) -> Answer:
        """The answer that the interval of the first one's lead gives; a hint says what to do where it holds 0."""
        if np.isnan(difference.low):
            return Answer(CANNOT_TELL, f"{what} comes from one query, which tells nothing about others")
        ends = f"{difference.low:+.4f} to {difference.high:+.4f}{over}"
        numbers = f"{difference.mean:+.4f}, {self.interval_name} {ends}"
        if difference.low > 0 or difference.high < 0:
            winner = first if difference.low > 0 else second
            return Answer(f"{winner} is better", f"{what} is {numbers}", winner, difference)
        return Answer(CANNOT_TELL, f"{what} is {numbers}, which holds 0{hint}", difference=difference)


@dataclass(frozen=True, eq=False)
class Trial:
    """A comparison of rankers by their values on one log."""

    log: ClickLog
    valuation: Valuation
    propensities: Known
    """Those of the valuation, with their resamples where there are some."""
    rivals: Mapping[str, ResampledPropensities | str] = field(default_factory=dict)
    """By name, propensities of some of the documents, or why they are unknown.

    Where one propensity for each position does not describe the log, those of different documents differ, and a winner
    is named only if it wins by all of them.
    """
    judge: Judge = Judge()
    seed: int = 0

    def answer(self, rankings: dict[str, Valued], first: str, second: str) -> Answer:
        """The answer on whether the first is better than the second."""
        plain = self.difference(rankings[first], rankings[second])
        weak = self._weakness({name: rankings[name] for name in (first, second)})
        if weak:
            return Answer(CANNOT_TELL, f"too little support: {weak}", difference=plain)
        what = "expected clicks on an impression" if self.valuation.utility == "clicks" else "discounted relevance"
        what = f"the difference in {what}"
        known = [each for each in self.rivals.values() if not isinstance(each, str)]
        if not known:
            hint = self._hint(plain, rankings[first], rankings[second])
            return self.judge.answer(plain, first, second, what=what, hint=hint)
        others = [self._by(each, rankings[first], rankings[second]) for each in known]
        low, high = min(each.low for each in (plain, *others)), max(each.high for each in (plain, *others))
        over = f" over propensities of all documents, of {' and of '.join(self.rivals)}"
        hint = ""
        if plain.low > 0 or plain.high < 0:
            hint = f" (by those of all documents alone {plain.low:+.4f} to {plain.high:+.4f})"
        return self.judge.answer(Interval(plain.mean, low, high), first, second, what=what, over=over, hint=hint)

    def difference(self, first: Valued, second: Valued) -> Interval:
        """The value of the first placements less that of the second, with its bootstrap interval over queries.

        Where the propensities come with their resamples, each draw of queries is valued by those of that draw.
        """
        return self._by(self.propensities, first, second)

    def _by(self, known: Known, first: Valued, second: Valued) -> Interval:
        """The difference by these propensities."""
        if not isinstance(known, ResampledPropensities):
            return self.judge.widened(self._taken_for_known(self.valuation, first, second))
        # Values by dcg have the unit of the propensities, which must be one for all.
        unit = np.asarray(self.valuation.propensities, dtype=np.float64)[0] / known.estimate[0]
        at_once = replace(self.valuation, propensities=unit * known.estimate)
        totals, bases = self._totals(at_once, first, second)
        drawn = [replace(self.valuation, propensities=unit * theta) for theta in known.draws]
        above, below = np.zeros(len(drawn)), np.zeros(len(drawn))
        for (placement, evidence), (other, _) in zip(first, second, strict=True):
            # Candidates without a click are worth nothing, unless a model says what they are worth.
            for part in evidence.parts(clicked=self.valuation.relevance is None):
                groups = known.groups[evidence.query_numbers[part.queries]]
                ours, theirs = placement.weights(part), other.weights(part)
                for draw, by_draw in enumerate(drawn):
                    by_rank, (_, _, found) = by_draw.rank_weights(), by_draw.relevance_of(part)
                    lead = ours(by_rank) - theirs(by_rank)
                    times = known.counts[draw][groups]
                    above[draw] += times @ part.total(lead * found)
                    below[draw] += times @ (
                        part.total(found) if by_draw.normalised else evidence.impressions[part.queries]
                    )
        low, high = percentiles(above[below > 0] / below[below > 0], self.judge.level, len(self._queries))
        return self.judge.widened(Interval(float(totals.sum() / bases.sum()), float(low), float(high)))

    @property
    def _queries(self) -> Doubles:
        return np.unique(self.log.queries)

    def _totals(self, valuation: Valuation, first: Valued, second: Valued) -> tuple[Doubles, Doubles]:
        """The difference of the values of all impressions of each query id, and the impressions."""
        totals, bases = np.zeros(len(self.log.query_ids)), np.zeros(len(self.log.query_ids))
        for (placement, evidence), (other, _) in zip(first, second, strict=True):
            value, base = valuation.of(placement, evidence), valuation.of(other, evidence)
            totals[evidence.query_numbers] += value.totals - base.totals
            bases[evidence.query_numbers] += value.bases
        return totals, bases

    def _taken_for_known(self, valuation: Valuation, first: Valued, second: Valued) -> Interval:
        totals, bases = self._totals(valuation, first, second)
        queries = self._queries
        return bootstrap_ratio(totals[queries], bases[queries], level=self.judge.level, seed=self.seed)

    def _hint(self, difference: Interval, first: Valued, second: Valued) -> str:
        """A phrase on what would narrow an interval that holds 0: more swaps or more queries."""
        if not difference.low <= 0 <= difference.high or not isinstance(self.propensities, ResampledPropensities):
            return ""
        chance = self.judge.widened(self._taken_for_known(self.valuation, first, second))
        if not difference.high > difference.low:
            return ""
        by_chance = ((chance.high - chance.low) / (difference.high - difference.low)) ** 2
        if by_chance < 0.5:
            return "; most of its width is doubt about the propensities, which more swaps would lessen"
        return (
            f"; most of its width is chance among {len(self._queries)} queries, which holding out more of them would "
            "lessen"
        )

    def _weakness(self, rankings: dict[str, Valued]) -> str | None:
        queries = len(self._queries)
        if queries < FEW_QUERIES:
            return f"{queries} queries, fewer than {FEW_QUERIES}"
        for whose, known in {"": self.propensities, **self.rivals}.items():
            of_them = f" of {whose}" if whose else ""
            if isinstance(known, str):
                return (
                    f"positions bias documents in more than one way, and the propensities{of_them} are unknown: {known}"
                )
            if isinstance(known, ResampledPropensities) and known.failed > MOST_FAILED:
                return (
                    f"in {known.failed:.0%} of the resamples of the log swaps{of_them} do not link all positions, so "
                    "the propensities hang on a few queries; log more swaps, or give propensities"
                )
        for name, placed in rankings.items():
            values = [self.valuation.of(*part) for part in placed]
            effective = sum(value.effective_clicks for value in values)
            if effective < FEWEST_EFFECTIVE_CLICKS:
                return (
                    f"the clicks that the value of {name} rests on weigh as much as {effective:.0f} of equal weight, "
                    f"fewer than {FEWEST_EFFECTIVE_CLICKS}"
                )
            unsupported = max(value.unsupported for value in values)
            if unsupported > MOST_UNSUPPORTED:
                return f"{unsupported:.0%} of what {name} shows was never shown by the log, which cannot know its worth"
            clipped = max(value.clipped for value in values)
            if clipped > MOST_CLIPPED and self.valuation.relevance is None:
                return f"{clipped:.0%} of the weight of the clicks that {name} rests on had to be clipped"
        return None

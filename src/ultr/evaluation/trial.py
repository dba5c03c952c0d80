"""A comparison of two rankers by their values on one log, and its answer in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ultr.arrays import Doubles, Integers, ratio
from ultr.bias import ResampledPropensities
from ultr.data.click_log import ClickLog
from ultr.evaluation.counterfactual import IPS, Valuation
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.halves import FEWEST_ERRORS, MOST_FAILED, Halves
from ultr.evaluation.placement import Placement
from ultr.metrics import Interval, bootstrap_ratio
from ultr.metrics.always_valid import for_looks
from ultr.metrics.query_bootstrap import FEW_QUERIES, percentiles

CANNOT_TELL, ALIKE = "cannot tell", "they rank alike"
FEWEST_EFFECTIVE_CLICKS = 100
MOST_UNSUPPORTED = 0.1
"""The most of a ranker's rank weight that may lie on documents the log never showed."""
MOST_CLIPPED = 0.1
AT_ONCE = 2**10
"""Candidates that are valued at once by the propensities of all draws."""
TAKEN_OFF = " with trust bias taken off"
WIDER = ", wider because documents ranked high and low show different bias"
"""How an interval was made that allows for bias that differs between documents."""
BEYOND_CHANCE, BEYOND_DOUBT = 1.96, 3.3
"""Standard errors that a difference must differ by between the propensities of two halves of the documents.

One log in twenty is beyond chance by chance, and then has a wider interval. One in a thousand is beyond doubt.
"""

Valued: TypeAlias = Sequence[tuple[Placement, Evidence]]
"""A ranker's placements, one for each part of a log."""


@dataclass(frozen=True)
class Answer:
    """A plain answer with its reason and the number behind it."""

    verdict: str
    """`... is better`, `cannot tell`, or `they rank alike`."""
    reason: str
    winner: str | None = None
    """The name of the better one."""
    difference: Interval | None = None
    """The lead of the first one, with its interval; None where there is nothing to compare."""
    supported: bool = True
    """False if the log supports the difference too little to go by it."""
    adjusted: bool = False
    """True if the interval allows for bias that differs between documents, and not only between positions."""
    sized: bool = True
    """False if only the sign is to be gone by: such bias is in the difference, and could not be taken off."""


@dataclass(frozen=True)
class Certainty:
    """The certainty that is asked of an answer."""

    level: float = 0.95
    looks: int = 1
    """Number of looks at the log while it grows; see `ultr.metrics.always_valid.for_looks`."""

    @property
    def interval_name(self) -> str:
        """A name for the intervals, such as `95% interval for 10 looks`."""
        return f"{self.level:.0%} interval" + (f" for {self.looks} looks" if self.looks > 1 else "")

    def widened(self, interval: Interval) -> Interval:
        """An interval of this level, made wide enough for all looks."""
        return interval if self.looks == 1 else for_looks(interval, self.looks, level=self.level)

    def answer(
        self, difference: Interval, first: str, second: str, *, what: str, how: str = "", hint: str = ""
    ) -> Answer:
        """The answer by the interval of the lead of `first`; where that holds 0, a hint says what to do."""
        if np.isnan(difference.low):
            return Answer(CANNOT_TELL, f"{what} comes from one query, which tells nothing about others")
        ends = f"{difference.low:+.4f} to {difference.high:+.4f}{how}"
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
    resampled: ResampledPropensities | None = None
    """The propensities of the valuation with their resamples; None where they are taken for known."""
    halves: Halves | None = None
    """The bias of two halves of the documents, for where one number for each position is not enough."""
    judge: Certainty = Certainty()
    seed: int = 0
    counted: str = "clicks"
    """What values count."""

    def answer(self, rankings: dict[str, Valued], first: str, second: str) -> Answer:
        """The answer on whether the first is better than the second."""
        plain = self.difference(rankings[first], rankings[second])
        weak = self._weakness({name: rankings[name] for name in (first, second)})
        if weak:
            return Answer(CANNOT_TELL, f"too little support: {weak}", difference=plain, supported=False)
        by_clicks = self.valuation.utility == "clicks"
        what = f"expected {self.counted} on an impression" if by_clicks else "discounted relevance"
        wide, how = self._by_halves(plain, rankings[first], rankings[second])
        hint = ""
        if how and not plain.low <= 0 <= plain.high:
            hint = f"; by one number for each position alone {plain.low:+.4f} to {plain.high:+.4f}"
        elif not how:
            hint = self._hint(plain, rankings[first], rankings[second])
        answer = self.judge.answer(wide, first, second, what=f"the difference in {what}", how=how, hint=hint)
        sized = how != WIDER
        reason = (
            answer.reason if sized or answer.winner is None else f"{answer.reason}; go by its sign, not by its size"
        )
        return replace(answer, reason=reason, adjusted=bool(how), sized=sized)

    def difference(self, first: Valued, second: Valued) -> Interval:
        """The value of the first placements less that of the second, with its bootstrap interval over queries.

        Where the propensities come with their resamples, each draw of queries is valued by those of that draw.
        """
        known = self.resampled
        if known is None:
            return self._taken_for_known(first, second)
        draws = self._draws(self._valuations(known), known.counts, known.groups, first, second)
        return self._percentiles(self.valuation, draws, first, second)

    def _by_halves(self, plain: Interval, first: Valued, second: Valued) -> tuple[Interval, str]:
        """The interval where the propensities of the halves differ, and in which way it was made; else the plain one.

        By the propensities of either half the difference d is another. Chance makes the two differ, too, with standard
        error s. The ends of the interval move by the part that is beyond chance:

            (d_half - d) max(0, 1 - 1.96 s / |d_high - d_low|)

        Where the halves differ beyond doubt, lines through their click rates give another interval, which is taken if
        it is narrower: lines need many clicks.
        """
        if self.halves is None:
            return plain, ""
        halves = [each.propensities for each in (self.halves.high, self.halves.low)]
        found, draws = [], []
        for known, common in zip(halves, self.halves.common, strict=True):
            estimate, *drawn = self._valuations(known, known.estimate)
            found.append(self._mean(estimate, first, second))
            drawn = [each for each, use in zip(drawn, common, strict=True) if use]
            draws.append(self._draws(drawn, known.counts[common], known.groups, first, second))
        # Half of what the middle 68 % of draws spread over: a standard error that a few wild draws do not touch.
        error = float(np.diff(np.nanquantile(draws[0] - draws[1], [0.16, 0.84]))[0]) / 2
        apart = found[0] - found[1]
        if abs(apart) <= BEYOND_CHANCE * error:
            return plain, ""
        moves = [(each - plain.mean) * (1 - BEYOND_CHANCE * error / abs(apart)) for each in found]
        moved = Interval(plain.mean, plain.low + min(0.0, *moves), plain.high + max(0.0, *moves))
        lines = self._by_lines(first, second) if abs(apart) > BEYOND_DOUBT * error else None
        if lines is not None and lines.high - lines.low < moved.high - moved.low:
            return lines, TAKEN_OFF
        return moved, WIDER

    def _by_lines(self, first: Valued, second: Valued) -> Interval | None:
        """The difference by a line at each position; None where the rates of the halves do not tell it."""
        assert self.halves is not None
        if self.valuation.weighting != IPS or self.valuation.utility != "clicks":
            return None
        clicks = self.log.totals(self.log.position).clicks
        if self.halves.separation(clicks / clicks.sum()) < FEWEST_ERRORS:
            return None
        theta, beta, *resampled = self.halves.lines()
        drawn = [
            replace(self.valuation, propensities=each, floor=floor) for each, floor in zip(*resampled, strict=True)
        ]
        high, common = self.halves.high.propensities, self.halves.common[0]
        draws = self._draws(drawn, high.counts[common], high.groups, first, second)
        return self._percentiles(replace(self.valuation, propensities=theta, floor=beta), draws, first, second)

    def _valuations(self, known: ResampledPropensities, *more: Doubles) -> list[Valuation]:
        """The valuation by further propensities and by those of each draw, in its own unit, as dcg needs it."""
        unit = np.asarray(self.valuation.propensities, dtype=np.float64)[0]
        return [replace(self.valuation, propensities=unit * each / each[0]) for each in (*more, *known.draws)]

    def _draws(
        self, drawn: Sequence[Valuation], counts: Integers, groups: Integers, first: Valued, second: Valued
    ) -> Doubles:
        """The difference in each draw of queries by the valuation of that draw."""
        if not drawn:
            return np.zeros(0)
        theta = np.stack([np.asarray(each.propensities, dtype=np.float64) for each in drawn])
        by_rank = np.stack([each.rank_weights() for each in drawn])
        floors = [each.floor for each in drawn if each.floor is not None]
        floor = np.stack(floors) if floors else None
        # Candidates without a click are worth nothing, unless a model or a floor says what they are worth.
        clicked = self.valuation.relevance is None and floor is None
        above, below = np.zeros(len(drawn)), np.zeros(len(drawn))
        for (placement, evidence), (other, _) in zip(first, second, strict=True):
            for part in evidence.parts(clicked=clicked, most=AT_ONCE):
                times = counts[:, groups[evidence.query_numbers[part.queries]]].astype(np.float64)
                by_candidate = times[:, part.of_query]
                lead = placement.weights(part)(by_rank) - other.weights(part)(by_rank)
                _, _, found = self.valuation.relevance_by(part, theta, floor)
                above += np.einsum("dc,dc,dc->d", by_candidate, lead, found)
                if self.valuation.normalised:
                    below += np.einsum("dc,dc,c->d", by_candidate, found, part.shares)
                else:
                    below += times @ evidence.impressions[part.queries]
        return ratio(above, below, otherwise=np.nan)

    def _percentiles(self, valuation: Valuation, draws: Doubles, first: Valued, second: Valued) -> Interval:
        """The difference by a valuation with the interval that its draws give."""
        low, high = percentiles(draws, self.judge.level, len(self._queries))
        return self.judge.widened(Interval(self._mean(valuation, first, second), float(low), float(high)))

    def _mean(self, valuation: Valuation, first: Valued, second: Valued) -> float:
        totals, bases = self._totals(valuation, first, second)
        return float(totals.sum() / bases.sum())

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

    def _taken_for_known(self, first: Valued, second: Valued) -> Interval:
        totals, bases = self._totals(self.valuation, first, second)
        queries = self._queries
        found = bootstrap_ratio(totals[queries], bases[queries], level=self.judge.level, seed=self.seed)
        return self.judge.widened(found)

    def _hint(self, difference: Interval, first: Valued, second: Valued) -> str:
        """A phrase on what would narrow an interval the most: more swaps or more queries."""
        width = difference.high - difference.low
        if self.resampled is None or not width > 0:
            return ""
        chance = self._taken_for_known(first, second)
        if ((chance.high - chance.low) / width) ** 2 < 0.5:
            return "; most of its width is doubt about the propensities, which more swaps would lessen"
        count = len(self._queries)
        return f"; most of its width is chance among {count} queries, which holding out more of them would lessen"

    def _weakness(self, rankings: dict[str, Valued]) -> str | None:
        queries = len(self._queries)
        if queries < FEW_QUERIES:
            return f"{queries} queries, fewer than {FEW_QUERIES}"
        if self.resampled is not None and self.resampled.failed > MOST_FAILED:
            return (
                f"in {self.resampled.failed:.0%} of the resamples of the log swaps do not link all positions, so "
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

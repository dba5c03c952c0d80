"""Click rates by position and by every other bias factor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.diagnosis.rates import Rates, click_rates, one_click_a_page
from ultr.pages import Section, Verdict, figures, sentences

ENOUGH_CLICKS = 10
"""A rate that rests on fewer clicks is not compared with that of the first position, if another can be."""
SHOWN_ENOUGH = 0.1
"""Positions that only the longest pages have, fewer than this share of those at the most frequent one, say little."""


@dataclass(frozen=True)
class FactorRates:
    """The click rate of each level of one bias factor."""

    name: str
    levels: tuple[str, ...]
    rates: Rates
    fixed: bool = False
    """True if the factor is the same for a whole page and every page has one click, so that rates cannot differ."""


@dataclass(frozen=True)
class ClickRates:
    """Click rates by each bias factor, position first."""

    factors: tuple[FactorRates, ...]

    @classmethod
    def of(cls, log: ClickLog) -> ClickRates:
        """The click rates of a log."""
        return cls(tuple(FactorRates(f.name, f.levels, click_rates(log, f), _fixed(log, f)) for f in log.factors))

    def section(self) -> Section:
        """The answer on click rates by position and by every other bias factor."""
        position, *others = self.factors
        rates = position.rates
        shown = np.flatnonzero(rates.impressions >= SHOWN_ENOUGH * rates.impressions.max())
        first = shown[0]
        below = shown[1:][rates.clicks[shown[1:]] >= ENOUGH_CLICKS]
        last = below[-1] if len(below) else shown[-1]
        top, bottom = rates.values[first], rates.values[last]
        falls = rates.low[first] > rates.high[last]
        one, other = (f"position {position.levels[each]}" for each in (first, last))
        if not falls:
            said = f"click rates do not fall beyond chance from {one} ({top:.3f}) to {other} ({bottom:.3f})"
        elif bottom > 0:
            said = f"{one} is clicked {top / bottom:.1f} times as often as {other} ({top:.3f} and {bottom:.3f})"
        else:
            said = f"{one} is clicked at a rate of {top:.3f}, {other} never"
        if falls:
            said += "; how much of that is position and how much relevance, rates do not say"
        return Section(
            name="click rates",
            title="How do click rates change with where and how a document is shown?",
            verdict=Verdict.GOOD if falls else Verdict.CAREFUL,
            answer=sentences([said, *(_of_factor(factor) for factor in others)]),
            advice="" if falls else "Check that the column of the position is the place on the page, from the top.",
            numbers={"factors": {f.name: {"levels": list(f.levels), **f.rates.as_json()} for f in self.factors}},
            tables=tuple(
                each.rates.table(f"click rate by {each.name}, 95 % intervals", each.name, each.levels)
                for each in self.factors
            ),
            figures={
                f"click rate by {each.name}": partial(
                    figures.click_rates, each.name, each.levels, each.rates.band, each.rates.impressions
                )
                for each in self.factors
            },
        )


def _fixed(log: ClickLog, factor: BiasFactor) -> bool:
    """True if a factor is the same for all documents of a list, and every list has as many clicks as impressions."""
    return one_click_a_page(log) and ragged.same_in_lists(factor.values, log.offsets)


def _of_factor(factor: FactorRates) -> str:
    if factor.fixed:
        return f"every page has one click, so that rates do not tell whether {factor.name} matters"
    shown = np.flatnonzero(factor.rates.impressions > 0)
    if len(shown) < 2:
        return f"{factor.name} has one value only, so it can be left out"
    rates = factor.rates
    # Those whose intervals are furthest apart: the rate of a value that was hardly shown may be anything.
    high, low = shown[rates.low[shown].argmax()], shown[rates.high[shown].argmin()]
    if rates.low[high] <= rates.high[low]:
        return f"the values of {factor.name} do not differ beyond chance"
    return (
        f"by {factor.name}, {factor.levels[high]} is clicked more ({rates.values[high]:.3f}) than {factor.levels[low]} "
        f"({rates.values[low]:.3f})"
    )

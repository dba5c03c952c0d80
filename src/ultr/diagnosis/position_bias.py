"""Position-bias curves by every estimator, and what they agree on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from ultr.arrays import Doubles
from ultr.bias.curves import BiasCurves, Curve, bias_curves
from ultr.bias.scalar_test import CLAIMS
from ultr.counted import counted
from ultr.data.click_log import ClickLog
from ultr.metrics.intervals import Interval
from ultr.pages import Section, Table, Verdict, figures, sentences
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE

BY_SWAPS = ("all-pairs", "adjacent-chain", "pivot", "em")
"""The estimators that tell position from relevance, the one that is quoted first."""
APART = 1.25
"""Estimators of the same thing differ for certain if their intervals do, and it matters from this factor on."""
TOO_WIDE = 10
"""The ends of an interval are at most this factor apart where a curve is worth quoting."""
MOST_FAILED = 0.1
"""Share of resamples in which swaps may fail to link the positions; with more, a curve hangs on a few queries."""
MOST_BELOW = 0.2
"""Share of the clicks that may lie below the last position whose interval is worth quoting."""
MIXED = f"the curve is not how often positions are seen: {CLAIMS[True]}, and it holds more, such as trust"
NO_PROPENSITIES = "Do not take the curve for propensities: weights by its inverse correct for more than what is seen."
_COLOURS = {"click-rate": GREY, "pivot": ORANGE, "adjacent-chain": GREEN, "all-pairs": BLUE, "em": PURPLE}


@dataclass(frozen=True)
class PositionBias:
    """The curves of a log."""

    curves: BiasCurves
    positions: tuple[str, ...]
    clicks: Doubles
    """[positions]."""

    @classmethod
    def of(cls, log: ClickLog, *, samples: int = 200, seed: int = 0) -> PositionBias:
        """The curves of a log by every estimator there is."""
        clicks = log.totals(log.position).clicks
        return cls(bias_curves(log, samples=samples, seed=seed), log.position.levels, clicks)

    @property
    def _estimated(self) -> dict[str, Curve]:
        """The curves that could be estimated, by estimator."""
        return {curve.estimator: curve for curve in self.curves.curves if curve.problem is None}

    @property
    def _usable(self) -> list[Curve]:
        """Those of them that tell position from relevance, the one to quote first."""
        return [self._estimated[name] for name in BY_SWAPS if name in self._estimated]

    @property
    def best(self) -> Curve | None:
        """The curve to quote: of those that tell position from relevance, the first that can be estimated."""
        return next(iter(self._usable), None)

    @property
    def told(self) -> bool:
        """True if swaps say more than next to nothing."""
        return self.by_swaps and self._judged()[0] is not Verdict.UNKNOWN

    @property
    def by_swaps(self) -> bool:
        """True if the swaps of the log give propensities, which inverse weights and comparisons need."""
        return self.curves.of(BY_SWAPS[0]).problem is None

    def disagreement(self) -> tuple[str, str, int] | None:
        """The two estimators that differ most beyond their intervals, and at which position (from 0), if any do."""
        worst, found = APART, None
        for one, other in combinations(self._usable, 2):
            # An interval that reaches 0 has too few clicks to differ from anything.
            apart = ((one.low > other.high) | (other.low > one.high)) & (np.minimum(one.low, other.low) > 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(apart, np.maximum(one.values / other.values, other.values / one.values), 1)
            place = int(np.nanargmax(factor))
            if factor[place] > worst:
                worst, found = float(factor[place]), (one.estimator, other.estimator, place)
        return found

    def section(self, *, scalar: bool | None = True) -> Section:
        """The answer on the strength of position bias.

        `scalar` is False if one number for each position is known not to be enough, and None if that is not known: a
        curve then holds more than how often a position is seen, such as how much users trust it, or may hold it.
        """
        verdict, answer, advice = self._judged(scalar=scalar)
        drawn = {name: (each.values, each.low, each.high) for name, each in self._estimated.items()}
        return Section(
            "How strong is position bias?",
            sentences(answer),
            verdict,
            advice,
            tables=(self._table(),) if drawn else (),
            figures={
                "bias of each position over the first": partial(
                    figures.curves, drawn, self.positions, _COLOURS, xlabel="position", ylabel="bias over the first"
                )
            },
            numbers={
                "resampled": f"{self.curves.count:,} {self.curves.units}",
                "placements_by_exploration": self.curves.explored,
                "curves": {
                    curve.estimator: {name: getattr(curve, name).tolist() for name in ("values", "low", "high")}
                    | {"failed": curve.failed, "problem": curve.problem}
                    for curve in self.curves.curves
                },
            },
            name="position bias",
        )

    def _judged(self, *, scalar: bool | None = True) -> tuple[Verdict, list[str], str]:
        """The verdict, the answer and the advice."""
        best = self.best
        if best is None:
            problem = self.curves.of(BY_SWAPS[0]).problem or ""
            advice = "Log some swaps, at best of adjacent positions, or bring propensities of your own."
            return Verdict.UNKNOWN, [f"no estimator can tell: {problem.partition(';')[0]}"], advice
        raw = self.curves.of("click-rate")
        place, few_below = self._quoted(best)
        first = int(np.flatnonzero(np.isfinite(best.values))[0])
        low, high = best.low[place], best.high[place]
        interval = f"(95 % interval {low:.2f}-{high:.2f})" if np.isfinite(low) else "(without an interval)"
        done, same = ("seen", "") if scalar else ("clicked", " with the same documents")
        said = (
            f"by {best.estimator}, position {self.positions[place]} is {done} {best.values[place]:.2f} times as often "
            f"as position {self.positions[first]}{same} {interval}"
        )
        if raw.problem is None:
            said += f"; its click rate is {raw.values[place]:.2f} of the first's"
        how = [*few_below, *([MIXED] if scalar is False else []), *self._exploration()]
        if np.isnan(low) or best.failed > MOST_FAILED:
            few = (
                f"in {best.failed:.0%} of the resamples swaps do not link all positions, so that hangs on a few queries"
            )
            return Verdict.UNKNOWN, [said, *how, few], "Log more swaps."
        if not high < TOO_WIDE * low:
            return Verdict.UNKNOWN, [said, *how, "so wide an interval says next to nothing"], "Log more swaps."
        differ = self.disagreement()
        if differ is None:
            if len(self._usable) > 1:
                agreed = [said, *how, "the estimators agree"]
                return (Verdict.CAREFUL, agreed, NO_PROPENSITIES) if scalar is False else (Verdict.GOOD, agreed, "")
            return Verdict.CAREFUL, [said, *how, "no other estimator can tell"], "Log more swaps."
        one, other, place = self.curves.of(differ[0]), self.curves.of(differ[1]), differ[2]
        differing = (
            f"the estimators do not agree: at position {self.positions[place]}, {one.estimator} says "
            f"{one.values[place]:.2f} and {other.estimator} {other.values[place]:.2f}, so one number for each "
            "position does not describe these clicks"
        )
        advice = "Do not rely on one curve: weights by inverse propensity would depend on the estimator."
        return Verdict.CAREFUL, [said, *how, differing], advice

    def _quoted(self, curve: Curve) -> tuple[int, list[str]]:
        """The position to quote, from 0: the last, unless few clicks lie below another that can be told from nothing.

        The second is a sentence on the positions below it.
        """
        last = len(curve.values) - 1
        told = np.flatnonzero(curve.high < TOO_WIDE * curve.low)
        if not len(told) or told[-1] in (0, last):
            return last, []
        place = int(told[-1])
        below = float(self.clicks[place + 1 :].sum() / max(self.clicks.sum(), 1))
        if below > MOST_BELOW:
            return last, []
        return place, [f"of positions below it, with {below:.0%} of the clicks, swaps say next to nothing"]

    def _exploration(self) -> list[str]:
        """Sentences on the placements that exploration logged."""
        used, left_out = self.curves.explored, self.curves.left_out
        said = []
        if used:
            said.append(
                f"the curves by swaps rest on {counted(used, 'placement')} by exploration, each weighted by its logged "
                "probability"
            )
        if left_out:
            said.append(
                f"{counted(left_out, 'placement')} by exploration {'is' if left_out == 1 else 'are'} left out, since "
                "it is not known where else the document could have stood: prepare the log with --base-position"
            )
        return said

    def _table(self) -> Table:
        cells = {
            level: [
                Interval(curve.values[row], curve.low[row], curve.high[row]).text("\n")
                for curve in self._estimated.values()
            ]
            for row, level in enumerate(self.positions)
            if any(np.isfinite(curve.values[row]) for curve in self._estimated.values())
        }
        title = "bias of each position over the first, 95 % intervals"
        return Table.of_cells(title, "position", cells, list(self._estimated), folded=True)

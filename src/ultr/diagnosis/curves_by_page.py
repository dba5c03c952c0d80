"""Position curves by what is the same for a whole page, such as the device.

How much a device is clicked altogether cannot be told from what its users want. The *shape* of its position curve can:
within each value, documents that were seen at several positions are compared with themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Mask
from ultr.bias.scalar_test import CLAIMS
from ultr.bias.swaps import most_likely, reached, swaps_by_group
from ultr.counted import and_list
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed
from ultr.metrics.intervals import Interval
from ultr.metrics.query_bootstrap import QueryBootstrap, percentiles, query_numbers
from ultr.pages import Section, Table, Verdict, figures, sentences
from ultr.seeding import generator

NAME = "position bias by page"
MOST = 6
"""Most values of a factor that are compared, the most frequent ones."""
MOST_FAILED = 0.1
"""Share of resamples in which swaps may fail to link the positions."""
TOO_WIDE = 3
"""A ratio is told if the ends of its interval are at most this factor apart."""


@dataclass(frozen=True, eq=False)
class LevelCurve:
    """The position curve on the pages of one value."""

    level: str
    share: float
    """Share of all pages."""
    values: Doubles
    """[positions], over the first; NaN where swaps do not link a position with the first."""
    draws: Doubles
    """[resamples, positions]; NaN where the swaps of a resample do not link them."""

    @property
    def known(self) -> Mask:
        """[positions], those that swaps link with the first."""
        return np.isfinite(self.values)

    def band(self, units: int) -> tuple[Doubles, Doubles, Doubles]:
        """The curve with its 95 % interval over so many queries."""
        ends = np.full((2, len(self.values)), np.nan)
        told = self.known & (np.isfinite(self.draws).mean(axis=0) >= 1 - MOST_FAILED)
        if told.any():
            ends[:, told] = percentiles(self.draws[:, told], 0.95, units)
        return self.values, ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class PageCurves:
    """The position curves of the values of one factor, the most frequent value first."""

    factor: str
    positions: tuple[str, ...]
    curves: tuple[LevelCurve, ...]
    queries: int

    @classmethod
    def of(cls, log: ClickLog, factor: BiasFactor, *, samples: int = 200, seed: int = 0) -> PageCurves:
        """The curves of a log by a factor that is the same for all documents of a page."""
        level = factor.values[np.minimum(log.offsets[:-1], max(len(factor.values) - 1, 0))]
        pages = np.bincount(level, log.impressions * (log.lengths > 0), minlength=len(factor.levels))
        queries = query_numbers(log)
        drawing = QueryBootstrap.draw(int(queries.max()) + 1, samples=samples, random=generator(seed, NAME))
        found = []
        for number in [int(each) for each in np.argsort(-pages, kind="stable")[:MOST] if pages[each]]:
            chosen = np.flatnonzero(level == number)
            values, draws = _curve(log.part(chosen, log.splits), drawing, drawing.groups[queries[chosen]])
            found.append(LevelCurve(factor.levels[number], float(pages[number] / pages.sum()), values, draws))
        return cls(factor.name, log.position.levels, tuple(found), int(queries.max()) + 1)

    @property
    def usual(self) -> LevelCurve:
        """The value that others are compared with: the most frequent one that has a curve."""
        return next((curve for curve in self.curves if curve.known.sum() > 1), self.curves[0])

    def shared(self) -> dict[str, Mask]:
        """[positions], those that are known for a value and for the usual one, for each value that has several."""
        both = {curve.level: curve.known & self.usual.known for curve in self.curves if curve is not self.usual}
        return {level: known for level, known in both.items() if known.sum() > 1}

    def depths(self) -> dict[str, tuple[float, float]]:
        """Positions seen for each time that the first is seen, with a value and with the usual one, by value.

        Those that both have are counted.
        """
        values = {curve.level: curve.values for curve in self.curves}
        return {
            level: (float(values[level][known].sum()), float(self.usual.values[known].sum()))
            for level, known in self.shared().items()
        }

    def ratios(self) -> dict[str, Interval]:
        """Depth of each value over that of the usual one, with its interval, where it can be told.

        The intervals hold together: with k of them, each has a level of 1 - 0.05 / k.
        """
        shared, depths, found = self.shared(), self.depths(), {}
        for curve in self.curves:
            if curve.level not in shared:
                continue
            known = shared[curve.level]
            ratio = curve.draws[:, known].sum(axis=1) / self.usual.draws[:, known].sum(axis=1)
            if np.isnan(ratio).mean() > MOST_FAILED:
                continue
            ends = percentiles(ratio, 1 - 0.05 / len(shared), self.queries)
            own, usual = depths[curve.level]
            interval = Interval(own / usual, *map(float, ends))
            if interval.high < TOO_WIDE * interval.low:
                found[curve.level] = interval
        return found

    def judged(self) -> tuple[Verdict, list[str]]:
        """The verdict on one factor, and sentences."""
        usual, shared = self.usual.level, self.shared()
        ratios, depths = self.ratios(), self.depths()
        untold = [curve.level for curve in self.curves if curve.level not in ratios and curve is not self.usual]
        if self.usual.known.sum() < 2:
            untold = [curve.level for curve in self.curves]
        differ = {level: each for level, each in ratios.items() if not each.low <= 1 <= each.high}
        said = [
            f"with {self.factor} {level}, users see {'fewer' if each.mean < 1 else 'more'} positions than with "
            f"{usual}, {depths[level][0]:.1f} against {depths[level][1]:.1f} down to position "
            f"{self.positions[int(np.flatnonzero(shared[level])[-1])]} for each time that they see the first "
            f"(ratio {each.text(', 95 % interval ')})"
            for level, each in differ.items()
        ]
        if same := [level for level in ratios if level not in differ]:
            said.append(
                f"with {self.factor} {and_list(same)}, users see as many positions as with {usual}, up to chance"
            )
        if untold:
            said.append(f"for {self.factor} {and_list(untold)} it cannot be told: swaps link too few positions there")
        verdict = Verdict.CAREFUL if differ else Verdict.GOOD if ratios and not untold else Verdict.UNKNOWN
        return verdict, said

    def table(self) -> Table:
        """The curve of every value."""
        bands = {curve.level: curve.band(self.queries) for curve in self.curves}
        cells = {
            position: [Interval(*(each[place] for each in band)).text("\n") for band in bands.values()]
            for place, position in enumerate(self.positions)
        }
        cells = {position: [text.replace("nan", "") for text in texts] for position, texts in cells.items()}
        title = f"bias of each position over the first by {self.factor}, 95 % intervals"
        return Table.of_cells(title, "position", cells, list(bands), folded=True)

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        columns = ("values", "low", "high")
        return {
            "levels": {
                curve.level: {"share": curve.share}
                | dict(zip(columns, (each.tolist() for each in curve.band(self.queries)), strict=True))
                for curve in self.curves
            },
            "usual": self.usual.level,
            "positions_seen": {level: {"own": own, "usual": usual} for level, (own, usual) in self.depths().items()},
            "ratios": {level: vars(ratio) for level, ratio in self.ratios().items()},
        }


@dataclass(frozen=True, eq=False)
class CurvesByPage:
    """The position curves by every factor that is the same for a whole page."""

    factors: tuple[PageCurves, ...]

    @classmethod
    def of(cls, log: ClickLog, *, samples: int = 200, seed: int = 0) -> CurvesByPage | None:
        """The curves of a log; None if nothing but the position, or what differs within a page, is known of pages."""
        if len(log.position.levels) < 2:
            return None
        several = [factor for factor in log.factors[1:] if factor.values.min() < factor.values.max()]
        by_page = [factor for factor in several if ragged.same_in_lists(factor.values, log.offsets)]
        return cls(tuple(PageCurves.of(log, each, samples=samples, seed=seed) for each in by_page)) if by_page else None

    @property
    def differing(self) -> list[str]:
        """The factors whose values have different curves."""
        return [each.factor for each in self.factors if each.judged()[0] is Verdict.CAREFUL]

    def section(self, *, scalar: bool = True) -> Section:
        """The answer on whether position bias is the same for all pages.

        `scalar` is False if one number for each position is known not to be enough.
        """
        judged = [each.judged() for each in self.factors]
        mixed = [] if scalar else [f"since {CLAIMS[True]}, trust may be what differs, and not sight"]
        verdicts = [verdict for verdict, _ in judged]
        verdict = next(each for each in (Verdict.CAREFUL, Verdict.UNKNOWN, Verdict.GOOD) if each in verdicts)
        advice = {
            Verdict.CAREFUL: "Take Vectorization, or the default, which corrects by it: they learn a curve for each "
            "value; methods with one curve for all pages err on each.",
            Verdict.UNKNOWN: "Log some swaps under each value.",
        }
        return Section(
            f"Is position bias the same for every {and_list([each.factor for each in self.factors])}?",
            sentences([*(sentence for _, said in judged for sentence in said), *mixed]),
            verdict,
            advice.get(verdict, ""),
            tables=[each.table() for each in self.factors],
            figures={
                f"bias of each position over the first by {each.factor}": partial(
                    figures.curves,
                    {curve.level: curve.band(each.queries) for curve in each.curves if curve.known.sum() > 1},
                    each.positions,
                    xlabel="position",
                    ylabel="bias over the first",
                )
                for each in self.factors
            },
            numbers={"factors": {each.factor: each.as_json() for each in self.factors}},
            name=NAME,
        )


def _curve(part: ClickLog, drawing: QueryBootstrap, groups: Any) -> tuple[Doubles, Doubles]:
    """The curve by all pairs of the positions that swaps link with the first, and those of resampled queries."""
    count, rows = len(part.position.levels), max(len(part.features), 1)
    cells = part.cells(documents=part.documents_within(groups), fewest_positions=2)
    of_document = computed(lambda ids: ids // rows, cells.ids)
    _, clicks = swaps_by_group(cells, of_document, count=drawing.count)
    values, draws = np.full(count, np.nan), np.full((len(drawing.times), count), np.nan)
    whole: Doubles = clicks.sum(axis=0)
    linked = _linked(whole)
    if linked.sum() < 2:
        return values, draws
    values[linked] = most_likely(whole[np.ix_(linked, linked)])
    drawn: Doubles = np.tensordot(drawing.times.astype(np.float64), clicks[:, linked][:, :, linked], axes=1)
    whole_draws = np.array([_linked(each).all() for each in drawn])
    if whole_draws.any():
        draws[np.ix_(whole_draws, linked)] = most_likely(drawn[whole_draws])
    return values, draws


def _linked(clicks: Doubles) -> Mask:
    """[positions], those that documents clicked at both ends of each link lead to from the first."""
    return reached((clicks > 0) & (clicks.T > 0))

"""Position-bias curves of few clicks, in a form that can be compared: by groups of positions, and as one number.

The number is the exponent of the power law theta_p = p^-eta.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.bias.position_based_fit import fit_poisson
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.totals import Totals
from ultr.errors import DataError
from ultr.metrics.query_bootstrap import percentiles
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, blank
from ultr.seeding import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 100
"""Most steps of Newton's method."""

TICKS = (0.05, 0.1, 0.2, 0.5, 1)
"""Numbers at the logarithmic axis of a figure."""

Band = tuple[Doubles, Doubles, Doubles]
"""Values, low and high."""


@dataclass(frozen=True)
class Groups:
    """Neighbouring positions taken together; the first group is position 1 alone."""

    last: tuple[int, ...]
    """The last position of each group."""
    without: tuple[int, ...] = ()
    """Positions that belong to no group, such as those of advertisements."""

    def of(self, positions: Integers) -> Integers:
        """The number of the group of each position, from 0; -1 if it has none."""
        groups = np.searchsorted(self.last, positions)
        return np.where(np.isin(positions, self.without) | (groups == len(self.last)), -1, groups)

    @property
    def names(self) -> list[str]:
        """Such as `3-4`, without the positions at its ends that it does not have."""
        names = []
        for first, last in zip((1, *(each + 1 for each in self.last[:-1])), self.last, strict=True):
            kept = [position for position in range(first, last + 1) if position not in self.without]
            names.append(str(kept[0]) if len(kept) == 1 else f"{kept[0]}-{kept[-1]}")
        return names

    def rates(self, totals: Totals) -> Doubles:
        """The click rate of each group over that of the first position, [..., groups]; from totals [..., positions]."""
        groups = self.of(np.arange(totals.clicks.shape[-1]) + 1)
        member = groups[:, None] == np.arange(len(self.last))
        shown, clicked = totals.impressions @ member, totals.clicks @ member
        rates = np.divide(clicked, shown, out=np.full(shown.shape, np.nan), where=shown > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative: Doubles = rates / rates[..., :1]
        return relative

    def means(self, curve: Doubles, shown: Doubles) -> Doubles:
        """A curve [positions] averaged over the impressions of each group, over its value at the first position."""
        return self.rates(Totals(shown, shown * curve))


def exponent(totals: Totals) -> float:
    """The eta of the likeliest power law, click rate = a p^-eta, by Newton's method.

    Given the number of clicks, where they fell has the likelihood of a softmax with logits log n_p - eta log p, so

        d/d eta = sum_p (pi_p C - c_p) log p,   C = sum_p c_p
    """
    places = np.log(np.arange(len(totals.clicks)) + 1)
    shown, clicks = totals.impressions, totals.clicks
    eta = 0.0
    for _ in range(STEPS):
        weights = shown * np.exp(-eta * places)
        shares = weights / weights.sum()
        mean = shares @ places
        slope = clicks.sum() * mean - clicks @ places
        curvature = clicks.sum() * (shares @ (places - mean) ** 2)
        step = slope / curvature
        eta += step
        if abs(step) < 1e-10:
            break
    return float(eta)


def power_law(eta: float, positions: int) -> Doubles:
    """The curve p^-eta."""
    return np.exp(-eta * np.log(np.arange(positions) + 1))


def resampled_totals(log: ClickLog, *, samples: int, seed: int = 0) -> Totals:
    """Impressions and clicks by position when lists are drawn anew with replacement, [samples, positions]."""
    by_list = log.totals(log.position, groups=np.arange(log.lists))
    random = generator(seed, "resampled lists")
    times = random.multinomial(log.lists, np.full(log.lists, 1 / log.lists), size=samples).astype(np.float64)
    return Totals(times @ by_list.impressions, times @ by_list.clicks)


def observed(log: ClickLog, groups: Groups, *, samples: int, level: float = 0.95) -> Band:
    """Click rates of groups of positions over the first, with their bootstrap interval over lists."""
    drawn = groups.rates(resampled_totals(log, samples=samples))
    drawn[~np.isfinite(drawn)] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        low, high = percentiles(drawn, level, log.lists)
    return groups.rates(log.totals(log.position)), low, high


def observed_exponent(log: ClickLog, *, samples: int, level: float = 0.95) -> tuple[float, float, float]:
    """The exponent of the click rates, with its bootstrap interval over lists."""
    drawn = resampled_totals(log, samples=samples)
    each = [exponent(Totals(*both)) for both in zip(drawn.impressions, drawn.clicks, strict=True)]
    low, high = percentiles(np.array(each)[:, None], level, log.lists)
    return exponent(log.totals(log.position)), float(low[0]), float(high[0])


def curve_of_repeats(
    log: ClickLog, documents: Integers, groups: Groups, *, samples: int, seed: int = 0, level: float = 0.95
) -> Band:
    """The position-based fit to documents that stood in several groups of positions, with intervals over lists.

    `documents` says which shown documents are one, such as the same hotel in two searches: it is taken to be as
    relevant in both. NaN where the repeats do not link all groups; the interval, too, if in most of the resamples.
    """
    random, once = generator(seed, "repeats"), np.ones(log.lists, dtype=np.int64)
    draws = (np.bincount(random.integers(log.lists, size=log.lists), minlength=log.lists) for _ in range(samples))
    drawn = [curve for curve in (_fit(log, documents, groups, each) for each in draws) if np.isfinite(curve).all()]
    unknown = np.full(len(groups.last), np.nan)
    low, high = percentiles(np.stack(drawn), level, log.lists) if 2 * len(drawn) >= samples else (unknown, unknown)
    return _fit(log, documents, groups, once), low, high


def _fit(log: ClickLog, documents: Integers, groups: Groups, times: Integers) -> Doubles:
    of_rows, weights = groups.of(log.positions), np.repeat(times, log.lengths)
    shown = np.repeat(log.impressions, log.lengths) * weights
    used = (of_rows >= 0) & (weights > 0)
    cells = Cells.of(
        documents[used],
        of_rows[used],
        shown[used],
        log.clicks[used] * weights[used],
        count=len(groups.last),
        fewest_positions=2,
        fewest_clicks=1,
    )
    try:
        return fit_poisson(cells)
    except DataError:
        return np.full(len(groups.last), np.nan)


def draw(curves: Mapping[str, Band | Doubles], names: Sequence[str]) -> Figure:
    """Curves by groups of positions; those with an interval stand out."""
    figure, axes = blank(6.4, 3.6, xlabel="position", ylabel="clicks over those at position 1")
    places, colours = np.arange(len(names)), iter((GREY, BLUE, ORANGE, GREEN, PURPLE, RED))
    for name, curve in curves.items():
        if isinstance(curve, tuple):
            values, low, high = curve
            bars = np.maximum([values - low, high - values], 0)
            axes.errorbar(places, values, bars, fmt="ko", capsize=3, label=name, zorder=3)
        else:
            colour = next(colours)
            axes.plot(places, curve, "--" if colour == GREY else "-", color=colour, marker=".", label=name)
    axes.set_xticks(places, names)
    axes.set_yscale("log")
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.tick_params(axis="y", which="minor", left=False)
    axes.legend(frameon=False, fontsize=9)
    return figure

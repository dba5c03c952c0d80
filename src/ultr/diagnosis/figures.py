"""What an examination found, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ultr.arrays import Doubles
from ultr.bias.curves import BiasCurves
from ultr.bias.identifiability import BiasGraph
from ultr.bias.rank_test import RankTest
from ultr.diagnosis.drift import Drift
from ultr.diagnosis.exposure import FactorRates
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Drawing, blank, ink_on

MOST_NUMBERS = 12
"""Numbers are written into a heat map of at most so many columns."""
MOST_LEVELS = 30
"""More levels of a factor than this are not drawn."""
_COLOURS = {"click-rate": GREY, "pivot": ORANGE, "adjacent-chain": GREEN, "all-pairs": BLUE, "em": PURPLE}


def rates(factor: FactorRates) -> Drawing | None:
    """The click rate of each level with its interval; None if there are too many to tell apart."""
    shown = np.flatnonzero(factor.rates.impressions > 0)
    if not 1 < len(shown) <= MOST_LEVELS:
        return None
    levels = [factor.levels[level] for level in shown]
    values, low, high = (array[shown] for array in (factor.rates.values, factor.rates.low, factor.rates.high))
    figure, axes = blank(7.2, 3.0)
    axes.bar(range(len(shown)), values, color=BLUE, alpha=0.75, width=0.7)
    axes.errorbar(
        range(len(shown)), values, np.abs([values - low, high - values]), fmt="none", color="black", capsize=3
    )
    axes.set_xticks(range(len(shown)), levels, rotation=45 if max(map(len, levels)) > 4 and len(levels) > 6 else 0)
    axes.set_xlabel(factor.name)
    axes.set_ylabel("click rate")
    told = ", ".join(f"{level} {value:.3f}" for level, value in zip(levels, values, strict=True))
    return Drawing(figure, f"Click rate by {factor.name}: {told}")


def curves(found: BiasCurves, positions: Sequence[str]) -> Drawing | None:
    """The bias of each position over the first by every estimator, with intervals; None if none can tell."""
    usable = [curve for curve in found.curves if curve.problem is None]
    if not usable:
        return None
    figure, axes = blank(7.2, 3.8)
    places = np.arange(1, len(positions) + 1)
    for number, curve in enumerate(usable):
        shift = 0.09 * (number - (len(usable) - 1) / 2)
        known = np.isfinite(curve.low)
        spread = np.where(known, np.abs([curve.values - curve.low, curve.high - curve.values]), 0)
        axes.errorbar(
            places + shift,
            curve.values,
            spread,
            fmt="o--" if curve.estimator == "click-rate" else "o-",
            color=_COLOURS[curve.estimator],
            markersize=4,
            linewidth=1.3,
            elinewidth=1,
            label=curve.estimator,
        )
    axes.set_xticks(places, positions)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("position")
    axes.set_ylabel("bias over position 1")
    axes.legend(frameon=False, fontsize=9)
    told = "; ".join(f"{curve.estimator}: {' '.join(f'{value:.2f}' for value in curve.values)}" for curve in usable)
    return Drawing(figure, f"Position bias over the first position by estimator. {told}")


def drift(found: Drift) -> Drawing:
    """The click rate of each period with its interval."""
    figure, axes = blank(7.2, 2.6)
    periods, places = found.periods, np.arange(len(found.period_names))
    axes.fill_between(places, periods.low, periods.high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(places, periods.values, "o-", color=BLUE)
    axes.set_xticks(places, found.period_names, rotation=30, ha="right", fontsize=8)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("click rate")
    told = ", ".join(f"{value:.3f}" for value in periods.values)
    return Drawing(figure, f"Click rate over time: {told}")


def links(graph: BiasGraph, *, title: str = "position") -> Drawing | None:
    """How strongly each pair of values is linked by documents; None if there are none, or too many to tell apart."""
    count = len(graph.names)
    if not graph.links or count > MOST_LEVELS:
        return None
    strength = np.zeros((count, count))
    for link in graph.links:
        strength[link.first, link.second] = strength[link.second, link.first] = link.strength
    figure, axes = blank(5.2, 4.2)
    shown = np.where(strength > 0, strength, np.nan)
    image = axes.imshow(np.log10(shown), cmap="Blues", vmin=0)
    figure.colorbar(image, ax=axes, label="effective impressions, powers of 10", shrink=0.85)
    names = [name.removeprefix("position ") for name in graph.names]
    axes.set_xticks(range(count), names, rotation=90 if max(map(len, names)) > 3 else 0, fontsize=8)
    axes.set_yticks(range(count), names, fontsize=8)
    axes.set_xlabel(title)
    axes.set_ylabel(title)
    parts = int(graph.parts.max()) + 1
    return Drawing(
        figure,
        f"Links between values of {title} by documents seen under both: {len(graph.links)} links, {parts} part(s)",
    )


def matrix(test: RankTest) -> Drawing:
    """Click rates by relevance group and position, and their singular values over the first."""
    rates, values = test.rates, test.singular_values / test.singular_values[0]
    figure, (left, right) = blank(8.4, 0.3 * len(rates) + 1.9, columns=2, width_ratios=(2.6, 1))
    draw_rates(left, rates)
    left.set_title("click rates", loc="left", fontsize=10)
    draw_singular_values(right, values)
    right.set_title("singular values over the first", loc="left", fontsize=10)
    told = ", ".join(f"{value:.3f}" for value in values)
    return Drawing(figure, f"Click rates by relevance group and position; singular values over the first: {told}")


def draw_rates(
    axes: Any,
    rates: Doubles,
    *,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    ylabel: str = "relevance group",
) -> None:
    """Click rates [groups, positions] as a heat map with the numbers in it, or with a scale where they are many."""
    from matplotlib import colormaps

    shades = colormaps["Blues"]
    top = float(rates.max()) or 1.0
    image = axes.imshow(rates, aspect="auto", cmap=shades, vmin=0, vmax=top)
    if rates.shape[1] <= MOST_NUMBERS:
        for (group, position), rate in np.ndenumerate(rates):
            text = (f"{rate:.2f}" if rate >= 0.095 else f"{rate:.3f}").removeprefix("0")
            label = axes.annotate(text, (position, group), ha="center", va="center", fontsize=8)
            label.set_color(ink_on(shades(rate / top)))
            label.set_gid(f"cell-{group}-{position}")
    else:
        axes.figure.colorbar(image, ax=axes)
    places = range(0, rates.shape[1], 1 if rates.shape[1] <= 20 else 5)
    axes.set_xticks(places, [str(place + 1 if columns is None else columns[place]) for place in places])
    axes.set_yticks(range(len(rates)), [str(number) for number in rows or range(1, len(rates) + 1)])
    axes.set_xlabel("position")
    axes.set_ylabel(ylabel)


def draw_singular_values(axes: Any, values: Doubles) -> None:
    """Singular values as bars, those after the first in another colour: a product of two numbers has none."""
    axes.bar(range(1, len(values) + 1), values, color=[BLUE, *[RED] * (len(values) - 1)])
    for rank, value in enumerate(values, start=1):
        axes.annotate(f"{value:.3f}", (rank, value), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    axes.set_xticks(range(1, len(values) + 1))
    axes.margins(y=0.12)

"""Figures of click logs, drawn from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ultr.arrays import Doubles
from ultr.pages.drawing import BLUE, GREEN, GREY, MOST_LEVELS, NARROW, ORANGE, PURPLE, RED, Drawing, blank, ink_on

MOST_NUMBERS = 12
"""Most columns of a heat map with the numbers written into it."""
_ESTIMATORS = {"click-rate": GREY, "pivot": ORANGE, "adjacent-chain": GREEN, "all-pairs": BLUE, "em": PURPLE}

Band = tuple[Doubles, Doubles, Doubles]
"""Values, low and high."""


def click_rates(factor: str, levels: Sequence[str], rates: Band) -> Drawing | None:
    """Click rate of each level that was shown, with its interval; None if there are too many to tell apart."""
    shown = np.flatnonzero(np.isfinite(rates[0]))
    if not 1 < len(shown) <= MOST_LEVELS:
        return None
    names, places = [levels[int(level)] for level in shown], range(len(shown))
    values, low, high = (array[shown] for array in rates)
    figure, axes = blank(7.2, 3.0, xlabel=factor, ylabel="click rate")
    axes.bar(places, values, color=BLUE, alpha=0.75, width=0.7)
    axes.errorbar(places, values, np.abs([values - low, high - values]), fmt="none", color="black", capsize=3)
    axes.set_xticks(places, names, rotation=45 if max(map(len, names)) > 4 and len(names) > 6 else 0)
    told = ", ".join(f"{level} {value:.3f}" for level, value in zip(names, values, strict=True))
    return Drawing(figure, f"Click rate by {factor}: {told}")


def rates_over_time(periods: Sequence[str], rates: Band) -> Drawing:
    """Click rate of each period with its interval."""
    figure, axes = blank(7.2, 2.6, ylabel="click rate")
    places, (values, low, high) = np.arange(len(periods)), rates
    axes.fill_between(places, low, high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(places, values, "o-", color=BLUE)
    axes.set_xticks(places, periods, rotation=30, ha="right", fontsize=8)
    axes.set_ylim(bottom=0)
    return Drawing(figure, f"Click rate over time: {', '.join(f'{value:.3f}' for value in values)}")


def position_bias(curves: Mapping[str, Band], positions: Sequence[str]) -> Drawing | None:
    """Bias of each position over the first by estimator, with intervals; None without a curve."""
    if not curves:
        return None
    figure, axes = blank(7.2, 3.8, xlabel="position", ylabel="bias over position 1")
    places = np.arange(1, len(positions) + 1)
    for number, (estimator, (values, low, high)) in enumerate(curves.items()):
        axes.errorbar(
            places + 0.09 * (number - (len(curves) - 1) / 2),
            values,
            np.where(np.isfinite(low), np.abs([values - low, high - values]), 0),
            fmt="o--" if estimator == "click-rate" else "o-",
            color=_ESTIMATORS[estimator],
            markersize=4,
            linewidth=1.3,
            elinewidth=1,
            label=estimator,
        )
    axes.set_xticks(places, positions)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9)
    told = "; ".join(f"{name}: {' '.join(f'{value:.2f}' for value in each)}" for name, (each, _, _) in curves.items())
    return Drawing(figure, f"Position bias over the first position by estimator. {told}")


def links(names: Sequence[str], strength: Doubles, *, parts: int, title: str = "position") -> Drawing | None:
    """Links [values, values] by documents, 0 where there is none; None without links or with too many values."""
    if not strength.any() or len(names) > MOST_LEVELS:
        return None
    figure, axes = blank(5.2, 4.2, xlabel=title, ylabel=title)
    image = axes.imshow(np.log10(np.where(strength > 0, strength, np.nan)), cmap="Blues", vmin=0)
    figure.colorbar(image, ax=axes, label="effective impressions, powers of 10", shrink=0.85)
    axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 3 else 0, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    count = np.count_nonzero(np.triu(strength))
    return Drawing(
        figure, f"Links between values of {title} by documents seen under both: {count} links, {parts} part(s)"
    )


def click_matrix(
    rates: Doubles, values: Doubles, *, rows: Sequence[object] | None = None, ylabel: str, titles: tuple[str, str]
) -> Drawing:
    """Click rates [groups, positions] as a heat map, with their singular values beside it."""
    figure, (left, right) = blank(8.4, 0.3 * len(rates) + 1.9, columns=2, width_ratios=(2.6, 1))
    _draw_rates(left, rates, rows=rows, ylabel=ylabel, title=titles[0])
    _draw_singular_values(right, values, title=titles[1])
    return Drawing(figure, f"Click rates by {ylabel} and position; {titles[1]}: {_listed(values)}")


def narrow_click_matrix(
    rates: Doubles, values: Doubles, *, rows: Sequence[object], columns: Sequence[object], ylabel: str
) -> tuple[Drawing, Drawing]:
    """The same as two narrow figures."""
    left, axes = blank(NARROW, 0.3 * len(rates) + 1.2)
    _draw_rates(axes, rates, rows=rows, columns=columns, ylabel=ylabel, title="click rates")
    right, axes = blank(NARROW, 0.3 * len(rates) + 1.2)
    _draw_singular_values(axes, values, title="singular values")
    return (
        Drawing(left, f"Click rates by {ylabel} and position, from {rates.min():.3f} to {rates.max():.3f}"),
        Drawing(right, f"Singular values of the click rates: {_listed(values)}"),
    )


def _draw_rates(
    axes: Any,
    rates: Doubles,
    *,
    rows: Sequence[object] | None = None,
    columns: Sequence[object] | None = None,
    ylabel: str,
    title: str,
) -> None:
    """Click rates [groups, positions] as a heat map with the numbers in it, or with a scale where they are many."""
    from matplotlib import colormaps

    shades = colormaps["Blues"]
    top = float(rates.max()) or 1.0
    image = axes.imshow(rates, aspect="auto", cmap=shades, vmin=0, vmax=top)
    if rates.shape[1] <= MOST_NUMBERS:
        for (group, position), rate in np.ndenumerate(rates):
            text = (f"{rate:.2f}" if rate >= 0.095 else f"{rate:.3f}").removeprefix("0")
            # It stands inside its cell, so that the layout need not look at it.
            label = axes.text(position, group, text, ha="center", va="center", fontsize=8, in_layout=False)
            label.set_color(ink_on(shades(rate / top)))
            label.set_gid(f"cell-{group}-{position}")
    else:
        axes.figure.colorbar(image, ax=axes)
    places = range(0, rates.shape[1], 1 if rates.shape[1] <= 20 else 5)
    axes.set_xticks(places, [str(place + 1 if columns is None else columns[place]) for place in places])
    axes.set_yticks(range(len(rates)), [str(number) for number in rows or range(1, len(rates) + 1)])
    axes.set(xlabel="position", ylabel=ylabel)
    axes.set_title(title, loc="left", fontsize=10)


def _draw_singular_values(axes: Any, values: Doubles, *, title: str) -> None:
    """Singular values as bars, those after the first in another colour: a product of two numbers has none."""
    axes.bar(range(1, len(values) + 1), values, color=[BLUE, *[RED] * (len(values) - 1)])
    for rank, value in enumerate(values, start=1):
        axes.annotate(f"{value:.3f}", (rank, value), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    axes.set_xticks(range(1, len(values) + 1))
    axes.margins(y=0.12)
    axes.set_title(title, loc="left", fontsize=10)


def _listed(values: Doubles) -> str:
    return ", ".join(f"{value:.3f}" for value in values)

"""Every figure of a page, drawn from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.counted import counted
from ultr.pages.drawing import (
    BLUE,
    GREEN,
    GREY,
    MOST_LEVELS,
    NARROW,
    ORANGE,
    PURPLE,
    RED,
    Drawing,
    blank,
    cell_tip,
    ink_on,
    tip,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NUMBERS = 12
"""Most columns of a heat map with the numbers written into it."""
MOST_LETTERS = 120
"""Letters of all names along an axis that can still be read."""
FEW = 5
"""Curves with at most this many points show them."""
HIGHEST = 3.0
"""An axis of curves from zero ends at so many times the largest value; intervals beyond would leave nothing to see."""
MOST_TOLD = 20
"""Most points of a learning curve that say their values."""
MOST_DOTS = 3_000
MOST_BASES = 150
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)
_STYLES = {ORANGE: "--", PURPLE: "-.", RED: ":"}
"""Lines of one colour have one style, so that they can be told apart on paper too."""
_SHADES = ("#e3b34f", "#7fae6a", "#3f9a95", "#3b6fb6", "#7b52ab")
"""From low to high, all of them visible on white and on black."""
_DASHES = ("--", ":", "-.", (0, (5, 1)), (0, (1, 3)), (0, (3, 1, 1, 1)))

Band = tuple[Doubles, Doubles, Doubles]
"""Values, low and high; both ends NaN where there is no interval."""
Line = tuple[Sequence[float], Sequence[float]]
"""Steps and values."""
Estimate = tuple[float, float, float]
"""Mean, low and high."""


def click_rates(factor: str, levels: Sequence[str], rates: Band, impressions: Integers) -> Drawing | None:
    """Click rate of each level that was shown, with its interval; None if there are too many to tell apart."""
    shown = np.flatnonzero(np.isfinite(rates[0]))
    if not 1 < len(shown) <= MOST_LEVELS:
        return None
    names, places = [levels[int(level)] for level in shown], np.arange(len(shown), dtype=np.float64)
    values, low, high = (array[shown] for array in rates)
    figure, axes = blank(NARROW, 2.7, xlabel=factor, ylabel="click rate")
    axes.bar(places, values, color=BLUE, alpha=0.75, width=0.7)
    axes.errorbar(places, values, np.abs([values - low, high - values]), fmt="none", color="black", capsize=2)
    _name_places(axes, places, names)
    for place, name, seen, *estimate in zip(places, names, impressions[shown], values, low, high, strict=True):
        tip(axes, [place, place], [0, estimate[0]], f"{factor} {name}: {_clicked(seen, *estimate)}")
    told = ", ".join(f"{level} {value:.3f}" for level, value in zip(names, values, strict=True))
    return Drawing(figure, f"Click rate by {factor}: {told}")


def rates_over_time(periods: Sequence[str], rates: Band, impressions: Integers) -> Drawing:
    """Click rate of each period with its interval."""
    figure, axes = blank(NARROW, 2.6, ylabel="click rate")
    places, (values, low, high) = np.arange(len(periods), dtype=np.float64), rates
    axes.fill_between(places, low, high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(places, values, "o-", color=BLUE)
    axes.set_xticks(places, periods, rotation=30, ha="right", fontsize=8)
    axes.set_ylim(bottom=0)
    for place, name, seen, *estimate in zip(places, periods, impressions, *rates, strict=True):
        tip(axes, place, estimate[0], f"{name}: {_clicked(seen, *estimate)}")
    return Drawing(figure, f"Click rate over time: {', '.join(f'{value:.3f}' for value in values)}")


def curves(
    found: Mapping[str, Band],
    names: Sequence[str],
    colours: Mapping[str, str] | None = None,
    *,
    xlabel: str,
    ylabel: str,
    from_zero: bool = True,
) -> Drawing | None:
    """A curve over some levels for each name, with intervals where there are some; None if there is too much to see."""
    if not found or not 1 < len(names) <= MOST_LEVELS:
        return None
    colours = dict(zip(found, COLOURS * len(found), strict=False)) if colours is None else colours
    figure, axes = blank(NARROW, 2.9, xlabel=xlabel, ylabel=ylabel)
    places, last = np.arange(len(names), dtype=np.float64), len(found) - 1
    for number, (name, (values, low, high)) in enumerate(found.items()):
        wide, style = _wide(number, len(found)), f"o{_STYLES.get(colours[name], '-')}"
        at = places + (0.09 * (number - last / 2) if np.isfinite(low).any() else 0)
        axes.plot(
            at, values, style, color=colours[name], markersize=4, linewidth=wide, label=_brief(name), clip_on=False
        )
        if np.isfinite(low).any():
            ends = np.where(np.isfinite(low), np.abs([values - low, high - values]), 0)
            axes.errorbar(at, values, ends, fmt="none", ecolor=colours[name], elinewidth=1)
        for place, level, *estimate in zip(at, names, values, low, high, strict=True):
            tip(axes, place, estimate[0], f"{name}, {xlabel} {level}: {ylabel} {_told(*estimate)}")
    axes.margins(x=0.05)
    cut = ""
    if from_zero:
        axes.axhline(1, color=GREY, linewidth=0.8, zorder=0)
        end = HIGHEST * max(1.0, *(float(np.nanmax(values, initial=0)) for values, _, _ in found.values()))
        beyond = any((high > end).any() for _, _, high in found.values())
        axes.set_ylim(0, end if beyond else None)
        cut = f"; intervals are cut off at {end:.2f}" if beyond else ""
    _name_places(axes, places, names)
    _legend(figure, len(found))
    told = "; ".join(f"{name}: {' '.join(f'{value:.2f}' for value in each)}" for name, (each, _, _) in found.items())
    return Drawing(figure, f"{ylabel} by {xlabel}. {told}{cut}")


def links(names: Sequence[str], strength: Doubles, *, parts: int, title: str = "position") -> Drawing | None:
    """Links [values, values] by documents, 0 where there is none; None without links or with more values than fit."""
    if not strength.any() or len(names) > MOST_LEVELS or sum(map(len, names)) > MOST_LETTERS:
        return None
    figure, axes = blank(NARROW, 3.6, xlabel=title, ylabel=title)
    image = axes.imshow(np.log10(np.where(strength > 0, strength, np.nan)), cmap="Blues", vmin=0)
    figure.colorbar(image, ax=axes, label="effective impressions, log10", shrink=0.85)
    axes.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0, fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    for row, column in np.argwhere(strength > 0):
        seen = f"{strength[row, column]:,.0f} effective impressions of documents seen under both"
        cell_tip(axes, column, row, f"{title} {names[row]} and {names[column]}: {seen}")
    count = np.count_nonzero(np.triu(strength))
    return Drawing(
        figure, f"Links between values of {title} by documents seen under both: {count} links, {parts} part(s)"
    )


def rate_map(
    rates: Doubles, *, ylabel: str, rows: Sequence[object] | None = None, positions: Sequence[int] = ()
) -> Drawing:
    """Click rates [groups, positions] as a heat map with the numbers in it, or with a scale where they are many.

    `positions` are those of the rates, by default all from the first.
    """
    from matplotlib import colormaps

    shades, top = colormaps["Blues"], float(rates.max()) or 1.0
    figure, axes = blank(NARROW, 0.3 * len(rates) + 1.0, xlabel="position", ylabel=ylabel)
    image = axes.imshow(rates, aspect="auto", cmap=shades, vmin=0, vmax=top)
    if rates.shape[1] <= MOST_NUMBERS:
        for (group, position), rate in np.ndenumerate(rates):
            text = (f"{rate:.2f}" if rate >= 0.095 else f"{rate:.3f}").removeprefix("0")
            # It stands inside its cell, so that the layout need not look at it.
            label = axes.text(position, group, text, ha="center", va="center", fontsize=7.5, in_layout=False)
            label.set_color(ink_on(shades(rate / top)))
            label.set_gid(f"cell-{group}-{position}")
    else:
        figure.colorbar(image, ax=axes)
    places = range(0, rates.shape[1], 1 if rates.shape[1] <= 20 else 5)
    called, groups = positions or range(1, rates.shape[1] + 1), rows or range(1, len(rates) + 1)
    for (group, place), rate in np.ndenumerate(rates):
        cell_tip(axes, place, group, f"{ylabel} {groups[group]}, position {called[place]}: {_clicked(None, rate)}")
    axes.set_xticks(places, [str(called[place]) for place in places], fontsize=8 if len(places) > MOST_NUMBERS else 10)
    axes.set_yticks(range(len(rates)), [str(number) for number in groups])
    return Drawing(figure, f"Click rates by {ylabel} and position, from {rates.min():.3f} to {rates.max():.3f}")


def singular_values(values: Doubles) -> Drawing:
    """Singular values as bars, those after the first in another colour: a product of two numbers has none."""
    figure, axes = blank(NARROW, 2.5, xlabel="rank")
    axes.bar(range(1, len(values) + 1), values, color=[BLUE, *[RED] * (len(values) - 1)])
    for rank, value in enumerate(values, start=1):
        axes.annotate(f"{value:.3f}", (rank, value), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        tip(axes, [rank, rank], [0, value], f"singular value {rank} of {len(values)}: {value:.4f}")
    axes.set_xticks(range(1, len(values) + 1))
    axes.margins(y=0.12)
    return Drawing(figure, f"Singular values of the click rates: {', '.join(f'{value:.3f}' for value in values)}")


def intervals(found: Mapping[str, Estimate], colours: Mapping[str, str], *, measure: str) -> Drawing:
    """The measure of each model with its interval."""
    figure, axes = blank(NARROW, 0.5 * len(found) + 1, xlabel=f"{measure}, 95 % interval")
    _draw_intervals(axes, found, colours)
    told = ", ".join(f"{name} {_told(*estimate)}" for name, estimate in found.items())
    return Drawing(figure, f"{measure}: {told}")


def demo(found: Mapping[str, Estimate], observation: Doubles, *, measure: str) -> Drawing:
    """Measure of each ranker, from raw clicks to labels, and the observation embedding of each position [..., 2]."""
    figure, (left, right) = blank(9.6, 3.6, columns=2, width_ratios=(1.1, 1))
    _draw_intervals(left, found, dict(zip(found, [GREY, *[BLUE] * (len(found) - 2), GREEN], strict=True)))
    left.set_xlabel(f"{measure} on judged test queries, 95 % interval")
    left.set_title("How good is the ranker?", loc="left")
    right.plot(*observation.T, color=GREY, linewidth=1, zorder=1)
    right.scatter(*observation.T, s=40, color=BLUE, zorder=2)
    for position, point in enumerate(observation, start=1):
        right.annotate(str(position), point, textcoords="offset points", xytext=(6, 4), fontsize=9)
        tip(right, point[0], point[1], f"position {position}: {point[0]:.3f}, {point[1]:.3f}")
    right.margins(0.12)
    right.set(xlabel="o₁", ylabel="o₂")
    right.set_title("What it learned about each position", loc="left")
    return Drawing(figure, f"{measure} of each ranker, and the embedding of each position")


def learning_curves(
    found: Mapping[str, Line], colours: Mapping[str, str], *, ylabel: str, best: bool = False
) -> Drawing:
    """A curve over the steps for each name, with a ring around its highest point if asked for."""
    figure, axes = blank(NARROW, 2.7, xlabel="step", ylabel=ylabel)
    axes.xaxis.get_major_locator().set_params(integer=True)
    for number, (name, (steps, values)) in enumerate(found.items()):
        style = f"{'' if len(steps) > FEW else 'o'}{_STYLES.get(colours[name], '-')}"
        wide = _wide(number, len(found))
        axes.plot(steps, values, style, color=colours[name], markersize=4, linewidth=wide, label=_brief(name))
        top = int(np.argmax(values))
        if best:
            axes.plot(steps[top], values[top], "o", markersize=9, markerfacecolor="none", color=colours[name])
        for place in sorted({*np.linspace(0, len(steps) - 1, MOST_TOLD).astype(int).tolist(), top}):
            which = "best at " if best and place == top else "last at " if place == len(steps) - 1 else ""
            tip(axes, steps[place], values[place], f"{name}, {which}step {steps[place]:,}: {values[place]:.4f}")
    _legend(figure, len(found))
    told = "; ".join(
        f"{name} from {values[0]:.4f} to {values[-1]:.4f}" + (f", best {max(values):.4f}" if best else "")
        for name, (_, values) in found.items()
    )
    return Drawing(figure, f"{ylabel} over the steps: {told}")


def plane(
    relevance: Doubles,
    values: Doubles,
    observation: Doubles,
    base: Doubles,
    *,
    value_name: str = "grade",
    axis_names: tuple[str, str] = ("r₁", "r₂"),
    note: str = "",
) -> Drawing:
    """Documents by grade, the direction of each position dotted, those of the base vectors as dots, their mean solid.

    All are [..., 2]; only directions matter for positions and base vectors, so both reach as far as the documents.
    """
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap

    figure, axes = blank(NARROW, 3.7, xlabel=axis_names[0], ylabel=axis_names[1])
    shades = LinearSegmentedColormap.from_list("grades", _SHADES)
    random = np.random.default_rng(0)
    shown = random.permutation(len(relevance))[:MOST_DOTS]
    dots = axes.scatter(
        *relevance[shown].T, c=values[shown], s=6, cmap=shades, alpha=0.7, linewidths=0, rasterized=True
    )
    reach = float(np.quantile(np.linalg.norm(relevance, axis=1), 0.98))
    reds = mpl.colormaps["autumn"](np.linspace(0, 0.6, len(observation)))
    turned = angles(observation, base)
    marked = _apart(turned)
    for position, (end, colour) in enumerate(zip(_as_long(observation, reach), reds, strict=True), start=1):
        axes.plot(*np.transpose([-end, end]), ":", color=colour, linewidth=1.2, zorder=3)
        if position - 1 in marked:
            axes.annotate(str(position), 1.07 * end, fontsize=8, ha="center", va="center", zorder=4)
            said = f"position {position}: {turned[position - 1]:.0f}° from the mean base vector"
            tip(axes, [-end[0], end[0]], [-end[1], end[1]], said, wide=7)
    ends = _as_long(base[random.permutation(len(base))[:MOST_BASES]], reach)
    axes.plot(*ends.T, "o", color="black", markersize=2.5, alpha=0.5, zorder=3, label="base vectors of queries")
    end = _as_long(base.mean(axis=0), reach)
    axes.plot(*np.transpose([-end, end]), "-", color="black", linewidth=1.5, zorder=3, label="their mean")
    said = "mean base vector: documents are ranked along those of their queries"
    tip(axes, [-end[0], end[0]], [-end[1], end[1]], said, wide=7)
    axes.plot([], [], ":", color=reds[0], label="positions")
    ticks = np.unique(values) if len(np.unique(values)) <= 10 else None
    figure.colorbar(dots, ax=axes, label=value_name, ticks=ticks, shrink=0.8)
    axes.set_aspect("equal", adjustable="datalim")
    _legend(figure, 3)
    told = ", ".join(f"{position}: {angle:.0f}°" for position, angle in enumerate(turned, start=1))
    return Drawing(figure, f"Directions of the positions from the mean base vector, {told}.{note}")


def angles(observation: Doubles, base: Doubles) -> Doubles:
    """Degrees from the mean of the base vectors to each observation embedding, from -180 to 180.

    >>> angles(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0]])).tolist()
    [-90.0, 0.0]
    """
    across, up = base.mean(axis=0)
    turned = np.degrees(np.arctan2(observation[:, 1], observation[:, 0]) - np.arctan2(up, across))
    wrapped: Doubles = (turned + 180) % 360 - 180
    return wrapped


def moves(
    left: Sequence[str], right: Sequence[str], order: Sequence[int], told: Sequence[str], *, sides: tuple[str, str]
) -> Drawing:
    """Two orders of the same documents with a line for each.

    `order` has the place on the left of each on the right; `told` are the words on each on the right.
    """
    count = len(order)
    figure, axes = blank(NARROW, 0.27 * count + 0.75)
    for place, before in enumerate(order):
        colour, style = (GREEN, "-") if before > place else (RED, "--") if before < place else (GREY, "-")
        axes.plot([0, 1], [before, place], style, color=colour, linewidth=1 + min(abs(before - place), 6) / 3)
        tip(axes, [-0.9, 0, 1, 1.8], [before, before, place, place], told[place])
    for x, texts, side, align in ((0, left, sides[0], "right"), (1, right, sides[1], "left")):
        for place, text in enumerate(texts):
            axes.annotate(text, (1.06 * x - 0.03, place), ha=align, va="center", fontsize=9)
        axes.annotate(_brief(side), (x, -1), ha=align, va="center", fontsize=9, fontweight="bold")
    axes.set_xlim(-0.95, 1.85)
    axes.set_ylim(count - 0.5, -1.5)
    axes.set_axis_off()
    return Drawing(figure, f"{sides[0]}: {', '.join(left)}. {sides[1]}: {', '.join(right)}")


def values_by_seed(
    found: Mapping[str, Mapping[str, Doubles]],
    colours: Mapping[str, str],
    *,
    labels: Sequence[str],
    measure: str,
) -> Drawing:
    """Mean of every ranker, each seed a small dot, by name of the ways of choosing weights.

    `colours` are those of rankers that stand out from the colour of their way.
    """
    figure, axes = blank(7.2, 0.34 * len(labels) + 1.2, xlabel=measure)
    for number, ((way, by_label), colour) in enumerate(zip(found.items(), (BLUE, ORANGE), strict=False)):
        for row, label in enumerate(labels):
            values, place = by_label[label], row + 0.14 * (2 * number - len(found) + 1)
            axes.plot(values, np.full(len(values), place), "o", color=colour, markersize=3, alpha=0.4)
            axes.plot(values.mean(), place, "D", color=colours.get(label, colour), markersize=6)
            spread = f"from {values.min():.4f} to {values.max():.4f} over {counted(len(values), 'seed')}"
            said = f"{label}, weights chosen by {way}: mean {measure} {values.mean():.4f}, {spread}"
            tip(axes, [values.min(), values.max()], [place, place], said, wide=9)
        axes.plot([], [], "D", color=colour, label=f"weights chosen by {way}")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    _legend(figure, len(found))
    told = "; ".join(
        f"{way}: {', '.join(f'{label} {values.mean():.3f}' for label, values in by_label.items())}"
        for way, by_label in found.items()
    )
    return Drawing(figure, f"Mean {measure} over seeds by how weights were chosen. {told}")


def bands(
    means: Mapping[str, Band], lines: Mapping[str, Estimate], *, xlabel: str, ylabel: str, ink: str = GREY
) -> Drawing:
    """Curves of means by name, as places, means and deviations; and values that depend on nothing as lines across."""
    figure, axes = blank(5.4, 3.8, xlabel=xlabel, ylabel=ylabel)
    for (label, (places, mean, deviation)), colour in zip(means.items(), (BLUE, ORANGE), strict=False):
        axes.plot(places, mean, "o-", color=colour, label=label)
        axes.fill_between(places, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
        axes.set_xticks(places)
        for place, value, spread in zip(places, mean, deviation, strict=True):
            tip(axes, place, value, f"{label}, {xlabel} {place:g}: {ylabel} {value:.4f} ± {spread:.4f}")
    for (label, (mean_across, low, high)), style in zip(lines.items(), _DASHES, strict=False):
        axes.axhline(mean_across, color=ink, linestyle=style, linewidth=1, label=label)
        axes.axhspan(low, high, color=ink, alpha=0.1, linewidth=0)
    for label, (mean_across, low, high) in lines.items():
        tip(axes, axes.get_xlim(), mean_across, f"{label}: {ylabel} {_told(mean_across, low, high)}", wide=7)
    _legend(figure, len(means) + len(lines))
    told = "; ".join(f"{name}: {' '.join(f'{value:.3f}' for value in each)}" for name, (_, each, _) in means.items())
    across = ", ".join(f"{name} {mean:.3f}" for name, (mean, _, _) in lines.items())
    return Drawing(figure, f"{ylabel} by {xlabel}. {told}. {across}")


def bars(values: Mapping[str, float], *, xlabel: str) -> Drawing:
    """One bar for each name."""
    figure, axes = blank(6.4, 0.5 * len(values) + 1, xlabel=xlabel)
    axes.barh(list(values), list(values.values()), color=BLUE, height=0.6)
    for row, (name, value) in enumerate(values.items()):
        axes.annotate(f"{value:.2f}", (value, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        tip(axes, [0, value], [row, row], f"{name}: {value:.2f} {xlabel}")
    axes.invert_yaxis()
    axes.margins(x=0.12)
    return Drawing(figure, f"{xlabel}: {', '.join(f'{name} {value:.2f}' for name, value in values.items())}")


def _draw_intervals(axes: Any, found: Mapping[str, Estimate], colours: Mapping[str, str]) -> None:
    """A row for each name: its interval as a bar, its mean as a dot with the number above."""
    for row, (name, (mean, low, high)) in enumerate(found.items()):
        axes.plot([low, high], [row, row], color=colours[name], linewidth=6, alpha=0.35)
        axes.plot(mean, row, "o", color=colours[name], markersize=9)
        axes.annotate(f"{mean:.3f}", (mean, row), (0, 9), textcoords="offset points", ha="center")
        tip(axes, mean, row, f"{name}: {_told(mean, low, high)}")
    axes.set_yticks(range(len(found)), [_brief(name) for name in found])
    axes.set_ylim(len(found) - 0.5, -0.7)
    axes.margins(x=0.1)


def _told(value: float, low: float, high: float) -> str:
    """A value with its interval, if it has one."""
    return f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if np.isfinite(low) else "")


def _clicked(impressions: int | None, rate: float, low: float = np.nan, high: float = np.nan) -> str:
    """A click rate in words, with its interval and what it is of, if they are known."""
    seen = "impressions" if impressions is None else counted(int(impressions), "impression")
    ends = f" ({100 * low:.3g} to {100 * high:.3g} %)" if np.isfinite(low) else ""
    return f"clicked on {100 * rate:.3g} % of {seen}{ends}"


def _name_places(axes: Any, places: Doubles, names: Sequence[str]) -> None:
    """Name the places along an axis, every fifth where they are many, aslant where names are long."""
    named = np.arange(0, len(names), 5 if len(names) > 15 else 1)
    aslant = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    long = max(map(len, names)) > 4 and len(names) > 3
    axes.set_xticks(places[named], [_brief(names[place]) for place in named.tolist()], **(aslant if long else {}))


def _wide(number: int, count: int) -> float:
    """The first lines are the widest, so that one right under another can still be seen."""
    return 1.6 + 1.1 * (count - 1 - number) / max(count - 1, 1)


def _legend(figure: Figure, count: int) -> None:
    """A legend below the axes, where it hides nothing."""
    if count > 1:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _brief(name: str, most: int = 22) -> str:
    """The end of a name that is too long, which says most of a path."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _as_long(vectors: Doubles, length: float) -> Doubles:
    """The vectors [..., 2], all of one length."""
    scaled: Doubles = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True) * length
    return scaled


def _apart(turned: Doubles, *, degrees: float = 6.0) -> set[int]:
    """Directions that are far enough apart to be labelled, the first ones before the others."""
    kept: list[int] = []
    for number, angle in enumerate(turned):
        if all(abs((angle - turned[other] + 180) % 360 - 180) >= degrees for other in kept):
            kept.append(number)
    return set(kept)

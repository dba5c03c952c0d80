"""Figures of rankers and of experiments with them, drawn from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ultr.arrays import Doubles
from ultr.pages.drawing import BLUE, GREEN, GREY, MOST_LEVELS, NARROW, ORANGE, PURPLE, RED, Drawing, blank

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 5
"""Curves with at most this many points show them."""
MOST_DOTS = 3_000
MOST_BASES = 150
_STYLES = {ORANGE: "--", PURPLE: "-.", RED: ":"}
"""Lines of one colour have one style, so that they can be told apart on paper too."""
_MARKS = {ORANGE: "s", PURPLE: "D", RED: "^", GREY: "v"}
_SHADES = ("#e3b34f", "#7fae6a", "#3f9a95", "#3b6fb6", "#7b52ab")
"""From low to high, all of them visible on white and on black."""
_DASHES = ("--", ":", "-.", (0, (5, 1)), (0, (1, 3)), (0, (3, 1, 1, 1)))

Curve = tuple[Sequence[float], Sequence[float]]
"""Steps and values."""
Estimate = tuple[float, float, float]
"""Mean, low and high."""
Band = tuple[Doubles, Doubles, Doubles]
"""Places, means and deviations."""


def intervals(found: Mapping[str, Estimate], colours: Mapping[str, str], *, measure: str) -> Drawing:
    """The measure of each model with its interval."""
    figure, axes = blank(NARROW, 0.55 * len(found) + 1, xlabel=f"{measure}, 95 % interval")
    _draw_intervals(axes, found, colours)
    told = ", ".join(f"{name} {mean:.3f} ({low:.3f} to {high:.3f})" for name, (mean, low, high) in found.items())
    return Drawing(figure, f"{measure} on judged queries: {told}")


def demo(found: Mapping[str, Estimate], observation: Doubles, *, measure: str) -> Figure:
    """Measure of each ranker, from raw clicks to labels, and the observation embedding of each position [..., 2]."""
    figure, (left, right) = blank(9.6, 3.6, columns=2, width_ratios=(1.1, 1))
    _draw_intervals(left, found, dict(zip(found, [GREY, *[BLUE] * (len(found) - 2), GREEN], strict=True)))
    left.set_xlabel(f"{measure} on judged test queries, 95 % interval")
    left.set_title("How good is the ranker?", loc="left")
    right.plot(*observation.T, color=GREY, linewidth=1, zorder=1)
    right.scatter(*observation.T, s=40, color=BLUE, zorder=2)
    for position, point in enumerate(observation, start=1):
        right.annotate(str(position), point, textcoords="offset points", xytext=(6, 4), fontsize=9)
    right.margins(0.12)
    right.set(xlabel="$o_1$", ylabel="$o_2$")
    right.set_title("What it learned about each position", loc="left")
    return figure


def learning_curves(
    found: Mapping[str, Curve], colours: Mapping[str, str], *, title: str, ylabel: str, best: bool = False
) -> Drawing:
    """A curve over the steps for each name, with a ring around its highest point if asked for."""
    figure, axes = blank(NARROW, 2.7, title=title, xlabel="step", ylabel=ylabel)
    for name, (steps, values) in found.items():
        style = f"{'' if len(steps) > FEW else 'o'}{_STYLES.get(colours[name], '-')}"
        axes.plot(steps, values, style, color=colours[name], markersize=4, linewidth=1.6, label=_brief(name))
        if best:
            top = int(np.argmax(values))
            axes.plot(steps[top], values[top], "o", markersize=9, markerfacecolor="none", color=colours[name])
    _legend(figure, len(found))
    told = "; ".join(
        f"{name} from {values[0]:.4f} to {values[-1]:.4f}" + (f", best {max(values):.4f}" if best else "")
        for name, (_, values) in found.items()
    )
    return Drawing(figure, f"{ylabel} over the steps of {title}: {told}")


def levels(
    found: Mapping[str, Doubles],
    names: Sequence[str],
    colours: Mapping[str, str],
    *,
    factor: str,
    ylabel: str,
    title: str,
    ratios: bool = False,
) -> Drawing | None:
    """A value for each level of a bias factor, one curve for each name; None if there are too many to tell apart."""
    if not 1 < len(names) <= MOST_LEVELS:
        return None
    figure, axes = blank(NARROW, 2.9, title=title, xlabel=factor, ylabel=ylabel)
    places, ordered = np.arange(len(names)), factor == "position"
    for name, values in found.items():
        style = f"o{_STYLES.get(colours[name], '-')}" if ordered else _MARKS.get(colours[name], "o")
        size = 4 if ordered else 7
        axes.plot(places, values, style, color=colours[name], markersize=size, linewidth=1.6, label=_brief(name))
    axes.margins(x=0.05 if ordered else 0.25)
    if ratios:
        axes.axhline(1, color=GREY, linewidth=0.8, zorder=0)
        axes.set_ylim(bottom=0)
    shown = places[:: 5 if len(names) > 15 else 1]
    axes.set_xticks(shown, [_brief(names[place]) for place in shown])
    if max(map(len, names)) > 4 and len(names) > 3:
        axes.tick_params(axis="x", labelrotation=40)
    _legend(figure, len(found))
    told = "; ".join(f"{name}: {' '.join(f'{value:.2f}' for value in values)}" for name, values in found.items())
    return Drawing(figure, f"{title}, {ylabel} by {factor}. {told}")


def plane(
    relevance: Doubles,
    values: Doubles,
    observation: Doubles,
    base: Doubles,
    *,
    title: str,
    value_name: str = "grade",
    axis_names: tuple[str, str] = ("r₁", "r₂"),
    note: str = "",
) -> Drawing:
    """Documents by grade, the direction of each position dotted, those of the base vectors as dots, their mean solid.

    All are [..., 2]; only directions matter for positions and base vectors, so both reach as far as the documents.
    """
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap

    figure, axes = blank(NARROW, 3.7, title=title, xlabel=axis_names[0], ylabel=axis_names[1])
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
    ends = _as_long(base[random.permutation(len(base))[:MOST_BASES]], reach)
    axes.plot(*ends.T, "o", color="black", markersize=2.5, alpha=0.5, zorder=3, label="base vectors of queries")
    end = _as_long(base.mean(axis=0), reach)
    axes.plot(*np.transpose([-end, end]), "-", color="black", linewidth=1.5, zorder=3, label="their mean")
    axes.plot([], [], ":", color=reds[0], label="positions")
    ticks = np.unique(values) if len(np.unique(values)) <= 10 else None
    figure.colorbar(dots, ax=axes, label=value_name, ticks=ticks, shrink=0.8)
    axes.set_aspect("equal", adjustable="datalim")
    _legend(figure, 3)
    told = ", ".join(f"{position}: {angle:.0f}°" for position, angle in enumerate(turned, start=1))
    return Drawing(figure, f"{title}: directions of the positions from the mean base vector, {told}.{note}")


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
    left: Sequence[str], right: Sequence[str], order: Sequence[int], *, sides: tuple[str, str], title: str
) -> Drawing:
    """Two orders of the same documents with a line for each; `order` has the place on the left of each on the right."""
    count = len(order)
    figure, axes = blank(NARROW, 0.27 * count + 0.75, title=title)
    for place, before in enumerate(order):
        colour, style = (GREEN, "-") if before > place else (RED, "--") if before < place else (GREY, "-")
        axes.plot([0, 1], [before, place], style, color=colour, linewidth=1 + min(abs(before - place), 6) / 3)
    for x, texts, side, align in ((0, left, sides[0], "right"), (1, right, sides[1], "left")):
        for place, text in enumerate(texts):
            axes.annotate(text, (1.06 * x - 0.03, place), ha=align, va="center", fontsize=9)
        axes.annotate(_brief(side), (x, -1), ha=align, va="center", fontsize=9, fontweight="bold")
    axes.set_xlim(-0.95, 1.85)
    axes.set_ylim(count - 0.5, -1.5)
    axes.set_axis_off()
    return Drawing(figure, f"{title}. {sides[0]}: {', '.join(left)}. {sides[1]}: {', '.join(right)}")


def values_by_seed(
    found: Mapping[str, Mapping[str, Doubles]],
    colours: Mapping[str, str],
    *,
    labels: Sequence[str],
    measure: str,
    title: str,
) -> Figure:
    """Mean of every ranker, each seed a small dot, by name of the ways of choosing weights.

    `colours` are those of rankers that stand out from the colour of their way.
    """
    figure, axes = blank(7.2, 0.34 * len(labels) + 1.2, title=title, xlabel=measure)
    for number, ((way, by_label), colour) in enumerate(zip(found.items(), (BLUE, ORANGE), strict=False)):
        for row, label in enumerate(labels):
            values, place = by_label[label], row + 0.14 * (2 * number - len(found) + 1)
            axes.plot(values, np.full(len(values), place), "o", color=colour, markersize=3, alpha=0.4)
            axes.plot(values.mean(), place, "D", color=colours.get(label, colour), markersize=6)
        axes.plot([], [], "D", color=colour, label=f"weights chosen by {way}")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    if len(found) > 1:
        axes.legend(frameon=False, fontsize=8)
    return figure


def bands(
    curves: Mapping[str, Band], lines: Mapping[str, Estimate], *, xlabel: str, ylabel: str, title: str, ink: str = GREY
) -> Figure:
    """Curves of means with their deviations as bands, and values that depend on nothing as lines across."""
    figure, axes = blank(5.4, 3.8, title=title, xlabel=xlabel, ylabel=ylabel)
    for (label, (places, mean, deviation)), colour in zip(curves.items(), (BLUE, ORANGE), strict=False):
        axes.plot(places, mean, "o-", color=colour, label=label)
        axes.fill_between(places, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
        axes.set_xticks(places)
    for (label, (mean_across, low, high)), style in zip(lines.items(), _DASHES, strict=False):
        axes.axhline(mean_across, color=ink, linestyle=style, linewidth=1, label=label)
        axes.axhspan(low, high, color=ink, alpha=0.1, linewidth=0)
    axes.legend(frameon=False, fontsize=8)
    return figure


def bars(values: Mapping[str, float], *, xlabel: str) -> Figure:
    """One bar for each name."""
    figure, axes = blank(6.4, 0.5 * len(values) + 1, xlabel=xlabel)
    axes.barh(list(values), list(values.values()), color=BLUE, height=0.6)
    for row, value in enumerate(values.values()):
        axes.annotate(f"{value:.2f}", (value, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    return figure


def _draw_intervals(axes: Any, found: Mapping[str, Estimate], colours: Mapping[str, str]) -> None:
    """A row for each name: its interval as a bar, its mean as a dot with the number above."""
    for row, (name, (mean, low, high)) in enumerate(found.items()):
        axes.plot([low, high], [row, row], color=colours[name], linewidth=6, alpha=0.35)
        axes.plot(mean, row, "o", color=colours[name], markersize=9)
        axes.annotate(f"{mean:.3f}", (mean, row), (0, 9), textcoords="offset points", ha="center")
    axes.set_yticks(range(len(found)), [_brief(name) for name in found])
    axes.set_ylim(len(found) - 0.5, -0.7)
    axes.margins(x=0.1)


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

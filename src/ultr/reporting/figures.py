"""What a report draws: narrow figures, of which two stand side by side and one fits a phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ultr.arrays import Doubles
from ultr.metrics import Interval
from ultr.pages.drawing import BLUE, GREEN, GREY, NARROW, ORANGE, PURPLE, RED, Drawing, blank
from ultr.reporting.model import LOWER, UPPER, Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LEVELS = 30
"""More levels of a bias factor than this are not drawn."""
FEW = 5
"""Curves of so few points show them."""
MOST_DOTS = 3_000
MOST_BASES = 150
_PALETTE = (BLUE, ORANGE, PURPLE, RED)
_STYLES = {ORANGE: "--", PURPLE: "-.", RED: ":"}
"""Lines of one colour have one style, so that they can be told apart on paper too."""
_MARKS = {ORANGE: "s", PURPLE: "D", RED: "^", GREY: "v"}
_SHADES = ("#e3b34f", "#7fae6a", "#3f9a95", "#3b6fb6", "#7b52ab")
"""From low to high, all of them visible on white and on black."""

Curve = tuple[Sequence[float], Sequence[float]]


def colours(models: Sequence[Model]) -> dict[str, str]:
    """A colour for each model by name: grey for raw clicks, green for labels."""
    others = [model.name for model in models if not model.is_bound]
    found = {name: _PALETTE[number % len(_PALETTE)] for number, name in enumerate(others)}
    found |= {model.name: GREY for model in models if model.manifest.method == LOWER}
    return found | {model.name: GREEN for model in models if model.manifest.method == UPPER}


def draw_intervals(axes: Any, intervals: Mapping[str, Interval], colours: Mapping[str, str]) -> None:
    """A row for each name: its interval as a bar, its mean as a dot with the number above."""
    for row, (name, interval) in enumerate(intervals.items()):
        axes.plot([interval.low, interval.high], [row, row], color=colours[name], linewidth=6, alpha=0.35)
        axes.plot(interval.mean, row, "o", color=colours[name], markersize=9)
        axes.annotate(f"{interval.mean:.3f}", (interval.mean, row), (0, 9), textcoords="offset points", ha="center")
    axes.set_yticks(range(len(intervals)), [_brief(name) for name in intervals])
    axes.set_ylim(len(intervals) - 0.5, -0.7)
    axes.margins(x=0.1)


def intervals(found: Mapping[str, Interval], colours: Mapping[str, str], *, measure: str) -> Drawing:
    """The measure of each model with its interval."""
    figure, axes = blank(NARROW, 0.55 * len(found) + 1)
    draw_intervals(axes, found, colours)
    axes.set_xlabel(f"{measure}, 95 % interval")
    told = ", ".join(f"{name} {each.mean:.3f} ({each.low:.3f} to {each.high:.3f})" for name, each in found.items())
    return Drawing(figure, f"{measure} on judged queries: {told}")


def curves(
    found: Mapping[str, Curve], colours: Mapping[str, str], *, title: str, ylabel: str, best: bool = False
) -> Drawing:
    """A curve over the steps for each name, with a ring around its highest point if asked for."""
    figure, axes = blank(NARROW, 2.7)
    for name, (steps, values) in found.items():
        style = f"{'' if len(steps) > FEW else 'o'}{_STYLES.get(colours[name], '-')}"
        axes.plot(steps, values, style, color=colours[name], markersize=4, linewidth=1.6, label=_brief(name))
        if best:
            top = int(np.argmax(values))
            axes.plot(steps[top], values[top], "o", markersize=9, markerfacecolor="none", color=colours[name])
    axes.set_xlabel("step")
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left", fontsize=10)
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
    figure, axes = blank(NARROW, 2.9)
    places = np.arange(len(names))
    ordered = factor == "position"
    for name, values in found.items():
        style = f"o{_STYLES.get(colours[name], '-')}" if ordered else _MARKS.get(colours[name], "o")
        axes.plot(
            places,
            values,
            style,
            color=colours[name],
            markersize=4 if ordered else 7,
            linewidth=1.6,
            label=_brief(name),
        )
    axes.margins(x=0.05 if ordered else 0.25)
    if ratios:
        axes.axhline(1, color=GREY, linewidth=0.8, zorder=0)
        axes.set_ylim(bottom=0)
    crowded = len(names) > 15
    shown = places[:: 5 if crowded else 1]
    slanted = max(map(len, names)) > 4 and len(names) > 3
    axes.set_xticks(shown, [_brief(names[place]) for place in shown])
    if slanted:
        axes.tick_params(axis="x", labelrotation=40)
    axes.set_xlabel(factor)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left", fontsize=10)
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
    axis_names: tuple[str, str] = ("$r_1$", "$r_2$"),
) -> Figure:
    """Documents by grade, the direction of each position dotted, those of the base vectors as dots, their mean solid.

    All are [..., 2]; only directions matter for positions and base vectors, so both reach as far as the documents.
    """
    import matplotlib as mpl
    from matplotlib.colors import LinearSegmentedColormap

    figure, axes = blank(NARROW, 3.7)
    shades = LinearSegmentedColormap.from_list("grades", _SHADES)
    random = np.random.default_rng(0)
    shown = random.permutation(len(relevance))[:MOST_DOTS]
    dots = axes.scatter(
        *relevance[shown].T, c=values[shown], s=6, cmap=shades, alpha=0.7, linewidths=0, rasterized=True
    )
    reach = float(np.quantile(np.linalg.norm(relevance, axis=1), 0.98))
    reds = mpl.colormaps["autumn"](np.linspace(0, 0.6, len(observation)))
    marked = _apart(observation)
    for position, (vector, colour) in enumerate(zip(observation, reds, strict=True), start=1):
        end = vector / np.linalg.norm(vector) * reach
        axes.plot([-end[0], end[0]], [-end[1], end[1]], ":", color=colour, linewidth=1.2, zorder=3)
        if position - 1 in marked:
            axes.annotate(str(position), 1.07 * end, fontsize=8, ha="center", va="center", zorder=4)
    few = base[random.permutation(len(base))[:MOST_BASES]]
    ends = few / np.linalg.norm(few, axis=1, keepdims=True) * reach
    axes.plot(*ends.T, "o", color="black", markersize=2.5, alpha=0.5, zorder=3, label="base vectors of queries")
    mean = base.mean(axis=0)
    end = mean / np.linalg.norm(mean) * reach
    axes.plot([-end[0], end[0]], [-end[1], end[1]], "-", color="black", linewidth=1.5, zorder=3, label="their mean")
    axes.plot([], [], ":", color=reds[0], label="positions")
    ticks = np.unique(values) if len(np.unique(values)) <= 10 else None
    figure.colorbar(dots, ax=axes, label=value_name, ticks=ticks, shrink=0.8)
    axes.set_xlabel(axis_names[0])
    axes.set_ylabel(axis_names[1])
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_title(title, loc="left", fontsize=10)
    _legend(figure, 3)
    return figure


def moves(
    left: Sequence[str], right: Sequence[str], order: Sequence[int], *, sides: tuple[str, str], title: str
) -> Drawing:
    """Two orders of the same documents with a line for each; `order` has the place on the left of each on the right."""
    count = len(order)
    figure, axes = blank(NARROW, 0.27 * count + 0.75)
    for place, before in enumerate(order):
        colour, style = (GREEN, "-") if before > place else (RED, "--") if before < place else (GREY, "-")
        axes.plot([0, 1], [before, place], style, color=colour, linewidth=1 + min(abs(before - place), 6) / 3)
    for place, text in enumerate(left):
        axes.annotate(text, (-0.03, place), ha="right", va="center", fontsize=9)
    for place, text in enumerate(right):
        axes.annotate(text, (1.03, place), ha="left", va="center", fontsize=9)
    for x, side, where in ((0, sides[0], "right"), (1, sides[1], "left")):
        axes.annotate(_brief(side), (x, -1), ha=where, va="center", fontsize=9, fontweight="bold")
    axes.set_xlim(-0.95, 1.85)
    axes.set_ylim(count - 0.5, -1.5)
    axes.set_axis_off()
    axes.set_title(title, loc="left", fontsize=10)
    return Drawing(figure, f"{title}. {sides[0]}: {', '.join(left)}. {sides[1]}: {', '.join(right)}")


def _legend(figure: Figure, count: int) -> None:
    """A legend below the axes, where it hides nothing."""
    if count > 1:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _brief(name: str, most: int = 22) -> str:
    """The end of a name that is too long, which says most of a path."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _apart(vectors: Doubles, *, degrees: float = 6.0) -> set[int]:
    """Vectors whose directions are far enough apart to be labelled, the first ones before the others."""
    angles = np.degrees(np.arctan2(vectors[:, 1], vectors[:, 0]))
    kept: list[int] = []
    for number, angle in enumerate(angles):
        if all(abs((angle - angles[other] + 180) % 360 - 180) >= degrees for other in kept):
            kept.append(number)
    return set(kept)

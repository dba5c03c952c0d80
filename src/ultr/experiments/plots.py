"""Plots of experiments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.diagnosis.figures import draw_rates, draw_singular_values
from ultr.experiments.results import OURS, UPPER, Line, Results
from ultr.experiments.spec import REFERENCES
from ultr.experiments.tables import CHOSEN_BY
from ultr.methods.vectorization import Vectorization
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, blank
from ultr.reporting.figures import draw_intervals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ultr.evaluation import Evaluation

Figures: TypeAlias = "dict[str, Figure]"


def name(clicks: str, label: str) -> str:
    """The name of the file for the figure of one ranker in one click setting.

    >>> name("real", "Vectorization d=2")
    'real-clicks-vectorization-d-2'
    """
    return "-".join([clicks, "clicks", *re.findall("[a-z0-9]+", label.lower())])


def demo(evaluations: dict[str, Evaluation], observation: Floats, *, measure: str) -> Figure:
    """How good each ranker is, and the observation embedding that was learned for each position, [positions, 2]."""
    figure, (left, right) = blank(9.6, 3.6, columns=2, width_ratios=(1.1, 1))
    names = list(evaluations)
    colours = dict(zip(names, [GREY, *[BLUE] * (len(names) - 2), GREEN], strict=True))
    draw_intervals(left, {name: each.interval(measure) for name, each in evaluations.items()}, colours)
    left.set_xlabel(f"{measure} on judged test queries, 95 % interval")
    left.set_title("How good is the ranker?", loc="left")

    right.plot(*observation.T, color=GREY, linewidth=1, zorder=1)
    right.scatter(*observation.T, s=40, color=BLUE, zorder=2)
    for position, point in enumerate(observation, start=1):
        right.annotate(str(position), point, textcoords="offset points", xytext=(6, 4), fontsize=9)
    right.margins(0.12)
    right.set_xlabel("$o_1$")
    right.set_ylabel("$o_2$")
    right.set_title("What it learned about each position", loc="left")
    return figure


def quality(results: Sequence[Results]) -> Figure:
    """The main measure of every ranker, each seed a small dot; the ways of choosing weights in their own colours."""
    first = results[0]
    labels = [line.label for line in first.lines if line.contender.method != "click-model"]
    figure, axes = blank(7.2, 0.34 * len(labels) + 1.2)
    for number, (found, colour) in enumerate(zip(results, (BLUE, ORANGE), strict=False)):
        shift = 0.14 * (2 * number - len(results) + 1)
        for line in found.lines:
            if line.label not in labels:
                continue
            row, values = labels.index(line.label) + shift, line.by_seed(found.main)
            axes.plot(values, np.full(len(values), row), "o", color=colour, markersize=3, alpha=0.4)
            axes.plot(line.mean(found.main), row, "D", color=_colour(line, colour), markersize=6)
        axes.plot([], [], "D", color=colour, label=f"weights chosen by {CHOSEN_BY[found.validation]}")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(first.measures[first.main])
    axes.set_title(f"{first.clicks} clicks", loc="left")
    if len(results) > 1:
        axes.legend(frameon=False, fontsize=8)
    return figure


def dimension_curve(results: Sequence[Results]) -> Figure:
    """The main measure over the dimension, with its deviation as a band and the other rankers as lines."""
    first = results[0]
    figure, axes = blank(5.4, 3.8)
    for found, colour in zip(results, (BLUE, ORANGE), strict=False):
        ours = [line for line in found.lines if line.contender.method == OURS]
        dimensions = np.array([line.contender.options.get("dimension", Vectorization.dimension) for line in ours])
        mean = np.array([line.mean(found.main) for line in ours])
        deviation = np.nan_to_num([line.deviation(found.main) for line in ours])
        axes.plot(dimensions, mean, "o-", color=colour, label=f"Vectorization, chosen by {CHOSEN_BY[found.validation]}")
        axes.fill_between(dimensions, mean - deviation, mean + deviation, color=colour, alpha=0.2, linewidth=0)
        axes.set_xticks(dimensions)
    for line, style in zip((each for each in first.lines if each.contender.method != OURS), _STYLES, strict=False):
        axes.axhline(line.mean(first.main), color=GREY, linestyle=style, linewidth=1, label=line.label)
    axes.set_xlabel("dimension")
    axes.set_ylabel(first.measures[first.main])
    axes.set_title(f"{first.clicks} clicks", loc="left")
    axes.legend(frameon=False, fontsize=8)
    return figure


def projection(mean: Doubles, deviation: Doubles, *, title: str, measure: str) -> Figure:
    """The measure over the position projected on; the last value is that of the base vector."""
    figure, axes = blank(5.4, 3.6)
    positions, spread = np.arange(1, len(mean)), np.nan_to_num(deviation)
    axes.plot(positions, mean[:-1], "o-", color=BLUE, label="observation embedding of a position")
    axes.fill_between(positions, (mean - spread)[:-1], (mean + spread)[:-1], color=BLUE, alpha=0.2, linewidth=0)
    axes.axhline(mean[-1], color="black", linestyle="--", label="base vector")
    axes.axhspan(mean[-1] - spread[-1], mean[-1] + spread[-1], color="black", alpha=0.1, linewidth=0)
    axes.set_xticks(positions)
    axes.set_xlabel("position")
    axes.set_ylabel(measure)
    axes.set_title(title, loc="left")
    axes.legend(frameon=False, fontsize=8)
    return figure


def matrix(rates: Doubles, values: Doubles, *, title: str) -> Figure:
    """Click rates by grade and position as a heat map, and their singular values."""
    figure, (left, right) = blank(9.6, 3.0, columns=2, width_ratios=(2, 1))
    draw_rates(left, rates, rows=range(len(rates)), ylabel="grade")
    left.set_title(f"{title}: click rates", loc="left")
    draw_singular_values(right, values)
    right.set_title("singular values", loc="left")
    return figure


def bars(values: Mapping[str, float], *, xlabel: str) -> Figure:
    """One bar for each name."""
    figure, axes = blank(6.4, 0.5 * len(values) + 1)
    axes.barh(list(values), list(values.values()), color=BLUE, height=0.6)
    for row, value in enumerate(values.values()):
        axes.annotate(f"{value:.2f}", (value, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(xlabel)
    return figure


_STYLES = ("--", ":", "-.", (0, (5, 1)), (0, (1, 3)), (0, (3, 1, 1, 1)))


def _colour(line: Line, colour: str) -> str:
    return GREEN if line.contender.method == UPPER else GREY if line.contender.method in REFERENCES else colour

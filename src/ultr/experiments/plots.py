"""Plots of experiments, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path

from ultr.arrays import Floats
from ultr.evaluation import Evaluation

GREY, BLUE, GREEN = "#9aa0a6", "#3b6fb6", "#4d9a5f"


def save_demo_plot(path: Path, evaluations: dict[str, Evaluation], observation: Floats, *, measure: str) -> None:
    """How good each ranker is, and the observation embedding that was learned for each position, [positions, 2]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    quality, plane = figure.subplots(1, 2, width_ratios=(1.1, 1))

    names = list(evaluations)
    colours = [GREY, *[BLUE] * (len(names) - 2), GREEN]
    for row, (name, colour) in enumerate(zip(names, colours, strict=True)):
        interval = evaluations[name].interval(measure)
        quality.plot([interval.low, interval.high], [row, row], color=colour, linewidth=6, alpha=0.35)
        quality.plot(interval.mean, row, "o", color=colour, markersize=9)
        quality.annotate(f"{interval.mean:.3f}", (interval.mean, row), (0, 9), textcoords="offset points", ha="center")
    quality.set_yticks(range(len(names)), names)
    quality.set_ylim(len(names) - 0.5, -0.7)
    quality.margins(x=0.1)
    quality.set_xlabel(f"{measure} on judged test queries, 95 % interval")
    quality.set_title("How good is the ranker?", loc="left")

    plane.plot(*observation.T, color=GREY, linewidth=1, zorder=1)
    plane.scatter(*observation.T, s=40, color=BLUE, zorder=2)
    for position, point in enumerate(observation, start=1):
        plane.annotate(str(position), point, textcoords="offset points", xytext=(6, 4), fontsize=9)
    plane.margins(0.12)
    plane.set_xlabel("$o_1$")
    plane.set_ylabel("$o_2$")
    plane.set_title("What it learned about each position", loc="left")

    for axes in (quality, plane):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path.with_suffix(".svg"))
    figure.savefig(path.with_suffix(".png"), dpi=150)

"""Plots of experiments, as SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ultr.arrays import Floats
from ultr.evaluate import Evaluation

GREY, BLUE, GREEN = "#9aa0a6", "#3b6fb6", "#4d9a5f"


def save_demo_plot(path: Path, evaluations: dict[str, Evaluation], observation: Floats, *, measure: str) -> None:
    """How good each ranker is, and the observation embedding that was learned for each position, [positions, 2]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    bars, plane = figure.subplots(1, 2, width_ratios=(1.1, 1))

    names = list(evaluations)
    intervals = [evaluations[name].interval(measure) for name in names]
    means = np.array([interval.mean for interval in intervals])
    reach = np.array([[i.mean - i.low, i.high - i.mean] for i in intervals]).T
    colours = [GREY, *[BLUE] * (len(names) - 2), GREEN]
    bars.barh(names, means, xerr=reach, color=colours, error_kw={"ecolor": "#333333", "capsize": 3})
    bars.set_xlim(means.min() - 0.05, means.max() + 0.04)
    bars.invert_yaxis()
    for row, mean in enumerate(means):
        bars.text(means.min() - 0.048, row, f"{mean:.3f}", va="center", color="white", fontweight="bold")
    bars.set_xlabel(f"{measure} on judged test queries")
    bars.set_title("How good is the ranker?", loc="left")

    plane.plot(*observation.T, color=GREY, linewidth=1, zorder=1)
    plane.scatter(*observation.T, s=40, color=BLUE, zorder=2)
    for position, point in enumerate(observation, start=1):
        plane.annotate(str(position), point, textcoords="offset points", xytext=(6, 4), fontsize=9)
    plane.margins(0.12)
    plane.set_xlabel("$o_1$")
    plane.set_ylabel("$o_2$")
    plane.set_title("What it learned about each position", loc="left")

    for axes in (bars, plane):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path.with_suffix(".svg"))
    figure.savefig(path.with_suffix(".png"), dpi=150)

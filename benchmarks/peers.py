"""Our methods beside rankers that can be installed instead, on the same clicks and the same judged test lists.

    python -m benchmarks.peers --clicks trust real --seeds 0 1 2
    python -m benchmarks.peers --data mq2007=FOLDER --folds 1 2 3 4 5 --hidden 64 32

Clicks are simulated as in the experiments: a Ranking SVM of a hundredth of the queries orders the lists, and a million
impressions of ten documents are clicked. LightGBM and XGBoost learn from 50,000 sessions with clicks, up to 300 trees
(`ultr.methods.lambdamart`); clax-models learns from all sessions, with as many weights as ours (`--hidden`), and with
the deep and cross network of its example (`benchmarks.clax_models`). Ours learn from the collapsed log, with their
defaults apart from `--hidden`. The nDCG@10 of the same judged validation lists decides when the others stop, and which
of the weights of ours are kept, which train for all of their steps. Each is trained in a process of its own with one
thread; seconds are those of training, peak memory is that of the process up to its end, packages included. Candidates
are scored from Python, 100,000 of them in one call, trees by the library that grew them, and their rate is by the time
of the processor.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.arena import Arena, Sessions
from benchmarks.child import ONE_THREAD
from benchmarks.child import measure as run_child
from benchmarks.clax_models import MODELS
from benchmarks.contender import INSTALL, Showing, installed, library
from benchmarks.measurement import Measurement, write
from ultr.clicks.registry import CLICK_MODELS
from ultr.datasets.source import Source
from ultr.errors import UltrError
from ultr.experiments.run import simulated_data
from ultr.experiments.spec import Simulation
from ultr.methods import METHODS
from ultr.relevance import MLP

OURS = ("auto", "click", "dla", "vectorization")
LIBRARIES = {
    "xgboost": ("xgboost", False),
    "xgboost-unbiased": ("xgboost", True),
    "lightgbm": ("lightgbm", False),
    "lightgbm-position": ("lightgbm", True),
}
"""By label, the method that leaves the boosting to a library, and whether that is to debias."""
LEARN_FROM_CLICKS = [name for name in METHODS if name not in ("label", "inverse-propensity", *LIBRARIES)]
"""What can take part: those that need nothing but the log."""
CROSS = "-cross"
"""What the name of a click model ends with that has the network of the example of clax-models."""
CLAX = (*MODELS, f"clax-pbm{CROSS}")
SCORES = {
    "quality": ("nDCG@10", "nDCG@10", max),
    "seconds": ("training", "s", min),
    "processor": ("training, processor", "s", min),
    "before": ("memory before training", "MB", min),
    "peak": ("peak memory", "MB", min),
    "rate": ("scoring", "candidates/s", max),
}
"""By field of a `Showing`: its name, its unit, and which is the better one."""
HEADLINES = ("quality", "processor", "peak", "rate")
HEADER = (
    "| ranker | nDCG@10 | training, s | processor, s | peak memory, MB | of it before, MB | candidates/s |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Ranker:
    """Who takes part."""

    label: str
    name: str
    """As `benchmarks.contender` knows it."""
    options: dict[str, Any] = field(default_factory=dict)
    validated: bool = True
    """Whether it looks at the validation lists."""

    def train(self, folder: Path, *, seed: int) -> Showing:
        """Train it in a fresh process."""
        command = [sys.executable, "-m", "benchmarks.contender", self.name, str(folder), "--seed", str(seed)]
        command += ["--options", json.dumps(self.options), *([] if self.validated else ["--unvalidated"])]
        used = run_child(command, environment=ONE_THREAD)
        return Showing(**json.loads(used.output.splitlines()[-1]))


def rankers(
    names: Sequence[str], hidden: Sequence[int] | None, features: int, *, steps: int | None = None
) -> list[Ranker]:
    """Those of these names, the networks as large as one another; `steps` are those of our methods."""
    found = []
    ours = ({"hidden": list(hidden)} if hidden else {}) | ({"steps": steps} if steps else {})
    layers = tuple(hidden or MLP().hidden)
    for name in names:
        if name in LIBRARIES:
            method, debias = LIBRARIES[name]
            found.append(Ranker(name, method, {"debias": debias}))
        elif name in METHODS:
            found.append(Ranker(name, name, ours))
        elif name.endswith(CROSS):
            found.append(Ranker(name, name.removesuffix(CROSS), {"network": "cross", "hidden": 32, "layers": 2}))
        elif name in MODELS:
            found.append(Ranker(name, name, {"hidden": even_width(features, layers), "layers": len(layers)}))
    return found


def even_width(features: int, layers: Sequence[int]) -> int:
    """The width of as many layers, all alike, that have as many weights as these.

    >>> even_width(64, (100, 100))
    100
    """
    weights = sum(inputs * outputs for inputs, outputs in pairwise([features, *layers]))
    more = len(layers) - 1
    if not more:
        return layers[0]
    return round((math.sqrt(features**2 + 4 * more * weights) - features) / (2 * more))


def arena_of(source: Source, clicks: str, *, impressions: int, seed: int) -> Arena:
    """The log and the lists of one run of an experiment."""
    shared = simulated_data(source, clicks, Simulation(impressions=impressions), seed)
    return Arena(shared.log, Sessions.of(shared.log, seed=seed), shared.splits.validation, shared.splits.test)


def compete(arena: Arena, contenders: Sequence[Ranker], *, seed: int) -> dict[str, Showing]:
    """What each came to on one log, by label."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        arena.save(Path(folder))
        for ranker in contenders:
            found[ranker.label] = ranker.train(Path(folder), seed=seed)
            print(f"  {ranker.label}, seed {seed}: {found[ranker.label]}", file=sys.stderr, flush=True)
    return found


def measurements(setting: str, rounds: Sequence[dict[str, Showing]]) -> list[Measurement]:
    """Means over logs with their range, and the ranker of ours that ranks best against the best of the others in each
    respect.
    """
    found: list[Measurement] = []
    means: dict[str, dict[str, float]] = {}
    for key, (what, unit, _) in SCORES.items():
        means[key] = {}
        for label in rounds[0]:
            values = [getattr(each[label], key) / (1e6 if unit == "MB" else 1) for each in rounds]
            means[key][label] = statistics.mean(values)
            spread = (min(values), max(values)) if len(values) > 1 else (None, None)
            found.append(Measurement(f"{setting}, {label}: {what}", means[key][label], unit, *spread))
    ours = [label for label in rounds[0] if library(label) is None]
    others = [label for label in rounds[0] if library(label) is not None]
    if ours and others:
        first = max(ours, key=means["quality"].__getitem__)
        for key in HEADLINES:
            what, _, better = SCORES[key]
            second = better(others, key=means[key].__getitem__)
            side = "higher" if better is max else "lower"
            name = f"{setting}, {what} ({side} is better), {first} to the best peer, {second}"
            found.append(Measurement(name, means[key][first] / means[key][second], "times", headline=True))
    return found


def table(rounds: Sequence[dict[str, Showing]]) -> str:
    """A row for each ranker, means over the logs, and the lowest and highest nDCG@10."""
    lines = [HEADER]
    for label in rounds[0]:
        showings = [each[label] for each in rounds]
        mean = {key: statistics.mean(getattr(each, key) for each in showings) for key in SCORES}
        each_quality = [each.quality for each in showings]
        spread = f" ({min(each_quality):.3f} to {max(each_quality):.3f})" if len(showings) > 1 else ""
        lines.append(
            f"| {label} | {mean['quality']:.3f}{spread} | {mean['seconds']:.1f} | {mean['processor']:.1f} | "
            f"{mean['peak'] / 1e6:,.0f} | {mean['before'] / 1e6:,.0f} | {mean['rate']:,.0f} |"
        )
    return "\n".join(lines)


def present(names: Sequence[str]) -> list[str]:
    """The rankers whose packages are installed; a sentence says how to get the others."""
    missing = sorted({str(library(name)) for name in names if not installed(name)})
    for package in missing:
        extra = INSTALL[package]
        print(
            f"{package} is not installed and left out; to have it: "
            f"pip install --constraint constraints.txt --editable '.[{extra}]'",
            flush=True,
        )
    return [name for name in names if library(name) not in missing]


def main() -> None:
    others = [*LIBRARIES, *CLAX]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="letor-like=10000", help="as for ultr simulate; %(default)s")
    parser.add_argument("--folds", type=int, nargs="+", default=[1])
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), nargs="+", default=["trust", "real"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--impressions", type=int, default=1_000_000)
    parser.add_argument("--hidden", type=int, nargs="+", help="layers of the networks; the defaults of our methods")
    parser.add_argument("--steps", type=int, help="steps of our methods; their default")
    parser.add_argument(
        "--rankers", nargs="+", choices=[*LEARN_FROM_CLICKS, *others], default=[*OURS, *others], metavar="NAME"
    )
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    names = present(asked.rankers)
    found: list[Measurement] = []
    try:
        source = Source.parse(asked.data)
        for clicks in asked.clicks:
            rounds = []
            for fold in asked.folds:
                for seed in asked.seeds:
                    arena = arena_of(source.with_fold(fold), clicks, impressions=asked.impressions, seed=seed)
                    contenders = rankers(names, asked.hidden, len(arena.log.feature_names), steps=asked.steps)
                    rounds.append(compete(arena, contenders, seed=seed))
            print(f"\n{source.name}, {clicks} clicks, {len(rounds)} logs\n\n{table(rounds)}", flush=True)
            found += measurements(f"{source.name}, {clicks}", rounds)
            write(found, asked.json)
    except UltrError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main()

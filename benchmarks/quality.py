"""How soon the default recipe is as good as the paper's at its end, and how good both are.

    python -m benchmarks.quality --seeds 0 1 2 3 4 --paper-seeds 0
    python -m benchmarks.quality --data mq2007=FOLDER --seeds 0 1 2 3 4 --paper-seeds 0

The paper trains 15,000 steps on sampled sessions with AdaGrad (and as many thirds on the base network); the target is
the validation nDCG@10 of the ranker that comes out. Ours learns from the same simulated log, in the same network, with
its weights chosen by the same judged lists. Seconds are those of one processor, so that other work on the machine does
not count; a method with several stages has a ranker in its last one only. Seeds are also folds where there are several.
Finished runs are kept in the file of `--runs`, and not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.measurement import Measurement, write
from ultr.clicks.registry import CLICK_MODELS
from ultr.data.layouts import LAYOUTS
from ultr.data.source import Source
from ultr.evaluation import evaluate
from ultr.experiments.run import Run, Scene, scene_of
from ultr.experiments.spec import Contender, Simulation
from ultr.methods import METHODS
from ultr.train.checkpoint import Record

MEASURE = "nDCG@10"
PAPER, OURS = "paper", "fast"
HEADER = (
    "| method | seconds to the paper's end | of its seconds | whole run, s | of the paper's | paper, validation "
    "| ours, validation | paper, test | ours, test | seeds |\n|---|---|---|---|---|---|---|---|---|---|"
)


class Curve:
    """An observer of training that notes when each value was reached, in seconds of the processor."""

    def __init__(self) -> None:
        self.points: list[tuple[float, str, float]] = []
        self._started = time.process_time()

    def watch(self, stage: str, steps: int, *, done: int) -> AbstractContextManager[None]:
        """Note nothing."""
        return nullcontext()

    def step(self, done: int) -> None:
        """Note nothing."""

    def record(self, record: Record, *, best: float | None) -> None:
        """Note the value."""
        assert record.value is not None
        self.points.append((time.process_time() - self._started, record.stage, record.value))


@dataclass(frozen=True)
class Outcome:
    """One training."""

    data: str
    clicks: str
    method: str
    recipe: str
    seed: int
    hidden: list[int]
    seconds: float
    """Of all of it."""
    test: float
    """nDCG@10 on the test lists."""
    curve: list[tuple[float, float]] = field(repr=False)
    """Seconds and validation nDCG@10 in the last stage, all stages before it counted."""

    @property
    def validation(self) -> float:
        """Of the weights that were chosen."""
        return max(value for _, value in self.curve)

    def until(self, target: float) -> float | None:
        """The seconds until a value was reached, if it was."""
        return next((seconds for seconds, value in self.curve if value >= target), None)


def train(scene: Scene, method: str, recipe: str, *, data: str, clicks: str, hidden: Sequence[int]) -> Outcome:
    """Train on a log and judge the ranker."""
    options: dict[str, Any] = {"recipe": recipe, "hidden": tuple(hidden), "seed": scene.seed}
    if method == "inverse-propensity":
        options["propensities"] = tuple(scene.randomised_propensities().tolist())
    ranker = METHODS[method](**options)
    curve, started = Curve(), time.process_time()
    ranker.fit(
        scene.splits.train if method == "label" else scene.log, validation=scene.splits.validation, progress=curve
    )
    seconds = time.process_time() - started
    last = [(at, value) for at, stage, value in curve.points if stage == curve.points[-1][1]]
    test = evaluate(ranker, scene.splits.test).mean(MEASURE)
    return Outcome(data, clicks, method, recipe, scene.seed, list(hidden), seconds, test, last)


def row(method: str, ours: Sequence[Outcome], paper: Sequence[Outcome]) -> tuple[str, list[Measurement]]:
    """The line of a table, and the ratios in it."""
    ended = {outcome.seed: outcome for outcome in paper}
    both = [(each, ended[each.seed]) for each in ours if each.seed in ended]
    found = [each.until(theirs.validation) for each, theirs in both]
    reached = [seconds for seconds in found if seconds is not None]
    shares = [seconds / theirs.seconds for seconds, (_, theirs) in zip(found, both, strict=True) if seconds is not None]
    whole = statistics.mean(each.seconds / theirs.seconds for each, theirs in both)
    all_reached = len(reached) == len(found)
    until = f"{statistics.mean(reached):.1f}" if all_reached else f"reached in {len(reached)} of {len(found)}"
    name = f"{ours[0].data}, {ours[0].clicks} clicks, {method}"
    measurements = [
        Measurement(f"{name}: whole run, of the paper's", whole, "share", headline=method == "vectorization")
    ]
    if all_reached:
        share = statistics.mean(shares)
        measurements.append(
            Measurement(
                f"{name}: time to the paper's quality, of its time", share, "share", min(shares), max(shares), True
            )
        )
    for label, outcomes in (("paper", paper), ("ours", ours)):
        values = [each.test for each in outcomes]
        measurements.append(
            Measurement(f"{name}: test nDCG@10, {label}", statistics.mean(values), MEASURE, min(values), max(values))
        )
    line = (
        f"| {method} | {until} | {f'{statistics.mean(shares):.0%}' if all_reached else ''} | "
        f"{statistics.mean(each.seconds for each in ours):.1f} | {whole:.0%} | "
        + " | ".join(
            _spread([getattr(each, part) for each in outcomes])
            for part in ("validation", "test")
            for outcomes in (paper, ours)
        )
        + f" | {len(paper)}, {len(ours)} |"
    )
    return line, measurements


def _spread(values: Sequence[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{deviation}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="letor-like=10000", help="as for ultr simulate; %(default)s")
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), nargs="+", default=["trust", "real"])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--paper-seeds", type=int, nargs="+", default=[0], help="those that the paper's recipe has")
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 32])
    parser.add_argument("--runs", type=Path, help="file that keeps finished runs, one line each")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    if not set(asked.seeds) & set(asked.paper_seeds):
        parser.error("--seeds and --paper-seeds must have a seed in common, or there is nothing to compare")
    torch.set_num_threads(1)
    known = [] if asked.runs is None or not asked.runs.exists() else asked.runs.read_text().splitlines()
    outcomes = [Outcome(**json.loads(line)) for line in known]
    source = Source.parse(asked.data)
    for clicks in asked.clicks:
        for seed in asked.seeds:
            folds = LAYOUTS[source.name].folds if source.name in LAYOUTS else 1
            run = Run(
                source=source.with_fold(seed % folds + 1),
                clicks=clicks,
                simulation=Simulation(),
                contender=Contender(method="click", label="click"),
                validation="labels",
                measures=(MEASURE,),
                seed=seed,
            )
            for method in asked.methods:
                for recipe in (OURS, PAPER) if seed in asked.paper_seeds else (OURS,):
                    key = (asked.data, clicks, method, recipe, seed, asked.hidden)
                    if any((o.data, o.clicks, o.method, o.recipe, o.seed, o.hidden) == key for o in outcomes):
                        continue
                    outcomes.append(
                        train(scene_of(run), method, recipe, data=asked.data, clicks=clicks, hidden=asked.hidden)
                    )
                    if asked.runs is not None:
                        with asked.runs.open("a") as file:
                            file.write(json.dumps(asdict(outcomes[-1])) + "\n")
    found: list[Measurement] = []
    for clicks in asked.clicks:
        print(f"\n{asked.data}, {clicks} clicks, layers {asked.hidden}\n{HEADER}")
        for method in asked.methods:
            ours, paper = (
                [
                    each
                    for each in outcomes
                    if (each.data, each.clicks, each.method, each.recipe) == (asked.data, clicks, method, recipe)
                    and each.hidden == asked.hidden
                    and each.seed in asked.seeds
                ]
                for recipe in (OURS, PAPER)
            )
            line, measurements = row(method, ours, paper)
            print(line, flush=True)
            found += measurements
    write(found, asked.json)


if __name__ == "__main__":
    main()

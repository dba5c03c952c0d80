"""How soon the default recipe is as good as the paper's at its end, and how good both are.

    python -m benchmarks.quality --seeds 0 1 2 3 4 --paper-seeds 0
    python -m benchmarks.quality --data mq2007=FOLDER --seeds 0 1 2 3 4 --paper-seeds 0

The paper trains 15,000 steps on sampled sessions with AdaGrad (and as many thirds on the base network). There are two
targets: the validation nDCG@10 of its weights after all steps, and the highest that any of its looks at the last stage
found, which is luck in part; test values are those of the weights it was found with. Ours learns from the same
simulated log, in the same network, with its weights chosen by the same judged lists. Seconds are those of one
processor, so that other work on the machine does not count; a method with several stages has a ranker in its last one
only. Seeds are also folds where there are several. Finished runs are kept in the file of `--runs`, and not run again;
begin a new file when the code has changed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from itertools import product
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
    "| method | until the paper's end, s | of its time | until its best, s | of its time | whole run, s "
    "| of the paper's | paper, validation: end | best | ours: best | paper, test | ours, test | seeds |\n"
    + "|---" * 13
    + "|"
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
    def end(self) -> float:
        """Validation nDCG@10 after all steps."""
        return self.curve[-1][1]

    @property
    def best(self) -> float:
        """Validation nDCG@10 of the weights that were chosen."""
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
    whole = statistics.mean(each.seconds / theirs.seconds for each, theirs in both)
    name = f"{ours[0].data}, {ours[0].clicks} clicks, {method}"
    cells, measurements = [method], []
    for target in ("end", "best"):
        found = [(each.until(getattr(theirs, target)), theirs.seconds) for each, theirs in both]
        reached = [(seconds, of) for seconds, of in found if seconds is not None]
        if len(reached) < len(found):
            cells += [f"reached in {len(reached)} of {len(found)}", ""]
            continue
        shares = [seconds / of for seconds, of in reached]
        share = statistics.mean(shares)
        cells += [f"{statistics.mean(seconds for seconds, _ in reached):.1f}", f"{share:.0%}"]
        measurements.append(
            Measurement(
                f"{name}: time to the paper's {target}, of its time",
                share,
                "share",
                min(shares),
                max(shares),
                headline=target == "end",
            )
        )
    measurements.append(
        Measurement(f"{name}: whole run, of the paper's", whole, "share", headline=method == "vectorization")
    )
    for label, outcomes in (("paper", paper), ("ours", ours)):
        values = [each.test for each in outcomes]
        measurements.append(
            Measurement(f"{name}: test nDCG@10, {label}", statistics.mean(values), MEASURE, min(values), max(values))
        )
    cells += [f"{statistics.mean(each.seconds for each in ours):.1f}", f"{whole:.0%}"]
    cells += [
        _spread([getattr(each, part) for each in outcomes])
        for outcomes, part in ((paper, "end"), (paper, "best"), (ours, "best"), (paper, "test"), (ours, "test"))
    ]
    return f"| {' | '.join(cells)} | {len(paper)}, {len(ours)} |", measurements


def _spread(values: Sequence[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{deviation}"


class Runs:
    """Finished trainings, kept in a file if one is given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        known = [] if path is None or not path.exists() else path.read_text().splitlines()
        self._finished = [Outcome(**json.loads(line)) for line in known]

    def find(self, **asked: Any) -> list[Outcome]:
        """Those with these values."""
        return [each for each in self._finished if all(getattr(each, name) == asked[name] for name in asked)]

    def add(self, outcome: Outcome) -> None:
        """Keep one more."""
        self._finished.append(outcome)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")

    def complete(self, asked: argparse.Namespace) -> None:
        """Train what is asked for and not there yet."""
        source = Source.parse(asked.data)
        folds = LAYOUTS[source.name].folds if source.name in LAYOUTS else 1
        for clicks, seed in product(asked.clicks, asked.seeds):
            run = Run(
                source=source.with_fold(seed % folds + 1),
                clicks=clicks,
                simulation=Simulation(),
                contender=Contender(method="click", label="click"),
                validation="labels",
                measures=(MEASURE,),
                seed=seed,
            )
            for method, recipe in product(asked.methods, (OURS, PAPER) if seed in asked.paper_seeds else (OURS,)):
                setting = {"data": asked.data, "clicks": clicks, "hidden": asked.hidden}
                if not self.find(method=method, recipe=recipe, seed=seed, **setting):
                    self.add(train(scene_of(run), method, recipe, **setting))


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
    runs = Runs(asked.runs)
    runs.complete(asked)
    found: list[Measurement] = []
    for clicks in asked.clicks:
        print(f"\n{asked.data}, {clicks} clicks, layers {asked.hidden}\n{HEADER}")
        for method in asked.methods:
            outcomes = runs.find(data=asked.data, clicks=clicks, method=method, hidden=asked.hidden)
            ours, paper = (
                [each for each in outcomes if each.recipe == recipe and each.seed in asked.seeds]
                for recipe in (OURS, PAPER)
            )
            line, measurements = row(method, ours, paper)
            print(line, flush=True)
            found += measurements
    write(found, asked.json)


if __name__ == "__main__":
    main()

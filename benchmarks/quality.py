"""How soon the default recipe is as good as the paper's at its end, and how good both are.

    python -m benchmarks.quality --seeds 0 1 2 3 4
    python -m benchmarks.quality --data mq2007=FOLDER --seeds 0 1 2 3 4

The paper trains 15,000 steps on sampled sessions with AdaGrad (and a third as many on the base network). There are two
targets: the validation nDCG@10 of its weights after all steps, and the highest that any of its looks at the last stage
found, which is luck in part; test values are those of the weights it was found with. Where validation falls again, the
paper's recipe passes the first target long before its end, which is told beside it. Ours learns from the same
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
from pathlib import Path
from typing import Any

import torch

from benchmarks.measurement import Measurement, write
from ultr.clicks.registry import CLICK_MODELS
from ultr.datasets.layouts import LAYOUTS
from ultr.datasets.source import Source
from ultr.evaluation import evaluate
from ultr.experiments.run import SimulatedData, simulated_data
from ultr.experiments.spec import Simulation
from ultr.methods import METHODS, methods_with
from ultr.methods.flat_options import estimator
from ultr.relevance import MLP
from ultr.train.checkpoint import Record

MEASURE = "nDCG@10"
PAPER, OURS = "paper", "fast"
HEADER = (
    "| method | until the paper's end, s | end, of its time | the paper itself | until its best, s | best, of its time "
    "| whole run, s | of the paper's | paper, validation: end | best | ours: best "
    "| paper, test | ours, test | seeds |\n" + "|---" * 14 + "|"
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


def train(shared: SimulatedData, method: str, recipe: str, *, data: str, clicks: str, hidden: Sequence[int]) -> Outcome:
    """Train on a log and judge the ranker."""
    options: dict[str, Any] = {"recipe": recipe, "hidden": tuple(hidden), "seed": shared.seed}
    if method == "inverse-propensity":
        options["propensities"] = tuple(shared.randomised_propensities().tolist())
    ranker = estimator(METHODS[method], options)
    curve, started = Curve(), time.process_time()
    ranker.fit(
        shared.splits.train if method == "label" else shared.log, validation=shared.splits.validation, progress=curve
    )
    seconds = time.process_time() - started
    last = [(at, value) for at, stage, value in curve.points if stage == curve.points[-1][1]]
    test = evaluate(ranker, shared.splits.test).mean(MEASURE)
    return Outcome(data, clicks, method, recipe, shared.seed, list(hidden), seconds, test, last)


def row(method: str, both: Sequence[tuple[Outcome, Outcome]]) -> tuple[str, list[Measurement]]:
    """The line of a table, and the ratios in it, from what our recipe and the paper's came to with each seed."""
    ours, paper = zip(*both, strict=True)
    name = f"{ours[0].data.partition('=')[0]}, {ours[0].clicks} clicks, {method}"
    cells, measurements = [method], []
    for target in ("end", "best"):
        found = [(each.until(getattr(theirs, target)), theirs.seconds) for each, theirs in both]
        reached = [(seconds, of) for seconds, of in found if seconds is not None]
        if len(reached) < len(found):
            cells += [f"reached in {len(reached)} of {len(found)}", ""]
        else:
            shares = [seconds / of for seconds, of in reached]
            share = statistics.mean(shares)
            cells += [f"{statistics.mean(seconds for seconds, _ in reached):.1f}", f"{share:.0%}"]
            words = f"{name}: time to the paper's {target}, of its time"
            measurements.append(Measurement(words, share, "share", min(shares), max(shares), headline=target == "end"))
        if target == "end":
            own = statistics.mean(
                next(seconds for seconds, value in theirs.curve if value >= theirs.end) / theirs.seconds
                for theirs in paper
            )
            cells.append(f"{own:.0%}")
            measurements.append(Measurement(f"{name}: the paper's own time to its end, of its time", own, "share"))
    whole = statistics.mean(each.seconds / theirs.seconds for each, theirs in both)
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
    return f"| {' | '.join(cells)} | {len(both)} |", measurements


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

    def both(self, clicks: str, method: str, seed: int, asked: argparse.Namespace) -> tuple[Outcome, Outcome]:
        """What our recipe and the paper's come to, trained now unless that is known."""
        ours, paper = (self._one(clicks, method, recipe, seed, asked) for recipe in (OURS, PAPER))
        return ours, paper

    def _one(self, clicks: str, method: str, recipe: str, seed: int, asked: argparse.Namespace) -> Outcome:
        setting = {"data": asked.data, "clicks": clicks, "hidden": asked.hidden}
        if known := self.find(method=method, recipe=recipe, seed=seed, **setting):
            return known[0]
        source = Source.parse(asked.data)
        folds = LAYOUTS[source.name].folds if source.name in LAYOUTS else 1
        shared = simulated_data(source.with_fold(seed % folds + 1), clicks, Simulation(), seed)
        outcome = train(shared, method, recipe, **setting)
        self._finished.append(outcome)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
        return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="letor-like=10000", help="as for ultr simulate; %(default)s")
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), nargs="+", default=["trust", "real"])
    parser.add_argument("--methods", nargs="+", choices=list(methods_with(MLP)), default=list(methods_with(MLP)))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 32])
    parser.add_argument("--runs", type=Path, help="file that keeps finished runs, one line each")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    runs = Runs(asked.runs)
    found: list[Measurement] = []
    source = Source.parse(asked.data)
    name = source.name if source.folder else asked.data
    for clicks in asked.clicks:
        print(f"\n{name}, {clicks} clicks, layers {asked.hidden}\n{HEADER}", flush=True)
        for method in asked.methods:
            if method == "label" and clicks != asked.clicks[0]:
                continue  # It knows of no clicks, so it would be the same again.
            line, measurements = row(method, [runs.both(clicks, method, seed, asked) for seed in asked.seeds])
            print(line, flush=True)
            found += measurements
    write(found, asked.json)


if __name__ == "__main__":
    main()

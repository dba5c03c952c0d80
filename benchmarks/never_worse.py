"""Methods against raw clicks in worlds drawn at random: `python -m benchmarks.never_worse [--data FOLDER]`.

A world is a data set, a click model, a size of the log, one shown ranking per query or four that differ, and an old
ranker that has learned from few labels or from many. Each of these is drawn with equal chance, and a world has a seed
of its own. There all methods are trained alike on 90 % of the queries (MLP 64-32, 1,000 steps, weights chosen by clicks
on the others) and measured by nDCG@10 on test queries, as differences to raw clicks. The table gives their means over
the worlds of a kind, with 95 % intervals over worlds. In one world a method is below raw clicks *beyond chance* if it
is by 2.6 standard errors over test queries (a level of .5 %, one-sided). A second table sets the gain of `auto` beside
what `ultr doctor` says of the log before training.

`--data` is a folder with `mq2007` and `mq2008` beside each other, which join the generated data. `--part 1/2` takes
every second world, for two processes; `--keep FILE` adds what is found to a file, and `--show FILE...` makes the tables
of such files. `--tables docs/results/NAME.json` stores the tables for `ultr reproduce docs`; `--show` reads such a
file, too.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Measurement, write
from ultr import (
    DLA,
    MLP,
    Auto,
    ClickBaseline,
    Trees,
    Vectorization,
    click_model,
    evaluate,
    letor_like,
    read_layout,
    simulate,
)
from ultr.bias.stopping import Stopping
from ultr.clicks.registry import CLICK_MODELS
from ultr.data.click_log import ClickLog
from ultr.datasets.splits import Splits
from ultr.diagnosis.gain import CLEAR, LITTLE, Gain
from ultr.experiments.stored_tables import StoredTables
from ultr.experiments.tables import figure, signed
from ultr.methods.estimator import Estimator
from ultr.pages import Table

QUERIES = (50, 200, 1_000, 3_000)
IMPRESSIONS = (10**4, 10**5, 10**6)
RANKINGS = {"one ranking": (1, 0.0), "four rankings": (4, 0.5)}
OLD_RANKERS = {"weak old ranker": 10, "good old ranker": 200}
"""Queries whose labels the old ranker has learned from, at most half of them."""
ERRORS = 2.6
PLAIN, WEIGHTED = "vectorization", "vectorization, weights"
METHODS = ("click", "dla", PLAIN, WEIGHTED, "auto")


@dataclass(frozen=True)
class World:
    """All that decides a log."""

    number: int
    data: str
    clicks: str
    impressions: int
    rankings: str
    old_ranker: str

    def log(self, data: Splits) -> ClickLog:
        """The log of its users."""
        rankings, noise = RANKINGS[self.rankings]
        return simulate(
            data.train,
            click_model(self.clicks),
            # Each list is shown once at least.
            impressions=max(self.impressions, rankings * data.train.queries),
            rankings=rankings,
            noise=noise,
            svm_share=min(OLD_RANKERS[self.old_ranker] / data.train.queries, 0.5),
            seed=self.number,
        )

    def read(self, folder: Path | None) -> Splits:
        """Its judged lists."""
        name, _, size = self.data.partition(" ")
        if name == "letor-like":
            return letor_like(train_queries=int(size), seed=1_000 + self.number)
        assert folder is not None
        return read_layout(name, folder / name, fold=self.number % 5 + 1)


@dataclass(frozen=True)
class Found:
    """The nDCG@10 of raw clicks in a world, and what another method adds to it."""

    world: World
    method: str
    raw: float
    gain: float
    error: float
    """Standard error of the gain over test queries."""
    seconds: float
    kept: float | None
    new: float | None = None
    """What `ultr doctor` says of the log: the share of debiased scores that is reliable and not known to raw clicks."""
    relevance: str = ""
    """The relevance model; empty in files of before it was noted."""


def drawn(count: int, names: Sequence[str], impressions: Sequence[int] = IMPRESSIONS) -> list[World]:
    """So many worlds, drawn at random with equal chance of everything."""
    random = np.random.default_rng(2022)

    def one(values: Iterable[Any]) -> Any:
        values = list(values)
        return values[random.integers(len(values))]

    return [
        World(number, one(names), one(CLICK_MODELS), one(impressions), one(RANKINGS), one(OLD_RANKERS))
        for number in range(count)
    ]


def methods(relevance: str, seed: int) -> dict[str, Estimator]:
    """The methods, all with the same relevance model."""
    network = MLP(hidden=(64, 32), steps=1_000)
    vectors: dict[str, Any] = (
        {"vector_hidden": network.hidden, "vector_steps": network.steps} if relevance == "trees" else {}
    )
    shared: dict[str, Any] = {"relevance": Trees() if relevance == "trees" else network, "seed": seed}
    found = (
        ClickBaseline(**shared),
        DLA(**shared),
        Vectorization(**shared | vectors),
        Vectorization(weight_power=0.5, **shared | vectors),
        Auto(**shared | vectors),
    )
    return dict(zip(METHODS, found, strict=True))


def said(log: ClickLog) -> float:
    """What `ultr doctor` says of a log before training."""
    stopping = Stopping.of(log)
    correction = Gain.of(log, stopping=0.0 if stopping is None else stopping.known).correction
    assert correction is not None
    return correction.new


def measure(world: World, folder: Path | None, relevance: str, chosen: Sequence[str]) -> list[Found]:
    """Train every method in a world."""
    data = world.read(folder)
    log = world.log(data)
    part, held_out = log.split(seed=world.number)
    found: list[Found] = []
    raw, new = np.zeros(0), said(log)
    for name, method in methods(relevance, world.number).items():
        if name not in chosen:
            continue
        started = process_time()
        ranker = method.fit(part, validation=held_out).ranker_
        values = evaluate(ranker, data.test.with_relevant()).values["nDCG@10"]
        raw = values if name == "click" else raw
        gains = values - raw
        error = float(gains.std(ddof=1) / np.sqrt(len(gains)))
        seconds = process_time() - started
        kept = ranker.choices.get("kept")
        found.append(Found(world, name, float(raw.mean()), float(gains.mean()), error, seconds, kept, new, relevance))
    return found


def line(found: Sequence[Found]) -> str:
    """A world and what the methods gained there."""
    world = found[0].world
    gains = "  ".join(f"{each.method} {each.gain:+.3f}" for each in found[1:])
    kept = next((f"  kept {each.kept:.2f}" for each in found if each.kept is not None), "")
    what = f"{world.data}, {world.clicks}, {world.impressions:,}, {world.rankings}, {world.old_ranker}"
    return f"{world.number:3} {what:80} raw {found[0].raw:.3f}  {gains}{kept}"


def gain_table(found: Sequence[Found]) -> Table:
    """Mean gains over raw clicks of each method, by all that a world is made of."""
    names = [name for name in METHODS[1:] if any(each.method == name for each in found)]
    cells: dict[str, list[str]] = {}
    for what, some in _kinds(found):
        values = [[each.gain for each in some if each.method == name] for name in names]
        cells[what] = [
            str(len(values[0])),
            *(f"{signed(mean(each))} ± {figure(_half_width(each))}" for each in values),
        ]
    best = {each.world.number: 0.0 for each in found}
    for each in found:
        best[each.world.number] = max(best[each.world.number], each.gain)
    by_method: dict[str, Callable[[list[Found]], str]] = {
        "below raw clicks beyond chance": lambda some: str(sum(each.gain < -ERRORS * each.error for each in some)),
        "above raw clicks beyond chance": lambda some: str(sum(each.gain > ERRORS * each.error for each in some)),
        "worst": lambda some: signed(min(each.gain for each in some)),
        "behind the best of all, mean": lambda some: figure(mean(best[each.world.number] - each.gain for each in some)),
        "processor seconds, mean": lambda some: f"{mean(each.seconds for each in some):.0f}",
    }
    for what, cell in by_method.items():
        cells[what] = ["", *(cell(_of(found, name)) for name in names)]
    return Table.of_cells("gains", "", cells, ["worlds", *names])


def weights_table(found: Sequence[Found]) -> Table:
    """What weights of clicks by position change in Vectorization, world by world, by all that a world is made of."""
    plain = {each.world.number: each.gain for each in _of(found, PLAIN)}
    cells = {}
    for what, some in _kinds(_of(found, WEIGHTED)):
        changes = [each.gain - plain[each.world.number] for each in some]
        cells[what] = [str(len(some)), f"{signed(mean(changes))} ± {figure(_half_width(changes))}"]
    return Table.of_cells("weights less none", "", cells, ["worlds", "nDCG@10"])


def forecast_table(found: Sequence[Found]) -> Table:
    """The gain of `auto` by what the doctor says before training."""
    points = [(each.new, each.gain) for each in _of(found, "auto") if each.new is not None]
    new, gained = (np.array(values) for values in zip(*points, strict=True))
    bounds = {"hardly": (-1.0, LITTLE), "a little": (LITTLE, CLEAR), "should pay": (CLEAR, 2.0), "all": (-1.0, 2.0)}
    cells = {}
    for words, (low, high) in bounds.items():
        some = gained[(new >= low) & (new < high)]
        if len(some):
            spread = [signed(each) for each in np.quantile(some, (0, 0.1, 0.5, 0.9, 1))]
            cells[words] = [str(len(some)), signed(some.mean()), *spread, ""]
    cells["all"][-1] = f"{np.corrcoef(new, gained)[0, 1]:.2f}"
    columns = ["worlds", "gain, mean", "smallest", "10 %", "median", "90 %", "largest", "correlation with what is new"]
    return Table.of_cells("forecast", "the doctor says", cells, columns)


def _half_width(values: Sequence[float]) -> float:
    """Half the width of a 95 % interval for the mean."""
    return float(1.96 * np.std(values, ddof=1) / np.sqrt(len(values)))


def _of(found: Sequence[Found], name: str) -> list[Found]:
    return [each for each in found if each.method == name]


def _kinds(found: Sequence[Found]) -> Iterable[tuple[str, list[Found]]]:
    yield "all", list(found)
    for name in ("data", "clicks", "impressions", "rankings", "old_ranker"):
        for value in dict.fromkeys(sorted((getattr(each.world, name) for each in found), key=str)):
            some = [each for each in found if getattr(each.world, name) == value]
            if len({each.world.number for each in some}) > 1:
                yield f"{value:,} impressions" if name == "impressions" else str(value), some


def kept_in(file: Path) -> list[Found]:
    """The worlds of a file that `--keep` or `--tables` left."""
    text = file.read_text()
    rows = json.loads(text)["numbers"] if file.suffix == ".json" else map(json.loads, text.splitlines())
    return [Found(**row | {"world": World(**row["world"])}) for row in rows]


def command(options: argparse.Namespace, found: Sequence[Found]) -> str:
    """The command that finds the same in one process, and the worlds that it finds more."""
    numbers = {each.world.number for each in found}
    words = ["python", "-m", "benchmarks.never_worse", "--worlds", str(max(numbers) + 1)]
    words += ["--first", str(min(numbers))] if min(numbers) else []
    for name, usual in (("queries", QUERIES), ("impressions", IMPRESSIONS)):
        sizes = getattr(options, name)
        words += [f"--{name}", *map(str, sizes)] if tuple(sizes) != usual else []
    words += ["--data", "FOLDER"] if any(each.world.data.startswith("mq") for each in found) else []
    words += ["--relevance", options.relevance] if options.relevance != "mlp" else []
    words += ["--methods", *options.methods] if tuple(options.methods) != METHODS else []
    missing = ", ".join(str(number) for number in range(min(numbers), max(numbers)) if number not in numbers)
    return shlex.join(words) + (f" without worlds {missing}" if missing else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first world, to leave out those before")
    parser.add_argument("--data", type=Path, help="folder that has mq2007 and mq2008")
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES, help="training queries of generated data")
    parser.add_argument("--impressions", type=int, nargs="+", default=IMPRESSIONS, help="of a log")
    parser.add_argument("--relevance", choices=("mlp", "trees"), default="mlp")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="click is always among them")
    parser.add_argument("--part", default="0/1", help="such as 0/2 and 1/2 for two processes")
    parser.add_argument("--keep", type=Path, help="file that a line of JSON is added to for each method in each world")
    parser.add_argument("--show", type=Path, nargs="+", help="such files, to make the tables of")
    parser.add_argument("--tables", type=Path, help="file that the tables are stored in for `ultr reproduce docs`")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: list[Found] = []
    if options.show:
        found = [each for file in options.show for each in kept_in(file)]
        if other := {each.relevance for each in found} - {"", options.relevance}:
            parser.error(f"these worlds were learned with --relevance {' and '.join(sorted(other))}")
        logs = {each.world.number: each.world for each in found if each.new is None}
        now = {number: said(world.log(world.read(options.data))) for number, world in logs.items()}
        found = [replace(each, new=now.get(each.world.number, each.new)) for each in found]
    else:
        names = [f"letor-like {size}" for size in options.queries] + (["mq2007", "mq2008"] if options.data else [])
        part, parts = map(int, options.part.split("/"))
        for world in drawn(options.worlds, names, options.impressions)[options.first :][part::parts]:
            new = measure(world, options.data, options.relevance, ("click", *options.methods))
            print(line(new), flush=True)
            found += new
            if options.keep:
                with options.keep.open("a") as file:
                    file.writelines(json.dumps(asdict(each)) + "\n" for each in new)
    made = [gain_table(found)]
    made += [weights_table(found)] if _of(found, PLAIN) and _of(found, WEIGHTED) else []
    made += [forecast_table(found)] if _of(found, "auto") else []
    print("\n".join(table.as_markdown() for table in made))
    if options.tables:
        numbers = [asdict(each) for each in found]
        StoredTables.now("Methods against raw clicks", command(options, found), made, numbers).write(options.tables)
    gains = {name: [each.gain for each in _of(found, name)] for name in METHODS[1:]}
    write(
        [
            Measurement(f"nDCG@10 over raw clicks, {name}: {what}", value, "nDCG", headline=name == "auto")
            for name, each in gains.items()
            if each
            for what, value in (("mean", float(np.mean(each))), ("worst", float(np.min(each))))
        ],
        options.json,
    )


if __name__ == "__main__":
    main()

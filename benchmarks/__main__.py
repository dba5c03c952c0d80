"""`make bench`: the benchmarks one after the other, their tables, one JSON file and a plot of how cost grows.

    python -m benchmarks                      # those that take minutes, half an hour in all
    python -m benchmarks training peers       # these
    python -m benchmarks --mq2007 FOLDER      # peers and time to quality on MQ2007, too
    python -m benchmarks --all                # all methods, seeds and sizes, for hours

A benchmark is a module that is run in a process of its own, prints its table and, with `--json FILE`, leaves a list of
`Measurement`. One that fails is named at the end, and the others run all the same. Tables are kept beside the JSON
file, from where they go into the documentation (`benchmarks.kept_tables`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter

from benchmarks.kept_tables import keep
from benchmarks.machine import Machine
from benchmarks.measurement import Measurement


@dataclass(frozen=True)
class Benchmark:
    """A module of this package and how it is run here."""

    name: str
    """Of the module."""
    options: tuple[str, ...] = ()
    whole: tuple[str, ...] | None = None
    """Options in their place for all that there is to be measured, where that takes much longer."""
    long: bool = False
    """Left out unless it is asked for."""
    plots: str = ""
    """The file name of the plot that it draws with `--plot`."""
    data: str | None = None
    """The data set, where it is not that of the benchmark itself."""

    def __str__(self) -> str:
        return f"{self.name}, {self.data.partition('=')[0]}" if self.data else self.name

    @property
    def file_name(self) -> str:
        """Of its tables, such as `peers-mq2007.json`."""
        return f"{self.name}-{self.data.partition('=')[0]}.json" if self.data else f"{self.name}.json"

    def sized(self, *, whole: bool) -> Benchmark:
        """With the options of all that there is to be measured, or with those of the short version."""
        return replace(self, options=self.whole) if whole and self.whole is not None else self

    def on(self, data: str | None) -> Benchmark:
        """On this data set, if one is named as in NAME=FOLDER."""
        return replace(self, data=data) if data else self


PEERS = ("--rankers", "click", "dla", "vectorization", "lightgbm-position", "xgboost-unbiased", "clax-pbm")
TWO_METHODS = ("--methods", "vectorization", "dla")
SEEDS = ("--seeds", "0", "1", "2", "3", "4")
ROWS = ("100000", "1000000", "10000000", "100000000")
BENCHMARKS = (
    Benchmark("training"),
    Benchmark("reader"),
    Benchmark("simulator"),
    Benchmark("scoring", ("--features", "136"), whole=()),
    Benchmark("serving", ("--seconds", "20"), whole=("--features", "46", "136")),
    Benchmark("loop_cost", ("--seconds", "2", "--rounds", "4"), whole=()),
    Benchmark("worst_bodies", long=True),
    Benchmark("siege", ("--minutes", "2"), whole=("--minutes", "30"), long=True),
    Benchmark("shown_log", long=True),
    Benchmark("prepare", whole=("--rows", *ROWS[1:])),
    Benchmark("processes", ("--features", "700", "--rounds", "2"), whole=()),
    Benchmark("exploration"),
    Benchmark("growth", ("--rows", *ROWS[:-1]), whole=("--rows", *ROWS), plots="growth.png"),
    Benchmark("examining", ("--shown", "100000", "1000000"), whole=()),
    Benchmark("peers", ("--hidden", "128", "64", *PEERS), whole=("--hidden", "128", "64", *SEEDS)),
    Benchmark("trees", ("--methods", "click", "dla", "vectorization"), whole=()),
    Benchmark("forest_scoring"),
    Benchmark("explanation"),
    Benchmark("quality", TWO_METHODS, whole=SEEDS),
    Benchmark("comparison", long=True),
    Benchmark("rank_test", long=True),
    Benchmark("intervals", long=True),
    Benchmark("interleaving", long=True),
    Benchmark("never_worse", long=True),
    Benchmark("safe", long=True),
    Benchmark("conversions", long=True),
    Benchmark("head_queries", long=True),
    Benchmark("mutants", ("--seconds", "120"), whole=("--seconds", "3600"), long=True),
    Benchmark("tuning", long=True),
    Benchmark("seeds", long=True),
)
ON_MQ2007 = (
    Benchmark("peers", ("--hidden", "64", "32", *PEERS), whole=("--hidden", "64", "32", "--folds", *"12345")),
    Benchmark("quality", TWO_METHODS, whole=SEEDS),
)
"""Those that are also run on MQ2007 where its folder is given; for `quality`, seeds are folds there."""


@dataclass(frozen=True)
class Result:
    """What became of one benchmark."""

    name: str
    command: tuple[str, ...]
    seconds: float
    exit_code: int
    measurements: list[Measurement] = field(default_factory=list)


def run(benchmarks: Sequence[Benchmark], path: Path) -> list[Result]:
    """Run them in turn; after each, the file holds all that is known so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    machine, results = Machine.here(), []
    for benchmark in benchmarks:
        print(f"\n== {benchmark}", flush=True)
        results.append(_run(benchmark, path.parent))
        content = {"machine": asdict(machine), "benchmarks": [asdict(result) for result in results]}
        path.write_text(json.dumps(content, indent=2) + "\n")
    return results


def _run(benchmark: Benchmark, folder: Path) -> Result:
    plot = ("--plot", str(folder / benchmark.plots)) if benchmark.plots else ()
    data = ("--data", benchmark.data) if benchmark.data else ()
    options = (*data, *benchmark.options, *plot)
    started = perf_counter()
    code, found = keep(folder / "tables" / benchmark.file_name, benchmark.name, options)
    command = ("python", "-m", f"benchmarks.{benchmark.name}", *options)
    return Result(str(benchmark), command, perf_counter() - started, code, found)


def summary(results: Sequence[Result]) -> str:
    """The headlines of each benchmark, and which of them failed."""
    lines = ["", "== summary"]
    for result in results:
        failed = f", FAILED with exit code {result.exit_code}" if result.exit_code else ""
        lines.append(f"{result.name}: {result.seconds:.0f} s{failed}")
        lines.extend(f"  {each}" for each in result.measurements if each.headline)
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 1 if any of it failed."""
    names = [benchmark.name for benchmark in BENCHMARKS]
    quick = ", ".join(benchmark.name for benchmark in BENCHMARKS if not benchmark.long)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)}; without any: {quick}")
    parser.add_argument("--all", action="store_true", help="all methods, seeds and sizes, for hours")
    parser.add_argument("--mq2007", metavar="FOLDER", help="run peers and quality on MQ2007, too")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), help="%(default)s")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.names if name not in names]:
        parser.error(f"there is no benchmark {unknown[0]}; choose from {', '.join(names)}")
    chosen = [
        benchmark.sized(whole=asked.all).on(data)
        for benchmarks, data in ((BENCHMARKS, None), (ON_MQ2007 if asked.mq2007 else (), f"mq2007={asked.mq2007}"))
        for benchmark in benchmarks
        if (benchmark.name in asked.names if asked.names else asked.all or not benchmark.long)
    ]
    results = run(chosen, asked.json)
    print(summary(results))
    print(f"\nall numbers: {asked.json}")
    return int(any(result.exit_code for result in results))


if __name__ == "__main__":
    sys.exit(main())

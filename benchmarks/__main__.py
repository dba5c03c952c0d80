"""`make bench`: the benchmarks one after the other, their tables, one JSON file and a plot of how cost grows.

    python -m benchmarks                      # those that take minutes
    python -m benchmarks training peers       # these
    python -m benchmarks --all                # all, for hours

A benchmark is a module that is run in a process of its own, prints its table and, with `--json FILE`, leaves a list of
`Measurement`. One that fails is named at the end, and the others run all the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter

from benchmarks.machine import Machine
from benchmarks.measurement import Measurement, read


@dataclass(frozen=True)
class Benchmark:
    """A module of this package and how it is run here."""

    name: str
    options: tuple[str, ...] = ()
    long: bool = False
    """Left out unless it is asked for."""
    plots: str = ""
    """The file name of the plot that it draws with `--plot`."""


PEERS = ("click", "dla", "vectorization", "lightgbm-position", "xgboost-unbiased", "clax-pbm")
BENCHMARKS = (
    Benchmark("training"),
    Benchmark("reader"),
    Benchmark("simulator"),
    Benchmark("scoring", ("--features", "136")),
    Benchmark("serving", ("--seconds", "20")),
    Benchmark("prepare"),
    Benchmark("growth", ("--rows", "100000", "1000000"), plots="growth.png"),
    Benchmark("peers", ("--clicks", "trust", "--hidden", "128", "64", "--rankers", *PEERS)),
    Benchmark("quality", ("--methods", "vectorization", "--clicks", "trust")),
    Benchmark("comparison", long=True),
    Benchmark("rank_test", ("position-based",), long=True),
)


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
        print(f"\n== {benchmark.name}", flush=True)
        results.append(_run(benchmark, path.parent))
        content = {"machine": asdict(machine), "benchmarks": [asdict(result) for result in results]}
        path.write_text(json.dumps(content, indent=2) + "\n")
    return results


def _run(benchmark: Benchmark, folder: Path) -> Result:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "measurements.json"
        plot = ("--plot", str(folder / benchmark.plots)) if benchmark.plots else ()
        command = ("-m", f"benchmarks.{benchmark.name}", *benchmark.options, *plot)
        started = perf_counter()
        code = subprocess.run([sys.executable, *command, "--json", str(file)]).returncode
        seconds = perf_counter() - started
        found = read(file) if file.is_file() else []
    return Result(benchmark.name, ("python", *command), seconds, code, found)


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
    parser.add_argument("--all", action="store_true", help="also those that take hours")
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"), help="%(default)s")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.names if name not in names]:
        parser.error(f"there is no benchmark {unknown[0]}; choose from {', '.join(names)}")
    if asked.names and asked.all:
        parser.error("give names or --all, not both")
    chosen = [
        each for each in BENCHMARKS if each.name in asked.names or (not asked.names and (asked.all or not each.long))
    ]
    results = run(chosen, asked.json)
    print(summary(results))
    print(f"\nall numbers: {asked.json}")
    return int(any(result.exit_code for result in results))


if __name__ == "__main__":
    sys.exit(main())

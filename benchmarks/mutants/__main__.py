"""The share of small faults that the tests of a package find: `python -m benchmarks.mutants --package bias`.

    python -m benchmarks.mutants --package bias --seconds 600
    python -m benchmarks.mutants --package bias evaluation --survivors build/survivors.toml
    python -m benchmarks.mutants --package bias --again build/survivors.toml   # those alone, after tests were written

Each mutant is a copy of the tree with one threshold, comparison, sign or constant changed. Only the tests in the
folder of the same name and the examples of the package are run on it, those that run the changed line, fastest first,
to the first that fails; slow ones not at all. A survivor is a missing test, needless code, or no fault at all; the last
are listed in `equivalent.toml` with the reason and left out. Where time runs out the mutants are a seeded sample.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import tomllib
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from benchmarks.measurement import Measurement, write
from benchmarks.mutants.mutant import Mutant, mutants
from benchmarks.mutants.trial import Attempt, Suite, Tree, import_libraries

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
PACKAGES = ("bias", "diagnosis", "evaluation", "metrics", "reporting")
GOAL = 0.9
START, SLOWER = 10.0, 3.0
"""CPU seconds that a run may take beside its tests, and times as long as these took before; then it does not end."""
Key = tuple[str, str, str]
"""File, scope and change, which a mutant keeps while lines move."""


@dataclass(frozen=True)
class Tried:
    """A mutant of a file, and whether the tests found it."""

    file: str
    mutant: Mutant
    killed: bool
    tests: int
    """The tests that were run on it at most; 0 if no test runs its line."""

    def __str__(self) -> str:
        seen = "" if self.tests else "   [no test runs it]"
        where = f" in {self.mutant.scope}" if self.mutant.scope else ""
        return f"{self.file}:{self.mutant.line}{where}: {self.mutant.change}{seen}"


def of_package(package: str, root: Path) -> list[tuple[str, Mutant]]:
    """All mutants of a package, by file."""
    return [
        (str(path.relative_to(root)), mutant)
        for path in sorted((root / "src" / "ultr" / package).rglob("*.py"))
        for mutant in mutants(path.read_text(encoding="utf-8"))
    ]


def key(file: str, mutant: Mutant) -> Key:
    return file, mutant.scope, mutant.change


def listed(path: Path) -> dict[Key, str]:
    """The mutants in a file, with the reason that each is there."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    return {(each["file"], each["scope"], each["change"]): each["reason"] for each in found.get("mutant", [])}


def is_in(each: Key, found: Container[Key]) -> bool:
    """True if a mutant is listed, or the beginning of its change with three dots behind it."""
    file, scope, change = each
    return each in found or any((file, scope, f"{change[:end]}...") in found for end in range(1, len(change)))


def as_listed(tried: Sequence[Tried]) -> str:
    """Mutants as `listed` reads them, without a reason yet."""
    lines = []
    for each in tried:
        file, scope, change = key(each.file, each.mutant)
        quoted = change.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[[mutant]]\nfile = "{file}"\nscope = "{scope}"\nchange = "{quoted}"\nreason = ""\n')
    return "\n".join(lines)


def try_all(tree: Tree, package: str, chosen: Sequence[tuple[str, Mutant]], options: argparse.Namespace) -> list[Tried]:
    """Try mutants in turn until the time is over."""

    def attempt(number: int, suite: Suite, run: Attempt) -> Tried:
        file, mutant = chosen[number]
        tests = suite.tests_of(file, mutant, most_seconds=options.limit)
        seconds = START + SLOWER * sum(suite.seconds[name] for name in tests)
        tried = Tried(file, mutant, bool(tests) and run(file, mutant, tests, seconds), len(tests))
        if not tried.killed:
            print(tried, flush=True)
        return tried

    def work(suite: Suite, run: Attempt) -> Any:
        """Those that are at work in calls; others wait for a process that has imported nothing."""
        tests = f"{len(suite.seconds)} tests, {sum(suite.seconds.values()):.0f} s"
        print(f"\n== {package}: {len(chosen)} mutants, {tests}", flush=True)
        start, done = monotonic(), dict[int, tuple[bool, int]]()
        for number, (_, mutant) in enumerate(chosen):
            if monotonic() > start + options.seconds:
                return [asdict(suite), number, done]
            if not mutant.at_import:
                tried = attempt(number, suite, run)
                done[number] = tried.killed, tried.tests
        return [asdict(suite), len(chosen), done]

    found, reached, done = tree.collected(package, work, limit=options.limit, files=options.tests)
    lines = {file: {int(line): names for line, names in by.items()} for file, by in found["lines"].items()}
    suite = Suite(found["seconds"], lines)
    return [
        Tried(*chosen[number], *done[str(number)]) if str(number) in done else attempt(number, suite, tree.imported)
        for number in range(reached)
    ]


def table(package: str, tried: Sequence[Tried], every: Sequence[tuple[str, Mutant]]) -> list[Measurement]:
    """Print the share killed by file and of all, and give the latter."""
    print(f"\n{'file':<48} {'mutants':>8} {'tried':>6} {'killed':>7} {'share':>6}")
    for file in dict.fromkeys(file for file, _ in every):
        here = [each for each in tried if each.file == file]
        _row(file.removeprefix("src/ultr/"), sum(name == file for name, _ in every), here)
    _row(package, len(every), tried)
    killed, count = sum(each.killed for each in tried), len(tried)
    low, high = _wilson(killed, count) if count < len(every) else (None, None)
    name = f"{package}: mutants that the tests find"
    return [Measurement(name, killed / count, "share", low, high, headline=True)] if count else []


def summary(package: str, tried: Sequence[Tried], every: int) -> str:
    """A row of the table of packages."""
    killed, count = sum(each.killed for each in tried), len(tried)
    low, high = _wilson(killed, count) if count else (0.0, 1.0)
    among = f" ({100 * low:.0f} to {100 * high:.0f})" if count < every else ""
    return f"| `{package}` | {every:,} | {count:,} | {killed:,} | {100 * killed / max(count, 1):.0f} %{among} |"


def _row(name: str, every: int, tried: Sequence[Tried]) -> None:
    killed = sum(each.killed for each in tried)
    share = f"{100 * killed / len(tried):.0f} %" if tried else "-"
    print(f"{name:<48} {every:>8} {len(tried):>6} {killed:>7} {share:>6}")


def _wilson(killed: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share by a sample."""
    share, z = killed / count, 1.96
    centre, scale = share + z * z / (2 * count), 1 + z * z / count
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (centre - half) / scale, (centre + half) / scale


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the packages one after the other; 1 if one is below the goal."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--package", nargs="+", choices=PACKAGES, default=list(PACKAGES))
    parser.add_argument("--files", nargs="+", default=[], help="only files whose names have one of these in them")
    parser.add_argument(
        "--tests",
        nargs="+",
        default=[],
        help="only test files whose names have one of these in them, where time is short",
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="for each package, beside its first run of tests")
    parser.add_argument(
        "--limit", type=float, default=5.0, help="CPU seconds of tests for one mutant; slower tests are left out"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order, and so of the sample")
    parser.add_argument("--survivors", type=Path, help="file for the survivors")
    parser.add_argument("--again", type=Path, help="try only the mutants in such a file")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args(arguments)
    import_libraries()
    left_out, wanted = set(listed(EQUIVALENT)), set(listed(options.again)) if options.again else None
    measurements, alive = [], list[Tried]()
    lines = ["| package | mutants | tried | found | share |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as work:
        tree = Tree.copy(ROOT, Path(work))
        for package in options.package:
            every = [
                (file, mutant)
                for file, mutant in of_package(package, ROOT)
                if not is_in(key(file, mutant), left_out)
                and (wanted is None or is_in(key(file, mutant), wanted))
                and (not options.files or any(part in file for part in options.files))
            ]
            tried = try_all(tree, package, Random(options.seed).sample(every, len(every)), options)
            alive += [each for each in tried if not each.killed]
            measurements += table(package, tried, every)
            lines.append(summary(package, tried, len(every)))
    print("", "mutants", *lines, sep="\n")
    if options.survivors:
        options.survivors.write_text(as_listed(sorted(alive, key=lambda each: (each.file, each.mutant.number))))
    write(measurements, options.json)
    return int(any(each.value < GOAL for each in measurements))


if __name__ == "__main__":
    sys.exit(main())

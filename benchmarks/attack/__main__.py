"""`make attack`: fuzzers for everything that is read, with counts; exit code 1 if any attempt ends as none may.

    python -m benchmarks.attack                          # two minutes
    python -m benchmarks.attack --minutes 30             # a release
    python -m benchmarks.attack --only checkpoints       # one target
    python -m benchmarks.attack --only checkpoints --repeat 17   # one attempt, with all it says

An attempt depends on the seed, the target and its number alone. The running service is attacked by
`python -m benchmarks.serving`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic

import torch

from benchmarks.attack.folders import Checkpoints, ClickLogs, Forests, Models
from benchmarks.attack.letor import LetorLines
from benchmarks.attack.outcome import BAD, Outcome, Tally, Target, TooSlowError, limited
from benchmarks.attack.plans import Plans
from benchmarks.attack.raw_logs import RawLogs

TARGETS: tuple[Callable[[Path], Target], ...] = (Models, Forests, Checkpoints, ClickLogs, RawLogs, Plans, LetorLines)
"""What is attacked; a new target is a class with a name and an `attempt`, here."""
SHOWN = 5
"""Attempts of each target that are told of, of those that must not end so."""
MOST_SECONDS = 30
"""An attempt that takes longer hangs."""


def main() -> None:
    """Attack every target for its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[], help="names of targets, or parts of them")
    parser.add_argument("--repeat", type=int, help="the number of one attempt")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        made = [make for make in TARGETS if _is_wanted(make.name, options.only)]  # type: ignore[attr-defined]
        targets = [make(Path(work)) for make in made]
        if options.repeat is not None:
            for target in targets:
                print(*target.attempt(_random(options.seed, target, options.repeat)), sep="\n")
            return
        unit = 60 * options.minutes / sum(target.share for target in targets)
        tallies = [attack(each, options.seed, unit * each.share) for each in targets]
    print(_table(tallies))
    bad = [line for tally in tallies for line in tally.bad[:SHOWN]]
    print(*bad, sep="\n\n", file=sys.stderr)
    sys.exit(1 if any(tally.bad for tally in tallies) else 0)


def attack(target: Target, seed: int, seconds: float, *, most: int = 10**9) -> Tally:
    """Attack a target for so many seconds."""
    tally, start = Tally(target.name), monotonic()
    while monotonic() < start + seconds and tally.tried < most:
        number = tally.tried
        try:
            with limited(MOST_SECONDS):
                outcome, said = target.attempt(_random(seed, target, number))
        except TooSlowError:
            outcome, said = Outcome.TRACEBACK, f"not done after {MOST_SECONDS} seconds"
        tally.counts[outcome] += 1
        if outcome in BAD:
            tally.bad.append(f"{target.name}, --seed {seed} --repeat {number}: {outcome.value}: {said}")
    tally.seconds = monotonic() - start
    return tally


def _is_wanted(name: str, only: list[str]) -> bool:
    return not only or any(part in name for part in only)


def _random(seed: int, target: Target, number: int) -> Random:
    return Random(f"{seed} {target.name} {number}")


def _table(tallies: list[Tally]) -> str:
    heads = ["target", "tried", *(outcome.value for outcome in Outcome), "seconds"]
    rows = [
        [each.name, *(f"{each.counts[outcome]:,}" for outcome in Outcome), f"{each.seconds:.0f}"] for each in tallies
    ]
    rows = [[row[0], f"{tally.tried:,}", *row[1:]] for row, tally in zip(rows, tallies, strict=True)]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(width) if place == 0 else cell.rjust(width) for place, (cell, width) in enumerate(cells))
        for cells in (zip(row, widths, strict=True) for row in [heads, *rows])
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

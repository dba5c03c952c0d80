"""What a tree costs: our methods with trees beside LightGBM, for as many trees of the same size on the same clicks.

    python -m benchmarks.trees
    python -m benchmarks.trees --data mq2007=FOLDER --clicks real

Every ranker grows all of its trees, without validation, in a process of its own with one thread. Ours learn from the
collapsed log. LightGBM's own LambdaRank learns from sessions drawn from it: from as many as the log has lists, so that
both have as many rows, and from the 50,000 of the experiments. Vectorization trains a network before its trees, which
is part of its time. Seconds are the processor's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contender import Showing
from benchmarks.measurement import Measurement, write
from benchmarks.peers import LEARN_FROM_CLICKS, Ranker, arena_of, compete
from ultr.clicks.registry import CLICK_MODELS
from ultr.datasets.source import Source
from ultr.errors import UltrError

SAME_ROWS, SESSIONS = "LightGBM, as many rows", "LightGBM, 50,000 sessions"
HEADLINES = ("click", "dla", "vectorization")
GOAL = 2
"""Our aim: at most this many times LightGBM's time."""


def rankers(methods: Sequence[str], *, lists: int, rounds: int, leaves: int, hidden: Sequence[int]) -> list[Ranker]:
    """LightGBM on few and on many sessions, and our methods with trees, all with trees of the same size."""
    size = {"rounds": rounds, "leaves": leaves}
    library = {SAME_ROWS: lists, SESSIONS: 50_000}
    found = [
        Ranker(label, "lightgbm", {**size, "sessions": sessions}, validated=False)
        for label, sessions in library.items()
    ]
    for name in methods:
        network = {"vector_hidden": list(hidden)} if name in {"vectorization", "auto"} else {}
        found.append(Ranker(name, name, {"relevance": "trees", **size, **network}, validated=False))
    return found


def measurements(setting: str, showings: Mapping[str, Showing]) -> list[Measurement]:
    """Seconds of each, and how many times LightGBM's each of ours takes."""
    seconds = {label: showing.processor for label, showing in showings.items()}
    ours = [label for label in seconds if label not in (SAME_ROWS, SESSIONS)]
    return [
        *(Measurement(f"{setting}, {label}: training, processor", each, "s") for label, each in seconds.items()),
        *(
            Measurement(
                f"{setting}, processor time for as many trees, {label} to {library}",
                seconds[label] / seconds[library],
                "times",
                headline=label in HEADLINES,
            )
            for label in ours
            for library in (SAME_ROWS, SESSIONS)
        ),
    ]


def table(showings: Mapping[str, Showing]) -> str:
    """A row for each ranker."""
    lines = [
        f"| ranker | processor, s | to {SAME_ROWS} | to {SESSIONS} | nDCG@10 | peak memory, MB |",
        "|---|---|---|---|---|---|",
    ]
    for label, showing in showings.items():
        ratios = [showing.processor / showings[library].processor for library in (SAME_ROWS, SESSIONS)]
        lines.append(
            f"| {label} | {showing.processor:.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {showing.quality:.3f} | "
            f"{showing.peak / 1e6:,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="letor-like=10000", help="as for ultr simulate; %(default)s")
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), default="trust")
    parser.add_argument("--impressions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--leaves", type=int, default=7)
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 64], help="layers of Vectorization's network")
    parser.add_argument("--methods", nargs="+", choices=LEARN_FROM_CLICKS, default=LEARN_FROM_CLICKS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    try:
        source = Source.parse(asked.data)
        arena = arena_of(source, asked.clicks, impressions=asked.impressions, seed=asked.seed)
        contenders = rankers(
            asked.methods, lists=arena.log.lists, rounds=asked.rounds, leaves=asked.leaves, hidden=asked.hidden
        )
        showings = compete(arena, contenders, seed=asked.seed)
    except UltrError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error
    print(
        f"\n{source.name}, {arena.log.lists:,} lists, {asked.clicks} clicks, {asked.rounds} trees of {asked.leaves} "
        f"leaves; the aim is at most {GOAL} times LightGBM's time\n\n{table(showings)}"
    )
    write(measurements(f"{source.name}, {asked.clicks}", showings), asked.json)


if __name__ == "__main__":
    main()

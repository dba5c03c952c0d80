"""How fast clicks are simulated: `python -m benchmarks.simulator [--sessions 2000000]`.

A decision is one shown document of one session, clicked or not. `sessions()` makes each of them; `counts()`
gives the same totals without making them one by one, so its rate is an effective one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr.clicks import click_model

MODELS = ("real", "trust")
POSITIONS = 10
LISTS_PER_CALL = 20_000
"""Few enough that the arrays of one call stay in the cache."""


def measure(sessions: int) -> list[Measurement]:
    """Decisions a second of `sessions()` and effectively of `counts()`, for each matrix-type model."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, size=(LISTS_PER_CALL, POSITIONS))
    calls = -(-sessions // LISTS_PER_CALL)
    decisions = calls * LISTS_PER_CALL * POSITIONS
    found = []
    for name in MODELS:
        model = click_model(name)
        started = perf_counter()
        for _ in range(calls):
            model.sessions(labels, generator, max_label=4)
        each = perf_counter() - started
        impressions = np.full(LISTS_PER_CALL, calls)
        started = perf_counter()
        model.counts(labels, impressions, generator, max_label=4)
        together = perf_counter() - started
        found += [
            Measurement(f"{name} clicks, sessions()", decisions / each, "decisions/s"),
            Measurement(f"{name} clicks, counts()", decisions / together, "decisions/s"),
            Measurement(f"{name} clicks, counts() to sessions()", each / together, "times", headline=True),
        ]
    return found


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    found = measure(asked.sessions)
    for measurement in found:
        print(measurement)
    write(found, asked.json)


if __name__ == "__main__":
    main()

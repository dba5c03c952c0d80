"""How fast clicks are simulated: `python -m benchmarks.simulator [sessions]`.

A decision is one shown document of one session, clicked or not. `sessions()` makes each of them; `counts()`
gives the same totals without making them one by one, so its rate is an effective one.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np

from ultr.clicks import click_model

MODELS = ("real", "trust")
POSITIONS = 10
LISTS_PER_CALL = 20_000
"""Few enough that the arrays of one call stay in the cache."""


def measure(sessions: int = 2_000_000) -> dict[str, dict[str, float]]:
    """Decisions a second of `sessions()` and effectively of `counts()`, for each matrix-type model."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, size=(LISTS_PER_CALL, POSITIONS))
    calls = -(-sessions // LISTS_PER_CALL)
    decisions = calls * LISTS_PER_CALL * POSITIONS
    results = {}
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
        results[name] = {"sessions": decisions / each, "counts": decisions / together}
    return results


def main() -> None:
    """Print the rates."""
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    print(f"{sessions:,} sessions of {POSITIONS} documents, million decisions a second")
    for name, rates in measure(sessions).items():
        print(f"{name:>6}: sessions() {rates['sessions'] / 1e6:8.1f}   counts() {rates['counts'] / 1e6:10.1f}")


if __name__ == "__main__":
    main()

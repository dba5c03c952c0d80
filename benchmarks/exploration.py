"""How near the curve of position bias comes to the truth, with and without the propensities that exploration logged.

    python -m benchmarks.exploration
    python -m benchmarks.exploration --pages 100000 --seeds 0 1 2

Pages of ten documents, of which adjacent ones are exchanged on a share of the pages. In the world `confounded` the
ranking follows what is relevant on a page, which differs from page to page: documents stand high where they are
wanted. In `fixed` it does not: every document has one relevance and one place but for exchanges. In `tail` no document
is ever shown twice. The error is the largest |log(estimate / truth)| over positions, by `all-pairs`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement, with_error, write
from ultr.arrays import Doubles
from ultr.bias import estimate_propensities
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.errors import DataError
from ultr.serving.exploration import SWAPS, Exploration

POSITIONS, QUERIES = 10, 200
THETA = 1 / np.arange(1.0, POSITIONS + 1) ** 0.7
WORLDS = ("confounded", "fixed", "tail")


def pages_of(world: str, *, pages: int, epsilon: float, seed: int) -> ClickLog:
    """The log of so many pages, one row for each."""
    random = np.random.default_rng([seed, WORLDS.index(world)])
    query = random.integers(QUERIES, size=pages)
    usual = random.uniform(0.05, 0.6, size=(QUERIES, POSITIONS))
    relevance = usual[query]
    if world == "confounded":
        relevance = random.permuted(relevance, axis=1)
    base = np.argsort(-relevance, axis=1)
    # Each adjacent pair is exchanged with the same probability, at most one on a page.
    pair = np.where(random.random(pages) < epsilon, random.integers(POSITIONS - 1, size=pages), -1)
    ranks = np.tile(np.arange(POSITIONS), (pages, 1))
    moved = np.flatnonzero(pair >= 0)
    ranks[moved, pair[moved]], ranks[moved, pair[moved] + 1] = pair[moved] + 1, pair[moved]
    shown = np.take_along_axis(base, ranks, axis=1)
    clicks = random.random((pages, POSITIONS)) < THETA * np.take_along_axis(relevance, shown, axis=1)
    documents = query[:, None] * POSITIONS + shown
    if world == "tail":
        documents = np.arange(pages * POSITIONS).reshape(pages, POSITIONS)
    exploration = Exploration(SWAPS, epsilon)
    orders, which = np.unique(ranks, axis=0, return_inverse=True)
    chances = np.array([exploration.propensities(order.tolist()) for order in orders])[which.reshape(-1)]
    return ClickLog.of(
        features=np.zeros((int(documents.max()) + 1, 0)),
        documents=documents.ravel(),
        offsets=np.arange(0, pages * POSITIONS + 1, POSITIONS),
        clicks=clicks.ravel(),
        queries=query.tolist(),
        placement_propensities=chances.ravel(),
        base_positions=ranks.ravel() + 1,
    )


def error_of(log: ClickLog) -> float:
    """The largest |log(estimate / truth)|; NaN if there is no estimate."""
    try:
        found: Doubles = estimate_propensities(log)
    except DataError:
        return float("nan")
    return float(np.abs(np.log(found / THETA)).max())


def measure(world: str, *, pages: int, epsilon: float, seeds: Sequence[int]) -> list[Measurement]:
    """The errors with and without propensities, printed, over seeds."""
    errors: dict[str, list[float]] = {"without": [], "with": []}
    for seed in seeds:
        log = pages_of(world, pages=pages, epsilon=epsilon, seed=seed)
        errors["without"].append(error_of(trusted(log, placements=None)))
        errors["with"].append(error_of(log))
    said = {name: "cannot tell" if np.isnan(each).any() else with_error(each, sign="") for name, each in errors.items()}
    print(f"| {world} |", " | ".join(said.values()), "|", flush=True)
    return [
        Measurement(
            f"{world}: error of the curve {name} logged propensities",
            float(np.mean(each)),
            "log ratio",
            low=min(each),
            high=max(each),
            headline=world == "confounded",
        )
        for name, each in errors.items()
        if not np.isnan(each).any()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=50_000)
    parser.add_argument("--epsilon", type=float, default=0.05, help="share of pages with an exchange")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    print("| relevance | without propensities | with propensities |")
    print("|---|---|---|")
    found = [
        measurement
        for world in WORLDS
        for measurement in measure(world, pages=options.pages, epsilon=options.epsilon, seeds=options.seeds)
    ]
    write(found, options.json)


if __name__ == "__main__":
    main()

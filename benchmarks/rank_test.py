"""How often the rank test finds structure: in position-based clicks, where there is none, and in trust and real ones.

    python benchmarks/rank_test.py position-based --simulations 400 --impressions 10000 100000 1000000

Each line is a grouping and a number of impressions, with the share of simulated logs in which rank 1 was rejected at
level 0.05, and its 95 % interval (Clopper and Pearson by bisection).
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable

from ultr.bias.position_based_fit import Cells
from ultr.bias.rank_test import document_rank_test, rank_test
from ultr.bias.relevance_groups import click_groups, document_groups, group_table
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data.letor_like import letor_like
from ultr.simulation.log import simulate


def at_most(count: int, trials: int, chance: float) -> float:
    return sum(math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(count + 1))


def root(falling: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def interval(count: int, trials: int) -> tuple[float, float]:
    low = 0.0 if count == 0 else root(lambda chance: at_most(count - 1, trials, chance) - 0.975)
    high = 1.0 if count == trials else root(lambda chance: at_most(count, trials, chance) - 0.025)
    return low, high


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("clicks", choices=list(CLICK_MODELS))
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--impressions", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--samples", type=int, default=99)
    parser.add_argument("--largest", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    judged = letor_like(train_queries=options.queries, validation_queries=1, test_queries=1).train
    model = click_model(options.clicks)
    for impressions in options.impressions:
        found: dict[str, Counter[int]] = defaultdict(Counter)
        for seed in range(options.seed, options.seed + options.simulations):
            log = simulate(judged, model, impressions=impressions, svm_share=0.1, rankings=10, noise=0.5, seed=seed)
            labels = judged.labels[log.documents]
            cells = Cells.of_log(log)
            groups, half = click_groups(cells, seed=seed)
            asked = {"samples": options.samples, "largest": options.largest, "seed": seed}
            clicks, shown = group_table(log, labels)
            found["labels"][rank_test(clicks, shown, **asked).dimension] += 1
            by_label = document_groups(log, labels)
            found["documents by label"][document_rank_test(cells, by_label, **asked).dimension] += 1
            found["documents by clicks"][document_rank_test(half, groups, **asked).dimension] += 1
        for name, dimensions in found.items():
            rejected = options.simulations - dimensions[1]
            low, high = interval(rejected, options.simulations)
            print(
                f"{options.clicks:15} {impressions:>9,} {name:20} rejected {rejected}/{options.simulations} = "
                f"{rejected / options.simulations:.3f} ({low:.3f}-{high:.3f}), "
                f"dimensions {dict(sorted(dimensions.items()))}",
                flush=True,
            )


if __name__ == "__main__":
    main()

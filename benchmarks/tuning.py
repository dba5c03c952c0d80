"""What `ultr tune` gains, with labels in view: `python -m benchmarks.tuning`.

For each seed a generated data set and a log of its users. A method is trained with its default options (but a smaller
network for fewer steps, and fewer trees, so that it takes minutes) and with those that a search by held-out clicks
finds, on the same queries. Both are measured by nDCG@10 on test queries, which nothing was chosen by.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Measurement, with_error, write
from ultr import MLP, Trees, click_model, evaluate, letor_like, simulate, tune
from ultr.methods import method
from ultr.relevance.search_space import Between, OneOf

QUERIES, IMPRESSIONS = 150, 50_000
DEFAULTS: dict[str, Any] = {"mlp": MLP(hidden=(32, 16), steps=200), "trees": Trees(rounds=50)}
SMALLER = {
    **MLP().search_space(),
    "hidden": OneOf(((16,), (32, 16), (64, 32))),
    "steps": Between(50, 400, whole=True),
}
SPACES = {"mlp": SMALLER, "trees": {**Trees().search_space(), "rounds": Between(10, 100, whole=True)}}


def run(name: str, relevance: str, seed: int, *, trials: int) -> tuple[float, float, float, float]:
    """The nDCG@10 of the defaults and of the best settings, the lead on held-out clicks, and the seconds."""
    started = process_time()
    data = letor_like(train_queries=QUERIES, validation_queries=1, test_queries=300, seed=seed)
    log = simulate(
        data.train, click_model("trust"), impressions=IMPRESSIONS, svm_share=0.05, rankings=4, noise=0.5, seed=seed
    )
    kind = method(name)
    default = kind(relevance=DEFAULTS[relevance], seed=seed)
    found = tune(default, log, trials=trials, space=SPACES[relevance], seed=seed)
    train, held_out = log.split(seed=seed)
    default.fit(train, validation=held_out)
    before, after = (evaluate(each, data.test).mean("nDCG@10") for each in (default, found.ranker))
    return before, after, found.best.lead or 0.0, process_time() - started


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["dla mlp", "dla trees"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--trials", type=int, nargs="+", default=[8, 20])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    kept = []
    print(f"nDCG@10, {QUERIES} queries, {IMPRESSIONS:,} impressions, trust bias")
    print("| | settings as given | best settings found | mean gain | leads on held-out clicks | CPU seconds |")
    print("|---" * 6 + "|", flush=True)
    for each, trials in product(options.methods, options.trials):
        name, relevance = each.split()
        rows = np.array([run(name, relevance, seed, trials=trials) for seed in options.seeds])
        gains = rows[:, 1] - rows[:, 0]
        before, after = (" ".join(f"{value:.3f}" for value in column) for column in rows[:, :2].T)
        leads = " ".join(f"{value:+.3f}" for value in rows[:, 2])
        cells = (
            f"{each}, {trials} trials",
            before,
            after,
            with_error(gains.tolist()),
            leads,
            f"{rows[:, 3].sum():.0f}",
        )
        print("|", " | ".join(cells), "|", flush=True)
        kept.append(Measurement(f"gain of tuning {each}, {trials} trials", float(gains.mean()), "nDCG@10"))
    write(kept, options.json)


if __name__ == "__main__":
    main()

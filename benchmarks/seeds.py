"""What the mean over five seeds gains, with labels in view: `python -m benchmarks.seeds`.

For each world, a generated data set and a log of its users, a method is trained with `seeds=5`. The five rankers that
this averages, and their mean, are measured by nDCG@10 on test queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Measurement, with_error, write
from ultr import MLP, Trees, click_model, evaluate, letor_like, simulate
from ultr.methods import method
from ultr.methods.ranker import Ranker
from ultr.train.ranking_model import RankingModel

QUERIES, IMPRESSIONS, SEEDS = 150, 50_000, 5
RELEVANCE: dict[str, Any] = {"mlp": MLP(hidden=(32, 16), steps=200), "trees": Trees(rounds=50)}


def run(name: str, relevance: str, world: int) -> tuple[list[float], float]:
    """The nDCG@10 of each seed by itself, and that of their mean."""
    data = letor_like(train_queries=QUERIES, validation_queries=1, test_queries=300, seed=world)
    log = simulate(
        data.train, click_model("trust"), impressions=IMPRESSIONS, svm_share=0.05, rankings=4, noise=0.5, seed=world
    )
    train, held_out = log.split(seed=world)
    together = method(name)(relevance=RELEVANCE[relevance], seeds=SEEDS).fit(train, validation=held_out).ranker_
    found = [evaluate(each, data.test).mean("nDCG@10") for each in (*_alone(together), together)]
    return found[:-1], found[-1]


def _alone(ranker: Ranker) -> Iterator[Ranker]:
    """The rankers that were averaged."""
    for prefix, objective in ranker.objective.by_prefix.items():
        named = ranker.model.by_name.items()
        own = {name.removeprefix(prefix): model for name, model in named if name.startswith(prefix)}
        yield replace(ranker, model=RankingModel(own, objective))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["dla mlp", "vectorization mlp", "dla trees"])
    parser.add_argument("--worlds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    kept = []
    for each in options.methods:
        started = process_time()
        name, relevance = each.split()
        rows = [run(name, relevance, world) for world in options.worlds]
        gains = [together - float(np.mean(alone)) for alone, together in rows]
        spread = float(np.mean([np.std(alone, ddof=1) for alone, _ in rows]))
        by_world = ", ".join(f"{np.mean(alone):.3f} to {together:.3f}" for alone, together in rows)
        print(f"{each}: {by_world}; mean gain {with_error(gains)}; one seed spreads by {spread:.4f}")
        print(f"    {process_time() - started:.0f} CPU seconds", flush=True)
        kept.append(Measurement(f"gain of five seeds, {each}", float(np.mean(gains)), "nDCG@10"))
    write(kept, options.json)


if __name__ == "__main__":
    main()

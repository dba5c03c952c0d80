"""What the mean over five seeds gains, with labels in view: `python -m benchmarks.seeds`.

For each world, a generated data set and a log of its users, a method is trained with `seeds=5`. The five rankers that
this averages, their mean, and one network that it has taught on the same log are measured by nDCG@10 on test queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.measurement import Measurement, with_error, write
from ultr import MLP, Trees, click_model, distil, evaluate, letor_like, simulate
from ultr.methods import method
from ultr.methods.ranker import Ranker
from ultr.train.ranking_model import RankingModel

QUERIES, IMPRESSIONS, SEEDS = 150, 50_000, 5
RELEVANCE: dict[str, Any] = {"mlp": MLP(hidden=(32, 16), steps=200), "trees": Trees(rounds=50)}


class Found(NamedTuple):
    """nDCG@10 in one world."""

    alone: list[float]
    """Of each seed by itself."""
    together: float
    """Of their mean."""
    taught: float
    """Of the network that the mean has taught."""


def run(name: str, relevance: str, world: int) -> Found:
    """Train with five seeds and measure them, their mean, and what it teaches."""
    data = letor_like(train_queries=QUERIES, validation_queries=1, test_queries=300, seed=world)
    log = simulate(
        data.train, click_model("trust"), impressions=IMPRESSIONS, svm_share=0.05, rankings=4, noise=0.5, seed=world
    )
    train, held_out = log.split(seed=world)
    together = method(name)(relevance=RELEVANCE[relevance], seeds=SEEDS).fit(train, validation=held_out).ranker_
    taught = distil(together, log, relevance=MLP(hidden=(32, 16))).ranker
    *alone, mean, last = (evaluate(each, data.test).mean("nDCG@10") for each in (*_alone(together), together, taught))
    return Found(alone, mean, last)


def _alone(ranker: Ranker) -> Iterator[Ranker]:
    """The rankers that were averaged."""
    for prefix, objective in ranker.objective.by_prefix.items():
        named = ranker.model.by_name.items()
        own = {name.removeprefix(prefix): model for name, model in named if name.startswith(prefix)}
        yield replace(ranker, model=RankingModel(own, objective))


def _by_kind(found: Found) -> tuple[float, float, float]:
    return float(np.mean(found.alone)), found.together, found.taught


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["dla mlp", "vectorization mlp", "dla trees"])
    parser.add_argument("--worlds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    kept = []
    columns = (
        *("", "one seed, mean of five", "their mean score", "one network taught by it", "gain", "gain of that network"),
        *("standard deviation over seeds", "CPU seconds"),
    )
    print("|", " | ".join(columns), "|")
    print("|---" * len(columns) + "|", flush=True)
    for method_name in options.methods:
        started = process_time()
        name, relevance = method_name.split()
        rows = [run(name, relevance, world) for world in options.worlds]
        gains = [each.together - float(np.mean(each.alone)) for each in rows]
        of_taught = [each.taught - float(np.mean(each.alone)) for each in rows]
        spread = float(np.mean([np.std(each.alone, ddof=1) for each in rows]))
        by_world = (" ".join(f"{value:.3f}" for value in values) for values in zip(*map(_by_kind, rows), strict=True))
        cells = [method_name, *by_world, with_error(gains), with_error(of_taught), f"{spread:.4f}"]
        print("|", " | ".join(cells), f"| {process_time() - started:.0f} |", flush=True)
        kept.append(Measurement(f"gain of five seeds, {method_name}", float(np.mean(gains)), "nDCG@10"))
        what = f"gain of one network taught by them, {method_name}"
        kept.append(Measurement(what, float(np.mean(of_taught)), "nDCG@10"))
    write(kept, options.json)


if __name__ == "__main__":
    main()

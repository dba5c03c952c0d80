"""Training speed as a share of the machine's matrix-multiply rate.

    python -m benchmarks.training

A step of Vectorization's first stage at the paper's size (700 features, 512-256-128, 256 lists of 10) against plain
`torch.mm` on the shapes of its layers: forward, weight gradients, and input gradients where there are weights in front.
Both are timed in turn in one process, so that a noisy machine disturbs both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

from ultr.data.click_log import ClickLog, position_factor
from ultr.data.scaling import FeatureScaling
from ultr.methods import Vectorization
from ultr.methods.network import Shape
from ultr.train.inputs import Inputs
from ultr.train.loop import train_step
from ultr.train.recipe import RECIPES
from ultr.train.sampler import ListSampler

HIDDEN, BATCH, SHOWN, DIMENSION = (512, 256, 128), 256, 10, 3


def random_log(features: int, lists: int = 2_000) -> ClickLog:
    """A log of random features and clicks."""
    random = np.random.default_rng(0)
    shown = lists * SHOWN
    return ClickLog(
        features=random.normal(size=(shown, features)).astype(np.float32),
        documents=np.arange(shown),
        offsets=np.arange(lists + 1) * SHOWN,
        factors=(position_factor(np.tile(np.arange(SHOWN) + 1, lists)),),
        impressions=np.full(lists, 100),
        clicks=random.binomial(100, 0.1, size=shown),
        queries=np.arange(lists),
        query_ids=np.arange(lists).astype(np.str_),
        feature_names=tuple(str(i) for i in range(features)),
    )


def multiply(features: int) -> Callable[[], None]:
    """The matrix products that a step cannot do without."""
    documents = BATCH * SHOWN
    layers = [
        (torch.randn(documents, inputs), torch.randn(outputs, inputs), torch.randn(documents, outputs))
        for inputs, outputs in pairwise([features, *HIDDEN, DIMENSION])
    ]

    def run() -> None:
        for number, (values, weights, gradients) in enumerate(layers):
            torch.mm(values, weights.t())
            torch.mm(gradients.t(), values)
            if number:
                torch.mm(gradients, weights)

    return run


def step(features: int) -> Callable[[], None]:
    """One step of the loop, from drawing lists to moving weights."""
    method = Vectorization(dimension=DIMENSION, hidden=HIDDEN)
    log = random_log(features)
    lists = method.training_lists(log, Inputs(log.features, FeatureScaling.fit(log.features)))
    network = method.build(Shape(features, (SHOWN,)), torch.Generator().manual_seed(0))
    stage = method.stages(network, lists)[0]
    recipe = RECIPES["collapsed"]
    network.base.requires_grad_(False)
    optimizer = recipe.build_optimizer(network.parameters(), recipe.learning_rate)
    sampler = ListSampler(lists.weights, BATCH, seed=0, purpose="benchmark")
    done = iter(range(10**9))

    def run() -> None:
        train_step(stage, lists.batch(sampler(next(done))), optimizer, clip_norm=recipe.clip_norm)

    return run


def seconds(run: Callable[[], None]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, nargs="+", default=[700, 136, 46])
    parser.add_argument("--rounds", type=int, default=150)
    arguments = parser.parse_args()
    print(f"{torch.get_num_threads()} threads, {BATCH} lists of {SHOWN}, layers {HIDDEN}, d = {DIMENSION}")
    for features in arguments.features:
        products, whole = multiply(features), step(features)
        for _ in range(10):
            seconds(products)
            seconds(whole)
        times = [(seconds(products), seconds(whole)) for _ in range(arguments.rounds)]
        mm, steps = (statistics.median(column) for column in zip(*times, strict=True))
        best_mm, best_step = (min(column) for column in zip(*times, strict=True))
        print(
            f"{features} features: torch.mm {mm * 1e3:.1f} ms, step {steps * 1e3:.1f} ms, share {mm / steps:.1%} "
            f"(medians of {arguments.rounds}; fastest rounds: {best_mm / best_step:.1%}), {BATCH / steps:,.0f} lists/s"
        )


if __name__ == "__main__":
    main()

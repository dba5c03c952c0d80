"""Training speed as a share of the machine's matrix-multiply rate.

    python -m benchmarks.training [--features 700 136 46] [--methods vectorization dla] [--rounds 60]

A step of every method's first stage, from drawing lists to moving weights, at the paper's size (700 features,
512-256-128, 256 lists of 10) against plain `torch.mm` in float32 on the shapes of its layers: forward, weight
gradients, and input gradients where there are weights in front. Both are timed in turn in one process, so that a noisy
machine disturbs both. Vectorization is also timed in bfloat16, which may take less than the products in float32, and
with the batches of the default recipe.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Measurement, write
from ultr.data import ragged
from ultr.data.bias_factor import position_factor
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.methods import METHODS, methods_with
from ultr.methods.factors import factors_of
from ultr.methods.flat_options import estimator
from ultr.relevance import MLP
from ultr.relevance.inputs import Inputs
from ultr.relevance.preprocessing import Preprocessing
from ultr.relevance.recipe import RECIPES
from ultr.train.allocator import keep_freed_memory
from ultr.train.sampled_steps import train_step
from ultr.train.sampler import ListSampler

HIDDEN, SHOWN, DIMENSION, LISTS, IMPRESSIONS = (512, 256, 128), 10, 3, 2_000, 100
BATCH, DEFAULT_BATCH = 256, 64
"""Lists per step of the paper, and of the default recipe."""
HEADER = "| step | torch.mm, ms | step, ms | share | share of the fastest rounds | lists/s |\n|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Case:
    """What is timed."""

    method: str
    features: int
    batch: int = BATCH
    precision: str = "float32"

    def __str__(self) -> str:
        special = "" if self.precision == "float32" else f", {self.precision}"
        special += "" if self.batch == BATCH else f", {self.batch} lists a step"
        return f"{self.method}, {self.features} features{special}"

    def options(self) -> dict[str, Any]:
        """Options of the method; there are no swaps here to estimate propensities from."""
        special: dict[str, dict[str, Any]] = {
            "vectorization": {"dimension": DIMENSION},
            "inverse-propensity": {"propensities": tuple(1 / np.arange(1, SHOWN + 1))},
        }
        return {"hidden": HIDDEN} | special.get(self.method, {})


def random_log(features: int) -> ClickLog:
    """A log of random features and clicks, with the pairs of clicks that chance would make."""
    random = np.random.default_rng(0)
    shown, offsets = LISTS * SHOWN, np.arange(LISTS + 1) * SHOWN
    clicks = random.binomial(IMPRESSIONS, 0.1, size=shown)
    first, second = ragged.pair_members(offsets)
    return ClickLog(
        features=random.normal(size=(shown, features)).astype(np.float32),
        documents=np.arange(shown),
        offsets=offsets,
        factors=(position_factor(np.tile(np.arange(SHOWN) + 1, LISTS)),),
        impressions=np.full(LISTS, IMPRESSIONS),
        clicks=clicks,
        queries=np.arange(LISTS),
        query_ids=np.arange(LISTS).astype(np.str_),
        feature_names=tuple(str(i) for i in range(features)),
        pair_clicks=clicks[first] * clicks[second] // IMPRESSIONS,
    )


def judged(log: ClickLog) -> JudgedLists:
    """Its lists with random labels."""
    labels = np.random.default_rng(1).integers(5, size=len(log.documents))
    return JudgedLists.of(features=log.features, labels=labels, offsets=log.offsets, feature_names=log.feature_names)


def multiply(case: Case) -> Callable[[], None]:
    """The matrix products that a step cannot do without."""
    documents = case.batch * SHOWN
    outputs = DIMENSION if case.method == "vectorization" else 1
    layers = [
        (torch.randn(documents, ins), torch.randn(outs, ins), torch.randn(documents, outs))
        for ins, outs in pairwise([case.features, *HIDDEN, outputs])
    ]

    def run() -> None:
        for number, (values, weights, gradients) in enumerate(layers):
            torch.mm(values, weights.t())
            torch.mm(gradients.t(), values)
            if number:
                torch.mm(gradients, weights)

    return run


def step(case: Case, log: ClickLog) -> Callable[[], None]:
    """One step of the loop, from drawing lists to moving weights."""
    method = estimator(METHODS[case.method], case.options())
    data = judged(log) if method.learns_from is JudgedLists else log
    inputs = Inputs(data.features, Preprocessing(FeatureScaling.fit(data.features)))
    lists = method.training_lists(data, inputs)
    model = method.build(case.features, factors_of(data), seed=0)
    stage = method.stages(model.objective, lists, 1)[0]
    model.train_only(stage)
    if stage.begin is not None:
        stage.begin(model.by_name)
    recipe = RECIPES["fast"]
    optimizer = recipe.build_optimizer(model, steps_per_epoch=lists.steps_per_epoch(case.batch))
    sampler, steps = ListSampler(lists.impressions, case.batch, seed=0, purpose="benchmark"), count()

    def run() -> None:
        batch = lists.batch(sampler(next(steps)))
        train_step(model, stage, batch, optimizer, clip_norm=recipe.clip_norm, precision=case.precision)

    return run


def seconds(run: Callable[[], None]) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def measure(case: Case, log: ClickLog, *, rounds: int) -> list[Measurement]:
    """Time both in turn, print a row and give the share and the rate."""
    products, whole = multiply(case), step(case, log)
    for _ in range(max(3, rounds // 10)):
        seconds(products)
        seconds(whole)
    times = [(seconds(products), seconds(whole)) for _ in range(rounds)]
    mm, one = (statistics.median(column) for column in zip(*times, strict=True))
    fastest_mm, fastest = (min(column) for column in zip(*times, strict=True))
    low, high = np.quantile([products / whole for products, whole in times], [0.25, 0.75])
    print(
        f"| {case} | {mm * 1e3:.1f} | {one * 1e3:.1f} | {mm / one:.1%} | {fastest_mm / fastest:.1%} | "
        f"{case.batch / one:,.0f} |",
        flush=True,
    )
    first = case.method == "vectorization" and case.batch == BATCH
    return [
        Measurement(f"{case}: share of torch.mm", mm / one, "share", float(low), float(high), headline=first),
        Measurement(f"{case}: rate", case.batch / one, "lists/s"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[700, 136, 46])
    parser.add_argument(
        "--methods", nargs="+", choices=list(methods_with(MLP)), default=["vectorization", *methods_with(MLP)]
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    keep_freed_memory()
    print(f"{torch.get_num_threads()} threads, {BATCH} lists of {SHOWN}, layers {HIDDEN}, d = {DIMENSION}\n{HEADER}")
    found = []
    for features in asked.features:
        log = random_log(features)
        for method in dict.fromkeys(asked.methods):
            case = Case(method, features)
            found += measure(case, log, rounds=asked.rounds)
            if method == "vectorization":
                for special in (
                    replace(case, precision="bfloat16"),
                    replace(case, batch=DEFAULT_BATCH),
                ):
                    found += measure(special, log, rounds=asked.rounds)
    write(found, asked.json)


if __name__ == "__main__":
    main()

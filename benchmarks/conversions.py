"""Rankers by clicks and by purchases, with labels and true values in view: `python -m benchmarks.conversions`.

In one world purchases per click rise with the grade, so that the best order by value is the best order by clicks. In
the other they depend on a price, which clicks know nothing of. Value is the expected number of purchases among the
first ten candidates, as a share of those of the best order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.registry import click_model
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.evaluation import evaluate
from ultr.methods import DLA, Auto, ClickBaseline, Vectorization
from ultr.methods.estimator import Estimator
from ultr.methods.ranker import Ranker
from ultr.relevance import MLP
from ultr.simulation.log import simulate

PURCHASES = {"purchase": 1.0}
TRAINED_ON: dict[str, tuple[type[Estimator[Any]], dict[str, float] | None]] = {
    "raw clicks": (ClickBaseline, None),
    "debiased clicks, dla": (DLA, None),
    "clicks, auto": (Auto, None),
    "raw purchases": (ClickBaseline, PURCHASES),
    "debiased purchases, dla": (DLA, PURCHASES),
    "debiased purchases, vectorization": (Vectorization, PURCHASES),
    "purchases, auto": (Auto, PURCHASES),
}
NETWORK = MLP(hidden=(64, 32), steps=1_000)


def by_grade(lists: JudgedLists) -> Doubles:
    """Purchases per click that rise with the grade."""
    rates: Doubles = np.array([0.02, 0.05, 0.1, 0.2, 0.4])[lists.labels]
    return rates


def by_price(lists: JudgedLists) -> Doubles:
    """Purchases per click that fall with a price."""
    assert lists.feature_names is not None
    price = lists.features[:, lists.feature_names.index("noise_1")]
    rates: Doubles = 0.1 / (1 + np.exp(2 * price / price.std()))
    return rates


def value_at_10(ranker: Ranker, lists: JudgedLists, conversion: Callable[[JudgedLists], Doubles]) -> float:
    """Expected purchases among the first ten, as a share of those of the best order."""
    users = click_model("position-based")
    assert isinstance(users, IndependentClicks)
    rates = users.rates(lists.max_label)
    examined, value = rates.mean(axis=0), rates[lists.labels, 0] * conversion(lists)
    scores = ranker.score(lists.features, lists.offsets)
    found = best = 0.0
    for start, end in pairwise(lists.offsets):
        order, here = np.argsort(-scores[start:end], kind="stable")[:10], value[start:end]
        found += float(here[order] @ examined[: len(order)])
        best += float(np.sort(here)[::-1][:10] @ examined[: len(order)])
    return found / best


def study(conversion: Callable[[JudgedLists], Doubles], queries: int, impressions: int, seed: int) -> Doubles:
    """nDCG@10 and value of every ranker in one world, [rankers, 2]."""
    data = letor_like(train_queries=queries, test_queries=queries // 2, seed=seed)
    log = simulate(
        data.train,
        click_model("position-based"),
        impressions=impressions,
        svm_share=0.05,
        rankings=4,
        noise=0.5,
        signals={"purchase": conversion(data.train)},
        seed=seed,
    )
    print(
        f"{conversion.__name__}, seed {seed}: {log.clicks.sum():,} clicks, {log.signal('purchase').sum():,} purchases"
    )
    learned, held_out = log.split()
    found = []
    for method, value in TRAINED_ON.values():
        ranker = method(relevance=NETWORK, value=value, seed=seed).fit(learned, validation=held_out).ranker_
        ndcg = evaluate(ranker, data.test).mean("nDCG@10")
        found.append((ndcg, value_at_10(ranker, data.test, conversion)))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--impressions", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    measurements, columns = [], list[Doubles]()
    for conversion in (by_grade, by_price):
        runs = np.stack([study(conversion, asked.queries, asked.impressions, seed) for seed in asked.seeds])
        for place, trained_on in enumerate(TRAINED_ON):
            for kind, values in (("nDCG@10", runs[:, place, 0]), ("value", runs[:, place, 1])):
                name = f"{conversion.__name__}, {trained_on}: {kind}"
                low, high = float(values.min()), float(values.max())
                measurements.append(Measurement(name, float(values.mean()), "share", low, high))
        columns.extend(np.moveaxis(runs, 0, -1).transpose(1, 0, 2))
    titles = [f"{world}, {kind}" for world in ("by grade", "by price") for kind in ("nDCG@10", "value")]
    print(f"\nMeans over {len(asked.seeds)} seeds, with the lowest and the highest:\n")
    print("| trained on |", " | ".join(titles), "|")
    print("|---" * (1 + len(titles)) + "|")
    for place, trained_on in enumerate(TRAINED_ON):
        cells = [
            f"{values[place].mean():.3f} ({values[place].min():.3f} to {values[place].max():.3f})" for values in columns
        ]
        print(f"| {trained_on} |", " | ".join(cells), "|")
    write(measurements, asked.json)


if __name__ == "__main__":
    main()

"""What clicks of their own add to documents of head queries: `python -m benchmarks.head_queries`.

One log whose queries have 1 to 10,000 impressions each, on lists that a noisy Ranking SVM shows. A ranker learns from
other queries. The documents shown are ordered by it (features), by their own clicks over exposure (clicks), and by both
(`ultr head`), and measured by labels. Coverage is how often the 95 % interval of a document's rate holds the true one.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.measurement import Measurement, with_error, write
from ultr.arrays import Doubles, Integers
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.log_checks import trusted
from ultr.datasets.letor_like import letor_like
from ultr.errors import UltrWarning
from ultr.evaluation.head_queries import HeadQueries
from ultr.methods import METHODS, method
from ultr.metrics import ndcg
from ultr.relevance import MLP
from ultr.seeding import generator
from ultr.simulation.log import simulate
from ultr.simulation.ranking_svm import RankingSVM

SIZES = (1, 10, 100, 1_000, 10_000)
"""Impressions of a query."""
EACH, OTHERS = 60, 600
"""Queries of each size, and queries that the ranker learns from."""
RANKINGS, NOISE = 4, 0.5
NETWORK = MLP(hidden=(128, 64), steps=400)
ORDERS = ("features", "clicks", "both")


@dataclass(frozen=True)
class Outcome:
    """The nDCG@10 by three orders and the coverage, by impressions of a query."""

    ndcg: dict[str, Doubles]
    """By order, [sizes]."""
    coverage: Doubles | None
    """[sizes]; None where clicks have no rate that is a document's own."""


def run(name: str, clicks: str, seed: int) -> Outcome:
    """One log, and the table made of it."""
    model = click_model(clicks)
    world = letor_like(train_queries=OTHERS + EACH * len(SIZES), validation_queries=1, test_queries=1, seed=seed).train
    scores = RankingSVM.fit(world, share=0.02, seed=seed).score(world.features)
    learned, asked = (world.select(each) for each in np.split(np.arange(world.queries), [OTHERS]))
    of_learned, of_asked = np.split(scores, [learned.documents])

    def log_of(judged: JudgedLists, own: Doubles, impressions: int) -> ClickLog:
        return simulate(judged, model, scores=own, impressions=impressions, rankings=RANKINGS, noise=NOISE, seed=seed)

    kept, held_out = log_of(learned, of_learned, OTHERS * 100).split(seed=seed)
    ranker = method(name)(relevance=NETWORK, seed=seed).fit(kept, validation=held_out).ranker_
    size = np.tile(SIZES, EACH)
    log = thinned(log_of(asked, of_asked, asked.queries * RANKINGS * SIZES[-1]), size, seed=seed)
    found = HeadQueries.of(ranker, log)
    rows = found.documents.astype(np.int64)
    labels, number = asked.labels[rows], np.searchsorted(asked.offsets, rows, side="right") - 1
    order = np.argsort(number, kind="stable")
    lengths = np.bincount(number, minlength=asked.queries)
    by_order = {"features": found.score, "clicks": found.clicks / found.exposure, "both": found.posterior}
    values = {
        each: ndcg(given[order], labels[order], ragged.from_lengths(lengths), cutoff=10)
        for each, given in by_order.items()
    }
    means = {each: _by_size(given, size) for each, given in values.items()}
    if not isinstance(model, IndependentClicks):
        return Outcome(means, None)
    true = model.rates(world.max_label)[labels, 0]
    covered = ((found.low <= true) & (true <= found.high)).astype(np.float64)
    return Outcome(means, _by_size(covered, size[number]))


def thinned(log: ClickLog, size: Integers, *, seed: int) -> ClickLog:
    """The log with so many impressions of each query, and the clicks that these have."""
    random = generator(seed, "thinned")
    impressions = np.zeros(log.lists, dtype=np.int64)
    for query, wanted in enumerate(size):
        lists = np.flatnonzero(log.queries == query)
        share = np.bincount(random.integers(len(lists), size=wanted), minlength=len(lists))
        impressions[lists] = np.minimum(share, log.impressions[lists])
    spread, before = (np.repeat(each, log.lengths) for each in (impressions, log.impressions))
    clicks = random.hypergeometric(log.clicks, before - log.clicks, spread)
    return trusted(log, impressions=impressions, clicks=clicks).part(impressions > 0, ())


def _by_size(values: Doubles, size: Integers) -> Doubles:
    return np.array([np.nanmean(values[size == each]) for each in SIZES])


def measure(name: str, clicks: Sequence[str], seeds: int) -> list[Measurement]:
    """Print and give the quality of each order by click model and impressions of a query."""
    print(f"nDCG@10 of the documents shown, {name}, mean over {seeds} seeds +- standard error\n")
    print("| clicks | impressions of a query | features | own clicks | both | both less features | coverage |")
    print("|---|---|---|---|---|---|---|")
    measurements: list[Measurement] = []
    for model in clicks:
        found = [run(name, model, seed) for seed in range(seeds)]
        for number, size in enumerate(SIZES):
            values = {each: np.array([one.ndcg[each][number] for one in found]) for each in ORDERS}
            lead = values["both"] - values["features"]
            covered = [one.coverage[number] for one in found if one.coverage is not None]
            means = " | ".join(f"{each.mean():.3f}" for each in values.values())
            coverage = f"{np.mean(covered):.3f}" if covered else ""
            print(f"| {model} | {size:,} | {means} | {with_error(lead.tolist())} | {coverage} |", flush=True)
            what = f"{name}, {model}, {size:,} impressions of a query: both less features"
            measurements.append(
                Measurement(
                    what, float(lead.mean()), "nDCG@10", float(lead.min()), float(lead.max()), headline=size != 10
                )
            )
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=list(METHODS), default="dla")
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), nargs="+", default=["position-based", "trust", "real"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UltrWarning)
    write(measure(asked.method, asked.clicks, asked.seeds), asked.json)


if __name__ == "__main__":
    main()

"""How often the rank test finds structure: in position-based clicks, where there is none, and in trust and real ones.

    python -m benchmarks.rank_test position-based --simulations 400 --impressions 10000 100000 1000000
    python -m benchmarks.rank_test position-based --simulations 400 --correlation 0.005
    python -m benchmarks.rank_test trust --simulations 100 --impressions 1000 3000 10000

Each line is a grouping and a number of impressions, with the share of simulated logs in which rank 1 was rejected at
level 0.05, and its 95 % interval (Clopper and Pearson by bisection). With `--correlation`, the click rate of each
document in each list is drawn from a beta distribution around what the model says: contexts differ. `--plain` takes
clicks for independent all the same, and `--page` lets users differ in how much they click.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles, Integers
from ultr.bias.dispersion import document_dispersion, group_dispersion
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.bias.rank_test import document_rank_test, rank_test
from ultr.bias.relevance_groups import group_table, list_click_groups, score_groups
from ultr.bias.scalar_test import scalar_test
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.simulation.log import simulate_log
from ultr.simulation.ranking_svm import RankingSVM


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


def varied(log: ClickLog, rates: Doubles, *, correlation: float, page: float, random: np.random.Generator) -> ClickLog:
    """The log with clicks drawn anew, whose rates differ between lists or between impressions."""
    often = np.repeat(log.impressions, log.lengths)
    if correlation:
        strength = 1 / correlation - 1
        rates = random.beta(np.maximum(rates * strength, 1e-9), (1 - rates) * strength)
    if not page:
        return replace(log, clicks=random.binomial(often, rates))
    clicks = np.zeros(len(often), dtype=np.int64)
    for number in range(int(log.impressions.max())):
        eager = random.choice([1 - page, 1 + page], size=log.lists) * (log.impressions > number)
        clicks += random.random(len(rates)) < np.repeat(eager, log.lengths) * rates
    return replace(log, clicks=clicks)


def dimensions(log: ClickLog, labels: Integers, scores: Doubles, *, plain: bool, asked: dict[str, Any]) -> Counter[str]:
    """The dimension that each grouping finds."""
    cells = log.cells()
    groups, half = list_click_groups(log, seed=asked["seed"])
    by_label = labels[np.unique(log.documents, return_index=True)[1]]
    by_score = score_groups(scores[cells.ids], cells_shown(cells))
    over = document_dispersion(log)
    factors, of_half = over.factors(cells.together), over.factors(half.together)
    of_table = group_dispersion(log, labels)[1]
    if plain:
        factors, of_half, of_table = (np.ones_like(array) for array in (factors, of_half, of_table))
    tests = {
        "labels": rank_test(*group_table(log, labels), dispersion=of_table, **asked),
        "documents by label": document_rank_test(counted(cells, by_label, factors), **asked),
        "documents by score": document_rank_test(counted(cells, by_score, factors), **asked),
        "documents by clicks": document_rank_test(counted(half, groups, of_half), **asked),
    }
    return Counter({name: test.dimension for name, test in tests.items()})


def answers(log: ClickLog, *, asked: dict[str, Any]) -> Counter[str]:
    """What the whole test answers by clicks alone, as for a log without labels: 1 = not rejected."""
    found = scalar_test(log, samples=asked["samples"], seed=asked["seed"])
    return Counter({"answer by clicks": 2 if found.answer == "no" else 1})


def counted(cells: Cells, groups: Integers, dispersion: Doubles) -> GroupedDocuments:
    return GroupedDocuments.of(cells, groups, dispersion=dispersion, most_cells=50_000)


def cells_shown(cells: Cells) -> Doubles:
    return np.bincount(cells.documents, cells.impressions).astype(np.float64)


def log_of(judged: JudgedLists, scores: Doubles, options: argparse.Namespace, impressions: int, seed: int) -> ClickLog:
    model = click_model(options.clicks)
    rankings = min(options.rankings, max(impressions // options.queries, 1))
    log = simulate_log(judged, model, scores=scores, impressions=impressions, rankings=rankings, noise=0.5, seed=seed)
    if not options.correlation and not options.page:
        return log
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=model.positions, fill=-1)
    mask = ragged.mask(log.offsets, width=model.positions)
    rates = model.probabilities(labels, max_label=judged.max_label)[mask]
    random = np.random.default_rng([seed, impressions])
    return varied(log, rates, correlation=options.correlation, page=options.page, random=random)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("clicks", choices=list(CLICK_MODELS))
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--impressions", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rankings", type=int, default=10)
    parser.add_argument("--samples", type=int, default=39)
    parser.add_argument("--largest", type=int, default=2)
    parser.add_argument("--correlation", type=float, default=0.0)
    parser.add_argument("--page", type=float, default=0.0)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--answers", action="store_true", help="ask the whole test by clicks alone, not each grouping")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    judged = letor_like(train_queries=options.queries, validation_queries=1, test_queries=1).train
    scores = RankingSVM.fit(judged, share=0.1, seed=options.seed).score(judged.features)
    what = options.clicks + (f" rho {options.correlation:g}" if options.correlation else "")
    what += (f" page {options.page:g}" if options.page else "") + (" plain" if options.plain else "")
    measurements = []
    for impressions in options.impressions:
        found: dict[str, Counter[int]] = defaultdict(Counter)
        for seed in range(options.seed, options.seed + options.simulations):
            log = log_of(judged, scores, options, impressions, seed)
            asked: dict[str, Any] = {"samples": options.samples, "largest": options.largest, "seed": seed}
            labels = judged.labels[log.documents]
            if options.answers:
                tested = answers(log, asked=asked)
            else:
                tested = dimensions(log, labels, scores, plain=options.plain, asked=asked)
            for name, dimension in tested.items():
                found[name][dimension] += 1
        for name, counted in found.items():
            rejected = options.simulations - counted[1]
            low, high = interval(rejected, options.simulations)
            where = f"{what}, {impressions:,} impressions, {name}: rejected"
            measurements.append(Measurement(where, rejected / options.simulations, "share", low, high, headline=True))
            print(
                f"{what:24} {impressions:>9,} {name:20} rejected {rejected}/{options.simulations} = "
                f"{rejected / options.simulations:.3f} ({low:.3f}-{high:.3f}), "
                f"dimensions {dict(sorted(counted.items()))}",
                flush=True,
            )
    write(measurements, options.json)


if __name__ == "__main__":
    main()

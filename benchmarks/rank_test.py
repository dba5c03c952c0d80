"""How often the rank test finds structure: in position-based clicks, where there is none, and in trust and real ones.

    python -m benchmarks.rank_test
    python -m benchmarks.rank_test --logs position-based~0.005/10000x400 trust/3000x60
    python -m benchmarks.rank_test --answers --logs position-based/10000x100 trust/10000x40 real/10000x40

`trust/3000x60` is 60 logs of 3,000 impressions with trust bias. A row has the share of them in which rank 1 was
rejected at level 0.05 by each grouping, with its 95 % interval (Clopper and Pearson). With `~0.005` the click rate of
each document in each list is drawn from a beta distribution around what the model says: contexts differ. `--plain`
takes clicks for independent all the same, `--page` lets users differ in how much they click, and `--answers` asks the
whole test by clicks alone, as the doctor does of a log without labels.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles, Integers
from ultr.bias.dispersion import document_dispersion, group_dispersion
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.bias.rank_test import document_rank_test, rank_test
from ultr.bias.relevance_groups import group_table, list_click_groups, score_groups
from ultr.bias.scalar_test import scalar_test
from ultr.clicks.registry import click_model
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.simulation.log import simulate
from ultr.simulation.ranking_svm import RankingSVM


class Logs(NamedTuple):
    """Simulated logs of one kind, and how many."""

    clicks: str
    correlation: float
    impressions: int
    number: int

    @classmethod
    def of(cls, text: str) -> Logs:
        """From words such as `trust/3000x60` or `position-based~0.005/10000x400`."""
        clicks, size = text.split("/")
        name, _, correlation = clicks.partition("~")
        impressions, count = size.split("x")
        return cls(name, float(correlation or 0), int(impressions), int(count))

    def __str__(self) -> str:
        return self.clicks + (f", rho = {self.correlation:g}" if self.correlation else "")


LOGS = [
    *("position-based/10000x400", "position-based~0.005/10000x400", "position-based~0.005/100000x100"),
    *("trust/1000x60", "trust/3000x60", "trust/10000x60", "real/10000x20", "real/100000x20"),
]
BY_CLICKS = 'share of "no"'
GROUPINGS = ("labels", "documents by label", "documents by score", "documents by clicks")


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
    return Counter({BY_CLICKS: 2 if found.answer == "no" else 1})


def counted(cells: Cells, groups: Integers, dispersion: Doubles) -> GroupedDocuments:
    return GroupedDocuments.of(cells, groups, dispersion=dispersion, most_cells=50_000)


def cells_shown(cells: Cells) -> Doubles:
    return np.bincount(cells.documents, cells.impressions).astype(np.float64)


def log_of(judged: JudgedLists, scores: Doubles, wanted: Logs, options: argparse.Namespace, seed: int) -> ClickLog:
    model, impressions = click_model(wanted.clicks), wanted.impressions
    rankings = min(options.rankings, max(impressions // options.queries, 1))
    log = simulate(judged, model, scores=scores, impressions=impressions, rankings=rankings, noise=0.5, seed=seed)
    if not wanted.correlation and not options.page:
        return log
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=model.positions, fill=-1)
    mask = ragged.mask(log.offsets, width=model.positions)
    rates = model.probabilities(labels, max_label=judged.max_label)[mask]
    random = np.random.default_rng([seed, impressions])
    return varied(log, rates, correlation=wanted.correlation, page=options.page, random=random)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=Logs.of, nargs="+", default=[Logs.of(each) for each in LOGS])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--rankings", type=int, default=10)
    parser.add_argument("--samples", type=int, default=39)
    parser.add_argument("--largest", type=int, default=2)
    parser.add_argument("--page", type=float, default=0.0)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--answers", action="store_true", help="ask the whole test by clicks alone, not each grouping")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    judged = letor_like(train_queries=options.queries, validation_queries=1, test_queries=1).train
    scores = RankingSVM.fit(judged, share=0.1, seed=options.seed).score(judged.features)
    columns = (BY_CLICKS,) if options.answers else GROUPINGS
    print("| clicks | impressions | logs |", " | ".join(columns), "|")
    print("|---" * (3 + len(columns)) + "|", flush=True)
    measurements = []
    for wanted in options.logs:
        rejected: Counter[str] = Counter()
        for seed in range(options.seed, options.seed + wanted.number):
            log = log_of(judged, scores, wanted, options, seed)
            asked: dict[str, Any] = {"samples": options.samples, "largest": options.largest, "seed": seed}
            if options.answers:
                tested = answers(log, asked=asked)
            else:
                tested = dimensions(log, judged.labels[log.documents], scores, plain=options.plain, asked=asked)
            rejected.update(name for name, dimension in tested.items() if dimension > 1)
        cells = []
        for name in columns:
            share = rejected[name] / wanted.number
            low, high = binomtest(rejected[name], wanted.number).proportion_ci()
            where = f"{wanted}, {wanted.impressions:,} impressions, {name}: rejected"
            measurements.append(Measurement(where, share, "share", low, high, headline=True))
            cells.append(f"{share:.3f} ({low:.3f} to {high:.3f})")
        print(f"| {wanted} | {wanted.impressions:,} | {wanted.number} |", " | ".join(cells), "|", flush=True)
    write(measurements, options.json)


if __name__ == "__main__":
    main()

"""How true counterfactual values are: `python -m benchmarks.comparison [simulations] [click model] [noise]`.

Each simulation draws fresh queries from a pool and a fresh log on them. The truth is the expected clicks over the whole
pool, by the click model itself. Where the clicks are not position-based, the error is that of the model. `wrong` is how
often a verdict names the worse ranker. The more noise, the more swaps there are to estimate propensities from.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles
from ultr.bias import ResampledPropensities
from ultr.clicks.model import EXAMINATION, ClickModel
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.evaluation.counterfactual import Valuation
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.placement import Ranking
from ultr.metrics import Interval
from ultr.simulation.log import simulate_log
from ultr.simulation.ranking_svm import RankingSVM

QUERIES, IMPRESSIONS, RANKINGS = 100, 40, 4


def measure(simulations: int, model: ClickModel, noise: float) -> list[Measurement]:
    """Print and give bias and coverage of the value of a ranker, and of its gain over the logged one."""
    pool, logged = _pool(model.positions)
    better = pool.labels + np.random.default_rng(5).normal(size=pool.documents)
    worth = _expected_clicks(pool, model, better)
    truths = {"value": worth, "gain": worth - _expected_clicks(pool, model, logged)}
    found: dict[tuple[str, str], list[Interval]] = {}
    for seed in range(simulations):
        chosen = np.sort(np.random.default_rng(seed).choice(pool.queries, QUERIES, replace=False))
        rows = ragged.rows_of(chosen, pool.offsets)
        log = simulate_log(
            pool.select(chosen),
            model,
            scores=logged[rows],
            impressions=QUERIES * IMPRESSIONS,
            rankings=RANKINGS,
            noise=noise,
            seed=seed,
        )
        for name, interval in _intervals(log, better[rows], logged[rows], seed=seed).items():
            found.setdefault(name, []).append(interval)
    print(f"{simulations} simulations of {QUERIES} queries x {IMPRESSIONS} impressions, {model.name}, noise {noise:g}")
    measurements: list[Measurement] = []
    for (what, how), intervals in found.items():
        measurements += _report(f"{what}, {how}", intervals, truths[what])
    return measurements


def _pool(positions: int) -> tuple[JudgedLists, Doubles]:
    """Queries with the documents that the Ranking SVM puts first, and its scores."""
    judged = letor_like(train_queries=5_000, validation_queries=10, test_queries=10).train
    scores = RankingSVM.fit(judged, share=0.01).score(judged.features)
    order = np.lexsort((-scores, ragged.list_numbers(judged.offsets)))
    ranks = np.arange(len(order)) - np.repeat(judged.offsets[:-1], np.diff(judged.offsets))
    kept = np.sort(order[ranks < positions])
    offsets = ragged.from_lengths(np.minimum(np.diff(judged.offsets), positions))
    return replace(judged, features=judged.features[kept], labels=judged.labels[kept], offsets=offsets), scores[kept]


def _expected_clicks(judged: JudgedLists, model: ClickModel, scores: Doubles) -> float:
    order = np.lexsort((-scores, ragged.list_numbers(judged.offsets)))
    labels = ragged.pad(judged.labels[order], judged.offsets, width=model.positions, fill=-1)
    return float(model.probabilities(labels, max_label=judged.max_label).sum(axis=1).mean())


def _intervals(log: ClickLog, better: Doubles, logged: Doubles, *, seed: int) -> dict[tuple[str, str], Interval]:
    evidence = Evidence.of(log)
    rankings = [Ranking.of(scores[evidence.documents], evidence) for scores in (better, logged)]
    estimated = ResampledPropensities.of_log(log, samples=200, seed=seed)
    intervals: dict[tuple[str, str], Interval] = {}
    for how, theta in (("known", np.array(EXAMINATION)), ("estimated, taken for known", estimated.estimate)):
        values = [Valuation(theta).of(ranking, evidence) for ranking in rankings]
        intervals["value", how] = values[0].interval(samples=500)
        intervals["gain", how] = values[0].against(values[1], samples=500)
    placed = [[(ranking, evidence)] for ranking in rankings]
    intervals["gain", "estimated"] = Trial(log, Valuation(estimated.estimate), estimated).difference(*placed)
    return intervals


def _report(name: str, intervals: list[Interval], truth: float) -> list[Measurement]:
    errors = np.array([interval.mean for interval in intervals]) - truth
    standard_error = errors.std(ddof=1) / np.sqrt(len(errors))
    covered = float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))
    wrong = float(np.mean([interval.low > 0 > truth or interval.high < 0 < truth for interval in intervals]))
    sure = float(np.mean([interval.low > 0 or interval.high < 0 for interval in intervals]))
    aside = 1.96 * np.sqrt(covered * (1 - covered) / len(errors))
    print(
        f"{name:34} truth {truth:+.4f} bias {errors.mean():+.4f} +- {standard_error:.4f} coverage {covered:.3f} "
        f"+- {aside:.3f} sure {sure:.2f} wrong {wrong:.2f}"
    )
    return [
        Measurement(f"{name}: bias", float(errors.mean()), "clicks a page"),
        Measurement(f"{name}: coverage", covered, "share", covered - aside, covered + aside, headline=True),
        Measurement(f"{name}: verdicts that are sure", sure, "share"),
        Measurement(f"{name}: verdicts that are wrong", wrong, "share", headline=True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("simulations", type=int, nargs="?", default=200)
    parser.add_argument("clicks", choices=list(CLICK_MODELS), nargs="?", default="position-based")
    parser.add_argument("noise", type=float, nargs="?", default=0.5)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    write(measure(asked.simulations, click_model(asked.clicks), asked.noise), asked.json)


if __name__ == "__main__":
    main()

"""How much of the gap between raw clicks and labels Vectorization closes.

    python -m benchmarks.quality mq2007 --data ../shared/data/mq2007
    python -m benchmarks.quality letor-like

Prints nDCG@10 of every run, then mean and deviation over folds or seeds, with the share of the gap between Click and
Labeled that is closed. "Labeled" learns from the labels of all candidates, "Labeled, shown" from those of the ten shown
documents that clicks are about. "Knows the clicks" ranks by the click model itself. Weights are chosen by labelled
validation nDCG@10, as in the paper.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from ultr.clicks.registry import click_model
from ultr.data.layouts import read_layout
from ultr.data.letor_like import letor_like
from ultr.data.splits import Splits
from ultr.evaluation import evaluate, gap_closed
from ultr.evaluation.judged import of_scores
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization
from ultr.methods.estimator import Estimator
from ultr.simulation.log import ceiling_scores, shown_documents, simulate
from ultr.simulation.ranking_svm import RankingSVM

MEASURE = "nDCG@10"


def rankers(dimensions: list[int], **options: Any) -> dict[str, Estimator]:
    """The bounds and Vectorization at each dimension, all with the same options."""
    return {
        "Click": ClickBaseline(**options),
        **{f"Vectorization d={d}": Vectorization(dimension=d, **options) for d in dimensions},
        "Labeled, shown": LabelBaseline(**options),
        "Labeled": LabelBaseline(**options),
    }


def run(splits: Splits, clicks: str, arguments: argparse.Namespace, *, seed: int) -> dict[str, float]:
    """Test nDCG@10 of every ranker on one split."""
    model = click_model(clicks)
    log = simulate(splits.train, model, impressions=arguments.impressions, svm_share=arguments.svm_share, seed=seed)
    svm = RankingSVM.fit(splits.train, share=arguments.svm_share, seed=seed)
    shown = of_scores(svm.score(splits.test.features), splits.test, [MEASURE]).mean(MEASURE)
    knowing = of_scores(ceiling_scores(splits.test, model), splits.test, [MEASURE]).mean(MEASURE)
    values = {"Ranking SVM": shown, "knows the clicks": knowing}
    options = {
        "hidden": tuple(arguments.hidden),
        "steps": arguments.steps,
        "learning_rate": arguments.learning_rate,
        "recipe": arguments.recipe,
        "seed": seed,
    }
    sources = {"Labeled": splits.train, "Labeled, shown": shown_documents(splits.train, log)}
    for name, ranker in rankers(arguments.dimensions, **options).items():
        if arguments.only and name not in arguments.only:
            continue
        started = time.perf_counter()
        ranker.fit(sources.get(name, log), validation=splits.validation)
        values[name] = evaluate(ranker, splits.test, [MEASURE]).mean(MEASURE)
        seconds = time.perf_counter() - started
        print(f"{splits.name}  {clicks}  seed {seed}  {name}: {values[name]:.4f}  ({seconds:.0f} s)", flush=True)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["mq2007", "mq2008", "letor-like"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/mq2007"))
    parser.add_argument("--clicks", nargs="+", default=["trust", "real"])
    parser.add_argument("--dimensions", nargs="+", type=int, default=[1, 2, 3, 5])
    parser.add_argument("--hidden", nargs="+", type=int, default=[128, 64])
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--learning-rate", type=float, default=None)
    parser.add_argument("--recipe", default="collapsed")
    parser.add_argument("--impressions", type=int, default=1_000_000)
    parser.add_argument("--svm-share", type=float, default=0.01)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", help='such as "Vectorization d=3"')
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, float]]] = {}
    for clicks in arguments.clicks:
        runs: list[dict[str, float]] = []
        for seed in arguments.seeds:
            if arguments.name == "letor-like":
                splits = [letor_like(train_queries=arguments.queries, seed=seed)]
            else:
                splits = [read_layout(arguments.name, arguments.data, fold=fold) for fold in range(1, 6)]
            runs.extend(run(part, clicks, arguments, seed=seed) for part in splits)
        results[clicks] = runs
        print(f"\n{arguments.name}, {clicks} clicks, {len(runs)} runs: test {MEASURE}, mean ± deviation over runs")
        means = {name: float(np.mean([values[name] for values in runs])) for name in runs[0]}
        for name, mean in means.items():
            deviation = np.std([values[name] for values in runs], ddof=1) if len(runs) > 1 else float("nan")
            line = f"  {name:<20} {mean:.4f} ± {deviation:.4f}"
            for title, top in (("gap closed", "Labeled"), ("of shown", "Labeled, shown")):
                if "Click" in means and top in means:
                    line += f"   {title} {gap_closed(mean, lower=means['Click'], upper=means[top]):6.0%}"
            print(line)
        print(flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()

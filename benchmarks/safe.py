"""Whether a safe ranker is never worse than the logging ranker: `python -m benchmarks.safe`.

Logs of 100 to 1,000,000 impressions on the top ten of a Ranking SVM, one list for each of at most 1,000 queries. Each
is trained on with and without the bound, and both are measured by labels on queries of their own, against the Ranking
SVM that showed the log. `anchor` is the logged order as it was learned from positions, what `--safe` falls back on.
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
from ultr.arrays import Doubles, Floats
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.errors import UltrWarning
from ultr.methods import METHODS, method
from ultr.methods.safe import SAFE, evidence_share, make_safe
from ultr.metrics import ndcg
from ultr.relevance import MLP
from ultr.simulation.log import simulate
from ultr.simulation.ranking_svm import RankingSVM

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUERIES, TESTED = 1_000, 1_000
SVM_SHARE = 0.02
NETWORK = MLP(hidden=(128, 64), steps=400)


@dataclass(frozen=True)
class Outcome:
    """The nDCG@10 of three rankers less that of the logging ranker, on one log."""

    unsafe: float
    anchor: float
    safe: float
    factor: float | None
    """The factor that was chosen; None: no bound."""


def run(name: str, clicks: str, impressions: int, seed: int) -> Outcome:
    """One log, and the rankers trained on it."""
    world = letor_like(train_queries=QUERIES, validation_queries=1, test_queries=TESTED, seed=seed)
    svm = RankingSVM.fit(world.train, share=SVM_SHARE, seed=seed)
    shown = world.train.select(np.arange(min(QUERIES, impressions)))
    scores = svm.score(shown.features)
    log = simulate(shown, click_model(clicks), scores=scores, impressions=impressions, seed=seed)
    kept, held_out = log.split(evidence_share(log), seed=seed)
    ranker = method(name)(relevance=NETWORK, seed=seed).fit(kept, validation=held_out).ranker_
    safe = make_safe(ranker, kept, held_out, seed=seed)
    test = world.test.with_relevant()

    def lead(found: Floats) -> float:
        return float((_ndcg(found, test) - _ndcg(svm.score(test.features), test)).mean())

    unsafe, bounded = (lead(each.score(test.features, test.offsets)) for each in (ranker, safe))
    safe.model.factor.fill_(1.0)
    return Outcome(unsafe, lead(safe.score(test.features, test.offsets)), bounded, safe.choices[SAFE]["factor"])


def _ndcg(scores: Floats | Doubles, judged: JudgedLists) -> Doubles:
    return ndcg(scores.astype(np.float64), judged.labels, judged.offsets, cutoff=10)


def measure(name: str, clicks: Sequence[str], sizes: Sequence[int], seeds: int) -> list[Measurement]:
    """Print and give the leads over the logging ranker by click model and size of the log."""
    print(f"nDCG@10 less that of the logging ranker, {name}, mean over {seeds} seeds +- standard error (worst seed)\n")
    print("| clicks | impressions | unsafe | anchor | safe | factors |")
    print("|---|---|---|---|---|---|")
    measurements: list[Measurement] = []
    for model in clicks:
        for size in sizes:
            found = [run(name, model, size, seed) for seed in range(seeds)]
            leads = {each: np.array([getattr(one, each) for one in found]) for each in ("unsafe", "anchor", "safe")}
            factors = ", ".join("any" if one.factor is None else f"{one.factor:g}" for one in found)
            cells = [f"{with_error(values.tolist())} ({values.min():+.4f})" for values in leads.values()]
            print(f"| {model} | {size:,} | {' | '.join(cells)} | {factors} |", flush=True)
            measurements += [
                Measurement(
                    f"{name}, {model}, {size:,} impressions: {each} less logging ranker",
                    float(values.mean()),
                    "nDCG@10",
                    float(values.min()),
                    float(values.max()),
                    headline=each == "safe",
                )
                for each, values in leads.items()
            ]
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=list(METHODS), default="dla")
    parser.add_argument("--clicks", choices=list(CLICK_MODELS), nargs="+", default=["position-based", "trust", "real"])
    parser.add_argument("--impressions", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UltrWarning)
    write(measure(asked.method, asked.clicks, asked.impressions, asked.seeds), asked.json)


if __name__ == "__main__":
    main()

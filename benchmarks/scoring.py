"""What a base vector costs: `python -m benchmarks.scoring [--features 46 136 700] [--threads 1] [--rounds 1000]`.

Exports a scalar ranker and Vectorization with the same relevance network (512, 256, 128), with the small base network
that is the default and with the paper's, and lets onnxruntime score one query of 10, 100 and 1,000 candidates and a
batch of 256 queries of 25. The rankers take turns in every round, so that a slow moment hits all of them. Prints p50
and p99, and how much slower the median is than that of the scalar ranker in the same form (`flat` or `lists`), and in
its leanest one, which takes documents without lists.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr import MLP, ClickBaseline, JudgedLists, Vectorization, click_model, export, simulate
from ultr.arrays import Floats, Integers
from ultr.methods.estimator import Estimator
from ultr.scoring import Scorer

SIZES = {"10": (1, 10), "100": (1, 100), "1,000": (1, 1_000), "256 x 25": (256, 25)}
"""Queries and candidates a query."""
LEANEST = "scalar, documents"
SHOWN = ("scalar, flat", "base vector, flat")
COMPARED = {
    "base vector": ("base vector, flat", "scalar, flat"),
    "base vector, lists": ("base vector, lists", "scalar, lists"),
    "to the leanest": ("base vector, flat", LEANEST),
    "paper's base network": ("paper's base network, flat", "scalar, flat"),
}
"""What is slower than what, by title."""
HEADER = (
    f"| features | candidates | {', p50 / p99, ms | '.join(SHOWN)}, p50 / p99, ms | {' | '.join(COMPARED)} |\n"
    "|---|---|---|---|---|---|---|---|"
)
PAPER_BASE = (256, 64)
WARM_UP = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[46, 136, 700])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1_000, help="rounds of a query of 10; larger ones get fewer")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    found = []
    print(HEADER)
    for features in arguments.features:
        scorers = _scorers(features, arguments.threads)
        for label, (queries, candidates) in SIZES.items():
            rounds = max(30, arguments.rounds * 10 // (10 + queries * candidates // 10))
            seconds = _time(scorers, features, queries=queries, candidates=candidates, rounds=rounds)
            medians = {name: float(np.median(values)) for name, values in seconds.items()}
            slowest = {name: float(np.percentile(values, 99)) for name, values in seconds.items()}
            times = {title: medians[name] / medians[scalar] for title, (name, scalar) in COMPARED.items()}
            what = f"{features} features, {label} candidates"
            for name in scorers:
                found.append(Measurement(f"{what}, {name}, p50", medians[name] * 1000, "ms"))
                found.append(Measurement(f"{what}, {name}, p99", slowest[name] * 1000, "ms"))
            found += [
                Measurement(f"{what}, {title}", each, "times", headline=title == "base vector")
                for title, each in times.items()
            ]
            shown = [f"{medians[name] * 1000:.3g} / {slowest[name] * 1000:.3g}" for name in SHOWN]
            print(
                "|", " | ".join([str(features), label, *shown, *(f"{each - 1:+.0%}" for each in times.values())]), "|"
            )
    write(found, arguments.json)


def _scorers(features: int, threads: int) -> dict[str, Scorer]:
    """Every ranker in every form; the weights are those of a single step, which take as long as any."""
    random = np.random.default_rng(0)
    lists = JudgedLists.of(
        features=random.normal(size=(400, features)), labels=random.integers(3, size=400), offsets=range(0, 401, 20)
    )
    log = simulate(lists, click_model("trust"), impressions=1_000)
    step = MLP(steps=1)
    rankers: dict[str, Estimator] = {
        "scalar": ClickBaseline(relevance=step),
        "base vector": Vectorization(relevance=step),
        "paper's base network": Vectorization(relevance=step, base_hidden=PAPER_BASE),
    }
    scorers = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        for name, ranker in rankers.items():
            ranker.fit(log)
            for form in ("lists", "flat"):
                export(ranker, file, form=form, overwrite=True)
                scorers[f"{name}, {form}"] = Scorer.load(file, threads=threads)
            if name == "scalar":
                export(ranker, file, pointwise=True, overwrite=True)
                scorers[LEANEST] = Scorer.load(file, threads=threads)
    return scorers


def _time(
    scorers: dict[str, Scorer], features: int, *, queries: int, candidates: int, rounds: int
) -> dict[str, list[float]]:
    matrix: Floats = np.random.default_rng(1).normal(size=(queries * candidates, features)).astype(np.float32)
    offsets: Integers = np.arange(0, queries * candidates + 1, candidates)
    seconds: dict[str, list[float]] = {name: [] for name in scorers}
    for turn in range(WARM_UP + rounds):
        for name, scorer in scorers.items():
            started = perf_counter()
            scorer.score(matrix, offsets)
            if turn >= WARM_UP:
                seconds[name].append(perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()

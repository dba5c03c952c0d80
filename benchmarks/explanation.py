"""What explaining a list costs: `python -m benchmarks.explanation [--candidates 20 100 500]`.

The best ten candidates of one list are explained against the whole list: forests exactly, a network by integrated
gradients, its exported file by sampled permutations. Times are those of the processor on one core, medians over the
rounds in which all take turns. The share that adds up is the share of explanations within the tolerance.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from benchmarks.measurement import Measurement, write
from ultr import MLP, ClickBaseline, Trees, Vectorization, click_model, explain, letor_like, simulate
from ultr.scoring import Scorer

TOP = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, nargs="+", default=[20, 100, 500])
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 64])
    parser.add_argument("--steps", type=int, default=300, help="of the networks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    data = letor_like(train_queries=300, validation_queries=1, test_queries=100)
    log = simulate(data.train, click_model("trust"), impressions=30_000)
    network = MLP(hidden=tuple(asked.hidden), steps=asked.steps)
    models: dict[str, Any] = {
        f"{asked.trees} trees of 7 leaves": ClickBaseline(relevance=Trees(rounds=asked.trees)).fit(log),
        f"{asked.trees} trees of 31 leaves": ClickBaseline(relevance=Trees(rounds=asked.trees, leaves=31)).fit(log),
        f"network {'-'.join(map(str, asked.hidden))}": (plain := ClickBaseline(relevance=network).fit(log)),
        "Vectorization, the same network": Vectorization(relevance=network).fit(log),
    }
    with tempfile.TemporaryDirectory() as folder:
        plain.ranker_.export(Path(folder) / "network.onnx")
        models["the network's exported file"] = Scorer.load(Path(folder) / "network.onnx", threads=1)
    seconds: dict[tuple[str, int], list[float]] = {}
    complete: dict[str, list[float]] = {name: [] for name in models}
    how = {}
    for turn in range(asked.rounds):
        for count in asked.candidates:
            rows = (np.arange(count) + 97 * turn) % len(data.test.features)
            for name, model in models.items():
                started = process_time()
                found = explain(model, data.test.features[rows], top=TOP)
                seconds.setdefault((name, count), []).append(process_time() - started)
                complete[name].append(float(found.complete.mean()))
                how[name] = found.how
    print(f"Milliseconds for the best {TOP} of a list, {data.test.features.shape[1]} features\n")
    print("| model | by | " + " | ".join(f"{count:,} candidates" for count in asked.candidates) + " | add up |")
    print("|---" * (len(asked.candidates) + 3) + "|")
    for name in models:
        times = [f"{1_000 * statistics.median(seconds[name, count]):.0f}" for count in asked.candidates]
        print(f"| {name} | {how[name]} | {' | '.join(times)} | {np.mean(complete[name]):.1%} |")
    numbers = [
        Measurement(f"explaining {TOP} of {count:,} candidates, {name}", statistics.median(values), "s")
        for (name, count), values in seconds.items()
    ]
    for name, shares in complete.items():
        numbers.append(Measurement(f"explanations that add up, {name}", float(np.mean(shares)), "share"))
    write(numbers, asked.json)


if __name__ == "__main__":
    main()

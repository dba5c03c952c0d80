"""How fast an exported forest scores: `python -m benchmarks.forest_scoring [--trees 300] [--leaves 7 31]`.

A forest is grown and exported as an ONNX file, which onnxruntime runs, and as LightGBM's model file, which LightGBM's
own `predict` runs; beside them are the ONNX files of two networks, of one output and of Vectorization. *Bare* is
onnxruntime alone on the same file: what our checks of what comes in and our parts of a large batch cost. All score the
same candidates with one thread and take turns, so that a slow moment hits all of them. Rates are by the time of the
processor, medians over the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr import MLP, ClickBaseline, ClickLog, Trees, Vectorization, click_model, export, letor_like, simulate
from ultr.arrays import Floats
from ultr.exporting import export_forest
from ultr.scoring import Scorer

SIZES = (10, 100, 1_000, 10_000)
"""Candidates per call."""
WARM_UP = 5
Score = Callable[[Floats], Any]


def forest(log: ClickLog, folder: Path, *, trees: int, leaves: int) -> dict[str, Score]:
    """A forest run by onnxruntime, and the same one run by LightGBM."""
    from lightgbm import Booster

    ranker = ClickBaseline(relevance=Trees(rounds=trees, leaves=leaves)).fit(log)
    name, model = f"forest of {trees} x {leaves}", folder / f"{trees}-{leaves}.txt"
    export_forest(ranker, model, to="lightgbm")
    booster = Booster(model_str=model.read_text())
    return {
        f"{name}, ONNX": _exported(ranker, folder / f"{trees}-{leaves}.onnx"),
        f"{name}, LightGBM": lambda features: booster.predict(features, num_threads=1),
    }


def networks(log: ClickLog, folder: Path, hidden: Sequence[int]) -> dict[str, Score]:
    """The networks of one output and of vectors; the weights of a single step take as long as any."""
    step, name = MLP(hidden=tuple(hidden), steps=1), "-".join(map(str, hidden))
    single, vectors = folder / "network.onnx", folder / "vectors.onnx"
    return {
        f"network {name}, ONNX": _exported(ClickBaseline(relevance=step).fit(log), single),
        f"network {name}, bare": _bare(single),
        f"Vectorization {name}, ONNX": _exported(Vectorization(relevance=step).fit(log), vectors),
        f"Vectorization {name}, bare": _bare(vectors),
    }


def _exported(ranker: Any, file: Path) -> Score:
    export(ranker, file, form="flat")
    return Scorer.load(file, threads=1).score


def _bare(file: Path) -> Score:
    """The candidates of one query through onnxruntime, with nothing of ours around it."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda features: session.run(
        None, {"features": features, "offsets": np.array([0, len(features)], dtype=np.int64)}
    )[0]


def rates(scorers: Mapping[str, Score], features: Floats, *, candidates: int, rounds: int) -> dict[str, float]:
    """Candidates per second of the processor, by scorer; all take turns."""
    # A single call on a few candidates is shorter than the clock can tell.
    calls = max(1, 2_000 // candidates)
    parts = [features[np.arange(first, first + candidates) % len(features)] for first in range(calls)]
    seconds: dict[str, list[float]] = {name: [] for name in scorers}
    for turn in range(WARM_UP + rounds):
        for name, score in scorers.items():
            started = process_time()
            for part in parts:
                score(part)
            if turn >= WARM_UP:
                seconds[name].append(process_time() - started)
    return {name: calls * candidates / statistics.median(values) for name, values in seconds.items()}


def measurements(found: Mapping[int, Mapping[str, float]]) -> list[Measurement]:
    """Every rate, those of forests in ONNX to LightGBM's own and to the network's, and ours to onnxruntime's own."""
    numbers = []
    for candidates, by_name in found.items():
        network = next(name for name in by_name if name.startswith("network") and name.endswith("ONNX"))
        for name, rate in by_name.items():
            numbers.append(Measurement(f"{name}, {candidates:,} at once", rate, "candidates/s"))
            if name.startswith("forest") and name.endswith("ONNX"):
                for other in (name.replace("ONNX", "LightGBM"), network):
                    what = f"scoring rate, {candidates:,} at once, {name} to {other}"
                    numbers.append(Measurement(what, rate / by_name[other], "times", headline=candidates == 1_000))
            if name.endswith("bare"):
                ours = name.replace("bare", "ONNX")
                what = f"scoring rate, {candidates:,} at once, {ours} to onnxruntime alone"
                numbers.append(Measurement(what, by_name[ours] / rate, "times", headline=candidates == 100))
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--leaves", type=int, nargs="+", default=[7, 31])
    parser.add_argument("--hidden", type=int, nargs="+", default=[128, 64])
    parser.add_argument("--queries", type=int, default=1_000, help="to grow the forests on")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    data = letor_like(train_queries=asked.queries, validation_queries=1, test_queries=400)
    log = simulate(data.train, click_model("trust"), impressions=100 * asked.queries)
    scorers: dict[str, Score] = {}
    with tempfile.TemporaryDirectory() as folder:
        for leaves in asked.leaves:
            scorers |= forest(log, Path(folder), trees=asked.trees, leaves=leaves)
        scorers |= networks(log, Path(folder), asked.hidden)
    found = {
        candidates: rates(scorers, data.test.features, candidates=candidates, rounds=asked.rounds)
        for candidates in SIZES
    }
    print(f"Candidates per second of one thread, {data.test.features.shape[1]} features\n")
    print("| | " + " | ".join(f"{candidates:,} at once" for candidates in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for name in scorers:
        print(f"| {name} | " + " | ".join(f"{found[candidates][name]:,.0f}" for candidates in SIZES) + " |")
    write(measurements(found), asked.json)


if __name__ == "__main__":
    main()

"""How much faster two processes train than one: `python -m benchmarks.processes [--processes 1 2] [--rounds 3]`.

Runs `torchrun --nproc-per-node=N -m -- ultr train dla` at the paper's layers with one thread a process, for some steps
and for more of them, in turn; what a step takes is the difference, so that starting, reading and writing do not count.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from itertools import product
from pathlib import Path

from benchmarks.child import ONE_THREAD, measure
from benchmarks.measurement import Measurement, write
from benchmarks.training import BATCH, HIDDEN, random_log
from ultr.train.recipe import RECIPES

FEW, STEPS = 20, 180
HEADER = (
    "| features | lists a step | processes | step, ms | lists/s | times as fast as one |\n|---|---|---|---|---|---|"
)


def seconds(folder: Path, *, processes: int, batch: int, steps: int) -> float:
    """The time of a whole training, from starting the processes to their end."""
    torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m", "--"]
    train = ["ultr", "train", "dla", "--log", str(folder / "log"), "--out", str(folder / "model"), "--overwrite"]
    options = {
        "hidden": ",".join(map(str, HIDDEN)),
        "batch_size": str(batch),
        "steps": str(steps),
        "evaluate_every": str(steps),
    }
    settings = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    return measure([sys.executable, "-m", *torchrun, *train, *settings], environment=ONE_THREAD).wall


def step_seconds(folder: Path, *, processes: int, batch: int) -> float:
    """What one more step takes."""
    few, more = (
        seconds(folder, processes=processes, batch=batch, steps=steps) for steps in (FEW, FEW + STEPS * BATCH // batch)
    )
    return (more - few) / (STEPS * BATCH // batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[700, 136])
    parser.add_argument("--batches", type=int, nargs="+", default=[BATCH, RECIPES["fast"].batch_size])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    print(HEADER, flush=True)
    found = []
    for features, batch in product(asked.features, asked.batches):
        with tempfile.TemporaryDirectory() as folder:
            random_log(features).save(Path(folder) / "log")
            rounds = [
                [step_seconds(Path(folder), processes=processes, batch=batch) for processes in asked.processes]
                for _ in range(asked.rounds)
            ]
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        for number, (processes, median) in enumerate(zip(asked.processes, medians, strict=True)):
            ratios = [each[0] / each[number] for each in rounds]
            print(
                f"| {features} | {batch} | {processes} | {median * 1e3:.1f} | {batch / median:,.0f} "
                f"| {medians[0] / median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |",
                flush=True,
            )
            what = f"{features} features, {batch} lists a step, {processes} processes"
            found.append(Measurement(f"{what}: rate", batch / median, "lists/s"))
            if number:
                speed_up = f"{what} against {asked.processes[0]}: faster by"
                found.append(
                    Measurement(speed_up, medians[0] / median, "times", min(ratios), max(ratios), headline=True)
                )
    write(found, asked.json)


if __name__ == "__main__":
    main()

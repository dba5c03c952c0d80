"""How much faster several processes train than one: `python -m benchmarks.processes [--processes 2] [--rounds 3]`.

Runs `ultr train dla` at the paper's layers: one process with one thread, one with all threads, and so many under
`torchrun` with one thread each. Each trains for some steps and for more of them, in turn; what a step takes is the
difference, so that starting, reading and writing do not count.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch

from benchmarks.child import ONE_THREAD, measure
from benchmarks.measurement import Measurement, write
from benchmarks.training import BATCH, DEFAULT_BATCH, HIDDEN, random_log

START, LISTS = 20, 180 * BATCH
"""Steps of the shorter training, and lists that the longer one learns from besides."""
HEADER = (
    "| features | lists a step | processes x threads | step, ms | lists/s | times as fast as 1 x 1 |\n"
    "|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Workers:
    """Who trains together."""

    processes: int
    threads: int

    def __str__(self) -> str:
        return f"{self.processes} x {self.threads}"

    def train(self, folder: Path, *, batch: int, steps: int) -> float:
        """The seconds of a whole training, from starting the processes to their end."""
        torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={self.processes}", "-m", "--"]
        command = ["ultr", "train", "dla", "--log", str(folder / "log"), "--out", str(folder / "model"), "--overwrite"]
        hidden = ",".join(map(str, HIDDEN))
        for option in (f"hidden={hidden}", f"batch_size={batch}", f"steps={steps}", f"evaluate_every={steps}"):
            command += ["--set", option]
        environment = {**ONE_THREAD, "OMP_NUM_THREADS": str(self.threads), "MKL_NUM_THREADS": str(self.threads)}
        launched = torchrun if self.processes > 1 else []
        return measure([sys.executable, "-m", *launched, *command], environment=environment).wall

    def step(self, folder: Path, *, batch: int) -> float:
        """The seconds that one more step takes."""
        more = LISTS // batch
        few, many = (self.train(folder, batch=batch, steps=steps) for steps in (START, START + more))
        return (many - few) / more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[700, 136])
    parser.add_argument("--batches", type=int, nargs="+", default=[BATCH, DEFAULT_BATCH])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    everyone = [Workers(1, 1), Workers(1, torch.get_num_threads()), Workers(asked.processes, 1)]
    print(HEADER, flush=True)
    found = []
    for features, batch in product(asked.features, asked.batches):
        with tempfile.TemporaryDirectory() as folder:
            random_log(features).save(Path(folder) / "log")
            rounds = [[workers.step(Path(folder), batch=batch) for workers in everyone] for _ in range(asked.rounds)]
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        for number, (workers, median) in enumerate(zip(everyone, medians, strict=True)):
            ratios = [each[0] / each[number] for each in rounds]
            faster, low, high = medians[0] / median, min(ratios), max(ratios)
            print(
                f"| {features} | {batch} | {workers} | {median * 1e3:.1f} | {batch / median:,.0f} "
                f"| {faster:.2f} ({low:.2f} to {high:.2f}) |",
                flush=True,
            )
            what = f"{features} features, {batch} lists a step, {workers} processes x threads"
            found.append(Measurement(f"{what}: rate", batch / median, "lists/s"))
            if number:
                found.append(Measurement(f"{what}: as fast as 1 x 1", faster, "times", low, high, headline=True))
    write(found, asked.json)


if __name__ == "__main__":
    main()

"""How fast judged lists are read, against scikit-learn, and how much memory that takes.

Run `python -m benchmarks.reader [folder]`. Times are the best of several rounds in which the readers take turns, so
that other work on the machine hits all alike; what counts are the ratios.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sklearn.datasets import load_svmlight_file

from ultr.data.cache import read_judged
from ultr.data.svmlight import read_svmlight

DATA = Path(__file__).parents[2] / "shared" / "data" / "mq2007"
ROUNDS = 7
# `ru_maxrss` of a child starts at that of its parent, so the child asks for its own peak, which exec resets.
_PEAK = """
import sys
from pathlib import Path
from ultr.data.svmlight import read_svmlight

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

warm_up, files = sys.argv[1], sys.argv[2:]
read_svmlight(warm_up)
before = peak()
lists = [read_svmlight(file) for file in files]
arrays = sum(a.nbytes for part in lists for a in (part.features, part.labels, part.offsets, part.query_ids))
print(peak() - before, arrays)
"""


@dataclass(frozen=True)
class Measurement:
    """One number with its unit."""

    name: str
    value: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name:<58} {self.value:10.2f} {self.unit}"


def measure(folder: Path = DATA) -> list[Measurement]:
    """Speed of reading all files of a folder, with and without the cache, and the peak of memory."""
    files = sorted(path for path in folder.glob("*.txt*") if path.is_file())
    if not files:
        raise SystemExit(f"no *.txt* files in {folder}; give the folder of a LETOR data set")
    megabytes = sum(_text_bytes(file) for file in files) / 1e6
    with tempfile.TemporaryDirectory() as cache:
        ours, sklearn, cached = _best(
            lambda: [read_svmlight(file) for file in files],
            lambda: [load_svmlight_file(str(file), query_id=True) for file in files],
            lambda: [read_judged(file, cache=cache) for file in files],
        )
    grown, arrays = _memory(files)
    return [
        Measurement("text, decompressed", megabytes, "MB"),
        Measurement(f"ultr, no cache, {os.cpu_count()} processors", megabytes / ours, "MB/s"),
        Measurement("scikit-learn load_svmlight_file(query_id=True)", megabytes / sklearn, "MB/s"),
        Measurement("ultr is faster by", sklearn / ours, "times"),
        Measurement("ultr, second read through the cache, all files", cached * 1e3, "ms"),
        Measurement("the second read is faster than scikit-learn by", sklearn / cached, "times"),
        Measurement("arrays", arrays / 1e6, "MB"),
        Measurement("growth of peak memory", grown / 1e6, "MB"),
        Measurement("growth of peak memory by size of the arrays", grown / arrays, "times"),
    ]


def _best(*readers: Callable[[], object]) -> list[float]:
    """The shortest time of each reader in seconds."""
    times: list[list[float]] = [[] for _ in readers]
    for _ in range(ROUNDS):
        for reader, spent in zip(readers, times, strict=True):
            start = time.perf_counter()
            reader()
            spent.append(time.perf_counter() - start)
    return [min(spent) for spent in times]


def _text_bytes(path: Path) -> int:
    content = path.read_bytes()
    return len(gzip.decompress(content)) if path.suffix == ".gz" else len(content)


def _memory(files: list[Path]) -> tuple[int, int]:
    """Growth of peak memory while reading all files in a fresh process, and the size of the arrays, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        warm_up = Path(folder) / "tiny.txt"
        warm_up.write_text("1 qid:1 1:0.5\n")
        command = [sys.executable, "-c", _PEAK, str(warm_up), *map(str, files)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    grown, arrays = printed.split()
    return int(grown), int(arrays)


def main() -> None:
    for measurement in measure(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA):
        print(measurement)


if __name__ == "__main__":
    main()

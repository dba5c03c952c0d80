"""How fast judged lists are read, against scikit-learn, and how much memory that takes.

Run `python -m benchmarks.reader [folder]`, by default on MQ2007 where that is at hand, and else on generated lists of
the same size. Times are the best of several rounds in which the readers take turns, so
that other work on the machine hits all alike; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.measurement import Measurement, write
from ultr.data import ragged
from ultr.datasets.cache import read_judged
from ultr.datasets.letor_like import letor_like
from ultr.datasets.svmlight import read_svmlight

DATA = Path(__file__).parents[2] / "shared" / "data" / "mq2007"
ROUNDS = 7
# `ru_maxrss` of a child starts at that of its parent, so the child asks for its own peak, which exec resets.
_PEAK = """
import sys
from benchmarks.child import memory
from ultr.datasets.svmlight import read_svmlight

warm_up, files = sys.argv[1], sys.argv[2:]
read_svmlight(warm_up)
before = memory()["VmHWM"]
lists = [read_svmlight(file) for file in files]
arrays = sum(a.nbytes for part in lists for a in (part.features, part.labels, part.offsets, part.query_ids))
print(memory()["VmHWM"] - before, arrays)
"""


def measure(folder: Path, *, rounds: int = ROUNDS) -> list[Measurement]:
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
            rounds=rounds,
        )
    grown, arrays = _memory(files)
    return [
        Measurement("text, decompressed", megabytes, "MB"),
        Measurement(f"ultr, no cache, {os.cpu_count()} processors", megabytes / ours, "MB/s"),
        Measurement("scikit-learn load_svmlight_file(query_id=True)", megabytes / sklearn, "MB/s"),
        Measurement("reading text: ultr to scikit-learn", sklearn / ours, "times", headline=True),
        Measurement("ultr, second read through the cache", cached * 1e3, "ms"),
        Measurement("reading again, from the cache: ultr to scikit-learn", sklearn / cached, "times", headline=True),
        Measurement("arrays", arrays / 1e6, "MB"),
        Measurement("growth of peak memory", grown / 1e6, "MB"),
        Measurement("growth of peak memory by size of the arrays", grown / arrays, "times", headline=True),
    ]


def _best(*readers: Callable[[], object], rounds: int) -> list[float]:
    """The shortest time of each reader in seconds."""
    times: list[list[float]] = [[] for _ in readers]
    for _ in range(rounds):
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


def write_lists(folder: Path, *, queries: int = 1_000) -> None:
    """A file of generated judged lists."""
    lists = letor_like(train_queries=queries, validation_queries=1, test_queries=1).train
    numbers = ragged.list_numbers(lists.offsets) + 1
    dump_svmlight_file(lists.features, lists.labels, str(folder / "train.txt"), zero_based=False, query_id=numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of *.txt* files in SVMlight format")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = asked.folder or (DATA if DATA.is_dir() else Path(made))
        if folder == Path(made):
            write_lists(folder)
        found = measure(folder, rounds=asked.rounds)
    for measurement in found:
        print(measurement)
    write(found, asked.json)


if __name__ == "__main__":
    main()

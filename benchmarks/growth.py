"""How cost grows with the log: `python -m benchmarks.growth [--rows 100000 1000000] [--json FILE] [--plot FILE.png]`.

Writes a raw log of so many rows (that of `benchmarks.prepare`, 8 features) and runs `ultr prepare`, `doctor`, `train`
(Vectorization, 300 steps, validated on clicks) and `evaluate` (on a tenth of its queries), each in a fresh process with
one thread; the engine of `prepare` has its own. Then an exported model scores 1,000 to 1,000,000 candidates, a hundred
a query; its time is that of one call. Growth is that of the processor's seconds, which other work on the machine hardly
changes. Memory is told apart: `peak` is all that was resident, `own` leaves out the pages of mapped files, which the
kernel may drop at any time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.child import ONE_THREAD, measure
from benchmarks.measurement import Measurement, write
from benchmarks.prepare import write_log
from ultr import ClickLog
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, blank

CANDIDATES = (1_000, 10_000, 100_000, 1_000_000)
FEW_DECADES = 3
"""Up to so many, an axis has a mark at 1, 2 and 5, not only at 1."""
COLOURS = {"prepare": BLUE, "doctor": GREEN, "train": ORANGE, "evaluate": PURPLE, "score": GREY}
HEADER = """\
| command  |        size |   seconds | CPU, s    |   a second | peak, MB | own, MB |
|---|---|---|---|---|---|---|"""
_SCORE = """
import sys
from time import perf_counter, process_time
import numpy as np
from ultr.scoring import Scorer

scorer, count = Scorer.load(sys.argv[1], threads=1), int(sys.argv[2])
matrix = np.random.default_rng(0).random((count, len(scorer.card.feature_names)), dtype=np.float32)
offsets, seconds, processor = np.arange(0, count + 1, 100), [], []
while sum(seconds) < 1 or len(seconds) < 3:
    started, spent = perf_counter(), process_time()
    scorer.score(matrix, offsets)
    seconds.append(perf_counter() - started)
    processor.append(process_time() - spent)
print(np.median(seconds), np.median(processor))
"""


@dataclass(frozen=True)
class Cost:
    """What one command took for a log, or for candidates, of some size."""

    command: str
    size: int
    """Rows of the raw log, or candidates."""
    seconds: float
    processor: float
    peak: int
    own: int

    def __str__(self) -> str:
        return (
            f"| {self.command:8} | {self.size:>11,} | {self.seconds:9.4f} | {self.processor:9.4f} "
            f"| {self.size / self.seconds:>10,.0f} | {self.peak / 1e6:6,.0f} | {self.own / 1e6:6,.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--plot", type=Path, help="file for the curves, such as growth.png")
    options = parser.parse_args()
    print(HEADER, flush=True)
    found: list[Cost] = []
    logs: dict[int, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            _commands(Path(folder), rows, found)
            log = ClickLog.load(Path(folder) / "log")
            logs[rows] = {"lists": log.lists, "shown": len(log.documents), "documents": len(log.features)}
        _scoring(Path(folder), found)
    for rows, sizes in logs.items():
        print(f"{rows:,} rows are {', '.join(f'{count:,} {name}' for name, count in sizes.items())}")
    shown = [
        Measurement(f"{rows:,} rows, {name} in the log", count, name)
        for rows, sizes in logs.items()
        for name, count in sizes.items()
    ]
    write([*shown, *measurements(found)], options.json)
    if options.plot:
        draw(found, options.plot)


def _commands(folder: Path, rows: int, found: list[Cost]) -> None:
    """Run every command on a log of so many rows, which takes the place of the one before."""
    raw, log, held, model = (str(folder / name) for name in ("raw.parquet", "log", "held", "model"))
    write_log(Path(raw), rows, features=8)
    prepared = ["--factor", "device", "--features", "feature_*", "--out", log, "--overwrite"]
    network = ["--steps", "300", "--set", "hidden=64,32", "--out", model, "--overwrite"]
    _run(found, rows, "prepare", raw, *prepared)
    _run(found, rows, "doctor", log)
    _run(found, rows, "train", "vectorization", "--log", log, "--validate", "clicks", *network)
    ClickLog.load(log).split()[1].save(held, overwrite=True)
    _run(found, rows, "evaluate", model, "--log", held)


def _run(found: list[Cost], rows: int, command: str, *arguments: str) -> None:
    used = measure([sys.executable, "-m", "ultr", command, *arguments], environment=ONE_THREAD)
    found.append(Cost(command, rows, used.wall, used.processor, used.peak, used.anonymous))
    print(found[-1], flush=True)


def _scoring(folder: Path, found: list[Cost]) -> None:
    file = str(folder / "model.onnx")
    measure([sys.executable, "-m", "ultr", "export", str(folder / "model"), "--out", file])
    for count in CANDIDATES:
        used = measure([sys.executable, "-c", _SCORE, file, str(count)])
        seconds, processor = map(float, used.output.split())
        found.append(Cost("score", count, seconds, processor, used.peak, used.anonymous))
        print(found[-1], flush=True)


def measurements(costs: Sequence[Cost]) -> list[Measurement]:
    """Every number, and for each command how much more the largest size takes than the smallest."""
    found = []
    for cost in costs:
        what = f"{cost.command}, {cost.size:,}"
        found += [
            Measurement(f"{what}: time", cost.seconds, "s"),
            Measurement(f"{what}: processor time", cost.processor, "s"),
            Measurement(f"{what}: peak memory", cost.peak / 1e6, "MB"),
            Measurement(f"{what}: own memory", cost.own / 1e6, "MB"),
        ]
    for command in COLOURS:
        sizes = sorted((cost for cost in costs if cost.command == command), key=lambda cost: cost.size)
        first, last = sizes[0], sizes[-1]
        where = f"{command}, {first.size:,} to {last.size:,}"
        found += [
            Measurement(f"{where}: time grows by", last.processor / first.processor, "times", headline=True),
            Measurement(f"{where}: own memory grows by", last.own / first.own, "times", headline=True),
        ]
    return found


def draw(costs: Sequence[Cost], path: Path) -> None:
    """Time and memory of each command by the size of what it was given."""
    figure, panels = blank(9.6, 3.8, columns=2, width_ratios=(1, 1))
    titles = {
        "How long does it take?": "seconds of the processor",
        "How much memory of its own?": "MB without pages of mapped files",
    }
    axes: Any
    for axes, (title, label), unit, name in zip(panels, titles.items(), (1, 1e6), ("processor", "own"), strict=True):
        for command, colour in COLOURS.items():
            points = [(cost.size, getattr(cost, name) / unit) for cost in costs if cost.command == command]
            axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=4, linewidth=1.5, label=command)
        axes.set(xscale="log", yscale="log", xlabel="rows of the raw log (score: candidates)", ylabel=label)
        decades = np.ptp(np.log10([getattr(cost, name) for cost in costs]))
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < FEW_DECADES else (1,)))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
        axes.set_title(title, loc="left")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()

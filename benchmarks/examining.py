"""Memory of examining a log: `python -m benchmarks.examining [--shown 1000000 10000000] [--json FILE]`.

Writes click logs with so many shown documents (lists of 10, 4 lists a query that show 10 of its 20 documents in any
order, 8 features) and runs `ultr doctor` and `ultr compare` on them, each in a fresh process with one thread. The two
models were trained on another log. `own` leaves out the pages of mapped files, which the kernel may drop at any time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.child import ONE_THREAD, Usage, measure
from benchmarks.measurement import Measurement, write
from ultr import ClickLog
from ultr.data.bias_factor import position_factor

LENGTH, LISTS, CHOICE, FEATURES = 10, 4, 20, 8
MODELS = (("click", "other"), ("vectorization", "model"))


def log_of(shown: int, *, seed: int = 0) -> ClickLog:
    """A log with about so many shown documents, with position-based clicks."""
    random = np.random.default_rng(seed)
    queries = max(shown // (LENGTH * LISTS), 1)
    order = random.random((queries * LISTS, CHOICE)).argsort(axis=1)[:, :LENGTH]
    numbers = np.arange(queries).repeat(LISTS)
    documents = (numbers[:, None] * CHOICE + order).reshape(-1)
    features = random.normal(size=(queries * CHOICE, FEATURES)).astype(np.float32)
    impressions = random.integers(1, 20, size=len(numbers))
    relevance = 0.5 / (1 + np.exp(-features[:, 0].astype(np.float64)))
    chances = relevance[documents] / np.tile(np.arange(LENGTH) + 1, len(numbers))
    return ClickLog(
        features=features,
        documents=documents,
        offsets=np.arange(len(numbers) + 1) * LENGTH,
        factors=(position_factor(np.tile(np.arange(LENGTH) + 1, len(numbers))),),
        impressions=impressions,
        clicks=random.binomial(impressions.repeat(LENGTH), chances),
        queries=numbers,
        query_ids=np.arange(queries).astype(np.str_),
        feature_names=tuple(f"feature_{number}" for number in range(FEATURES)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shown", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    print("| command | shown documents | seconds | peak, MB | own, MB |\n|---|---|---|---|---|", flush=True)
    found: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder:
        log, models = Path(folder) / "log", [Path(folder) / name for _, name in MODELS]
        log_of(20_000, seed=1).save(log)
        for (method, _), model in zip(MODELS, models, strict=True):
            _ultr("train", method, "--log", str(log), "--validate", "none", "--steps", "50", "--out", str(model))
        commands = {"doctor": [str(log)], "compare": [*map(str, models), "--log", str(log)]}
        for shown in options.shown:
            log_of(shown).save(log, overwrite=True)
            for name, arguments in commands.items():
                used = _ultr(name, *arguments)
                own = used.anonymous / 1e6
                print(f"| {name} | {shown:,} | {used.wall:.0f} | {used.peak / 1e6:,.0f} | {own:,.0f} |", flush=True)
                found.append(Measurement(f"{name}, {shown:,} shown documents: own memory", own, "MB", headline=True))
    write(found, options.json)


def _ultr(*arguments: str) -> Usage:
    return measure([sys.executable, "-m", "ultr", *arguments], environment=ONE_THREAD)


if __name__ == "__main__":
    main()

"""One ranker of a comparison, in a process of its own: `python -m benchmarks.contender NAME FOLDER [--seed 0]`.

Trains on what `benchmarks.peers` put into the folder, and prints as the last line what it took and how good it is. It
keeps to one core: not every package asks the environment how many threads to start.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import clax_models
from benchmarks.arena import Arena
from benchmarks.child import memory
from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.errors import UltrError

MEASURE = "nDCG@10"
ROWS, ROUNDS = 100_000, 5
PACKAGES = {"clax": ("clax", "optax"), "lightgbm": ("lightgbm",), "xgboost": ("xgboost",)}
"""What is imported before the clock starts, by how the name of a ranker begins; ours need torch."""
INSTALL = {"clax": "bench", "lightgbm": "trees", "xgboost": "xgboost"}


@dataclass(frozen=True)
class Showing:
    """What came of one training."""

    quality: float
    """nDCG@10 on the test lists."""
    seconds: float
    """Of training, imports and reading apart."""
    processor: float
    before: int
    """The largest memory in bytes before the training: the packages, mostly."""
    peak: int
    """The same up to its end."""
    rate: float
    """Candidates scored a second of the processor."""


def library(name: str) -> str | None:
    """The library that a peer comes from; None for our methods."""
    return next((each for each in PACKAGES if name.startswith(each)), None)


def installed(name: str) -> bool:
    """Whether all is there that a ranker needs."""
    return all(find_spec(package) for package in PACKAGES.get(library(name) or "", ()))


def trainer(
    name: str, arena: Arena, *, seed: int, options: dict[str, Any], validated: bool = True
) -> Callable[[], Any]:
    """What trains a ranker, everything imported; one of our methods can be kept from looking at validation lists."""
    for package in PACKAGES.get(library(name) or "", ()):
        import_module(package)
    if name in clax_models.MODELS:
        chosen = replace(clax_models.Options(), **options)
        return lambda: clax_models.fit(
            name, arena.log, arena.sessions, validation=arena.validation, options=chosen, seed=seed
        )
    from ultr.methods import METHODS
    from ultr.methods.flat_options import estimator

    method = estimator(METHODS[name], options | {"seed": seed})
    return lambda: method.fit(arena.log, validation=arena.validation if validated else None)


def show(name: str, folder: Path, *, seed: int, options: dict[str, Any], validated: bool = True) -> Showing:
    """Train, and measure what there is to be measured."""
    arena = Arena.load(folder)
    train = trainer(name, arena, seed=seed, options=options, validated=validated)
    before, started, spent = memory()["VmHWM"], time.perf_counter(), time.process_time()
    ranker = train()
    seconds, processor, peak = time.perf_counter() - started, time.process_time() - spent, memory()["VmHWM"]
    from ultr.evaluation import evaluate

    quality = evaluate(ranker, arena.test, (MEASURE,)).mean(MEASURE)
    return Showing(quality, seconds, processor, before, peak, _rate(scorer(ranker), arena.test))


def scorer(ranker: Any) -> Callable[[Floats, Integers], Any]:
    """What scores candidates: of trees that a library grew, the library itself, from the file that is exported."""
    from ultr.methods.lambdamart import LambdaMART

    if not isinstance(ranker, LambdaMART):
        return ranker.score  # type: ignore[no-any-return]
    from ultr.exporting.forest_file import export_forest

    with tempfile.TemporaryDirectory() as folder:
        export_forest(ranker, Path(folder) / "model", to=ranker.name)
        content = (Path(folder) / "model").read_text()
    library = import_module(ranker.name)
    if ranker.name == "lightgbm":
        booster = library.Booster(model_str=content)
        return lambda features, _: booster.predict(features, num_threads=1)
    booster = library.Booster(model_file=bytearray(content.encode()))
    return lambda features, _: booster.inplace_predict(features, predict_type="margin", validate_features=False)


def _rate(score: Callable[[Floats, Integers], Any], lists: JudgedLists) -> float:
    """The most candidates a second over some rounds, the lists repeated until there are many.

    By the time of the processor: with one thread that is all there is, and a busy machine does not count.
    """
    times = -(-ROWS // lists.documents)
    features = np.tile(lists.features, (times, 1))
    offsets = ragged.from_lengths(np.tile(lists.lengths, times))
    fastest = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        score(features, offsets)
        fastest = min(fastest, time.process_time() - started)
    return len(features) / fastest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", type=json.loads, default={}, help="as JSON")
    parser.add_argument("--unvalidated", action="store_true", help="train without looking at the validation lists")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        found = show(asked.name, asked.folder, seed=asked.seed, options=asked.options, validated=not asked.unvalidated)
        print("\n" + json.dumps(asdict(found)))
    except UltrError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()

"""How often 95 % intervals of means and ratios over queries hold the truth, by the number of queries.

    python -m benchmarks.intervals
    python -m benchmarks.intervals --simulations 2000 --queries 10 --values ties

Values are normal, skewed (exponential and log-normal), those of a measure between 0 and 1 (beta), and differences of
two rankers that tie on most queries. In a ratio, queries differ in size. Beside the interval of `ultr.metrics`: the
percentile bootstrap, Student's interval and the bootstrap of Student's t, of which it takes the wider ends.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.measurement import Measurement, write
from ultr.arrays import Doubles
from ultr.metrics.intervals import bootstrap_ratio
from ultr.metrics.student import student_quantile

LEVEL = 0.95
TAILS = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
Draw = Callable[[np.random.Generator, int], Doubles]
VALUES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda random, count: random.normal(size=count), 0.0),
    "exponential": (lambda random, count: random.exponential(size=count), 1.0),
    "log-normal": (lambda random, count: random.lognormal(size=count), math.exp(0.5)),
    "beta": (lambda random, count: random.beta(0.8, 0.4, size=count), 2 / 3),
    "ties": (lambda random, count: random.laplace(size=count) * (random.random(count) < 0.3), 0.0),
}
"""By name, and the mean of each."""


def ratio_and_error(values: Doubles, sizes: Doubles) -> tuple[Doubles, Doubles]:
    """Sums over sums with their standard errors, along the last axis."""
    ratio, count = values.sum(-1) / sizes.sum(-1), values.shape[-1]
    rests = values - np.expand_dims(ratio, -1) * sizes
    return ratio, np.sqrt(count / (count - 1) * (rests**2).sum(-1)) / sizes.sum(-1)


def intervals(values: Doubles, sizes: Doubles, samples: int, seed: int) -> Iterator[tuple[str, float, float]]:
    """Each interval by its name."""
    found = bootstrap_ratio(values, sizes, level=LEVEL, samples=samples, seed=seed)
    yield "ultr.metrics", found.low, found.high
    count = len(values)
    ratio, error = ratio_and_error(values, sizes)
    drawn = np.random.default_rng(seed).integers(count, size=(samples, count))
    ratios, errors = ratio_and_error(values[drawn], sizes[drawn])
    low, high = np.quantile(ratios, TAILS)
    yield "percentile", low, high
    half = student_quantile(LEVEL, count - 1) * error
    yield "Student", float(ratio - half), float(ratio + half)
    spread = errors > 0
    low, high = np.quantile((ratios - ratio)[spread] / errors[spread], TAILS) if spread.any() else (0.0, 0.0)
    yield "bootstrap-t", float(ratio - high * error), float(ratio - low * error)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--values", choices=list(VALUES), nargs="+", default=list(VALUES))
    parser.add_argument("--queries", type=int, nargs="+", default=[5, 10, 20, 50, 200])
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    measurements = []
    for what in ("mean", "ratio"):
        for name in options.values:
            draw, truth = VALUES[name]
            for count in options.queries:
                hits: dict[str, int] = {}
                widths: dict[str, list[float]] = {}
                for seed in range(options.simulations):
                    random = np.random.default_rng([seed, count])
                    values, sizes = draw(random, count), np.ones(count)
                    if what == "ratio":
                        sizes = np.floor(random.lognormal(size=count)) + 1
                    for way, low, high in intervals(values * sizes, sizes, options.samples, seed):
                        hits[way] = hits.get(way, 0) + (low <= truth <= high)
                        widths.setdefault(way, []).append(high - low)
                shares = {way: hit / options.simulations for way, hit in hits.items()}
                cells = (f"{way} {share:.3f} (width {np.median(widths[way]):.3f})" for way, share in shares.items())
                print(f"{what:5} {name:11} {count:>3} queries  " + "  ".join(cells), flush=True)
                where = f"{what} of {name} values, {count} queries: 95 % interval holds the truth"
                measurements.append(Measurement(where, shares["ultr.metrics"], "share", headline=True))
    write(measurements, options.json)


if __name__ == "__main__":
    main()

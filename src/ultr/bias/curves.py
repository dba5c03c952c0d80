"""Position-bias curves of a log by every estimator there is, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.bias.position_based_fit import Cells, fit_poisson
from ultr.bias.propensities import click_rate_curve
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.seeding import generator

CURVE_ESTIMATORS = ("click-rate", *SWAP_ESTIMATORS, "em")
"""`click-rate` is right only where rankings were random; the others are where the position-based model holds."""
FEW_QUERIES = 30
"""With fewer queries, lists are resampled: a handful of queries says little about how others would differ."""
_WARM_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Curve:
    """The bias of each position over that of the first, by one estimator."""

    estimator: str
    values: Doubles
    """[positions], 1 at the first; NaN if the estimator cannot say."""
    low: Doubles
    """[positions]; NaN if it could be estimated on fewer than half of the samples."""
    high: Doubles
    """[positions]."""
    failed: float
    """The share of the samples on which it could not be estimated."""
    problem: str | None
    """Why it cannot be estimated, or None."""


@dataclass(frozen=True)
class BiasCurves:
    """The curves of one log."""

    curves: tuple[Curve, ...]
    units: str
    """What was resampled for the intervals: `queries`, or `lists` where there are few queries."""
    count: int
    """How many of them there are."""
    level: float

    def of(self, estimator: str) -> Curve:
        """The curve of one estimator."""
        names = [curve.estimator for curve in self.curves]
        return self.curves[names.index(checks.one_of("estimator", estimator, names))]


@dataclass(frozen=True, eq=False)
class _Structure:
    """What stays the same in every sample: which row falls into which cell, and which cells are swaps."""

    log: ClickLog
    often: Integers
    cell: Integers
    """[rows]."""
    documents: Integers
    """[cells], never falling."""
    positions: Integers
    """[cells], from 0."""
    upper: Integers
    """[swaps], a cell."""
    lower: Integers
    """[swaps], a cell of the same document at a later position."""
    count: int

    @classmethod
    def of_log(cls, log: ClickLog) -> _Structure:
        count = len(log.factors[0].levels)
        keys, cell = np.unique(log.documents.astype(np.int64) * count + log.factors[0].values, return_inverse=True)
        documents = keys // count
        uppers = [np.flatnonzero(documents[:-step] == documents[step:]) for step in range(1, count)]
        lowers = [upper + step for step, upper in enumerate(uppers, start=1)]
        none = np.empty(0, dtype=np.int64)
        return cls(
            log=log,
            often=np.repeat(log.impressions, log.lengths),
            cell=cell,
            documents=documents,
            positions=keys % count,
            upper=np.concatenate([none, *uppers]),
            lower=np.concatenate([none, *lowers]),
            count=count,
        )

    def cells(self, weights: Doubles) -> Cells:
        """The counts of all cells, with a weight for each row."""
        shown = np.bincount(self.cell, weights * self.often, minlength=len(self.documents))
        clicked = np.bincount(self.cell, weights * self.log.clicks, minlength=len(self.documents))
        counts = shown.astype(np.float64), clicked.astype(np.float64)
        return Cells(self.documents, self.positions, *counts, self.count)

    def swaps(self, cells: Cells) -> SwapTable:
        """The same as `SwapTable.of`, from swaps that are known already."""
        shown, upper, lower = cells.impressions, self.upper, self.lower
        both = shown[upper] + shown[lower]
        weight = np.divide(shown[upper] * shown[lower], both, out=np.zeros(len(both)), where=both > 0)
        rates = np.divide(cells.clicks, shown, out=np.zeros(len(shown)), where=shown > 0)
        size = (self.count, self.count)
        pair = self.positions[upper] * self.count + self.positions[lower]
        tables = [
            np.bincount(pair, values, minlength=size[0] * size[1]).reshape(size).astype(np.float64)
            for values in (weight, weight * rates[upper], weight * rates[lower])
        ]
        return SwapTable(tables[0] + tables[0].T, tables[1] + tables[2].T)


def bias_curves(
    log: ClickLog,
    *,
    estimators: Sequence[str] = CURVE_ESTIMATORS,
    samples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> BiasCurves:
    """The position-bias curves by some estimators, each with its percentile bootstrap interval.

    Whole queries are resampled, because the clicks on one query are alike; where there are few, its distinct lists are.
    An estimator that cannot say, mostly for want of swaps, has a `problem` instead of values.
    """
    checks.integer("samples", samples, at_least=1)
    checks.share("level", level)
    for name in estimators:
        checks.one_of("estimator", name, CURVE_ESTIMATORS)
    if not len(log.documents):
        raise DataError("the click log shows no document")
    structure = _Structure.of_log(log)
    queries = np.unique(log.queries, return_inverse=True)[1]
    few = int(queries.max()) + 1 < FEW_QUERIES
    unit_of_row = np.repeat(np.arange(log.lists) if few else queries, log.lengths)
    count = int(unit_of_row.max()) + 1
    found: dict[str, Doubles | DataError] = {}
    whole = structure.cells(np.ones(len(log.documents)))
    for name in estimators:
        found[name] = _attempt(name, structure, whole, None)
    usable = {name: curve for name, curve in found.items() if isinstance(curve, np.ndarray)}
    drawn: dict[str, list[Doubles]] = {name: [] for name in usable}
    for sample in range(samples if usable else 0):
        times = np.bincount(generator(seed, "bias curves", sample).integers(count, size=count), minlength=count)
        cells = structure.cells(times[unit_of_row].astype(np.float64))
        for name, start in usable.items():
            curve = _attempt(name, structure, cells, start)
            if isinstance(curve, np.ndarray):
                drawn[name].append(curve)
    curves = tuple(
        _curve(name, found[name], drawn.get(name, []), samples, level, structure.count) for name in estimators
    )
    return BiasCurves(curves, "lists" if few else "queries", count, level)


def _curve(
    name: str, found: Doubles | DataError, drawn: list[Doubles], samples: int, level: float, positions: int
) -> Curve:
    unknown = np.full(positions, np.nan)
    if isinstance(found, DataError):
        return Curve(name, unknown, unknown, unknown, 1.0, str(found))
    low, high = unknown, unknown
    if 2 * len(drawn) >= samples:
        low, high = np.quantile(np.stack(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Curve(name, found, low, high, 1 - len(drawn) / samples, None)


def _attempt(name: str, structure: _Structure, cells: Cells, start: Doubles | None) -> Doubles | DataError:
    try:
        if name in SWAP_ESTIMATORS:
            return SWAP_ESTIMATORS[name](structure.swaps(cells))
        shown = cells.choose(np.flatnonzero(cells.impressions > 0))
        return _by_click_rate(shown) if name == "click-rate" else _by_em(shown, start)
    except DataError as error:
        return error


def _by_click_rate(cells: Cells) -> Doubles:
    return click_rate_curve(cells.positions + 1, cells.impressions, cells.clicks, positions_shown=cells.count)


def _by_em(cells: Cells, start: Doubles | None) -> Doubles:
    moved = cells.choose(cells.moved())
    if start is None:
        return fit_poisson(moved).examination
    return fit_poisson(moved, start=start, tolerance=_WARM_TOLERANCE).examination

"""Position-bias curves of a log by every estimator there is, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.bias.position_based_fit import Cells, fit_poisson, poisson_resamples
from ultr.bias.propensities import click_rate_curve
from ultr.bias.resampled import estimates
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.seeding import generator

CURVE_ESTIMATORS = ("click-rate", *SWAP_ESTIMATORS, "em")
"""`click-rate` is right only where rankings were random; the others are where the position-based model holds."""
FEW_QUERIES = 30
"""With fewer queries, lists are resampled: a handful of queries says little about how others would differ."""
GROUPS = 500
"""Queries are drawn in this many random groups, so that a resample costs the same for any log."""
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

    def queries(self) -> Integers | None:
        """The query of each cell, from 0; None if a document belongs to several."""
        of_row = np.unique(np.repeat(self.log.queries, self.log.lengths), return_inverse=True)[1]
        of_cell = np.zeros(len(self.documents), dtype=np.int64)
        of_cell[self.cell] = of_row
        one_document = self.documents[1:] == self.documents[:-1]
        several = (of_cell[self.cell] != of_row).any() or (of_cell[1:] != of_cell[:-1])[one_document].any()
        return None if several else of_cell

    def cells(self, weights: Doubles) -> Cells:
        """The counts of all cells, with a weight for each row."""
        shown = np.bincount(self.cell, weights * self.often, minlength=len(self.documents))
        clicked = np.bincount(self.cell, weights * self.log.clicks, minlength=len(self.documents))
        counts = shown.astype(np.float64), clicked.astype(np.float64)
        return Cells(self.documents, self.positions, *counts, self.count)

    def swaps(self, cells: Cells) -> SwapTable:
        """The same as `SwapTable.of`, from swaps that are known already."""
        return self.swaps_of_groups(cells, np.zeros(len(self.documents), dtype=np.int64), count=1)[0]

    def swaps_of_groups(self, cells: Cells, groups: Integers, *, count: int) -> list[SwapTable]:
        """The swaps of each group of documents, from the group of each cell."""
        shown, upper, lower = cells.impressions, self.upper, self.lower
        both = shown[upper] + shown[lower]
        weight = np.divide(shown[upper] * shown[lower], both, out=np.zeros(len(both)), where=both > 0)
        rates = np.divide(cells.clicks, shown, out=np.zeros(len(shown)), where=shown > 0)
        size = (count, self.count, self.count)
        pair = (groups[upper] * self.count + self.positions[upper]) * self.count + self.positions[lower]
        weights, above, below = (
            np.bincount(pair, values, minlength=int(np.prod(size))).reshape(size).astype(np.float64)
            for values in (weight, weight * rates[upper], weight * rates[lower])
        )
        both_ways = weights + weights.swapaxes(1, 2), above + below.swapaxes(1, 2)
        return [SwapTable(*tables) for tables in zip(*both_ways, strict=True)]


def bias_curves(
    log: ClickLog,
    *,
    estimators: Sequence[str] = CURVE_ESTIMATORS,
    samples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> BiasCurves:
    """The position-bias curves by some estimators, each with its percentile bootstrap interval.

    Whole queries are resampled, because the clicks on one query are alike; where there are few, or where documents
    belong to several, the distinct lists are. An estimator that cannot say, mostly for want of swaps, has a `problem`
    instead of values.
    """
    checks.integer("samples", samples, at_least=1)
    checks.share("level", level)
    for name in estimators:
        checks.one_of("estimator", name, CURVE_ESTIMATORS)
    if not len(log.documents):
        raise DataError("the click log shows no document")
    structure = _Structure.of_log(log)
    whole = structure.cells(np.ones(len(log.documents)))
    found = {name: _attempt(name, structure, whole, None) for name in estimators}
    usable = {name: curve for name, curve in found.items() if isinstance(curve, np.ndarray)}
    query_of_cell = structure.queries()
    by_query = query_of_cell is not None and int(query_of_cell.max()) + 1 >= FEW_QUERIES
    if by_query and query_of_cell is not None:
        count = int(query_of_cell.max()) + 1
        drawn = _by_queries(structure, whole, query_of_cell, usable, samples=samples, seed=seed)
    else:
        count = log.lists
        drawn = _by_lists(structure, usable, samples=samples, seed=seed)
    curves = tuple(
        _curve(name, found[name], drawn.get(name, []), samples, level, structure.count) for name in estimators
    )
    return BiasCurves(curves, "queries" if by_query else "lists", count, level)


def _by_lists(
    structure: _Structure, usable: Mapping[str, Doubles], *, samples: int, seed: int
) -> dict[str, Sequence[Doubles]]:
    """The curves of resampled lists: a document is in several, so every resample starts from the rows."""
    log = structure.log
    drawn: dict[str, list[Doubles]] = {name: [] for name in usable}
    for sample in range(samples if usable else 0):
        random = generator(seed, "bias curves", sample)
        times = np.bincount(random.integers(log.lists, size=log.lists), minlength=log.lists)
        cells = structure.cells(np.repeat(times, log.lengths).astype(np.float64))
        for name, start in usable.items():
            curve = _attempt(name, structure, cells, start)
            if isinstance(curve, np.ndarray):
                drawn[name].append(curve)
    return dict(drawn)


def _by_queries(
    structure: _Structure,
    whole: Cells,
    query_of_cell: Integers,
    usable: Mapping[str, Doubles],
    *,
    samples: int,
    seed: int,
) -> dict[str, Sequence[Doubles]]:
    """The curves of resampled queries: each adds to sums that decide the curve, so that only sums are resampled."""
    random = generator(seed, "bias curves")
    queries = int(query_of_cell.max()) + 1
    count = min(GROUPS, queries)
    groups = random.permutation(np.arange(queries) % count)[query_of_cell]
    times = random.multinomial(count, np.full(count, 1 / count), size=samples).astype(np.float64)
    drawn: dict[str, Sequence[Doubles]] = {}
    if any(name in SWAP_ESTIMATORS for name in usable):
        tables = structure.swaps_of_groups(whole, groups, count=count)
        sums = [np.tensordot(times, np.stack([getattr(t, n) for t in tables]), axes=1) for n in ("weights", "clicks")]
        resampled = [SwapTable(*both) for both in zip(*sums, strict=True)]
    for name, curve in usable.items():
        if name in SWAP_ESTIMATORS:
            drawn[name] = list(estimates(resampled, name)[0])
        elif name == "click-rate":
            cell = groups * structure.count + structure.positions
            shown, clicked = (
                times @ np.bincount(cell, values, minlength=count * structure.count).reshape(count, -1)
                for values in (whole.impressions, whole.clicks)
            )
            rates = np.divide(clicked, shown, out=np.full(shown.shape, np.nan), where=shown > 0)
            known = np.isfinite(rates).all(axis=1) & (rates[:, 0] > 0)
            drawn[name] = list(rates[known] / rates[known, :1])
        else:
            drawn[name] = list(poisson_resamples(whole, curve, groups, times))
    return drawn


def _curve(
    name: str, found: Doubles | DataError, drawn: Sequence[Doubles], samples: int, level: float, positions: int
) -> Curve:
    unknown = np.full(positions, np.nan)
    if isinstance(found, DataError):
        return Curve(name, unknown, unknown, unknown, 1.0, str(found))
    low, high = unknown, unknown
    if 2 * len(drawn) >= samples:
        low, high = np.quantile(np.stack(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Curve(name, found, low, high, 1 - len(drawn) / samples, None)


def _attempt(name: str, structure: _Structure, cells: Cells, start: Doubles | None) -> Doubles | DataError:
    if structure.count < 2:
        return DataError("all documents were shown at one position; log some at others")
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

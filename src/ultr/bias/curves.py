"""Position-bias curves of a log by every estimator there is, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.bias.position_based_fit import Cells, fit_poisson, poisson_resamples, renumbered
from ultr.bias.propensities import click_rate_curve
from ultr.bias.resampled import estimates
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable
from ultr.data import ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.data.gathering import joined, new_array
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
    """What stays the same in every sample: the documents shown at several positions, which alone tell these apart."""

    log: ClickLog
    keys: Integers
    """[cells], never falling: a document and a position in one number."""
    cells: Cells
    queries: Integers | None
    """[cells], the query of each, as in `query_numbers`; None if a document belongs to several."""
    query_numbers: Integers
    """[lists], those with documents numbered from 0 by their query."""
    count: int

    @classmethod
    def of_log(cls, log: ClickLog) -> _Structure:
        count = len(log.factors[0].levels)
        occurs = np.zeros(len(log.query_ids), dtype=np.bool_)
        occurs[log.queries[log.lengths > 0]] = True
        query_numbers = (np.cumsum(occurs) - 1)[log.queries]
        blocks = [_moved(log, rows, query_numbers) for rows in row_blocks.row_blocks(log.documents)]
        arrays, several = zip(*blocks, strict=True)
        keys, shown, clicked, queries = (joined(parts) for parts in zip(*arrays, strict=True))
        del arrays, blocks
        positions = np.remainder(keys, count, out=new_array(len(keys), np.int64))
        return cls(
            log=log,
            keys=keys,
            cells=Cells(renumbered(keys // count), positions, shown, clicked, count),
            queries=None if any(several) else queries,
            query_numbers=query_numbers,
            count=count,
        )

    def swaps(self, cells: Cells) -> SwapTable:
        """The same as `SwapTable.of`, from swaps that are known already."""
        return self.swaps_of_groups(cells, np.zeros(len(self.keys), dtype=np.int64), count=1)[0]

    def swaps_of_groups(self, cells: Cells, groups: Integers, *, count: int) -> list[SwapTable]:
        """The swaps of each group of documents, from the group of each cell."""
        size = (count, self.count, self.count)
        sums = np.zeros((3, int(np.prod(size))))
        for part in cells.parts(most=ragged.SPAN):
            documents, place, shown = cells.documents[part], cells.positions[part], cells.impressions[part]
            rates = np.divide(cells.clicks[part], shown, out=np.zeros(len(shown)), where=shown > 0)
            for step in range(1, self.count):
                upper = np.flatnonzero(documents[:-step] == documents[step:])
                lower = upper + step
                both = shown[upper] + shown[lower]
                weight = np.divide(shown[upper] * shown[lower], both, out=np.zeros(len(both)), where=both > 0)
                pair = (groups[part][upper] * self.count + place[upper]) * self.count + place[lower]
                for total, values in zip(sums, (weight, weight * rates[upper], weight * rates[lower]), strict=True):
                    np.add.at(total, pair, values)
        weights, above, below = sums.reshape(3, *size)
        both_ways = weights + weights.swapaxes(1, 2), above + below.swapaxes(1, 2)
        return [SwapTable(*tables) for tables in zip(*both_ways, strict=True)]


def _moved(
    log: ClickLog, rows: Integers, query_numbers: Integers
) -> tuple[tuple[Integers, Doubles, Doubles, Integers], bool]:
    """The cells of the documents of some rows that were shown at several positions.

    Their keys, impressions, clicks and queries, and whether a document of the rows belongs to several queries.
    """
    count, lists = len(log.factors[0].levels), row_blocks.lists_of(rows, log.offsets)
    keys, cell = np.unique(
        log.documents[rows].astype(np.int64) * count + log.factors[0].values[rows], return_inverse=True
    )
    queries = np.zeros(len(keys), dtype=np.int64)
    queries[cell] = query_numbers[lists]
    again = keys[1:] // count == keys[:-1] // count
    several = (queries[cell] != query_numbers[lists]).any() or (queries[1:] != queries[:-1])[again].any()
    moved = np.flatnonzero(np.append(again, False) | np.append(False, again))
    shown, clicked = (
        np.bincount(cell, values)[moved].astype(np.float64) for values in (log.impressions[lists], log.clicks[rows])
    )
    return (keys[moved], shown, clicked, queries[moved]), bool(several)


def _at_positions(
    log: ClickLog, groups: Integers, *, count: int, times: Integers | None = None
) -> tuple[Doubles, Doubles]:
    """How often documents were shown and clicked, [groups, positions], with the group of each list and its weight."""
    size = count, len(log.factors[0].levels)
    shown, clicked = np.zeros(size[0] * size[1]), np.zeros(size[0] * size[1])
    for start, stop in ragged.spans(log.offsets):
        lists, rows = slice(start, stop), slice(log.offsets[start], log.offsets[stop])
        lengths = np.diff(log.offsets[start : stop + 1])
        weights = np.ones(stop - start) if times is None else times[lists].astype(np.float64)
        cell = np.repeat(groups[lists], lengths) * size[1] + log.factors[0].values[rows]
        shown += np.bincount(cell, np.repeat(weights * log.impressions[lists], lengths), minlength=len(shown))
        clicked += np.bincount(cell, np.repeat(weights, lengths) * log.clicks[rows], minlength=len(shown))
    return shown.reshape(size), clicked.reshape(size)


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
    totals = _at_positions(log, np.zeros(log.lists, dtype=np.int64), count=1)
    found = {name: _attempt(name, structure, structure.cells, totals) for name in estimators}
    usable = {name: curve for name, curve in found.items() if isinstance(curve, np.ndarray)}
    queries = int(structure.query_numbers.max()) + 1
    by_query = structure.queries is not None and queries >= FEW_QUERIES
    draw = _by_queries if by_query else _by_lists
    drawn = draw(structure, usable, samples=samples, seed=seed)
    curves = tuple(
        _curve(name, found[name], drawn.get(name, []), samples, level, structure.count) for name in estimators
    )
    return BiasCurves(curves, "queries" if by_query else "lists", queries if by_query else log.lists, level)


def _by_lists(
    structure: _Structure, usable: Mapping[str, Doubles], *, samples: int, seed: int
) -> dict[str, Sequence[Doubles]]:
    """The curves of resampled lists: a document is in several, so every resample starts from the rows."""
    log = structure.log
    keys = log.documents.astype(np.int64) * structure.count + log.factors[0].values
    rows = np.flatnonzero(np.isin(keys, structure.keys))
    cell = np.searchsorted(structure.keys, keys[rows])
    lists = row_blocks.lists_of(rows, log.offsets)
    together = np.zeros(log.lists, dtype=np.int64)
    drawn: dict[str, list[Doubles]] = {name: [] for name in usable}
    for sample in range(samples if usable else 0):
        random = generator(seed, "bias curves", sample)
        times = np.bincount(random.integers(log.lists, size=log.lists), minlength=log.lists)
        shown, clicked = (
            np.bincount(cell, times[lists] * values, minlength=len(structure.keys)).astype(np.float64)
            for values in (log.impressions[lists], log.clicks[rows])
        )
        cells = replace(structure.cells, impressions=shown, clicks=clicked)
        totals = _at_positions(log, together, count=1, times=times)
        for name, start in usable.items():
            curve = _attempt(name, structure, cells, totals, start)
            if isinstance(curve, np.ndarray):
                drawn[name].append(curve)
    return dict(drawn)


def _by_queries(
    structure: _Structure, usable: Mapping[str, Doubles], *, samples: int, seed: int
) -> dict[str, Sequence[Doubles]]:
    """The curves of resampled queries: each adds to sums that decide the curve, so that only sums are resampled."""
    assert structure.queries is not None, "documents of several queries are resampled by lists"
    random = generator(seed, "bias curves")
    queries = int(structure.query_numbers.max()) + 1
    count = min(GROUPS, queries)
    group_of = random.permutation(np.arange(queries) % count)
    groups = group_of[structure.queries]
    times = random.multinomial(count, np.full(count, 1 / count), size=samples).astype(np.float64)
    drawn: dict[str, Sequence[Doubles]] = {}
    if any(name in SWAP_ESTIMATORS for name in usable):
        tables = structure.swaps_of_groups(structure.cells, groups, count=count)
        sums = [np.tensordot(times, np.stack([getattr(t, n) for t in tables]), axes=1) for n in ("weights", "clicks")]
        resampled = [SwapTable(*both) for both in zip(*sums, strict=True)]
    for name, curve in usable.items():
        if name in SWAP_ESTIMATORS:
            drawn[name] = list(estimates(resampled, name)[0])
        elif name == "click-rate":
            sums_of_groups = _at_positions(structure.log, group_of[structure.query_numbers], count=count)
            shown, clicked = (times @ sums for sums in sums_of_groups)
            rates = np.divide(clicked, shown, out=np.full(shown.shape, np.nan), where=shown > 0)
            known = np.isfinite(rates).all(axis=1) & (rates[:, 0] > 0)
            drawn[name] = list(rates[known] / rates[known, :1])
        else:
            drawn[name] = list(poisson_resamples(structure.cells, curve, groups, times))
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


def _attempt(
    name: str, structure: _Structure, cells: Cells, totals: tuple[Doubles, Doubles], start: Doubles | None = None
) -> Doubles | DataError:
    """The curve by one estimator, from `cells` or from `totals` by position, or why there is none."""
    if structure.count < 2:
        return DataError("all documents were shown at one position; log some at others")
    try:
        if name in SWAP_ESTIMATORS:
            return SWAP_ESTIMATORS[name](structure.swaps(cells))
        if name == "click-rate":
            places = np.arange(structure.count) + 1
            return click_rate_curve(places, totals[0][0], totals[1][0], positions_shown=structure.count)
        if not cells.impressions.all():
            cells = cells.choose(np.flatnonzero(cells.impressions))
        return _by_em(cells, start)
    except DataError as error:
        return error


def _by_em(cells: Cells, start: Doubles | None) -> Doubles:
    moved = cells.choose(cells.moved())
    if start is None:
        return fit_poisson(moved).examination
    return fit_poisson(moved, start=start, tolerance=_WARM_TOLERANCE).examination

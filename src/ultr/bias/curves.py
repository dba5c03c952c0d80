"""Position-bias curves of a log by every estimator there is, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.bias.explored_cells import ExploredCells
from ultr.bias.position_based_fit import fit_poisson, poisson_resamples
from ultr.bias.propensities import click_rate_curve
from ultr.bias.resampled import EM, estimated, estimates, of_tables, resampled_exploration, resampled_swaps
from ultr.bias.swaps import SWAP_ESTIMATORS
from ultr.bias.used_positions import UsedPositions
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed, new_array, take
from ultr.data.totals import Totals
from ultr.errors import DataError
from ultr.metrics.query_bootstrap import FEW_QUERIES, QueryBootstrap, percentiles, query_numbers
from ultr.seeding import generator

CURVE_ESTIMATORS = ("click-rate", *SWAP_ESTIMATORS, EM)
"""`click-rate` is right only where rankings were random; the others are where the position-based model holds."""
_WARM_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Curve:
    """The bias of each position over that of the first, by one estimator."""

    estimator: str
    values: Doubles
    """[positions], 1 at the first; NaN if the estimator cannot say, and where the log shows no document."""
    low: Doubles
    """[positions]; NaN if it could be estimated on fewer than half of the samples."""
    high: Doubles
    """[positions]."""
    failed: float
    """The share of the samples on which it could not be estimated."""
    problem: str | None
    """The reason why it cannot be estimated, or None."""


@dataclass(frozen=True)
class BiasCurves:
    """The curves of one log."""

    curves: tuple[Curve, ...]
    units: str
    """The units that were resampled for the intervals: `queries`, or `lists` where there are few queries."""
    count: int
    """The number of these units."""
    level: float
    explored: int = 0
    """Placements by exploration that the curves by swaps rest on, weighted by what it logged."""
    left_out: int = 0
    """Placements by exploration of which it is not known where else the document could have stood."""

    def of(self, estimator: str) -> Curve:
        """The curve of one estimator."""
        names = [curve.estimator for curve in self.curves]
        return self.curves[names.index(checks.one_of("estimator", estimator, names))]


def bias_curves(
    log: ClickLog,
    *,
    estimators: Sequence[str] = CURVE_ESTIMATORS,
    samples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> BiasCurves:
    """The position-bias curves by some estimators, each with its bootstrap interval.

    Whole queries are resampled, because the clicks on one query are alike; where there are few, or where documents
    belong to several, the distinct lists are. An estimator that cannot say, mostly for want of swaps, has a `problem`
    instead of values. Where exploration logged its propensities, the swaps that it made count in the place of others,
    see `ultr.bias.explored_cells`, and `em` is `all-pairs`.
    """
    checks.integer("samples", samples, at_least=1)
    checks.share("level", level)
    for name in estimators:
        checks.one_of("estimator", name, CURVE_ESTIMATORS)
    if not len(log.documents):
        raise DataError("the click log shows no document")
    positions = UsedPositions.of_log(log)
    log = positions.within(log)
    # Documents without a click, or at one position only, have no part in any curve but that of click rates.
    cells = log.cells(fewest_positions=2, fewest_clicks=1)
    totals = log.totals(log.position)
    explored = ExploredCells.of_log(log)
    found = {name: _attempt(name, cells, totals, explored=explored) for name in estimators}
    usable = {name: curve for name, curve in found.items() if isinstance(curve, np.ndarray)}
    queries = query_numbers(log)
    many = int(queries.max()) + 1 >= FEW_QUERIES
    owners = _owners(log, queries) if many and explored is None else None
    by_queries = many and (owners is not None or explored is not None)
    if explored is not None:
        drawn = _by_placements(log, usable, queries if many else np.arange(log.lists), samples=samples, seed=seed)
    elif owners is None:
        drawn = _by_lists(log, cells, usable, samples=samples, seed=seed)
    else:
        drawn = _by_queries(log, cells, usable, queries, take(owners, cells.ids), samples=samples, seed=seed)
    units, count = ("queries", int(queries.max()) + 1) if by_queries else ("lists", log.lists)
    curves = []
    for name in estimators:
        curve, draws, unknown = found[name], drawn.get(name, []), np.full(cells.count, np.nan)
        if isinstance(curve, DataError):
            nothing = positions.spread(unknown)
            curves.append(Curve(name, nothing, nothing, nothing, 1.0, positions.sentence(curve)))
            continue
        low, high = percentiles(np.stack(draws), level, count) if 2 * len(draws) >= samples else (unknown, unknown)
        values, low, high = (positions.spread(each) for each in (curve, low, high))
        curves.append(Curve(name, values, low, high, 1 - len(draws) / samples, None))
    if explored is None:
        return BiasCurves(tuple(curves), units, count, level)
    return BiasCurves(tuple(curves), units, count, level, explored.used, explored.left_out)


def _owners(log: ClickLog, queries: Integers) -> Integers | None:
    """[documents], the query of each that was shown; None if a document belongs to several."""
    owners = new_array(len(log.features), np.int64)
    for span in ragged.spans(log.offsets):
        owners[log.documents[span.rows]] = span.spread(queries)
    for span in ragged.spans(log.offsets):
        if (owners[log.documents[span.rows]] != span.spread(queries)).any():
            return None
    return owners


def _by_lists(
    log: ClickLog, cells: Cells, usable: Mapping[str, Doubles], *, samples: int, seed: int
) -> Mapping[str, Sequence[Doubles]]:
    """The curves of resampled lists: a document is in several, so every resample starts from the rows."""
    keys = computed(lambda numbers, places: cells.ids[numbers] * cells.count + places, cells.documents, cells.positions)

    def number(documents: Integers, places: Integers) -> Integers:
        """The cells of some rows; of those without one, their positions behind all cells."""
        key = documents.astype(np.int64) * cells.count + places
        place = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
        known = keys[place] == key if len(keys) else np.zeros(len(key), dtype=np.bool_)
        return np.where(known, place, len(keys) + places)

    of_row = computed(number, log.documents, log.position.values)
    drawn: dict[str, list[Doubles]] = {name: [] for name in usable}
    for sample in range(samples if usable else 0):
        random = generator(seed, "bias curves", sample)
        times = np.bincount(random.integers(log.lists, size=log.lists), minlength=log.lists)
        sums = log.totals(of_row, count=len(keys) + cells.count, weights=times)
        shown, clicked = (values[: len(keys)] for values in sums)
        by_position = (
            values[len(keys) :] + np.bincount(cells.positions, values[: len(keys)], minlength=cells.count)
            for values in sums
        )
        again, totals = replace(cells, impressions=shown, clicks=clicked), Totals(*by_position)
        for name, start in usable.items():
            curve = _attempt(name, again, totals, start)
            if isinstance(curve, np.ndarray):
                drawn[name].append(curve)
    return drawn


def _by_queries(
    log: ClickLog,
    cells: Cells,
    usable: Mapping[str, Doubles],
    queries: Integers,
    owners: Integers,
    *,
    samples: int,
    seed: int,
) -> Mapping[str, Sequence[Doubles]]:
    """The curves of resampled queries: each adds to sums that decide the curve, so that only sums are resampled.

    Let S_g be the sums of group g and t_sg how often sample s drew it: the sample's sums are sum_g t_sg S_g. S_g is the
    clicks and impressions of each position for click rates, the swap table for swaps, and score and information of the
    likelihood for EM.
    """
    drawing = QueryBootstrap.draw(int(queries.max()) + 1, samples=samples, random=generator(seed, "bias curves"))
    groups, times = take(drawing.groups, owners), drawing.times.astype(np.float64)
    drawn: dict[str, Sequence[Doubles]] = {}
    if any(name in SWAP_ESTIMATORS for name in usable):
        resampled = resampled_swaps(cells, groups, drawing)
    for name, curve in usable.items():
        if name in SWAP_ESTIMATORS:
            drawn[name] = list(estimates(resampled, name)[0])
        elif name == "click-rate":
            drawn[name] = _click_rates(log, drawing.groups[queries], drawing)
        else:
            drawn[name] = list(poisson_resamples(cells, curve, groups, times)[0])
    return drawn


def _by_placements(
    log: ClickLog, usable: Mapping[str, Doubles], units: Integers, *, samples: int, seed: int
) -> Mapping[str, Sequence[Doubles]]:
    """The curves of resampled units, [lists], with the swaps that exploration made in each sample."""
    drawing = QueryBootstrap.draw(int(units.max()) + 1, samples=samples, random=generator(seed, "bias curves"))
    groups, rows = take(drawing.groups, units), len(log.features)
    cells = log.cells(documents=log.documents_within(groups), fewest_positions=2, fewest_clicks=1)
    tables = resampled_swaps(cells, computed(lambda ids: ids // rows, cells.ids), drawing)
    tables = resampled_exploration(tables, ExploredCells.of_log(log, groups, group_count=drawing.count), drawing)
    return {
        name: _click_rates(log, groups, drawing)
        if name == "click-rate"
        else list(estimates(tables, of_tables(name))[0])
        for name in usable
    }


def _click_rates(log: ClickLog, groups: Integers, drawing: QueryBootstrap) -> list[Doubles]:
    """The curves of click rates of each sample that has one; `groups` has the group of each list."""
    sums = log.totals(log.position, groups=groups, group_count=drawing.count)
    rates = Totals(*(drawing.times.astype(np.float64) @ each for each in sums)).rates
    known = np.isfinite(rates).all(axis=1) & (rates[:, 0] > 0)
    return list(rates[known] / rates[known, :1])


def _attempt(
    name: str,
    cells: Cells,
    totals: Totals,
    start: Doubles | None = None,
    *,
    explored: ExploredCells | None = None,
) -> Doubles | DataError:
    """The curve by one estimator, from `cells` or from `totals` by position, or why there is none."""
    if cells.count < 2:
        return DataError("all documents were shown at one position; log some at others")
    try:
        if name == "click-rate":
            return click_rate_curve(totals)
        if explored is not None or name in SWAP_ESTIMATORS:
            return estimated(cells, name, explored)
        if start is None:
            return fit_poisson(cells)
        return fit_poisson(cells.choose(cells.moved()), start=start, tolerance=_WARM_TOLERANCE)
    except DataError as error:
        return error

"""Propensities estimated from a log, and once more from each of many resamples of its queries, to see how they vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, Mask
from ultr.bias.explored_cells import ExploredCells
from ultr.bias.position_based_fit import fit_poisson, poisson_resamples
from ultr.bias.propensities import click_rate_propensities
from ultr.bias.swaps import (
    SWAP_ESTIMATORS,
    SwapTable,
    all_pairs,
    check_linked,
    most_likely,
    swaps_by_group,
    with_exploration,
)
from ultr.bias.used_positions import UsedPositions
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed
from ultr.errors import DataError
from ultr.metrics.query_bootstrap import QueryBootstrap, query_numbers
from ultr.seeding import generator

CLICK_RATE, EM = "click-rate", "em"
BY_SWAPS = (*SWAP_ESTIMATORS, EM)
"""Estimators that compare documents with themselves at other positions."""
ESTIMATORS = (*BY_SWAPS, CLICK_RATE)


def estimate_propensities(log: ClickLog, estimator: str = "all-pairs") -> Doubles:
    """Propensities by position: pivot, adjacent-chain, all-pairs or em by swaps, click-rate for a randomised log."""
    checks.one_of("estimator", estimator, ESTIMATORS)
    used = UsedPositions.of_log(log)
    dense = used.within(log)
    with used.named():
        if estimator == CLICK_RATE:
            return used.filled(click_rate_propensities(dense))
        return used.filled(estimated(dense.cells(fewest_positions=2), estimator, ExploredCells.of_log(dense)))


def estimated(cells: Cells, estimator: str, explored: ExploredCells | None) -> Doubles:
    """Propensities by some cells, and by what exploration placed."""
    if explored is not None:
        return SWAP_ESTIMATORS[of_tables(estimator)](with_exploration(SwapTable.of(cells), explored))
    if estimator == EM:
        check_linked(SwapTable.of(cells).linked)
        return fit_poisson(cells.choose(cells.moved()))
    return SWAP_ESTIMATORS[estimator](SwapTable.of(cells))


@dataclass(frozen=True, eq=False)
class ResampledPropensities:
    """Propensities with their bootstrap over queries, which whoever uses them can follow draw by draw."""

    estimate: Doubles
    """[positions], from the whole log."""
    draws: Doubles
    """[draws, positions], from the queries of each draw."""
    counts: Integers
    """[draws, groups], how often each group of queries was drawn."""
    groups: Integers
    """[query ids of the log], the group of each."""
    linked: Mask
    """True for each draw that was kept; the queries of the others did not link all positions."""
    explored: int = 0
    """Placements by exploration that the propensities rest on, weighted by what it logged."""

    @property
    def failed(self) -> float:
        """The share of draws that are left out."""
        return float(1 - self.linked.mean())

    @classmethod
    def of_log(
        cls,
        log: ClickLog,
        estimator: str = "all-pairs",
        *,
        among: Mask | None = None,
        samples: int = 500,
        seed: int = 0,
    ) -> ResampledPropensities:
        """The propensities of a log by an estimator that goes by swaps, with their resamples.

        `among` says which rows of the log's features count; by default all do. Draws of one seed have the same queries.
        """
        checks.one_of("estimator", estimator, BY_SWAPS)
        checks.integer("samples", samples, at_least=1)
        used = UsedPositions.of_log(log)
        with used.named():
            dense = cls._of_used(used.within(log), estimator, among=among, samples=samples, seed=seed)
        return replace(dense, estimate=used.filled(dense.estimate), draws=used.filled(dense.draws))

    @classmethod
    def _of_used(
        cls, log: ClickLog, estimator: str, *, among: Mask | None, samples: int, seed: int
    ) -> ResampledPropensities:
        """The same of a log that shows documents at all of its positions."""
        rows = len(log.features)
        explored = ExploredCells.of_log(log, among=among)
        estimate = estimated(_of_rows(log.cells(fewest_positions=2), among, rows), estimator, explored)
        queries = query_numbers(log)
        random = generator(seed, "resampled propensities")
        drawing = QueryBootstrap.draw(int(queries.max()) + 1, samples=samples, random=random)
        # Queries that this log has no list of are dealt out, so that they too are drawn some at a time.
        groups = random.permutation(np.arange(len(log.query_ids)) % drawing.count)
        groups[log.queries] = drawing.groups[queries]
        # A document of two groups counts in each on its own, as if it were two: draws of groups are independent.
        cells = log.cells(documents=log.documents_within(groups[log.queries]), fewest_positions=2)
        cells = _of_rows(cells, among, rows)
        by_likelihood = estimator == EM and explored is None
        if by_likelihood:
            cells = cells.choose(cells.moved())
        of_document = computed(lambda ids: ids // rows, cells.ids)
        if by_likelihood:
            draws, linked = poisson_resamples(cells, estimate, of_document, drawing.times.astype(np.float64))
        else:
            tables = resampled_swaps(cells, of_document, drawing)
            if explored is not None:
                grouped = ExploredCells.of_log(log, groups[log.queries], group_count=drawing.count, among=among)
                tables = resampled_exploration(tables, grouped, drawing)
            draws, linked = estimates(tables, of_tables(estimator))
        if not linked.any():
            raise DataError(
                "no resample of the log's queries links all positions by swaps, so their bias cannot be trusted; "
                "log some swaps, or give propensities"
            )
        placed = 0 if explored is None else explored.used
        return cls(estimate, draws, drawing.times[linked], groups, linked, placed)


def _of_rows(cells: Cells, among: Mask | None, rows: int) -> Cells:
    """The cells of the documents that are among these rows of the features; ids may have a group before the row."""
    return cells if among is None else cells.choose(np.flatnonzero(among[cells.ids % rows][cells.documents]))


def resampled_swaps(cells: Cells, groups: Integers, drawing: QueryBootstrap) -> list[SwapTable]:
    """The swaps of each resample; `groups` has the group of each document."""
    sums = swaps_by_group(cells, groups, count=drawing.count)
    resampled = (np.tensordot(drawing.times, each, axes=1) for each in sums)
    return [SwapTable(*both) for both in zip(*resampled, strict=True)]


def resampled_exploration(
    tables: Sequence[SwapTable], explored: ExploredCells | None, drawing: QueryBootstrap
) -> list[SwapTable]:
    """The tables of resamples with the swaps that exploration made in each; the same links are completed in all."""
    if explored is None:
        return list(tables)
    apart = SwapTable.of(explored.cells()).apart()
    return [
        SwapTable.of(explored.cells(times.astype(np.float64))).completed_by(table, apart=apart)
        for table, times in zip(tables, drawing.times, strict=True)
    ]


def of_tables(estimator: str) -> str:
    """The estimator by a table of swaps: with a relevance for each pair of positions, EM is `all-pairs`."""
    return "all-pairs" if estimator == EM else estimator


def estimates(tables: Sequence[SwapTable], estimator: str) -> tuple[Doubles, Mask]:
    """The propensities of the tables that link all positions, [those tables, positions], and which tables do."""
    chosen = SWAP_ESTIMATORS[estimator]
    # All at once, because a table with weak links may take thousands of rounds.
    together = chosen is all_pairs
    found, linked = [], np.ones(len(tables), dtype=np.bool_)
    for number, table in enumerate(tables):
        try:
            if together:
                check_linked(table.linked)
                found.append(table.clicks)
            else:
                found.append(chosen(table))
        except DataError:
            linked[number] = False
    stacked = np.array(found)
    return most_likely(stacked) if together and found else stacked, linked

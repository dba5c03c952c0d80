"""Position bias from swaps: documents that were shown at two positions, by chance or by different rankers.

Under the position-based model a document's click rate at position k is theta_k times its relevance, so that over
documents shown at both j and k the ratio of click rates is theta_j / theta_k, whatever their relevance (Agarwal et
al., Estimating Position Bias without Intrusive Interventions, WSDM 2019). That holds if a document is as relevant on
the pages where it stands at j as on those where it stands at k. Where exploration placed documents by chance and logged
with which probability, its own swaps need no such belief (`ultr.bias.explored_cells`), and they count in the place of
the others. All estimators give propensities by position with theta_1 = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, Mask, ratio
from ultr.bias.explored_cells import ExploredCells
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

_ROUNDS = 10_000
_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class SwapTable:
    """The weights and clicks of the documents that were shown at both of each pair of positions.

    A document counts with the weight n_j n_k / (n_j + n_k) of its impressions at the two, the inverse of the variance
    of a difference of two rates, and with the same weight at both: so they have the same documents.
    """

    weights: Doubles
    """[positions, positions], symmetric: the sum of the weights of the documents that link two positions."""
    clicks: Doubles
    """[positions, positions]: entry (j, k) is the weighted sum of click rates at j of the documents shown also at k."""

    @classmethod
    def of_log(cls, log: ClickLog) -> SwapTable:
        """The swaps of a click log: those of exploration as far as they reach, and else those of documents."""
        return with_exploration(cls.of(log.cells(fewest_positions=2)), ExploredCells.of_log(log))

    @classmethod
    def of(cls, cells: Cells) -> SwapTable:
        """The swaps of some documents."""
        weights, clicks = swaps_by_group(cells, np.zeros(len(cells.ids), dtype=np.int8), count=1)
        return cls(weights[0], clicks[0])

    def ratio(self, position: int, to: int) -> float:
        """Theta of a position over theta of another, both from 1, by the documents shown at both."""
        j, k = position - 1, to - 1
        if not self.clicks[k, j] > 0:
            raise DataError(
                f"no clicked document was shown at both position {to} and position {position}, so their bias cannot be "
                "compared; use the estimator all-pairs, log some swaps between them, or give propensities"
            )
        return float(self.clicks[j, k] / self.clicks[k, j])

    @property
    def linked(self) -> Mask:
        """[positions, positions], true if documents that were shown at both were clicked at each of them."""
        return (self.clicks > 0) & (self.clicks.T > 0)

    def apart(self) -> Mask:
        """[positions, positions], true for those that no chain of links connects."""
        together = self.linked | np.eye(self.positions, dtype=np.bool_)
        for _ in range(self.positions.bit_length()):
            together = (together.astype(np.float64) @ together) > 0
        return ~together

    def completed_by(self, other: SwapTable, *, apart: Mask) -> SwapTable:
        """The table with the links of another between positions that are apart."""
        return SwapTable(np.where(apart, other.weights, self.weights), np.where(apart, other.clicks, self.clicks))

    @property
    def positions(self) -> int:
        """The number of positions."""
        return len(self.weights)


def pivot(table: SwapTable) -> Doubles:
    """Every position compared with the first: theta_k = rate at k over rate at 1 of the documents shown at both."""
    return np.array([1.0, *(table.ratio(k, 1) for k in range(2, table.positions + 1))])


def adjacent_chain(table: SwapTable) -> Doubles:
    """Every position compared with the one above it, and the ratios multiplied."""
    ratios = np.array([1.0, *(table.ratio(k, k - 1) for k in range(2, table.positions + 1))])
    return np.cumprod(ratios)


def all_pairs(table: SwapTable) -> Doubles:
    """The maximum-likelihood propensities over all pairs of positions at once.

    Each unordered pair {j, k} has a mean relevance r_jk of its documents, and the clicks at j and at k are Poisson with
    means weight * theta_j * r_jk and weight * theta_k * r_jk. Both updates are in closed form:

        r_jk = (clicks_jk + clicks_kj) / (weight_jk (theta_j + theta_k))
        theta_j = sum_k clicks_jk / sum_k weight_jk r_jk
    """
    check_linked(table.linked)
    return most_likely(table.clicks)


def most_likely(clicks: Doubles) -> Doubles:
    """The propensities of `all_pairs` for the clicks of a table, or of many at once, [..., positions]."""
    theta: Doubles = np.ones(clicks.shape[:-1])
    both, own = clicks + clicks.swapaxes(-1, -2), clicks.sum(axis=-1)
    for _ in range(_ROUNDS):
        # weight_jk r_jk, with the weight cancelled.
        relevance = both / (theta[..., :, None] + theta[..., None, :])
        before, theta = theta, own / relevance.sum(axis=-1)
        theta /= theta[..., :1]
        if np.abs(theta - before).max() < _TOLERANCE:
            break
    return theta


def swaps_by_group(cells: Cells, groups: Integers, *, count: int) -> tuple[Doubles, Doubles]:
    """`SwapTable.weights` and `clicks` of each group of documents, [groups, positions, positions].

    `groups` has the group of each document, below `count`.
    """
    size = (count, cells.count, cells.count)
    sums = np.zeros((3, int(np.prod(size))))
    for part in cells.parts():
        documents, place, shown = cells.documents[part], cells.positions[part], cells.impressions[part]
        rates = ratio(cells.clicks[part], shown)
        group = groups[documents].astype(np.int64)
        # Each pair of cells of one document is a swap; they lie `step` cells apart.
        for step in range(1, cells.count):
            upper = np.flatnonzero(documents[:-step] == documents[step:])
            if not len(upper):
                break
            lower = upper + step
            both = shown[upper] + shown[lower]
            weight = ratio(shown[upper] * shown[lower], both)
            pair = (group[upper] * cells.count + place[upper]) * cells.count + place[lower]
            for total, values in zip(sums, (weight, weight * rates[upper], weight * rates[lower]), strict=True):
                np.add.at(total, pair, values)
    weights, above, below = sums.reshape(3, *size)
    return weights + weights.swapaxes(1, 2), above + below.swapaxes(1, 2)


def reached(linked: Mask) -> Mask:
    """[positions], those that a chain of links, [positions, positions], leads to from the first."""
    found = np.zeros(len(linked), dtype=np.bool_)
    found[0] = True
    for _ in range(len(linked)):
        found |= linked[found].any(axis=0)
    return found


def with_exploration(swaps: SwapTable, explored: ExploredCells | None) -> SwapTable:
    """The swaps of exploration, and those of documents between positions that exploration does not link."""
    if explored is None:
        return swaps
    table = SwapTable.of(explored.cells())
    return table.completed_by(swaps, apart=table.apart())


def check_linked(linked: Mask) -> None:
    """Raise a `DataError` unless a chain of links, [positions, positions], leads from the first position to all."""
    found = reached(linked)
    if not found.all():
        alone = _spans(np.flatnonzero(~found) + 1)
        raise DataError(
            f"no chain of clicked documents shown at two positions links position 1 with {alone}, so their bias cannot "
            "be compared; log some swaps between them, or give propensities"
        )


def _spans(numbers: Integers) -> str:
    """Ascending numbers with each run of three or more as its ends.

    >>> _spans(np.array([2, 4, 5, 7, 8, 9]))
    '2, 4, 5, 7 to 9'
    """
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


SWAP_ESTIMATORS: dict[str, Callable[[SwapTable], Doubles]] = {
    "pivot": pivot,
    "adjacent-chain": adjacent_chain,
    "all-pairs": all_pairs,
}

"""The graph of bias values that are linked by documents seen under both, which says whether the bias can be identified.

A document seen under two values of a bias factor tells the ratio of their bias, whatever its relevance. Relevance can
be recovered up to one scale if and only if these links connect all values (Chen et al., Identifiability Matters:
Revealing the Hidden Recoverable Condition in Unbiased Learning to Rank, ICML 2024). If not, each part has a scale of
its own, and documents of different parts cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.bias.explored_cells import ExploredCells
from ultr.bias.swaps import SwapTable
from ultr.data import row_blocks
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations
from ultr.data.gathering import take
from ultr.errors import DataError

_REACH = 32
"""A value of a document is linked with so many of the values that follow it."""


@dataclass(frozen=True)
class Link:
    """Two bias values under which the same documents were seen."""

    first: int
    """A value of the graph."""
    second: int
    """A later value."""
    documents: int
    """The number of documents that were seen under both; 0 if exploration alone links them, by chance placements."""
    strength: float
    """The effective sample size: the harmonic mean of a document's impressions under the two, summed over documents."""
    clicks: int
    """The clicks on these documents under the two; a link without clicks is no help yet."""
    bridge: bool
    """True if the graph would fall apart without it."""


@dataclass(frozen=True, eq=False)
class BiasGraph:
    """The bias values of a log that were seen, and what links them.

    A document seen under more than 32 values links each with the 32 that follow it: the parts are exact even so, and
    only the strength of some links between distant values is understated.
    """

    names: tuple[str, ...]
    """The values in words, such as `position 3, device phone`."""
    levels: Integers
    """[values, factors], the level of each factor; of the position from 0."""
    impressions: Doubles
    """[values], how many documents were shown under each."""
    click_rates: Doubles
    """[values]."""
    parts: Integers
    """[values], the connected part that each belongs to; part 0 has the most impressions."""
    links: tuple[Link, ...]
    """The links, from the weakest to the strongest."""

    @property
    def connected(self) -> bool:
        """True if all values are linked, so that the bias can be identified."""
        return not self.parts.any()

    @property
    def shares(self) -> Doubles:
        """The share of the impressions of each part."""
        shares: Doubles = np.bincount(self.parts, self.impressions) / self.impressions.sum()
        return shares

    @property
    def backbone(self) -> tuple[Link, ...]:
        """The strongest links that hold each part together, a maximum spanning forest, from the weakest.

        The first is the bottleneck: some values can only be compared over it or over links that are weaker still.
        """
        chosen, _ = _forest(len(self.names), ((link.first, link.second) for link in reversed(self.links)))
        return tuple(self.links[-1 - number] for number in reversed(chosen))

    def with_clicks(self, fewest: int = 1) -> BiasGraph:
        """The graph of the links with this many clicks or more: those that tell something already."""
        links = [link for link in self.links if link.clicks >= fewest]
        pairs = [(link.first, link.second) for link in links]
        bridges = _bridges(pairs, count=len(self.names))
        return replace(
            self,
            parts=_parts(pairs, self.impressions),
            links=tuple(replace(link, bridge=number in bridges) for number, link in enumerate(links)),
        )

    def swaps(self) -> tuple[tuple[int, int], ...]:
        """The fewest pairs of values that would connect the graph if documents were seen under both.

        One for each missing connection, between adjacent positions where that can be, and there where both have the
        most impressions, so that the least time is needed.
        """
        adjacent = self._adjacent()
        heads = np.array([np.flatnonzero(self.parts == part)[0] for part in range(int(self.parts.max()) + 1)])
        for value in np.argsort(self.impressions, kind="stable"):
            heads[self.parts[value]] = value
        others = np.stack([np.broadcast_to(heads[0], len(heads) - 1), heads[1:]], axis=1)
        busiest = [
            pairs[np.argsort(-self.impressions[pairs].min(axis=1), kind="stable")] for pairs in (adjacent, others)
        ]
        return self._join(np.concatenate(busiest))

    def merges(self) -> tuple[tuple[int, int], ...]:
        """The fewest pairs of values that would connect the graph if each were made one value.

        One for each missing connection: adjacent positions or values with neighbouring click rates, those with the
        nearest click rates first.
        """
        order = np.argsort(self.click_rates, kind="stable")
        candidates = np.concatenate([self._adjacent(), np.stack([order[:-1], order[1:]], axis=1)])
        apart = np.abs(np.diff(self.click_rates[candidates], axis=1)[:, 0])
        return self._join(candidates[np.argsort(apart, kind="stable")])

    def _adjacent(self) -> Integers:
        """Pairs of values whose first factor, the position, differs by one and the others not at all."""
        order = np.lexsort((self.levels[:, 0], *self.levels[:, 1:].T))
        steps = np.diff(self.levels[order], axis=0)
        found = np.flatnonzero((steps[:, 0] == 1) & ~steps[:, 1:].any(axis=1))
        return np.stack([order[found], order[found + 1]], axis=1)

    def _join(self, candidates: Integers) -> tuple[tuple[int, int], ...]:
        """The candidates, the first ones first, that each join two parts."""
        chosen, _ = _forest(int(self.parts.max()) + 1, self.parts[candidates].tolist())
        return tuple((int(min(candidates[i])), int(max(candidates[i]))) for i in chosen)


def bias_graph(
    log: ClickLog, *, factors: Sequence[str] = ("position",), identities: Integers | None = None
) -> BiasGraph:
    """The graph of the values of some bias factors, or of the combinations of their values.

    `identities` says for each row of the features which document it is; by default each row is one of its own. With
    `same_features`, documents with the same features are the same, which is all that a model can tell. Positions are
    also linked by placements of exploration that logged its propensities, whichever documents they were.
    """
    known = {factor.name: factor for factor in log.factors}
    chosen = [known[checks.one_of("bias factor", name, known)] for name in factors]
    if not chosen:
        raise DataError("a bias graph needs at least one bias factor")
    if not len(log.documents):
        raise DataError("the click log shows no document")
    levels, values = combinations([factor.values for factor in chosen])
    totals = log.totals(values, count=len(levels))
    documents = log.documents if identities is None else take(identities, log.documents)
    pairs = _linked(log.cells(values, count=len(levels), documents=documents, fewest_positions=2))
    if [factor.name for factor in chosen] == ["position"]:
        pairs = _with_exploration(pairs, ExploredCells.of_log(log), levels[:, 0])
    graph = BiasGraph(
        names=tuple(
            ", ".join(f"{factor.name} {factor.levels[i]}" for factor, i in zip(chosen, level, strict=True))
            for level in levels
        ),
        levels=levels,
        impressions=totals.impressions,
        click_rates=totals.rates,
        parts=np.zeros(len(levels), dtype=np.int64),
        links=tuple(
            Link(int(first), int(second), int(number), strength, int(clicks), bridge=False)
            for first, second, number, strength, clicks in pairs.tolist()
        ),
    ).with_clicks(0)
    by_strength = sorted(graph.links, key=lambda link: (link.strength, link.first, link.second))
    return replace(graph, links=tuple(by_strength))


def _linked(cells: Cells) -> Doubles:
    """A row for each linked pair of values: first, second, documents, strength, clicks."""
    found = [link for part in cells.parts(most=row_blocks.BLOCK) for link in _links_of(cells.part(part))]
    if not found:
        return np.empty((0, 5))
    rows = np.concatenate(found)
    pair, number = np.unique(rows[:, 0].astype(np.int64), return_inverse=True)
    sums = [np.bincount(number, rows[:, column]) for column in (1, 2, 3)]
    return np.stack([pair // cells.count, pair % cells.count, *sums], axis=1)


def _with_exploration(pairs: Doubles, explored: ExploredCells | None, seen: Integers) -> Doubles:
    """The rows of `_linked` with the links of exploration, whichever of two is stronger; `seen` are the positions."""
    if explored is None:
        return pairs
    table = SwapTable.of(explored.cells())
    clicks = table.clicks + table.clicks.T
    rows = {(int(first), int(second)): tuple(rest) for first, second, *rest in pairs.tolist()}
    for first, second in np.argwhere(np.triu(table.weights > 0)).tolist():
        ends = tuple(np.searchsorted(seen, (first, second)).tolist())
        documents, strength, clicked = rows.get(ends, (0.0, 0.0, 0.0))
        # n_j n_k / (n_j + n_k) is half the harmonic mean.
        strength = max(strength, 2 * table.weights[first, second])
        rows[ends] = documents, strength, max(clicked, np.floor(clicks[first, second]))
    found = [(*ends, *rest) for ends, rest in sorted(rows.items())]
    return np.array(found, dtype=np.float64).reshape(-1, 5)


def _links_of(cells: Cells) -> Iterator[Doubles]:
    """Rows with a pair of values, documents, strength, clicks: of neighbours, of those one further, and so on."""
    document, value, shown, clicked = cells.documents, cells.positions, cells.impressions, cells.clicks
    for step in range(1, min(_REACH, cells.count - 1) + 1):
        upper = np.flatnonzero(document[:-step] == document[step:])
        if not len(upper):
            return
        lower = upper + step
        pair, number = np.unique(value[upper] * cells.count + value[lower], return_inverse=True)
        strength = 2 * shown[upper] * shown[lower] / (shown[upper] + shown[lower])
        sums = [
            np.bincount(number, weight) for weight in (np.ones(len(upper)), strength, clicked[upper] + clicked[lower])
        ]
        yield np.stack([pair, *sums], axis=1)


def _parts(links: Sequence[tuple[int, int]], impressions: Doubles) -> Integers:
    """The connected part of each value, numbered from that with the most impressions."""
    numbers = np.unique(_forest(len(impressions), links)[1], return_inverse=True)[1]
    sizes = np.bincount(numbers, impressions)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[numbers]


def _forest(count: int, links: Iterable[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The numbers of the links that each join two parts not joined by the links before (Kruskal).

    With it goes one value of each value's part, the same for the whole part.
    """
    parents, chosen = list(range(count)), []

    def root(value: int) -> int:
        while parents[value] != value:
            parents[value] = value = parents[parents[value]]
        return value

    for number, (first, second) in enumerate(links):
        a, b = root(first), root(second)
        if a != b:
            parents[a] = b
            chosen.append(number)
    return chosen, [root(value) for value in range(count)]


def _bridges(links: Sequence[tuple[int, int]], *, count: int) -> set[int]:
    """The numbers of the links that are bridges: no cycle goes through them (Tarjan 1974, without recursion).

    A depth-first search numbers values in the order in which they are entered. With low(v) the lowest number that v or
    what hangs below it reaches by one link other than the one v was entered by, the link from u down to v is a bridge
    if and only if low(v) > number(u): nothing below leads back to u or above it.
    """
    bridges: set[int] = set()
    around: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (first, second) in enumerate(links):
        around[first].append((second, number))
        around[second].append((first, number))
    entered, lowest = [-1] * count, [0] * count
    clock = 0
    for start in range(count):
        if entered[start] >= 0:
            continue
        path = [(start, -1, iter(around[start]))]
        entered[start] = lowest[start] = clock
        clock += 1
        while path:
            value, came_by, rest = path[-1]
            for other, number in rest:
                if number == came_by:
                    continue
                if entered[other] >= 0:
                    lowest[value] = min(lowest[value], entered[other])
                    continue
                entered[other] = lowest[other] = clock
                clock += 1
                path.append((other, number, iter(around[other])))
                break
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[value])
                    if lowest[value] > entered[above]:
                        bridges.add(came_by)
    return bridges

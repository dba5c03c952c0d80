"""The dimension of bias that the links between values support, and where documents must be shown to support more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Mask
from ultr.bias.identifiability import BiasGraph, Link
from ultr.bias.rigidity import LARGEST, MOST_UNKNOWNS, crossing, cut_dimensions, identified, largest_dimension
from ultr.bias.value_sets import ValueSets


@dataclass(frozen=True, eq=False)
class Cut:
    """A link of the backbone, and the values that hang together on one side of it."""

    link: Link
    side: Mask
    """[values], those on the side of the link's first value."""
    dimension: int
    """The largest dimension that the documents seen on both sides may support."""


@dataclass(frozen=True, eq=False)
class SupportedDimension:
    """The largest dimension that can be identified, and the cuts that limit it."""

    graph: BiasGraph
    sets: ValueSets
    dimension: int
    """0 if the values are not linked, or there is only one."""
    affine: bool
    """True if trust bias, alpha g + beta at each value, is identified: two documents on each link are enough for it."""
    cuts: tuple[Cut, ...]
    """One for each link that holds a connected graph together, from the weakest."""

    @classmethod
    def of(cls, graph: BiasGraph, sets: ValueSets) -> SupportedDimension:
        """The dimension of a graph whose links have clicks, and of the sets of its values."""
        values = len(graph.names)
        if not graph.connected or values == 1:
            return cls(graph, sets, dimension=0, affine=False, cuts=())
        dimension = largest_dimension(sets.seen, sets.documents, known=1)
        affine = dimension > 1 or (
            2 * values <= MOST_UNKNOWNS and identified(sets.seen, sets.documents, 2, affine=True)
        )
        sides = np.stack([side_of(graph, link) for link in graph.backbone], axis=1)
        limits = cut_dimensions(sets.seen, sets.documents, sides).tolist()
        cuts = (Cut(link, side, limit) for link, side, limit in zip(graph.backbone, sides.T, limits, strict=True))
        return cls(graph, sets, dimension, affine, tuple(cuts))

    @property
    def exact(self) -> bool:
        """True if no larger dimension is identified; else it was not looked for, or not with all documents."""
        values = len(self.graph.names)
        return self.dimension == values - 1 or (
            self.sets.complete and self.dimension < min(LARGEST, MOST_UNKNOWNS // values - 1)
        )

    @property
    def thinnest(self) -> Cut | None:
        """The weakest cut that keeps the dimension from being larger; none if it is not a single cut that does."""
        return next((cut for cut in self.cuts if cut.dimension <= self.dimension), None)

    def crossing(self, cut: Cut, dimension: int) -> tuple[int, int]:
        """The documents that tell something about this dimension across a cut, and their clicks."""
        tell = crossing(self.sets.seen, cut.side[:, None], dimension)[:, 0] > 0
        return int(self.sets.documents[tell].sum()), int(self.sets.clicks[tell].sum())

    def windows(self, wanted: int) -> tuple[tuple[int, ...], ...]:
        """Sets of values: if as many documents as this dimension has were seen under all of each, it is identified.

        For each cut that is too thin the nearest values on either side; if that is not enough, one set of all values.
        None if there are no more values than dimensions: then nothing helps.
        """
        seen, documents, found = self.sets.seen, self.sets.documents, []
        values = seen.shape[1]
        if wanted >= values:
            return ()
        for cut in self.cuts:
            if cut_dimensions(seen, documents, cut.side[:, None])[0] < wanted:
                found.append(self.around(cut, wanted))
                seen = np.concatenate([seen, np.isin(np.arange(values), found[-1])[None]])
                documents = np.append(documents, wanted)
        enough = found and wanted * values <= MOST_UNKNOWNS and identified(seen, documents, wanted)
        return tuple(found) if enough else (tuple(range(values)),)

    def around(self, cut: Cut, count: int) -> tuple[int, ...]:
        """The values next to a link, so many on either side: same other factors first, then nearest positions."""
        levels, chosen = self.graph.levels, []
        for end, side in ((cut.link.first, cut.side), (cut.link.second, ~cut.side)):
            there = np.flatnonzero(side)
            apart = np.abs(levels[there] - levels[end])
            chosen.append(there[np.lexsort((apart[:, 0], np.count_nonzero(apart[:, 1:], axis=1)))][:count])
        return tuple(np.sort(np.concatenate(chosen)).tolist())


def side_of(graph: BiasGraph, without: Link) -> Mask:
    """The values that the backbone links with the first one of a link, without that link."""
    around: dict[int, list[int]] = {}
    for link in graph.backbone:
        if link is not without:
            around.setdefault(link.first, []).append(link.second)
            around.setdefault(link.second, []).append(link.first)
    reached, ahead = np.zeros(len(graph.names), dtype=np.bool_), [without.first]
    while ahead:
        value = ahead.pop()
        reached[value] = True
        ahead += [other for other in around.get(value, []) if not reached[other]]
    return reached

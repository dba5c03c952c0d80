"""Places of the documents of pages, rank by rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.gathering import new_array


@dataclass(frozen=True, eq=False)
class PagePlaces:
    """The positions of the first document of a page, of the second, and so on: pages differ in length and in gaps."""

    queries: Integers
    """[queries], ascending: their places among the log's `query_ids`."""
    impressions: Doubles
    """[queries]."""
    longest: int
    """The number of documents of the longest page."""
    cells: Cells
    """How often each rank of each query stood at each position; `ids` are query * longest + rank, from 0."""

    @classmethod
    def of_log(cls, log: ClickLog) -> PagePlaces:
        """The places of a log's pages."""
        longest = int(log.lengths.max(initial=1))
        ranks = new_array(len(log.documents), np.int64)
        for span in ragged.spans(log.offsets):
            ranks[span.rows] = span.spread(log.queries) * longest + ragged.ranks(ragged.from_lengths(span.lengths))
        queries = np.unique(log.queries)
        impressions = np.bincount(log.queries, log.impressions)[queries].astype(np.float64)
        return cls(queries, impressions, longest, log.cells(documents=ranks))

    def mean(self, by_position: Doubles, some: slice) -> Doubles:
        """[some queries, ranks], a value of the position of each rank over impressions, 0 where a page is shorter."""
        queries, cells = self.queries[some], self.cells
        ends = np.searchsorted(cells.ids, (queries[0] * self.longest, (queries[-1] + 1) * self.longest))
        part = slice(*np.searchsorted(cells.documents, ends))
        query, rank = np.divmod(cells.ids[cells.documents[part]], self.longest)
        key = np.searchsorted(queries, query) * self.longest + rank
        values = cells.impressions[part] * by_position[cells.positions[part]]
        sums = np.bincount(key, values, minlength=len(queries) * self.longest)
        return sums.reshape(len(queries), self.longest) / self.impressions[some, None]

"""What a log says about each document that a ranker may choose for a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class Candidates:
    """The documents that a ranker chooses from, one list for each of a log's `query_ids`."""

    documents: Integers
    """int64 [candidates], rows of the log's `features`."""
    offsets: Integers
    """int64 [query ids + 1]."""

    @classmethod
    def shown(cls, log: ClickLog) -> Candidates:
        """All documents that the log showed for the query, in whatever list."""
        cells = np.unique(_cells(log.queries[ragged.list_numbers(log.offsets)], log.documents, log))
        counts = np.bincount(cells // max(len(log.features), 1), minlength=len(log.query_ids))
        return cls(cells % max(len(log.features), 1), ragged.from_lengths(counts))


@dataclass(frozen=True, eq=False)
class Evidence:
    """How often each candidate of each query in a log was shown at each position, and clicked."""

    features: Floats
    """[documents, features] of the log."""
    documents: Integers
    """[candidates], rows of `features`."""
    offsets: Integers
    """[queries + 1], the queries that the log has impressions of."""
    query_numbers: Integers
    """[queries], the place of each among the log's `query_ids`."""
    impressions: Doubles
    """[queries]."""
    shown_at: Doubles
    """[candidates, positions], in how many of its query's impressions the candidate stood there."""
    clicks: Doubles
    """[candidates], over all positions."""

    @classmethod
    def of(cls, log: ClickLog, candidates: Candidates | None = None) -> Evidence:
        """The evidence of a log on the candidates, by default the documents that it showed."""
        chosen = Candidates.shown(log) if candidates is None else candidates
        ragged.check_offsets(chosen.offsets, len(chosen.documents), what="candidates")
        if len(chosen.offsets) - 1 != len(log.query_ids):
            raise DataError(
                f"candidates need one list for each of the log's {len(log.query_ids)} query ids, "
                f"got {len(chosen.offsets) - 1}"
            )
        if len(chosen.documents) and not 0 <= chosen.documents.min() <= chosen.documents.max() < len(log.features):
            raise DataError(f"candidates must be rows of the {len(log.features)} feature vectors")
        queries = np.unique(log.queries)
        documents = chosen.documents[ragged.rows_of(queries, chosen.offsets)]
        offsets = ragged.from_lengths(np.diff(chosen.offsets)[queries])
        cells = _cells(queries[ragged.list_numbers(offsets)], documents, log)
        order = np.argsort(cells, kind="stable")
        if (np.diff(cells[order]) == 0).any():
            raise DataError("a document stands twice among the candidates of a query; keep it once")
        shown = _cells(log.queries[ragged.list_numbers(log.offsets)], log.documents, log)
        places = np.searchsorted(cells[order], shown)
        known = places < len(cells)
        known[known] = cells[order[places[known]]] == shown[known]
        rows = order[places[known]]
        positions = len(log.factors[0].levels)
        shown_at = np.zeros((len(documents), positions))
        np.add.at(
            shown_at,
            (rows, log.positions[known] - 1),
            np.repeat(log.impressions, log.lengths)[known].astype(np.float64),
        )
        return cls(
            features=log.features,
            documents=documents,
            offsets=offsets,
            query_numbers=queries,
            impressions=np.bincount(log.queries, log.impressions)[queries].astype(np.float64),
            shown_at=shown_at,
            clicks=np.bincount(rows, log.clicks[known], minlength=len(documents)).astype(np.float64),
        )

    @property
    def queries(self) -> Integers:
        """[candidates], the number of each candidate's query."""
        return ragged.list_numbers(self.offsets)

    @property
    def positions(self) -> int:
        """How many positions the log knows."""
        return int(self.shown_at.shape[1])

    def total(self, values: Doubles) -> Doubles:
        """The sum over the candidates of each query, [queries]."""
        return np.bincount(self.queries, values, minlength=len(self.impressions)).astype(np.float64, copy=False)


def _cells(queries: Integers, documents: Integers, log: ClickLog) -> Integers:
    """A number for each pair of query and document."""
    cells: Integers = queries.astype(np.int64) * len(log.features) + documents
    return cells

"""The evidence of a log on each document that a ranker may choose for a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ultr.arrays import Doubles, Floats, Integers, ratio
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed, gather, new_array, take
from ultr.data.log_checks import trusted
from ultr.data.ragged import Span
from ultr.errors import DataError
from ultr.evaluation.worth import Worth

DENSE = 8
"""Numbers by position and candidate that are held at once, for each value of a log that is read at once."""


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
        return cls._of(_cells(log), log)

    @classmethod
    def _of(cls, cells: Cells, log: ClickLog) -> Candidates:
        size = len(log.features)
        queries = computed(lambda ids: ids // size, cells.ids)
        counts = np.bincount(queries, minlength=len(log.query_ids))
        return cls(computed(lambda ids: ids % size, cells.ids), ragged.from_lengths(counts))


def _cells(log: ClickLog) -> Cells:
    """The cells of a log, with the same document for two queries counted as two."""
    return log.cells(documents=log.documents_within(log.queries))


@dataclass(frozen=True, eq=False)
class EvidencePart:
    """The evidence on candidates of some queries."""

    queries: slice
    """Their places among the queries of the evidence."""
    candidates: Integers
    """[candidates], their numbers."""
    documents: Integers
    """[candidates], rows of the features."""
    of_query: Integers
    """[candidates], the query of each, those of the part numbered from 0."""
    impressions: Doubles
    """[candidates], of the query of each."""
    shares: Doubles
    """[candidates], the share of these on which it can be placed: those of its pages, or all for one of its own.

    A candidate that no page has can be placed nowhere and counts nothing; its share is 1.
    """
    clicks: Doubles
    """[candidates], over all positions."""
    shown: Integers
    """[cells], which of the part's candidates was shown."""
    positions: Integers
    """[cells], where, from 0."""
    times: Doubles
    """[cells], in how many of its query's impressions."""
    worth: Worth | None = None
    """The value of what users did with them; None where clicks are what counts."""

    @property
    def amounts(self) -> Doubles:
        """[candidates], their clicks, or what users did with them by its value."""
        return self.clicks if self.worth is None else self.worth.totals

    @property
    def squares(self) -> Doubles:
        """[candidates], the same with the square of each click's value."""
        return self.clicks if self.worth is None else self.worth.squares

    def valued(self, found: Doubles, divisor: Doubles) -> Doubles:
        """N gamma_d v_d out of N gamma_d, [candidates], where v_d is the value per click on d.

        Without a click v_d is that of all documents. What users did with d all the same, its value without a click, is
        divided as a click would be.
        """
        if self.worth is None:
            return found
        per_click = ratio(self.worth.totals, self.clicks, otherwise=self.worth.per_click)
        return found * per_click + np.where(self.clicks > 0, 0.0, self.worth.totals / divisor)

    def total(self, values: Doubles) -> Doubles:
        """The sum over the candidates of each query, [queries of the part]."""
        count = self.queries.stop - self.queries.start
        return np.bincount(self.of_query, values, minlength=count).astype(np.float64, copy=False)

    def mean(self, by_position: Doubles) -> Doubles:
        """A value of each position, 0 where not shown, averaged over the impressions of the query.

        [candidates] from [positions], or [draws, candidates] from [draws, positions].
        """
        return weighted(by_position, self._shares)

    @cached_property
    def _shares(self) -> Doubles:
        return shares_by_position(self.shown, self.positions, self.times, self.impressions)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The counts of a log: how often each candidate of each query was shown at each position, and clicked."""

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
    cells: Cells
    """The cells in which candidates were shown; their `documents` are numbers of candidates."""
    log: ClickLog
    """The log that they are from."""
    pages: ClickLog | None = None
    """The pages whose documents a ranker puts into another order; None where it ranks candidates of its own."""
    worth: Worth | None = None
    """The value of what users did with each candidate; None where clicks are what counts."""

    @classmethod
    def of(
        cls, log: ClickLog, candidates: Candidates | None = None, *, value: Mapping[str, float] | None = None
    ) -> Evidence:
        """The evidence of a log on the candidates, by default the documents of each of its pages.

        With a `value`, weights of the log's signals, that is what counts in the place of clicks.
        """
        cells = _cells(log)
        chosen = Candidates._of(cells, log) if candidates is None else candidates
        if candidates is not None:
            _check(candidates, log)
        queries = np.unique(log.queries)
        offsets, (documents,) = gather([chosen.documents], queries, chosen.offsets)

        def numbered(cells: Cells) -> Cells:
            return cells if candidates is None else _numbered(cells, documents, queries, offsets, len(log.features))

        def of_candidates(amounts: Doubles) -> Doubles:
            by_cell = numbered(_cells(trusted(log, clicks=amounts)))
            totals = np.bincount(by_cell.documents, by_cell.clicks, minlength=len(documents))
            return totals.astype(np.float64, copy=False)

        rows = None if value is None else Worth.of_rows(log, value)
        per_click = 0.0 if rows is None else float(rows.totals.sum() / max(log.clicks.sum(), 1))
        return cls(
            features=log.features,
            documents=documents,
            offsets=offsets,
            query_numbers=queries,
            impressions=np.bincount(log.queries, log.impressions)[queries].astype(np.float64),
            cells=numbered(cells),
            log=log,
            pages=log if candidates is None else None,
            worth=None if rows is None else Worth(of_candidates(rows.totals), of_candidates(rows.squares), per_click),
        )

    @property
    def positions(self) -> int:
        """The number of positions that the log knows."""
        return self.cells.count

    def parts(self, *, clicked: bool = False, most: int | None = None) -> Iterator[EvidencePart]:
        """The candidates of some queries after those of others; with `clicked`, only those with a click or a value.

        At most `most` candidates are in a part of several queries, and fewer where there are many positions, each of
        which has a number for each candidate.
        """
        cells = self.cells
        dense = max(DENSE * ragged.SPAN // max(self.positions, 1), 1)
        for span in ragged.spans(self.offsets, most=min(most or dense, dense)):
            first, last = np.searchsorted(cells.documents, (span.rows.start, span.rows.stop))
            shown, count = cells.documents[first:last] - span.rows.start, span.rows.stop - span.rows.start
            clicks = np.bincount(shown, cells.clicks[first:last], minlength=count).astype(np.float64, copy=False)
            worth = None if self.worth is None else self.worth.some(span.rows)
            counts = clicks > 0 if worth is None else (clicks > 0) | (worth.totals > 0)
            kept = counts if clicked else np.ones(count, dtype=np.bool_)
            rows = np.flatnonzero(kept[shown])
            impressions = span.spread(self.impressions)
            shares = np.ones(count)
            if self.pages is not None:
                shares = np.bincount(shown, cells.impressions[first:last], minlength=count) / impressions
                shares[shares == 0] = 1
            yield EvidencePart(
                queries=span.lists,
                candidates=span.rows.start + np.flatnonzero(kept),
                documents=self.documents[span.rows][kept],
                of_query=np.repeat(np.arange(len(span.lengths)), span.lengths)[kept],
                impressions=impressions[kept],
                shares=shares[kept],
                clicks=clicks[kept],
                shown=(np.cumsum(kept) - 1)[shown[rows]],
                positions=cells.positions[first:last][rows],
                times=cells.impressions[first:last][rows],
                worth=None if worth is None else worth.some(np.flatnonzero(kept)),
            )

    @property
    def longest(self) -> int:
        """The number of documents of the longest page."""
        return int(self.log.lengths.max(initial=1))

    @cached_property
    def places(self) -> Cells:
        """Counts of pages by the position of their first document, of their second, and so on, for each query.

        Pages differ in length and in gaps. `ids` are query * longest + rank, from 0.
        """
        log, longest, keys = self.log, self.longest, new_array(len(self.log.documents), np.int64)
        for span in ragged.spans(log.offsets):
            rank = ragged.ranks(ragged.from_lengths(span.lengths))
            keys[span.rows] = span.spread(log.queries) * longest + rank
        return log.cells(documents=keys)

    def numbers(self, span: Span) -> Integers:
        """[rows], the candidates that the shown documents of a span of the pages are."""
        assert self.pages is not None, "a ranker orders pages"
        size = len(self.features)
        return np.searchsorted(self._keys, span.spread(self.pages.queries) * size + self.pages.documents[span.rows])

    @cached_property
    def _keys(self) -> Integers:
        """[candidates], ascending: the query before the row of the features."""
        keys = new_array(len(self.documents), np.int64)
        for span in ragged.spans(self.offsets):
            keys[span.rows] = span.spread(self.query_numbers) * len(self.features) + self.documents[span.rows]
        return keys


def shares_by_position(candidates: Integers, positions: Integers, times: Doubles, impressions: Doubles) -> Doubles:
    """[positions, candidates], in which share of the impressions of its query a candidate stands at a position.

    Cells say how often each of some candidates stands at a position.
    """
    count = int(positions.max(initial=-1)) + 1
    sums = np.bincount(
        positions.astype(np.int64) * len(impressions) + candidates, times, minlength=count * len(impressions)
    )
    return sums.reshape(count, len(impressions)) / impressions


def weighted(by_position: Doubles, shares: Doubles) -> Doubles:
    """The sum over positions of a weight of each, [..., positions], times its share, [positions, candidates].

    Weights beyond the last position of the shares count nothing, nor do shares beyond the last weight.
    """
    known = min(by_position.shape[-1], len(shares))
    sums: Doubles = by_position[..., :known] @ shares[:known]
    return sums


def _check(candidates: Candidates, log: ClickLog) -> None:
    ragged.check_offsets(candidates.offsets, len(candidates.documents), what="candidates")
    if len(candidates.offsets) - 1 != len(log.query_ids):
        raise DataError(
            f"candidates need one list for each of the log's {len(log.query_ids)} query ids, "
            f"got {len(candidates.offsets) - 1}"
        )
    documents = candidates.documents
    if len(documents) and not 0 <= documents.min() <= documents.max() < len(log.features):
        raise DataError(f"candidates must be rows of the {len(log.features)} feature vectors")


def _numbered(cells: Cells, documents: Integers, queries: Integers, offsets: Integers, size: int) -> Cells:
    """The cells of the candidates of some queries, by the number of the candidate."""
    keys = new_array(len(documents), np.int64)
    for span in ragged.spans(offsets):
        keys[span.rows] = span.spread(queries) * size + documents[span.rows]
    order = None if _ascending(keys) else np.argsort(keys, kind="stable")
    keys = keys if order is None else keys[order]
    if not _ascending(keys):
        raise DataError("a document stands twice among the candidates of a query; keep it once")

    def number(ids: Integers) -> Integers:
        """The number of the candidate that each document is, -1 if it is none."""
        places = np.minimum(np.searchsorted(keys, ids), max(len(keys) - 1, 0))
        known = keys[places] == ids if len(keys) else np.zeros(len(ids), dtype=np.bool_)
        return np.where(known, places if order is None else order[places], -1)

    numbers = computed(number, cells.ids)
    if not _ascending(numbers) or (len(numbers) and numbers[0] < 0):
        of_cell = numbers[cells.documents]
        known = np.flatnonzero(of_cell >= 0)
        cells = cells.choose(known[np.argsort(of_cell[known], kind="stable")], renumber=False)
    return replace(cells, documents=take(numbers, cells.documents), ids=documents)


def _ascending(numbers: Integers) -> bool:
    """True if each number is above the one before."""
    return all((numbers[1:][part] > numbers[:-1][part]).all() for part in ragged.slices(len(numbers)))


def check_codes(ranker: object, log: ClickLog) -> None:
    """Raise a `DataError` if a ranker has other codes for the values of categorical features than the log."""
    if getattr(getattr(ranker, "ranker_", ranker), "categories", log.categories) != log.categories:
        raise DataError(
            "the ranker has other codes for its categories than the log; give log.with_categories(ranker.categories)"
        )

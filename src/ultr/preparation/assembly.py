"""The collapsed rows of an engine as a `ClickLog`: faults of lists, rare levels, one more collapse, one order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.arrays import Integers, Mask, Strings
from ultr.data import ragged
from ultr.data.bias_factor import OTHER, BiasFactor, ordered_levels, position_factor
from ultr.data.click_log import ClickLog
from ultr.data.collapsing import content
from ultr.data.column_names import check_texts
from ultr.data.log_checks import trusted
from ultr.data.placements import Placements
from ultr.data.same_lists import content_order
from ultr.data.signal import Signal
from ultr.errors import DataError
from ultr.preparation import reasons
from ultr.preparation.factors import FactorColumn, FactorSummary

MOST_QUERY_BYTES = 2 * 2**30
"""Query ids are kept as texts of one width; past this they are texts that should be ids."""
EVENTS = "click_events"
"""The signal that counts clicks where a row may have several."""
_OF_ROWS = ("rows", "documents", "positions", "clicks", "document_faults")


@dataclass(frozen=True)
class Shown:
    """Collapsed rows out of the engine, sorted by list and position."""

    lists: Integers
    """[rows], the list of each row."""
    rows: Integers
    """[rows], the number of its document with its features."""
    documents: Integers
    """[rows], the number of its document, whatever its features."""
    positions: Integers
    clicks: Integers
    signals: dict[str, Integers]
    factors: tuple[Any, ...]
    """For each bias factor the levels as an Arrow column of text."""
    placements: Placements | None
    """[rows], how exploration placed them; None if that was not logged."""
    document_faults: Integers
    """[rows], the fault of its document, 0 = none."""
    ids: Integers
    """[lists], the number of each list in the engine."""
    impressions: Integers
    """[lists]."""
    queries: Integers
    """[lists], the query of each list, an index into `query_ids`."""
    query_ids: Sequence[str]
    """Sorted."""
    periods: Integers | None
    """[lists]."""

    @classmethod
    def of(cls, shown: Any, lists: Any, signals: Mapping[str, str], factors: Sequence[str]) -> Shown:
        """The rows and lists of Arrow tables; `signals` are columns by name, `factors` columns."""
        by_list = np.argsort(_integers(lists, "list"))
        ids = _integers(lists, "list")[by_list]
        numbers, positions = np.searchsorted(ids, _integers(shown, "list")), _integers(shown, "position")
        order = np.lexsort((positions, numbers))
        queries, query_ids = _encoded(lists["query"], sorted)
        taken = {name: _integers(shown, name)[order] for name in ("row", "first", "clicks", "fault")}
        return cls(
            lists=numbers[order],
            rows=taken["row"],
            documents=taken["first"],
            positions=positions[order],
            clicks=taken["clicks"],
            signals={name: _integers(shown, column)[order] for name, column in signals.items()},
            factors=tuple(shown[column].take(order) for column in factors),
            placements=_placements(shown, order),
            document_faults=taken["fault"],
            ids=ids,
            impressions=_integers(lists, "impressions")[by_list],
            queries=queries[by_list],
            query_ids=query_ids,
            periods=_integers(lists, "period")[by_list] if "period" in lists.column_names else None,
        )

    def list_faults(self) -> Integers:
        """[lists], the fault that all pages of a list have: a document shown twice, or two at one position."""
        faults = np.zeros(len(self.impressions), dtype=np.int64)
        same = self.lists[1:] == self.lists[:-1]
        faults[self.lists[1:][same & (self.positions[1:] == self.positions[:-1])]] = reasons.ONE_POSITION.code
        order = np.lexsort((self.documents, self.lists))
        lists, documents = self.lists[order], self.documents[order]
        faults[lists[1:][(lists[1:] == lists[:-1]) & (documents[1:] == documents[:-1])]] = reasons.TWICE.code
        return faults

    def select(self, rows: Mask, lists: Mask) -> Shown:
        """These rows of these lists, the lists numbered anew; rows of other lists go, too."""
        import pyarrow

        kept = rows & lists[self.lists]
        chosen = pyarrow.array(np.flatnonzero(kept))
        of_rows = {name: getattr(self, name)[kept] for name in _OF_ROWS}
        of_lists = {name: getattr(self, name)[lists] for name in ("ids", "impressions", "queries")}
        return replace(
            self,
            **of_rows | of_lists | {"lists": (np.cumsum(lists) - 1)[self.lists[kept]]},
            signals={name: totals[kept] for name, totals in self.signals.items()},
            factors=tuple(column.take(chosen) for column in self.factors),
            placements=None
            if self.placements is None
            else Placements(self.placements.propensities[kept], self.placements.bases[kept]),
            periods=None if self.periods is None else self.periods[lists],
        )


def raw_log(shown: Shown, documents: int, factors: Sequence[FactorColumn], period_names: tuple[str, ...]) -> ClickLog:
    """The log with all values of its factors, before rare ones are merged, and without features."""
    present, queries = np.unique(shown.queries, return_inverse=True)
    return ClickLog(
        features=np.zeros((documents, 0), dtype=np.float32),
        documents=shown.rows,
        offsets=ragged.from_lengths(np.bincount(shown.lists, minlength=len(shown.impressions))),
        factors=(
            position_factor(shown.positions),
            *(_factor(factor, column) for factor, column in zip(factors, shown.factors, strict=True)),
        ),
        impressions=shown.impressions,
        clicks=shown.clicks,
        queries=queries,
        query_ids=_ids([shown.query_ids[number] for number in present]),
        feature_names=(),
        periods=shown.periods,
        period_names=period_names,
        signals=tuple(Signal(name, totals) for name, totals in shown.signals.items()),
        placements=shown.placements,
    )


def with_pairs(log: ClickLog, ids: Integers, table: Any) -> ClickLog:
    """The log with the counts of documents clicked together, which come by list and two positions.

    `ids` are the numbers of the lists in the engine. Pairs of lists or positions that are not in the log are left out.
    """
    bounds = ragged.pair_offsets(log.offsets)
    counts = np.zeros(bounds[-1], dtype=np.int64)
    lists = np.searchsorted(ids, _integers(table, "list"))
    inside = (lists < len(ids)) & (ids[np.minimum(lists, len(ids) - 1)] == _integers(table, "list"))
    # One more than there are, for positions that the log does not have.
    widest = np.int64(log.positions.max(initial=0) + 2)
    places = ragged.list_numbers(log.offsets) * widest + log.positions
    found = []
    for name in ("first", "second"):
        wanted = lists * widest + np.minimum(_integers(table, name), widest - 1)
        place = np.searchsorted(places, wanted)
        inside &= (place < len(places)) & (places[np.minimum(place, len(places) - 1)] == wanted)
        found.append(place)
    lists, first, second, both = (each[inside] for each in (lists, *found, _integers(table, "both")))
    first, second, length = first - log.offsets[lists], second - log.offsets[lists], log.lengths[lists]
    counts[bounds[lists] + first * length - first * (first + 1) // 2 + second - first - 1] = both
    return replace(log, pair_clicks=counts)


def merged_levels(log: ClickLog, *, rare: int) -> tuple[ClickLog, list[FactorSummary]]:
    """The log with the rare values of each categorical factor as one level, and what was merged.

    A value is rare if fewer than `rare` impressions have it.
    """
    merged, summaries = [log.position], []
    for factor in log.factors[1:]:
        if factor.edges:
            merged.append(factor)
            summaries.append(FactorSummary(factor.name, len(factor.levels), 0, 0, factor.edges))
            continue
        pages = _pages_of_levels(log, factor)
        present, common = pages > 0, pages >= max(rare, 1)
        names = [name if often else OTHER for name, often in zip(factor.levels, common, strict=True)]
        levels = ordered_levels({name for name, there in zip(names, present, strict=True) if there})
        place = np.array([levels.index(name) if name in levels else 0 for name in names], dtype=np.int32)
        merged.append(BiasFactor(factor.name, place[factor.values], tuple(levels)))
        few = present & ~common
        summaries.append(FactorSummary(factor.name, len(levels), int(few.sum()), int(pages[few].sum())))
    return trusted(log, factors=tuple(merged)), summaries


def compacted(log: ClickLog) -> tuple[ClickLog, Integers]:
    """The log without documents and queries that no list has, and the new number of each document, -1 = none."""
    used = np.zeros(len(log.features), dtype=np.bool_)
    used[log.documents] = True
    numbers = np.where(used, np.cumsum(used) - 1, -1)
    present, queries = np.unique(log.queries, return_inverse=True)
    return replace(
        log,
        features=np.zeros((int(used.sum()), 0), dtype=np.float32),
        documents=numbers[log.documents],
        factors=(position_factor(log.positions), *log.factors[1:]),
        queries=queries,
        query_ids=log.query_ids[present],
    ), numbers


def in_order(log: ClickLog) -> ClickLog:
    """Equal lists summed up, in an order made from their content: not from raw rows, and not from the engine."""
    log = log.collapse()
    return log.part(content_order(log.offsets, *content(log)), ())


def placed(log: ClickLog) -> tuple[int, int] | None:
    """Shown documents with a placement propensity, and those of them that exploration might have put elsewhere."""
    if log.placements is None:
        return None
    shown = np.repeat(log.impressions, log.lengths)
    known = np.isfinite(log.placements.propensities)
    return int(shown[known].sum()), int(shown[log.placements.explored].sum())


def _pages_of_levels(log: ClickLog, factor: BiasFactor) -> Integers:
    """[levels], the impressions of lists that have each level, a list with two levels counting for both."""
    cells = np.unique(ragged.list_numbers(log.offsets) * len(factor.levels) + factor.values)
    lists, levels = np.divmod(cells, len(factor.levels))
    return np.bincount(levels, log.impressions[lists], minlength=len(factor.levels)).astype(np.int64)


def _factor(factor: FactorColumn, column: Any) -> BiasFactor:
    """A column of text as a bias factor with its levels in order."""
    numbers, levels = _encoded(column, (lambda _: factor.levels) if factor.edges else ordered_levels)
    return BiasFactor(factor.name, numbers.astype(np.int32), tuple(levels), factor.edges)


def _placements(shown: Any, order: Integers) -> Placements | None:
    """The columns p0 and p1 in this order; None if no row has a propensity."""
    if "p0" not in shown.column_names or shown["p0"].null_count == len(shown["p0"]):
        return None
    bases = shown["p1"].fill_null(0).to_numpy()[order] if "p1" in shown.column_names else None
    return Placements.of(shown["p0"].to_numpy()[order], bases)


def _encoded(column: Any, ordered: Callable[[list[str]], Sequence[str]]) -> tuple[Integers, Sequence[str]]:
    """A column of text as numbers of its values, which are put in order."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    known = ordered(texts)
    place = {text: number for number, text in enumerate(known)}
    numbers = np.array([place[text] for text in texts], dtype=np.int64)
    return numbers[encoded.indices.to_numpy()], known


def _ids(texts: Sequence[str]) -> Strings:
    longest = max(map(len, texts), default=0)
    if len(texts) * longest * 4 > MOST_QUERY_BYTES:
        raise DataError(
            f"{len(texts):,} queries of up to {longest:,} characters are too much to keep as ids; "
            "give a column with shorter ids of the queries"
        )
    check_texts(texts, what="queries")
    return np.array(texts, dtype=np.str_)


def _integers(table: Any, name: str) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = table[name].to_numpy().astype(np.int64, copy=False)
    return values

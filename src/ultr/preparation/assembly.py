"""The collapsed rows of an engine as a `ClickLog`: faults of lists, rare levels, one more collapse, one order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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


@dataclass(frozen=True)
class Shown:
    """Collapsed rows out of the engine, as Arrow tables."""

    rows: Any
    """By list and position: list, row (the number of the document with its features), first (its number, whatever its
    features), position, clicks, fault (that of the document, 0 = none), p0, p1, and columns of signals and factors."""
    lists: Any
    """By list: list, query, impressions and, if known, period."""
    signals: Mapping[str, str]
    """Columns of the rows by the names of the signals."""

    @classmethod
    def of(cls, rows: Any, lists: Any, signals: Mapping[str, str]) -> Shown:
        """The rows and lists in their order."""
        order = np.lexsort((integers(rows, "position"), integers(rows, "list")))
        return cls(rows.take(order), lists.sort_by("list"), signals)

    @cached_property
    def ids(self) -> Integers:
        """[lists], the number of each list in the engine."""
        return integers(self.lists, "list")

    @cached_property
    def list_numbers(self) -> Integers:
        """[rows], the list of each row, from 0."""
        return np.searchsorted(self.ids, integers(self.rows, "list"))

    def list_faults(self) -> Integers:
        """[lists], the fault that all pages of a list have: a document shown twice, or two at one position."""
        faults = np.zeros(len(self.ids), dtype=np.int64)
        lists, positions, documents = self.list_numbers, integers(self.rows, "position"), integers(self.rows, "first")
        documents = documents[np.lexsort((documents, lists))]
        same = lists[1:] == lists[:-1]
        faults[lists[1:][same & (positions[1:] == positions[:-1])]] = reasons.ONE_POSITION.code
        faults[lists[1:][same & (documents[1:] == documents[:-1])]] = reasons.TWICE.code
        return faults

    def select(self, rows: Mask, lists: Mask) -> Shown:
        """These rows of these lists; rows of other lists go, too."""
        import pyarrow

        kept = rows & lists[self.list_numbers]
        return Shown(self.rows.filter(pyarrow.array(kept)), self.lists.filter(pyarrow.array(lists)), self.signals)


def raw_log(shown: Shown, documents: int, factors: Sequence[FactorColumn], period_names: tuple[str, ...]) -> ClickLog:
    """The log with all values of its factors, before rare ones are merged, and without features."""
    rows, lists = shown.rows, shown.lists
    queries, query_ids = _encoded(lists["query"], sorted)
    return ClickLog(
        features=np.zeros((documents, 0), dtype=np.float32),
        documents=integers(rows, "row"),
        offsets=ragged.from_lengths(np.bincount(shown.list_numbers, minlength=len(shown.ids))),
        factors=(
            position_factor(integers(rows, "position")),
            *(_factor(factor, rows[f"f{number}"]) for number, factor in enumerate(factors)),
        ),
        impressions=integers(lists, "impressions"),
        clicks=integers(rows, "clicks"),
        queries=queries,
        query_ids=_ids(query_ids),
        feature_names=(),
        periods=integers(lists, "period") if "period" in lists.column_names else None,
        period_names=period_names,
        signals=tuple(Signal(name, integers(rows, column)) for name, column in shown.signals.items()),
        placements=_placements(rows),
    )


def with_pairs(log: ClickLog, ids: Integers, table: Any) -> ClickLog:
    """The log with the counts of documents clicked together, which come by list and two positions.

    `ids` are the numbers of the lists in the engine. Pairs of lists or positions that are not in the log are left out.
    """
    bounds = ragged.pair_offsets(log.offsets)
    counts = np.zeros(bounds[-1], dtype=np.int64)
    lists = np.searchsorted(ids, integers(table, "list"))
    inside = (lists < len(ids)) & (ids[np.minimum(lists, len(ids) - 1)] == integers(table, "list"))
    # One more than there are, for positions that the log does not have.
    widest = np.int64(log.positions.max(initial=0) + 2)
    places = ragged.list_numbers(log.offsets) * widest + log.positions
    found = []
    for name in ("first", "second"):
        wanted = lists * widest + np.minimum(integers(table, name), widest - 1)
        place = np.searchsorted(places, wanted)
        inside &= (place < len(places)) & (places[np.minimum(place, len(places) - 1)] == wanted)
        found.append(place)
    lists, first, second, both = (each[inside] for each in (lists, *found, integers(table, "both")))
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


def _placements(rows: Any) -> Placements | None:
    """The columns p0 and p1; None if no row has a propensity."""
    if "p0" not in rows.column_names or rows["p0"].null_count == len(rows):
        return None
    bases = rows["p1"].fill_null(0).to_numpy() if "p1" in rows.column_names else None
    return Placements.of(rows["p0"].to_numpy(), bases)


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


def integers(table: Any, name: str) -> npt.NDArray[np.int64]:
    """A column of an Arrow table."""
    values: npt.NDArray[np.int64] = table[name].to_numpy().astype(np.int64, copy=False)
    return values

"""Pages that show the same list under the same bias factors to the same query, summed up inside the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ultr.preparation import reasons, times
from ultr.preparation.engine import DUCKDB, SPARK, Engine

_BITS = 2**36 - 1
"""Bits of a hash that are summed up, so that the sum over a page of a hundred million rows fits into 63."""
_SHIFT = 28
"""With the lower 36 bits and those from here on, all 64 bits count."""


@dataclass(frozen=True)
class Collapsed:
    """Result of collapsing, as tables of the engine."""

    pages: Any
    """page, query, one, two, length, rows, clicks, fault (of the whole page, 0 = none) and, if known, time and user."""
    members: Any
    """page, list: which list each page shows; pages that are put aside have none."""
    shown: Any
    """list, query, document, position, f0, ..., x0, ..., clicks, events, s0, ...: rows of one page of each list, with
    what all its pages have."""
    lists: Any
    """list, query, impressions and, if known, period."""
    begins: Sequence[Any] = ()
    """The first time of each period, if the rows had times."""


def page_table(engine: Engine, rows: Any, *, name: str) -> Any:
    """One row per page: what it shows as a signature, how much of it, and the fault of the whole page.

    The signature is the sum of a hash of each row, which does not depend on the order of the rows and needs no ordered
    aggregation, which not every engine has. Rows with a fault do not count.
    """
    import ibis

    rows = rows.filter(rows.page.notnull())
    fine = rows.fault == reasons.KEPT
    cells = [name for name in rows.columns if name in ("document", "position") or name[1:].isdigit() and name[0] in "fx"]
    bits = hashed(engine, rows, sorted(cells))
    of_page = (rows.fault > reasons.KEPT) & (rows.fault <= reasons.LAST_OF_PAGES)
    pages = rows.group_by("page").agg(
        query=rows.query.min(where=fine),
        last=rows.query.max(where=fine),
        one=(bits & _BITS).sum(where=fine).cast("int64"),
        two=((bits >> _SHIFT) & _BITS).sum(where=fine).cast("int64"),
        length=fine.cast("int64").sum().cast("int64"),
        rows=rows.count().cast("int64"),
        clicks=rows.click.sum(where=fine).cast("int64"),
        fault=rows.fault.min(where=of_page),
        **{each: rows[each].min() for each in ("time", "user") if each in rows.columns},
    )
    fault = ibis.cases(
        (pages.fault.notnull(), pages.fault),
        (pages["query"] != pages["last"], ibis.literal(reasons.TWO_QUERIES.code, "int16")),
        else_=ibis.literal(reasons.KEPT, "int16"),
    )
    return engine.keep(f"{name}_pages", pages.mutate(fault=fault).drop("last"))


def collapse(engine: Engine, rows: Any, pages: Any, *, name: str, period: Any = None) -> Collapsed:
    """Sum up the pages without a fault: those with the same query, length, signature and period are one list.

    `period` gives the beginnings of the periods and their number for each of some pages; see `times.Periods`.
    """
    import ibis

    kept = pages.filter((pages.fault == reasons.KEPT) & (pages.length > 0))
    begins: Sequence[Any] = ()
    if period is not None:
        begins = period.begins(engine, kept)
        kept = kept.mutate(period=times.period(kept.time, begins))
    apart = [] if period is None else ["period"]
    key = ["query", "one", "two", "length", *apart]
    lists = kept.group_by(key).agg(page=kept.page.min(), impressions=kept.count().cast("int64"))
    lists = engine.keep(f"{name}_lists", lists.mutate(list=ibis.row_number()))
    members = engine.keep(f"{name}_members", kept.join(lists, key).select(kept.page, lists.list))
    fine = rows.filter(rows.fault == reasons.KEPT)
    sums = ["click", "events", *(each for each in rows.columns if each[0] == "s" and each[1:].isdigit())]
    some = fine.filter(ibis.or_(*(fine[each] > 0 for each in sums)))
    some = some.join(members, "page")
    counted = some.group_by("list", "document", "position").agg(**{each: some[each].sum().cast("int64") for each in sums})
    wanted = [
        each for each in rows.columns if each in ("query", "document", "position") or each[1:].isdigit() and each[0] in "fx"
    ]
    first = fine.join(lists, fine.page == lists.page)
    first = first.select(lists.list, *(fine[each] for each in wanted))
    same = [first[each] == counted[each] for each in ("list", "document", "position")]
    shown = first.left_join(counted, same).select(
        *(first[each] for each in first.columns), **{each: counted[each].fill_null(0) for each in sums}
    )
    return Collapsed(
        pages,
        members,
        engine.keep(f"{name}_shown", shown.rename(clicks="click")),
        lists.select("list", "query", "impressions", *apart),
        begins,
    )


def clicked_together(engine: Engine, rows: Any, collapsed: Collapsed) -> Any:
    """Number of pages with both of two documents clicked: list, first, second (positions) and both."""
    clicked = rows.filter((rows.fault == reasons.KEPT) & (rows.click == 1)).select("page", "position")
    clicked = engine.keep("clicked", clicked.join(collapsed.members, "page").select("page", "list", "position"))
    others = clicked.view()
    both = clicked.join(others, [clicked.page == others.page, clicked.position < others.position])
    both = both.select(list=clicked.list, first=clicked.position, second=others.position)
    return both.group_by("list", "first", "second").agg(both=both.count())


def hashed(engine: Engine, rows: Any, names: Sequence[str]) -> Any:
    """64 bits made from these columns together, as int64; which columns are which cannot be confused."""
    import ibis

    if engine.name == DUCKDB:
        return ibis.struct({name: rows[name] for name in names}).hash().cast("int64")
    whole = ibis.struct({name: rows[name] for name in names})
    if engine.name == SPARK:
        return _xxhash64(whole)
    return _hash_of_text(whole.cast("string"), 0)


def _xxhash64(value: Any) -> Any:
    import ibis
    from ibis import expr

    @ibis.udf.scalar.builtin(name="xxhash64", signature=((value.type(),), "int64"))
    def xxhash64(whole):  # type: ignore[no-untyped-def]
        ...

    return xxhash64(value)


def _hash_of_text(value: Any, seed: int) -> Any:
    import ibis

    @ibis.udf.scalar.builtin(name="hashtextextended", signature=(("string", "int64"), "int64"))
    def hashtextextended(text, seed):  # type: ignore[no-untyped-def]
        ...

    return hashtextextended(value, seed)

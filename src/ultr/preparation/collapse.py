"""Pages that show the same list under the same bias factors to the same query, summed up inside the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ultr.preparation import reasons, times
from ultr.preparation.engine import SPARK, Engine

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
    """list, query, document, position, f0, ..., p0, p1, x0, ..., clicks, events, s0, ...: rows of one page of each
    list, with what all its pages have."""
    lists: Any
    """list, query, impressions and, if known, period; lists are numbered, perhaps with gaps."""
    again: bool = False
    """True if pages had rows several times, which were counted once."""


def page_table(engine: Engine, rows: Any) -> Any:
    """One row per page: what it shows as a signature, how much of it, and the fault of the whole page.

    The signature is the sum of a hash of each row, which does not depend on the order of the rows and needs no ordered
    aggregation, which not every engine has. Rows with a fault do not count. Rows without an impression are one page
    without an id.
    """
    import ibis

    fine = rows.fault == reasons.KEPT
    features = _numbered(rows, "h") or _numbered(rows, "x")
    bits = hashed(engine, rows, ["key", "position", *_numbered(rows, "fp"), *features])
    of_page = (rows.fault > reasons.KEPT) & (rows.fault <= reasons.LAST_OF_PAGES)
    pages = rows.group_by("page").agg(
        query=rows.query.min(where=fine),
        last=rows.query.max(where=fine),
        one=(bits & _BITS).cast("int64").sum(where=fine).cast("int64"),
        two=((bits >> _SHIFT) & _BITS).cast("int64").sum(where=fine).cast("int64"),
        length=fine.cast("int64").sum().cast("int64"),
        rows=rows.count().cast("int64"),
        clicks=rows.click.sum(where=fine).cast("int64"),
        all_clicks=rows.click.cast("int64").sum().cast("int64"),
        several=(rows.events > 1).cast("int64").sum().cast("int64"),
        fault=rows.fault.min(where=of_page),
        **{each: rows[each].min() for each in ("time", "user") if each in rows.columns},
    )
    fault = ibis.cases(
        (pages.fault.notnull(), pages.fault),
        (pages["query"] != pages["last"], ibis.literal(reasons.TWO_QUERIES.code, "int16")),
        else_=ibis.literal(reasons.KEPT, "int16"),
    )
    return engine.keep(pages.mutate(fault=fault).drop("last"))


def kept_pages(pages: Any) -> Any:
    """The pages that have a row and no fault."""
    return pages.filter((pages.fault == reasons.KEPT) & (pages.length > 0))


def collapse(
    engine: Engine, rows: Any, pages: Any, *, rows_on: Callable[[Any], Any], begins: Sequence[Any] = ()
) -> Collapsed:
    """Sum up the pages without a fault: those with the same query, length, signature and period are one list.

    `rows_on` gives the rows of some pages, `begins` are the first times of the periods, if there are any.
    """
    import ibis

    kept = kept_pages(pages)
    apart = ["period"] if begins else []
    if begins:
        kept = kept.mutate(period=times.period(kept.time, begins))
    key = ["query", "one", "two", "length", *apart]
    lists = kept.group_by(key).agg(page=kept.page.min(), impressions=kept.count().cast("int64"))
    lists = engine.keep(lists.mutate(list=ibis.row_number()))
    members = engine.keep(kept.join(lists, key).select(kept.page, lists.list))
    # Features need not be read for a fault that no row of these pages has.
    clean = not engine.count(kept.filter(kept.rows > kept.length))
    fine = rows if clean else rows.filter(rows.fault == reasons.KEPT)
    sums = ["click", "events", *_numbered(rows, "s")]
    some = fine.filter(ibis.or_(*(fine[each] > 0 for each in sums)))
    some = some.join(members, "page")
    counted = some.group_by("list", "key", "position").agg(**{each: some[each].sum().cast("int64") for each in sums})
    wanted = ["query", "document", "key", "position", *_numbered(rows, "fpx")]
    one = rows_on(lists)
    one = one if clean else one.filter(one.fault == reasons.KEPT)
    first = one.join(lists, one.page == lists.page).select(lists.list, *(one[each] for each in wanted))
    same = [first[each] == counted[each] for each in ("list", "key", "position")]
    shown = first.left_join(counted, same).select(
        *(first[each] for each in first.columns if each != "key"), **{each: counted[each].fill_null(0) for each in sums}
    )
    return Collapsed(
        pages,
        members,
        engine.keep(shown.rename(clicks="click")),
        lists.select("list", "query", "impressions", *apart),
    )


def rows_once(engine: Engine, rows: Any, pages: Any) -> Any:
    """The rows of some pages, each of them once, however often it is there."""
    some = rows.filter(rows.fault == reasons.KEPT).semi_join(pages, "page")
    given = [name for name in some.columns if name.startswith("given_") or name == "label"]
    return engine.keep(some.drop(*given, *_numbered(some, "h")).distinct())


def without_repeated_rows(engine: Engine, rows: Any, first: Collapsed, begins: Sequence[Any]) -> Collapsed:
    """The same with rows that are there several times counted once.

    All pages of a list have a document twice or none has, so only the pages of such lists are collapsed again.
    """
    often = first.shown.group_by("list", "document").agg(rows=first.shown.count())
    twice = engine.keep(often.filter(often.rows > 1).select("list").distinct())
    count = engine.count(twice)
    if not count:
        return first
    again = engine.keep(first.members.semi_join(twice, "list").select("page"))
    some = rows_once(engine, rows, again)
    pages = page_table(engine, some)
    second = collapse(engine, some, pages, rows_on=lambda pages: some.filter(some.page.isin(pages.page)), begins=begins)
    lists = engine.count(first.lists)

    def both(one: Any, other: Any) -> Any:
        # Engines number lists in integers of different sizes.
        moved = other.mutate(list=(other.list + lists).cast(one.list.type()))
        return one.anti_join(twice, "list").union(moved.select(*one.columns))

    return Collapsed(
        first.pages,
        both(first.members, second.members),
        engine.keep(both(first.shown, second.shown)),
        both(first.lists, second.lists),
        again=True,
    )


def clicked_together(engine: Engine, rows: Any, collapsed: Collapsed) -> Any:
    """Number of pages with both of two documents clicked: list, first, second (positions) and both."""
    clicked = rows.filter((rows.fault == reasons.KEPT) & (rows.click == 1)).select("page", "position").distinct()
    clicked = engine.keep(clicked.join(collapsed.members, "page").select("page", "list", "position"))
    others = clicked.view()
    both = clicked.join(others, [clicked.page == others.page, clicked.position < others.position])
    both = both.select(list=clicked.list, first=clicked.position, second=others.position)
    return both.group_by("list", "first", "second").agg(both=both.count())


def hashed(engine: Engine, rows: Any, names: Sequence[str]) -> Any:
    """64 bits made from these columns together; no two values of two columns can be confused."""
    import ibis

    whole = ibis.struct({name: rows[name] for name in names})
    # What Ibis makes of `hash()` goes through texts of bits.
    name, kind = ("xxhash64", "int64") if engine.name == SPARK else ("hash", "uint64")

    def function(whole: Any) -> Any:
        """Stand for the function of the engine."""

    return ibis.udf.scalar.builtin(function, name=name, signature=((whole.type(),), kind))(whole)


def _numbered(rows: Any, letters: str) -> list[str]:
    """The columns whose names are one of these letters and a number."""
    return [name for name in rows.columns if name[0] in letters and name[1:].isdigit()]

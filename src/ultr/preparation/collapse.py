"""Pages that show the same list under the same bias factors to the same query, summed up inside the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ultr.preparation import reasons, times
from ultr.preparation.engine import Engine

_JOINT = "\x1f"
_BITS = 2**36 - 1
"""Bits of a hash that are kept, so that the sum over a page of a hundred million rows fits into 63."""


@dataclass(frozen=True)
class Collapsed:
    """Result of collapsing; a list is named by one of its pages."""

    pages: Any
    """page, query, one, two, length, impressions, fault (of the whole page, 0 = none) and, if known, time or period."""
    members: Any
    """page, list: which list each page shows; pages without a row that is kept have none."""
    shown: Any
    """page (the list), query, document, position, factors, impressions, clicks and, if known, period."""
    begins: Sequence[Any] = ()
    """The first time of each period, if the rows had times."""


def collapse(engine: Engine, rows: Any, *, factors: list[str], name: str, periods: int = 1) -> Collapsed:
    """Sum up the pages of `rows`: page, query, document, position, the factors, impressions, clicks and fault.

    Two pages show the same list if they have the same query, the same number of rows and the same signature. The
    signature is twice the sum of a hash of each row (two different hashes), which does not depend on the order of the
    rows and needs no ordered aggregation, which not every engine has. Rows with a fault do not count; a page with a
    fault of whole pages, or rows of two queries, is left out.

    Where the rows have a time, that of a page is the smallest of its rows, and the pages are cut into `periods`; where
    they have a period already, it stays. Lists of two periods are not the same.
    """
    import ibis

    rows = rows.filter(rows.page.notnull())
    fine = rows.fault == reasons.KEPT
    cells = rows.position.cast("string")
    for factor in factors:
        cells = cells + _JOINT + rows[factor]
    cells = cells + _JOINT + rows.document
    of_page = (rows.fault > reasons.KEPT) & (rows.fault <= reasons.LAST_OF_PAGES)
    pages = rows.group_by("page").agg(
        query=rows.query.min(where=fine),
        last=rows.query.max(where=fine),
        one=_bits(cells).sum(where=fine).cast("int64"),
        two=_bits(ibis.literal("again") + _JOINT + cells).sum(where=fine).cast("int64"),
        length=fine.cast("int64").sum().cast("int64"),
        impressions=rows.impressions.max().cast("int64"),
        fault=rows.fault.min(where=of_page),
        **{name: rows[name].min() for name in ("time", "period") if name in rows.columns},
    )
    fault = ibis.cases(
        (pages.fault.notnull(), pages.fault),
        (pages["query"] != pages["last"], ibis.literal(reasons.TWO_QUERIES.code, "int16")),
        else_=ibis.literal(reasons.KEPT, "int16"),
    )
    pages = engine.keep(f"{name}_pages", pages.mutate(fault=fault).drop("last"))
    kept = pages.filter((pages.fault == reasons.KEPT) & (pages.length > 0))
    begins: Sequence[Any] = ()
    if "time" in kept.columns:
        begins = times.begins(engine, kept, count=periods)
        kept = kept.mutate(period=times.period(kept.time, begins))
    apart = ["period"] if "period" in kept.columns else []
    key = ["query", "one", "two", "length", *apart]
    lists = kept.group_by(key).agg(list=kept.page.min(), impressions=kept.impressions.sum().cast("int64"))
    lists = engine.keep(f"{name}_lists", lists)
    members = engine.keep(f"{name}_members", kept.join(lists, key).select(kept.page, lists.list))
    clicked = rows.filter(fine & (rows.clicks > 0))
    clicked = clicked.join(members, "page").group_by("list", "document", "position")
    clicks = clicked.agg(clicks=ibis._.clicks.sum().cast("int64"))
    first = rows.filter(fine)
    of_row = ["page", "query", "document", "position", *factors]
    of_list = ["impressions", *apart]
    shown = first.join(lists, first.page == lists.list)
    shown = shown.select(*(first[name] for name in of_row), *(lists[name] for name in of_list))
    same = [shown.page == clicks.list, shown.document == clicks.document, shown.position == clicks.position]
    shown = shown.left_join(clicks, same).select(*(shown[c] for c in shown.columns), clicks=clicks.clicks.fill_null(0))
    return Collapsed(pages, members, engine.keep(f"{name}_shown", shown), begins)


def clicked_together(engine: Engine, rows: Any, raw: Collapsed, final: Collapsed) -> Any:
    """Number of pages with both of two documents clicked: page (the list), first, second (positions) and both."""
    clicked = rows.filter((rows.fault == reasons.KEPT) & (rows.click == 1)).select("page", "document")
    clicked = clicked.join(raw.members, "page")
    last = final.members.select(list="page", last="list")
    clicked = clicked.join(last, "list").select("page", "last", "document")
    kept = final.shown.select(last="page", document="document", position="position")
    clicked = clicked.join(kept, ["last", "document"]).select("page", "last", "position")
    clicked = engine.keep("clicked", clicked)
    others = clicked.view()
    both = clicked.join(others, [clicked.page == others.page, clicked.position < others.position])
    both = both.select(page=clicked.last, first=clicked.position, second=others.position)
    return both.group_by("page", "first", "second").agg(both=both.count())


def _bits(cells: Any) -> Any:
    return cells.hash().cast("int64") & _BITS

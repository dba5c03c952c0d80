"""The faults that show on collapsed lists, and the rows that are put aside in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ultr.preparation import reasons
from ultr.preparation.collapse import Collapsed
from ultr.preparation.engine import Engine
from ultr.preparation.summary import PutAside
from ultr.preparation.times import written


def marked(shown: Any, features: Any | None) -> Any:
    """Collapsed rows with a fault each: places taken twice, documents shown twice, features that cannot be used.

    All pages of a list have these faults or none has, so that looking at the lists is enough.
    """
    import ibis

    whole = shown.group_by("page").agg(
        rows=shown.count(), places=shown.position.nunique(), documents=shown.document.nunique()
    )
    fault = ibis.cases(
        (whole.documents < whole.rows, reasons.TWICE.code),
        (whole.places < whole.rows, reasons.ONE_POSITION.code),
        else_=reasons.KEPT,
    )
    whole = whole.select("page", of_page=fault)
    joined = shown.join(whole, "page")
    if features is None:
        return joined.mutate(fault=joined.of_page.cast("int16")).drop("of_page")
    keys = [key for key in ("query", "document") if key in features.columns]
    known = features.select(**{f"key_{key}": features[key] for key in keys}, of_features=features.fault)
    joined = joined.left_join(known, [joined[key] == known[f"key_{key}"] for key in keys])
    fault = ibis.cases(
        (joined.of_page != reasons.KEPT, joined.of_page),
        (joined.of_features.isnull(), reasons.NO_FEATURES.code),
        else_=joined.of_features,
    )
    return joined.mutate(fault=fault.cast("int16")).select(*shown.columns, "fault")


def settled(rows: Any, raw: Collapsed, lists: Any, final: Collapsed) -> Any:
    """The raw rows with the fault of each in the end: its own, else that of its page, else of its document."""
    import ibis

    bad_pages = raw.pages.filter(raw.pages.fault != reasons.KEPT).select("page", of_page="fault")
    bad_lists = final.pages.filter(final.pages.fault != reasons.KEPT).select(list="page", of_page="fault")
    of_lists = raw.members.join(bad_lists, "list").select("page", "of_page")
    pages = bad_pages.union(of_lists).select(bad_page="page", of_page="of_page")
    documents = lists.filter(lists.fault > reasons.LAST_OF_PAGES)
    documents = documents.select(bad_query="query", bad_document="document", of_document="fault").distinct()
    joined = rows.left_join(pages, rows.page == pages.bad_page)
    joined = joined.left_join(
        documents, [joined["query"] == documents.bad_query, joined.document == documents.bad_document]
    )
    fault = ibis.cases(
        (joined.fault != reasons.KEPT, joined.fault),
        (joined.of_page.notnull(), joined.of_page),
        (joined.of_document.notnull(), joined.of_document),
        else_=reasons.KEPT,
    )
    return joined.mutate(fault=fault.cast("int16")).select(*rows.columns)


def clicked_pages(engine: Engine, rows: Any) -> int:
    """Number of pages with a click on a row that is kept."""
    clicked = rows.filter((rows.fault == reasons.KEPT) & (rows.click == 1)).select("page").distinct()
    return engine.count(clicked)


def by_reason(engine: Engine, aside: Any) -> tuple[PutAside, ...]:
    """Cost of each reason, the costliest first."""
    counts = aside.group_by("fault").agg(
        rows=aside.count(), clicks=aside.click.cast("int64").sum(), pages=aside.page.nunique()
    )
    known = {reason.code: reason for reason in reasons.REASONS}
    found = [
        PutAside(
            reason=known[row["fault"]].text,
            rows=int(row["rows"]),
            clicks=int(row["clicks"] or 0),
            pages=int(row["pages"]),
            whole_page=known[row["fault"]].whole_page,
        )
        for row in engine.fetch(counts).to_pylist()
    ]
    return tuple(sorted(found, key=lambda each: (-each.rows, each.reason)))


def with_reasons(aside: Any, factors: tuple[str, ...], *, positions_from: int) -> Any:
    """The rows that are put aside as they are written: what was given, and why they are not kept."""
    import ibis

    texts = ibis.cases(*((aside.fault == reason.code, reason.text) for reason in reasons.REASONS), else_="")
    return aside.select(
        impression=aside.page.cast("string"),
        query=aside["query"],
        document=aside.document,
        position=aside.given_position.fill_null((aside.position + (positions_from - 1)).cast("string")),
        click=aside.given_click.fill_null(aside.click.cast("string")),
        **({"time": aside.given_time.fill_null(written(aside.time))} if "time" in aside.columns else {}),
        **{f"factor {name}": aside[f"f{number}"] for number, name in enumerate(factors)},
        reason=texts,
    )


def write_rows(engine: Engine, table: Any, path: Path) -> None:
    """Write a table as one Parquet file, batch by batch."""
    from pyarrow import parquet

    schema = table.schema().to_pyarrow()
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in engine.batches(table):
            writer.write_batch(batch.cast(schema))

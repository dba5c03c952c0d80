"""The rows that are put aside: which they are, why, and how many."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from ultr.arrays import Integers
from ultr.preparation import reasons
from ultr.preparation.columns import Columns
from ultr.preparation.engine import Engine
from ultr.preparation.summary import PutAside
from ultr.preparation.times import written


def rows_aside(rows: Any, pages: Any, members: Any, list_faults: Mapping[int, int], documents: Any) -> Any:
    """The rows that are put aside, each with the fault that counts; `of_document` if that is the document's.

    A row's own fault counts first, then that of its page or of the list that its page shows, then that of its document.
    `list_faults` are faults of lists by their number, `documents` are those with a fault: query, document and fault.
    """
    import ibis
    import pyarrow

    faulty = ibis.memtable(
        pyarrow.table(
            {
                "list": pyarrow.array(list(list_faults), pyarrow.int64()),
                "of_page": pyarrow.array(list(list_faults.values()), pyarrow.int16()),
            }
        )
    )
    bad_pages = pages.filter(pages.fault != reasons.KEPT).select("page", of_page=pages.fault.cast("int16"))
    of_lists = members.join(faulty, "list")
    of_lists = of_lists.select("page", of_page=of_lists.of_page.cast("int16"))
    bad = bad_pages.union(of_lists).select(bad_page="page", of_page="of_page")
    joined = rows.left_join(bad, rows.page == bad.bad_page)
    spoiled = documents.select(bad_query="query", bad_document="document", of_document="fault")
    joined = joined.left_join(spoiled, [joined["query"] == spoiled.bad_query, joined.document == spoiled.bad_document])
    fault = ibis.cases(
        (joined.fault != reasons.KEPT, joined.fault),
        (joined.of_page.notnull(), joined.of_page),
        (joined.of_document.notnull(), joined.of_document),
        else_=reasons.KEPT,
    )
    of_document = (joined.fault == reasons.KEPT) & joined.of_page.isnull()
    settled = joined.mutate(fault=fault.cast("int16"), of_document=of_document).select(*rows.columns, "of_document")
    return settled.filter(settled.fault != reasons.KEPT)


def pages_with_faults(pages: Any, members: Any, lists: Integers) -> Any:
    """The pages that a row may be put aside from: with a fault in a row, of the page, or in what these lists show."""
    import ibis
    import pyarrow

    wrong = ibis.memtable(pyarrow.table({"list": pyarrow.array(lists, pyarrow.int64())}))
    own = pages.filter((pages.fault != reasons.KEPT) | (pages.rows > pages.length))
    return own.select("page").union(members.semi_join(wrong, "list").select("page"))


def clicked_pages(engine: Engine, pages: Any, members: Any, aside: Any, list_faults: Mapping[int, int]) -> int:
    """Number of pages with a click on a row that is kept: more clicks than those put aside for their document."""
    kept = members.filter(~members.list.isin(list(list_faults))) if list_faults else members
    of_documents = aside.filter(aside.of_document)
    lost = of_documents.group_by(lost_on="page").agg(lost=of_documents.click.cast("int64").sum())
    clicked = pages.semi_join(kept, "page").left_join(lost, pages.page == lost.lost_on)
    return engine.count(clicked.filter(clicked.clicks > clicked.lost.fill_null(0)))


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


def write_aside(
    engine: Engine, aside: Any, columns: Columns, path: Path, *, positions_from: int, old: Path | None
) -> None:
    """Write the rows that are put aside as one Parquet file: what was given, and why they are not kept.

    `old` is the file of a log that these are added to, whose rows come first.
    """
    import ibis
    from pyarrow import parquet

    texts = ibis.cases(*((aside.fault == reason.code, reason.text) for reason in reasons.REASONS), else_="")
    table = aside.select(
        impression=aside.page.cast("string"),
        query=aside["query"],
        document=aside.document,
        position=aside.given_position.fill_null((aside.position + (positions_from - 1)).cast("string")),
        click=aside.given_click.fill_null(aside.events.cast("string")),
        **({"time": aside.given_time.fill_null(written(aside.time))} if "time" in aside.columns else {}),
        **{f"factor {name}": aside[f"f{number}"] for number, name in enumerate(columns.factor_names)},
        **{f"signal {name}": aside[f"s{number}"] for number, name in enumerate(columns.signals)},
        reason=texts,
    )
    schema = table.schema().to_pyarrow()
    before = [] if old is None else parquet.ParquetFile(old).iter_batches()
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in chain(before, engine.batches(table)):
            writer.write_batch(batch.cast(schema))

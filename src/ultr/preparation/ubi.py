"""OpenSearch User Behavior Insights: the queries and events of a search application, one row per shown document."""

from __future__ import annotations

from typing import Any

from ultr.data.column_names import check_column, listed
from ultr.errors import DataError
from ultr.preparation.engine import Engine
from ultr.preparation.sources import name_of, tables_of
from ultr.preparation.values import text

QUERIES, EVENTS = "ubi_queries", "ubi_events"
CLICK = "click"
"""The action of an event that is a click on a result."""
_OBJECT = ("event_attributes", "object", "object_id")


def ubi_rows(engine: Engine, log: object, others: tuple[str, ...]) -> tuple[Any, int]:
    """The shown documents of `ubi_queries` with their clicks, and the clicks on what was not shown.

    An impression is a `query_id`, its query the `user_query`, its documents the `query_response_hit_ids` in their
    order. A document is clicked if `ubi_events` has an event of the action `click` with the same `query_id` and the
    document as `event_attributes.object.object_id`. `others` are further columns of `ubi_queries` to take along.
    """
    queries, events = tables_of(engine, log, (QUERIES, EVENTS))
    for name in ("query_id", "user_query", "query_response_hit_ids", *others):
        check_column(name, queries.columns, what=f"{QUERIES} of {name_of(log)}")
    for name in ("query_id", "action_name"):
        check_column(name, events.columns, what=f"{EVENTS} of {name_of(log)}")
    hits = queries.query_response_hit_ids
    if not hits.type().is_array():
        hits = text(hits).split(",")
    shown = queries.select(
        impression=text(queries.query_id),
        query=text(queries.user_query),
        document=hits,
        **{f"other {name}": queries[name] for name in others},
    ).unnest("document", offset="place", keep_empty=True)
    shown = shown.mutate(document=text(shown.document.cast("string").strip()), position=shown.place.fill_null(0) + 1)
    clicks = events.filter(events.action_name.lower() == CLICK)
    clicked = clicks.select(impression=text(clicks.query_id), document=text(_object_id(clicks))).distinct()
    clicked = engine.keep("ubi_clicks", clicked.mutate(clicked=1))
    elsewhere = clicked.anti_join(shown, ["impression", "document"])
    rows = shown.left_join(clicked, ["impression", "document"]).select(
        shown.impression,
        shown.query,
        shown.document,
        shown.position,
        *(shown[f"other {name}"].name(name) for name in others),
        click=clicked.clicked.fill_null(0),
    )
    return rows, engine.count(elsewhere)


def _object_id(events: Any) -> Any:
    """The document of each event, nested as in JSON or flattened as in CSV."""
    flat = ".".join(_OBJECT)
    if flat in events.columns:
        return events[flat]
    column: Any = events[_OBJECT[0]] if _OBJECT[0] in events.columns else None
    for name in _OBJECT[1:]:
        if column is None or not column.type().is_struct() or name not in column.type().names:
            raise DataError(
                f"{EVENTS} has no {flat}, which names the clicked document; it has: {listed(events.columns)}"
            )
        column = column[name]
    return column.cast("string")

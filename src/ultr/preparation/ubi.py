"""OpenSearch User Behavior Insights: the queries and events of a search application, one row per shown document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ultr.counted import counted
from ultr.data.column_names import check_column, listed
from ultr.data.signal import CLICK
from ultr.errors import DataError
from ultr.preparation.attributes import attribute, has_attribute
from ultr.preparation.engine import SPARK, Engine
from ultr.preparation.events import EventsSpec, Joined, join
from ultr.preparation.sources import name_of, tables_of
from ultr.preparation.times import microseconds
from ultr.preparation.values import text

QUERIES, EVENTS = "ubi_queries", "ubi_events"
IMPRESSION = "impression"
"""The action of an event that says that a result was seen."""
_HITS = ("query_response_hit_ids", "query_response_object_ids")
"""The shown documents in their order; the second is the older name."""
_OBJECT = "event_attributes.object.object_id"
_ORDINALS = ("event_attributes.position.ordinal", "event_attributes.position")
_OF_EVENTS = "event_attributes."
_CREDITED = "event_attributes.ultr.credited"
"""Given of every place of a list that two rankers have made, also of those that neither has brought."""
_PLACEMENT = {"propensity": "event_attributes.ultr.propensity", "base_position": "event_attributes.ultr.base_rank"}
"""Attributes of impressions by which `ultr serve` says how exploration placed a document."""
_OBJECT_ID = "object of the event"


@dataclass(frozen=True)
class UbiLog:
    """The shown documents of `ubi_queries` with the counts of their events, and how they were placed."""

    joined: Joined
    """Its table has the columns impression, query, document, position, one for each signal, and those that were asked
    for."""
    notes: tuple[str, ...]
    """Notes for the summary, a sentence each."""
    placement: Mapping[str, str]
    """Columns of the table that say how exploration placed documents, by role; none if no event says it."""


def read_ubi(
    engine: Engine,
    log: object,
    *,
    others: Sequence[str] = (),
    signals: Mapping[str, tuple[str, ...]] | None = None,
    offset: str | None = None,
) -> UbiLog:
    """The shown documents of `ubi_queries`, each with the events of `ubi_events` on it.

    An impression is a `query_id`, its query the `user_query`, its documents the `query_response_hit_ids` in their
    order; further responses of a `query_id` are the pages that follow. An event belongs to the document that it names
    as `event_attributes.object.object_id`. `signals` names the actions that are counted, by default `click` alone.

    `others` are further columns, also attributes such as `query_attributes.device`. `offset` is one that holds the
    number of results before the first of a page; without it, a page begins where the ordinals of its events say.
    """
    queries, events = tables_of(engine, log, (QUERIES, EVENTS))
    what, what_events = f"{QUERIES} of {name_of(log)}", f"{EVENTS} of {name_of(log)}"
    for name in ("query_id", "user_query"):
        check_column(name, queries.columns, what=what)
    for name in ("query_id", "action_name"):
        check_column(name, events.columns, what=what_events)
    if not has_attribute(events, _OBJECT):
        raise DataError(
            f"{EVENTS} has no {_OBJECT}, which names the clicked document; it has: {listed(events.columns)}"
        )
    events = events.mutate(**{_OBJECT_ID: text(attribute(events, _OBJECT, what=what_events))})

    responses, repeated = _responses(engine, queries, others, offset, what)
    shown = _unnested(responses)
    actions = [*(signals or {CLICK: (CLICK,)}).values(), (IMPRESSION,)]
    evidence = _evidence(engine, shown, events, [each for group in actions for each in group])
    seen = bool(engine.count(_of_action(events, [IMPRESSION]).limit(1)))
    placed, notes = _placed(engine, shown, evidence, given=offset is not None, seen=seen)
    if repeated:
        repeat = counted(repeated, "response repeats", "responses repeat")
        left = "it is" if repeated == 1 else "they are"
        notes.append(f"{repeat} the documents of another of the same query_id; {left} left out")
    placement = _placement(engine, events) if seen and not {*_PLACEMENT.values()} & {*others} else {}
    asked = [name for name in others if name.startswith(_OF_EVENTS)]
    placed = _with_attributes(placed, events, [*asked, *placement.values()], seen=seen)
    spec = EventsSpec(
        table=events,
        name=what_events,
        impression=("query_id",),
        document=_OBJECT_ID,
        action="action_name",
        signals=signals or {},
        shown={"query_id": "impression", _OBJECT_ID: "document"},
    )
    return UbiLog(join(engine, placed, spec), tuple(notes), placement)


def _responses(engine: Engine, queries: Any, others: Sequence[str], offset: str | None, what: str) -> tuple[Any, int]:
    """Result pages, in parts of a query where it has several, with the number of results before each."""
    import ibis

    own = {name: _other(engine, queries, name, what) for name in others if not name.startswith(_OF_EVENTS)}
    timed = "timestamp" in queries.columns
    at = microseconds(engine, queries, "timestamp", what=what) if timed else ibis.null("int64")
    before = {} if offset is None else {"before": _whole(attribute(queries, offset, what=what))}
    pages = queries.select(
        impression=text(queries.query_id),
        query=text(queries.user_query),
        documents=_hits(engine, queries, what),
        at=at,
        **own,
        **before,
    )
    same = ibis.row_number().over(group_by=["impression", "documents"], order_by=["at", "query", *own])
    pages = pages.mutate(same=same)
    first = pages.filter((pages.same == 0) | pages.impression.isnull()).drop("same")
    part = ibis.window(group_by="impression", order_by=["at"], preceding=None, following=0)
    size = first.documents.length().fill_null(0)
    # Without times it is not known which page came first.
    given = first.before if offset else (size.sum().over(part) - size if timed else ibis.literal(0))
    first = first.mutate(before=given.fill_null(0).cast("int64"), part=ibis.row_number().over(part))
    first = engine.keep(first)
    return first, engine.count(queries) - engine.count(first)


def _hits(engine: Engine, queries: Any, what: str) -> Any:
    """The shown documents of each response as a list of texts."""
    found = [name for name in _HITS if name in queries.columns]
    if not found:
        check_column(_HITS[0], queries.columns, what=what)
    lists = []
    for name in found:
        hits = queries[name]
        if not hits.type().is_array():
            hits = _list_in(engine, text(hits))
        lists.append(hits.cast("array<string>"))
    return lists[0] if len(lists) == 1 else lists[0].coalesce(lists[1])


def _list_in(engine: Engine, cell: Any) -> Any:
    """The list in a cell of text: JSON such as ["a", "b"], or a,b."""
    import ibis

    spark = engine.name == SPARK
    name, value, form = (
        ("from_json", cell, "array<string>") if spark else ("json_extract_string", cell.try_cast("json"), "$[*]")
    )
    signature = ((value.type(), "string"), "array<string>")

    def function(value: Any, form: Any) -> Any:
        """Stand for the function of the engine."""

    texts = ibis.udf.scalar.builtin(function, name=name, signature=signature)(value, form)
    plain = cell.re_replace(r'''^\s*\[|\]\s*$|"''', "").split(",")
    return cell.strip().startswith("[").ifelse(texts, None).coalesce(plain)


def _other(engine: Engine, queries: Any, name: str, what: str) -> Any:
    if name == "timestamp" and not queries[name].type().is_timestamp():
        at = microseconds(engine, queries, name, what=what)
        return ((at - at % 10**6) / 10**6).round().cast("int64").as_timestamp("s")
    return attribute(queries, name, what=what)


def _unnested(responses: Any) -> Any:
    rows = responses.unnest("documents", offset="place", keep_empty=True)
    rows = rows.mutate(document=text(rows.documents.strip()), place=rows.place.fill_null(0).cast("int64"))
    return rows.drop("documents", "at")


def _of_action(events: Any, actions: Sequence[str]) -> Any:
    return events.filter(text(events.action_name).strip().lower().isin([each.lower() for each in actions]))


def _evidence(engine: Engine, shown: Any, events: Any, actions: Sequence[str]) -> Any | None:
    """By how much the ordinals of events are beyond the places of their documents, counted from 0."""
    path = next((path for path in _ORDINALS if has_attribute(events, path)), None)
    if path is None or attribute(events, path, what=EVENTS).type().is_struct():
        return None
    chosen = _of_action(events, actions)
    ordinals = chosen.select(
        impression=text(chosen.query_id),
        document=chosen[_OBJECT_ID],
        ordinal=_whole(attribute(chosen, path, what=EVENTS)),
    ).distinct()
    joined = shown.join(ordinals.filter(ordinals.ordinal.notnull()), ["impression", "document"])
    beyond = joined.select("impression", "part", beyond=joined.ordinal - joined.place - joined.before)
    return engine.keep(beyond)


def _placed(engine: Engine, shown: Any, evidence: Any | None, *, given: bool, seen: bool) -> tuple[Any, list[str]]:
    """Rows with a position, and what the ordinals say of it in sentences; they move nothing where the place is given.

    `seen` is true if there are events of results that were seen, not only of those that were clicked.
    """
    import ibis

    at_top = shown.mutate(position=shown.before + shown.place + 1).drop("before", "place", "part")
    if evidence is None:
        return at_top, []
    found = engine.counts(
        evidence.aggregate(all=evidence.count(), zero=(evidence.beyond == 0).sum(), one=(evidence.beyond == 1).sum())
    )
    ordinals, zero, one = found["all"], found["zero"], found["one"]
    if not ordinals:
        return at_top, []
    if not zero and not one:
        return at_top, [f"none of the {ordinals:,} ordinals of events is a place in its list; the list counts"]
    start = 0 if zero > one else 1
    notes = [f"ordinals of events count from {start}: {max(zero, one):,} of {ordinals:,} are the place in the list"]
    pages = evidence.group_by("impression", "part").agg(low=evidence.beyond.min(), high=evidence.beyond.max())
    same = (pages.low == pages.high) & (pages.low > start)
    shift = same.ifelse(pages.low - start, 0) if not given else ibis.literal(0)
    pages = engine.keep(pages.mutate(shift=shift.cast("int64")))
    found = engine.counts(
        pages.aggregate(
            moved=(pages.shift > 0).sum(),
            contradicted=((pages["shift"] == 0) & ((pages.low != start) | (pages.high != start))).sum(),
        )
    )
    if found["moved"]:
        rest = "" if seen else ", and such pages without an event stay at the top"
        begin = counted(found["moved"], "result page begins", "result pages begin")
        notes.append(f"{begin} further down, as the ordinals of events say{rest}")
    if found["contradicted"]:
        have = counted(found["contradicted"], "result page has", "result pages have")
        notes.append(f"{have} ordinals that do not fit the list; the list counts")
    moved = shown.left_join(pages.select("impression", "part", "shift"), ["impression", "part"])
    position = moved.before + moved.place + 1 + moved["shift"].fill_null(0)
    return moved.select(*(name for name in at_top.columns if name != "position"), position=position), notes


def _placement(engine: Engine, events: Any) -> dict[str, str]:
    """The attributes that say how exploration placed documents, by role, if an impression has them."""
    chosen = _of_action(events, [IMPRESSION])
    found = {role: path for role, path in _PLACEMENT.items() if has_attribute(chosen, path)}
    if "propensity" not in found:
        return {}
    known = attribute(chosen, found["propensity"], what=EVENTS).notnull()
    return found if engine.count(chosen.filter(known).limit(1)) else {}


def _of_impression(impressions: Any, name: str) -> Any:
    """An attribute of impressions as text.

    Two rankers that make a list together put each document somewhere else than others of the same base position, which
    is all that is known of where it could have stood: their propensities are for who compares the two alone.
    """
    found = text(attribute(impressions, name, what=EVENTS))
    if name != _PLACEMENT["propensity"] or not has_attribute(impressions, _CREDITED):
        return found
    return attribute(impressions, _CREDITED, what=EVENTS).isnull().ifelse(found, None)


def _with_attributes(shown: Any, events: Any, names: Sequence[str], *, seen: bool) -> Any:
    """Rows with attributes of the events that say that they were seen."""
    if not names:
        return shown
    if not seen:
        raise DataError(
            f"{names[0]} is known only of documents that something was done with, so that it would tell the clicks; "
            f"{EVENTS} must have events of the action {IMPRESSION!r} for it"
        )
    chosen = _of_action(events, [IMPRESSION])
    cells = chosen.select(
        event_query=text(chosen.query_id),
        event_document=chosen[_OBJECT_ID],
        **{name: _of_impression(chosen, name) for name in names},
    )
    known = cells.group_by("event_query", "event_document").agg(**{name: cells[name].min() for name in names})
    joined = shown.left_join(known, [shown.impression == known.event_query, shown.document == known.event_document])
    return joined.select(*shown.columns, *names)


def _whole(column: Any) -> Any:
    """A column as whole numbers; null where it is none."""
    return text(column).try_cast("float64").round().cast("int64")

"""Events in a table of their own: clicks, and what follows them, counted for each shown document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any

from ultr.data.column_names import check_column, closest, listed
from ultr.data.signal import CLICK
from ultr.errors import DataError, OptionError
from ultr.preparation.engine import Engine
from ultr.preparation.times import microseconds
from ultr.preparation.values import no_text, text

WINDOW = 1800.0
"""Seconds between a page and an event that may belong to it."""
MOST_SHARED = 0.05
"""Share of the events that may fit several pages at once; with more, times are too coarse to join by."""
_MOST_ACTIONS = 1_000
_PLACE, _OWN, _OTHER = "place of ultr", "own ", "other "
"""Names that no table has."""


@dataclass(frozen=True, kw_only=True)
class EventsSpec:
    """A table of events, and how its rows are found among the shown ones. Columns are named as in the events."""

    table: Any
    name: str
    """Name of the table in messages."""
    document: str
    impression: tuple[str, ...] = ()
    """Columns that name the page; without them, an event belongs to the last page before it."""
    keys: tuple[str, ...] = ()
    """Columns that such a page shares with its events beside the document: query, user, session."""
    pages: tuple[str, ...] = ()
    """Columns of the shown rows that tell pages apart, where events do not name the page."""
    time: str | None = None
    """Time of the event, and of the page."""
    window: float = WINDOW
    """Seconds after which an event belongs to no page any more."""
    action: str | None = None
    """Column that says what happened; without it, every event is a click."""
    signals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The actions that each signal counts, upper and lower case being the same; by default `click` alone."""
    event_id: str | None = None
    """Column that is the same where one event was written twice; without it, rows that are the same in all columns."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """The name of a column in the shown rows, where it differs from that in the events."""

    def __post_init__(self) -> None:
        if not self.impression and not (self.keys and self.time):
            raise OptionError(
                "events are joined by the columns of the impression, or by a query, user or session and a time; "
                "name one or the other"
            )
        if self.action is None and (len(self.signals) > 1 or any(self.signals.values())):
            raise OptionError(f"the signals {', '.join(self.signals)} need the column of the action; name it")
        if self.window <= 0:
            raise OptionError(f"window must be a positive number of seconds, got {self.window!r}")

    def counted(self) -> dict[str, tuple[str, ...]]:
        """The actions of each signal, in lower case."""
        default: tuple[str, ...] = () if self.action is None else (CLICK,)
        return {name: tuple(map(str.lower, actions)) for name, actions in (self.signals or {CLICK: default}).items()}


@dataclass(frozen=True)
class Joined:
    """The shown rows with a count for each signal, and what became of the other events."""

    table: Any
    signals: tuple[str, ...]
    unmatched: dict[str, int]
    """Events of each signal, each counted once, that belong to no shown row."""
    duplicates: int
    """Further copies of events."""
    shared: int
    """Events that fit several pages of one time; each counts for one of them."""
    ignored: dict[str, int]
    """Actions that no signal counts, most frequent first, with their events."""


def join(engine: Engine, shown: Any, spec: EventsSpec) -> Joined:
    """Count the events of each shown row.

    Rows of one page that agree in the columns of the join have the same events, so that copies of a row stay copies.
    """
    given, what = spec.table, spec.name
    _check_columns(given, shown, spec, what)
    signals = spec.counted()
    ignored = {} if spec.action is None else _other_actions(engine, text(given[spec.action]), signals, what)
    flags = _flags(given, spec)
    wanted = given.filter(reduce(or_, flags.values())) if spec.action else given
    events = _once(wanted, spec)
    events = engine.keep(events.select(**_keys(engine, events, spec, {}, what), **_flags(events, spec)))
    totals = _totals(engine, events, signals)
    duplicates = engine.count(wanted) - engine.count(events)

    keys = _keys(engine, shown, spec, spec.shown, "the shown rows")
    pages = shown.select(**keys).distinct()
    if spec.time and not spec.impression:
        events = _placed(events, pages, window=round(spec.window * 10**6))
    counts = events.group_by(list(keys)).agg(**{name: events[name].cast("int64").sum() for name in signals})
    counts = engine.keep(counts)
    unmatched = _totals(engine, counts.anti_join(pages, list(keys)), signals)
    if unmatched == totals:
        by = ", ".join([*(spec.impression or (*spec.keys, str(spec.time))), spec.document])
        raise DataError(f"none of the {sum(totals.values()):,} events of {what} fits a shown row by {by}; check these")
    shared = _shared(engine, shown, keys, counts, spec) if spec.pages else 0
    if shared > MOST_SHARED * sum(totals.values()):
        raise DataError(
            f"{shared:,} of the {sum(totals.values()):,} events of {what} fit several pages at once, which agree in "
            f"{', '.join([*spec.keys, str(spec.time), spec.document])}; give finer times, a --user, or events that "
            "name the page"
        )
    table = _with_counts(shown, keys, counts, signals, spec.pages)
    return Joined(table, tuple(signals), unmatched, duplicates, shared, ignored)


def in_words(actions: Mapping[str, int], *, most: int = 20) -> str:
    """Names of actions with the number of their events.

    >>> in_words({"view": 1200, "buy": 3})
    'view 1,200, buy 3'
    """
    return listed([f"{name} {count:,}" for name, count in actions.items()], most=most)


def _check_columns(events: Any, shown: Any, spec: EventsSpec, what: str) -> None:
    joined = [*(spec.impression or spec.keys), spec.document]
    if not spec.impression:
        joined.append(str(spec.time))
    for name in [*joined, *filter(None, (spec.action, spec.event_id))]:
        check_column(name, events.columns, what=what)
    for name in joined:
        check_column(spec.shown.get(name, name), shown.columns, what="the table of shown documents")
    for name in spec.counted():
        if name in shown.columns:
            raise OptionError(f"the shown documents have a column {name!r} already; give the signal another name")


def _other_actions(engine: Engine, action: Any, signals: Mapping[str, tuple[str, ...]], what: str) -> dict[str, int]:
    """The actions that no signal counts; one that is counted but does not occur may be a slip."""
    import ibis

    named = action.strip().lower().name("action").as_table()
    tally = named.group_by("action").agg(events=named.count())
    tally = tally.order_by(ibis.desc("events"), "action").limit(_MOST_ACTIONS + 1)
    rows = engine.fetch(tally).to_pylist()
    if len(rows) > _MOST_ACTIONS:
        raise DataError(f"the action of {what} has more than {_MOST_ACTIONS:,} values; name another column")
    found = {str(row["action"]): int(row["events"]) for row in rows}
    for name, actions in signals.items():
        absent = [each for each in actions if each not in found]
        near = [closest(each, found) for each in absent]
        if absent and (any(near) or (name == CLICK and len(absent) == len(actions))):
            hint = f", did you mean {next(filter(None, near))!r}" if any(near) else ""
            flag = "--click ACTION" if name == CLICK else f"--signal {name}=ACTION"
            raise DataError(
                f"{what} has no event of the action {absent[0]!r}{hint}; say which of its actions are the signal "
                f"{name!r}, as in {flag}: {in_words(found)}"
            )
    counted = {each for actions in signals.values() for each in actions}
    return {each: count for each, count in found.items() if each not in counted}


def _flags(events: Any, spec: EventsSpec) -> dict[str, Any]:
    """True where an event counts for a signal."""
    import ibis

    if spec.action is None:
        return dict.fromkeys(spec.counted(), ibis.literal(value=True))
    action = text(events[spec.action]).strip().lower()
    return {name: action.isin(actions) for name, actions in spec.counted().items()}


def _once(events: Any, spec: EventsSpec) -> Any:
    """Events without further copies."""
    import ibis

    if spec.event_id is None:
        return events.distinct()
    # Of copies that differ, as in the time at which they arrived, it must be the same one each time.
    order = [*(spec.impression or spec.keys), spec.document, *filter(None, (spec.time, spec.action))]
    place = ibis.row_number().over(group_by=spec.event_id, order_by=order)
    numbered = events.mutate(**{_PLACE: place})
    return numbered.filter((numbered[_PLACE] == 0) | no_text(numbered[spec.event_id])).drop(_PLACE)


def _keys(engine: Engine, table: Any, spec: EventsSpec, names: Mapping[str, str], what: str) -> dict[str, Any]:
    """The columns of the join as they are compared."""
    columns = [*(spec.impression or spec.keys), spec.document]
    keys = {f"key_{i}": text(table[names.get(name, name)]) for i, name in enumerate(columns)}
    if spec.time and not spec.impression:
        keys["at"] = microseconds(engine, table, names.get(spec.time, spec.time), what=what)
    return keys


def _placed(events: Any, pages: Any, *, window: int) -> Any:
    """Events with the time of the last page before them in place of their own; null if it is none or too long ago."""
    import ibis

    keys = [name for name in pages.columns if name != "at"]
    signals = {name: kind for name, kind in events.schema().items() if name not in pages.columns}
    # A page comes before an event of the same time, and the largest time of a page so far is the last.
    shown = pages.mutate(
        page=pages.at, order=ibis.literal(0, "int8"), **{name: ibis.null(kind) for name, kind in signals.items()}
    )
    happened = events.mutate(page=ibis.null("int64"), order=ibis.literal(1, "int8"))
    both = shown.select(*happened.columns).union(happened)
    last = both.page.max().over(ibis.window(group_by=keys, order_by=[both.at, both.order], preceding=None, following=0))
    both = both.mutate(page=last)
    both = both.filter(both.order == 1)
    known = reduce(and_, (both[name].notnull() for name in keys))
    near = known & (both.at - both.page <= window)
    return both.mutate(at=near.ifelse(both.page, None)).drop("page", "order")


def _totals(engine: Engine, table: Any, signals: Mapping[str, Any]) -> dict[str, int]:
    return engine.counts(table.aggregate(**{name: table[name].cast("int64").sum() for name in signals}))


def _shared(engine: Engine, shown: Any, keys: Mapping[str, Any], counts: Any, spec: EventsSpec) -> int:
    """The number of events that fit several pages."""
    names = [f"page_{i}" for i in range(len(spec.pages))]
    own = shown.select(**keys, **{name: text(shown[page]) for name, page in zip(names, spec.pages, strict=True)})
    own = own.distinct()
    often = own.group_by(list(keys)).agg(pages=own.count())
    return sum(_totals(engine, counts.semi_join(often.filter(often.pages > 1), list(keys)), spec.counted()).values())


def _with_counts(
    shown: Any, keys: Mapping[str, Any], counts: Any, signals: Mapping[str, Any], pages: tuple[str, ...]
) -> Any:
    """The shown rows with their counts; of several pages that agree in the keys, the first has them."""
    import ibis

    order = ibis.window(group_by=list(keys.values()), order_by=[text(shown[page]) for page in pages])
    place = ibis.dense_rank().over(order) if pages else ibis.literal(0)
    with_keys = shown.mutate(**{f"{_OWN}{name}": key for name, key in keys.items()}, **{_PLACE: place})
    counts = counts.rename(**{f"{_OTHER}{name}": name for name in (*keys, *signals)})
    joined = with_keys.left_join(counts, [with_keys[f"{_OWN}{name}"] == counts[f"{_OTHER}{name}"] for name in keys])
    first = joined[_PLACE] == 0
    return joined.select(
        *shown.columns,
        **{name: first.ifelse(joined[f"{_OTHER}{name}"].fill_null(0), 0).cast("int64") for name in signals},
    )

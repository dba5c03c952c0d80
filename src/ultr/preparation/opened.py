"""A raw log opened as one table: files, a database, a frame, or what was shown with its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ultr.counted import counted
from ultr.data.column_names import guess, listed
from ultr.data.signal import CLICK
from ultr.errors import DataError
from ultr.preparation.engine import Engine
from ultr.preparation.events import EventsSpec, Joined, in_words, join
from ultr.preparation.options import Options
from ultr.preparation.sources import is_columnar, name_of, open_table
from ultr.preparation.ubi import read_ubi


@dataclass(frozen=True)
class Opened:
    """A log as a table."""

    table: Any
    name: str
    """Name of the log in messages."""
    cheap: bool
    """True if its columns can be read several times at little cost."""
    roles: Mapping[str, Any] = field(default_factory=dict)
    """Roles of columns that follow from where it comes from."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Events on documents that were not shown, by signal."""
    notes: tuple[str, ...] = ()
    """What else was found, in sentences."""


def open_log(engine: Engine, log: object, options: Options) -> Opened:
    """A log with its events, if they are in a table of their own."""
    name = name_of(log)
    notes: tuple[str, ...] = ()
    placement: Mapping[str, str] = {}
    if options.ubi:
        ubi = read_ubi(engine, log, others=options.taken_along(), signals=_actions(options), offset=options.page_offset)
        joined, notes = ubi.joined, ubi.notes
        placement = {} if options.propensity else ubi.placement
    else:
        table = open_table(engine, log)
        if options.clicks_from is None:
            return Opened(table, name, cheap=is_columnar(log))
        joined = join(engine, table, _spec(engine, table, options, name))
        name = f"{name} with {name_of(options.clicks_from)}"
    return Opened(
        joined.table,
        name,
        cheap=False,
        roles={"click": CLICK, "signals": {each: each for each in joined.signals if each != CLICK}, **placement},
        elsewhere={each: count for each, count in joined.unmatched.items() if count},
        notes=(*notes, *_notes(joined)),
    )


def _spec(engine: Engine, table: Any, options: Options, name: str) -> EventsSpec:
    """How the events are joined: by the page if they name it, else by user or query and time."""
    events = open_table(engine, options.clicks_from)
    called = dict(options.event_columns)
    document = options.document or guess("document", table.columns)
    usual = guess("impression", table.columns)
    impression = options.impression or ((usual,) if usual else ())
    if document is None:
        raise DataError(f"{name} has no column that looks like the document; name it with --document")
    in_events = {each: called.get(each, each) for each in (*impression, document)}
    if called.get(document, document) not in events.columns and (near := guess("document", events.columns)):
        in_events[document] = near
    shown = {there: here for here, there in in_events.items()}
    keys: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    if not all(in_events[each] in events.columns for each in impression) or not impression:
        named = [options.user, options.query or guess("query", table.columns)]
        keys = tuple(called.get(each, each) for each in named if each and called.get(each, each) in events.columns)
        if not keys or options.time is None:
            raise DataError(
                f"the events have neither the impression of {name} nor a user or query and a time to join by; name the "
                f"columns with --impression, or --user and --time; they have: {listed(events.columns)}"
            )
        shown |= {called.get(each, each): each for each in (*filter(None, named), options.time)}
        pages = tuple(each for each in impression if each in table.columns)
        impression = ()
    return EventsSpec(
        table=events,
        name=name_of(options.clicks_from),
        document=in_events[document],
        impression=tuple(in_events[each] for each in impression),
        keys=keys,
        pages=pages,
        time=None if impression else called.get(str(options.time), options.time),
        window=options.window,
        action=options.action,
        signals=_actions(options) or {},
        event_id=options.event_id,
        shown=shown,
    )


def _actions(options: Options) -> dict[str, tuple[str, ...]] | None:
    """The actions of each signal; the click has its own name unless it is given another."""
    if not options.signals and options.click is None:
        return None
    given = {CLICK: options.click or CLICK} | dict(options.signals)
    return {name: tuple(action.strip() for action in actions.split("|")) for name, actions in given.items()}


def _notes(joined: Joined) -> Iterator[str]:
    if joined.shared:
        fit = counted(joined.shared, "event fits", "events fit")
        yield f"{fit} several pages of the same time and {'counts' if joined.shared == 1 else 'count'} for one of them"
    if joined.duplicates:
        were = counted(joined.duplicates, "event was", "events were")
        yield f"{were} there already and {'counts' if joined.duplicates == 1 else 'count'} once"
    if joined.ignored:
        yield f"actions that no signal counts: {in_words(joined.ignored, most=5)}; --signal NAME=ACTION counts one"

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from ultr.errors import DataError, OptionError
from ultr.preparation.engine import Engine, connect
from ultr.preparation.events import EventsSpec, Joined, join
from ultr.preparation.sources import open_table

Row = dict[str, Any]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with connect("duckdb", tmp_path_factory.mktemp("work"), memory="1GB") as found:
        yield found


SHOWN = [
    {"page": 1, "query": "a", "user": "u", "sku": "x", "at": 100},
    {"page": 1, "query": "a", "user": "u", "sku": "y", "at": 100},
    {"page": 2, "query": "a", "user": "u", "sku": "x", "at": 200},
    {"page": 3, "query": "b", "user": None, "sku": "x", "at": 300},
]


def joined(engine: Engine, pages: list[Row], events: list[Row], /, **options: Any) -> tuple[Joined, list[Row]]:
    names = list(dict.fromkeys(name for event in events for name in event))
    table = pyarrow.table({name: [event.get(name) for event in events] for name in names})
    spec = EventsSpec(table=open_table(engine, table), name="the pyarrow frame", **options)
    result = join(engine, open_table(engine, pyarrow.Table.from_pylist(pages)), spec)
    return result, engine.fetch(result.table).to_pylist()


def test_events_are_counted_on_the_rows_of_their_page(engine: Engine) -> None:
    events: list[Row] = [
        {"page": "1", "item": "x", "what": "click"},
        {"page": "1", "item": "x", "what": "Click ", "n": 2},
        {"page": "2", "item": "x", "what": "cart"},
        {"page": "3", "item": "x", "what": "hover"},
        {"page": "3", "item": "elsewhere", "what": "click"},
        {"page": None, "item": "x", "what": "buy"},
    ]
    result, rows = joined(
        engine,
        SHOWN,
        events,
        impression=("page",),
        document="item",
        action="what",
        signals={"click": ("click",), "value": ("cart", "buy")},
        shown={"item": "sku"},
    )
    counts = {(row["page"], row["sku"]): (row["click"], row["value"]) for row in rows}
    assert counts == {(1, "x"): (2, 0), (1, "y"): (0, 0), (2, "x"): (0, 1), (3, "x"): (0, 0)}
    assert [{name: row[name] for name in SHOWN[0]} for row in sorted(rows, key=SHOWN_ORDER)] == SHOWN
    assert result.signals == ("click", "value")
    assert result.unmatched == {"click": 1, "value": 1}
    assert result.duplicates == 0
    assert result.ignored == {"hover": 1}


def SHOWN_ORDER(row: Row) -> tuple[int, str]:
    return row["page"], row["sku"]


def test_without_an_action_every_event_is_a_click(engine: Engine) -> None:
    events = [{"page": 1, "sku": "x", "n": 1}, {"page": 1, "sku": "x", "n": 2}, {"page": 1, "sku": "z", "n": 3}]
    result, rows = joined(engine, SHOWN, events, impression=("page",), document="sku")
    assert sum(row["click"] for row in rows) == 2
    assert result.unmatched == {"click": 1}


def test_one_event_that_was_written_twice_counts_once(engine: Engine) -> None:
    events: list[Row] = [{"page": 1, "sku": "x", "id": "e1", "at": 5}] * 3 + [
        {"page": 1, "sku": "x", "id": "e1", "at": 6},
        {"page": 2, "sku": "x", "id": "e2", "at": 6},
        {"page": 2, "sku": "x", "id": None, "at": 6},
        {"page": 2, "sku": "x", "id": None, "at": 7},
        {"page": 2, "sku": "x", "id": "", "at": 8},
        {"page": 2, "sku": "x", "id": " ", "at": 9},
        {"page": 2, "sku": "x", "id": "", "at": 10},
    ]
    for event_id, expected, copies in ((None, {1: 2, 2: 6, 3: 0}, 2), ("id", {1: 1, 2: 6, 3: 0}, 3)):
        result, rows = joined(engine, SHOWN, events, impression=("page",), document="sku", event_id=event_id)
        assert {row["page"]: row["click"] for row in rows if row["sku"] == "x"} == expected
        assert result.duplicates == copies


def test_copies_of_a_shown_row_stay_copies(engine: Engine) -> None:
    _, rows = joined(engine, [*SHOWN, SHOWN[0]], [{"page": 1, "sku": "x"}], impression=("page",), document="sku")
    assert [row["click"] for row in rows if (row["page"], row["sku"]) == (1, "x")] == [1, 1]


def test_without_a_page_an_event_belongs_to_the_last_one_before_it(engine: Engine) -> None:
    def event(at: int | None, **other: Any) -> Row:
        return {"query": "a", "user": "u", "sku": "x", "at": at} | other

    events = [event(99), event(100), event(199), event(200), event(260), event(261), event(150, sku="y")]
    events += [event(150, user="other"), {"query": "b", "user": None, "sku": "x", "at": 301}, event(None)]
    result, rows = joined(engine, SHOWN, events, keys=("query", "user"), document="sku", time="at", window=60)
    counts = {SHOWN_ORDER(row): row["click"] for row in rows}
    # 199 is 99 seconds after the first page, 261 is 61 after the second; no user is not a user.
    assert counts == {(1, "x"): 1, (1, "y"): 1, (2, "x"): 2, (3, "x"): 0}
    assert result.unmatched == {"click": len(events) - 4}


MOMENTS = {
    "seconds": lambda second: second,
    "fractions": lambda second: second + 0.25,
    "milliseconds": lambda second: second * 1000 + 250,
    "nanoseconds": lambda second: second * 10**9 + 250 * 10**6,
    "text": lambda second: f"2024-01-31T23:{second - 1_706_743_800 + 30:02}:00.250Z",
    "other zone": lambda second: f"2024-02-01 01:{second - 1_706_743_800 + 30:02}:00.25+02:00",
}


def test_an_event_that_fits_several_pages_counts_for_one_of_them(engine: Engine) -> None:
    """Pages 2 and 3 show x for the same query in the same minute, page 3 twice over."""
    pages = [
        *({"page": page, "query": "a", "sku": sku, "at": at} for page, at in ((1, 60), (2, 120)) for sku in "xy"),
        *[{"page": 3, "query": "a", "sku": "x", "at": 120}] * 2,
        {"page": 4, "query": "b", "sku": "x", "at": 120},
    ]
    events = [{"query": "a", "sku": "y", "at": 60, "n": n} for n in range(38)]
    events += [{"query": "a", "sku": "x", "at": 120, "n": 38}, {"query": "b", "sku": "x", "at": 120, "n": 39}]
    options: dict[str, Any] = {"keys": ("query",), "document": "sku", "time": "at", "pages": ("page",)}
    result, rows = joined(engine, pages, events, **options)
    counts = Counter((row["page"], row["sku"], row["click"]) for row in rows)
    expected = [(1, "x", 0), (1, "y", 38), (2, "x", 1), (2, "y", 0), (3, "x", 0), (3, "x", 0), (4, "x", 1)]
    assert counts == Counter(expected)
    assert result.shared == 1
    # Where they are more than one in twenty, times are too coarse.
    with pytest.raises(DataError, match=r"2 of the 39 events of .* fit several pages at once, which agree in query"):
        joined(engine, pages, [*events[2:], {"query": "a", "sku": "x", "at": 121, "n": 50}], **options)


def test_times_of_any_unit_are_compared(engine: Engine) -> None:
    # 2024-01-31 23:30:00 in UTC; the text counts minutes in place of seconds.
    start = 1_706_743_800
    for page, event in [("seconds", "milliseconds"), ("milliseconds", "nanoseconds"), ("nanoseconds", "fractions")]:
        shown = [{"query": "a", "sku": "x", "at": MOMENTS[page](start + 10 * place)} for place in range(3)]
        events = [{"query": "a", "sku": "x", "when": MOMENTS[event](start + second)} for second in (10, 20, 21)]
        _, rows = joined(
            engine, shown, events, keys=("query",), document="sku", time="when", window=5, shown={"when": "at"}
        )
        assert [row["click"] for row in sorted(rows, key=lambda row: row["at"])] == [0, 1, 2], (page, event)


def test_moments_as_text_and_as_milliseconds_are_compared(engine: Engine) -> None:
    shown = [{"query": "a", "sku": "x", "at": MOMENTS[zone](1_706_743_800)} for zone in ("text", "other zone")]
    late = pyarrow.array([1_706_743_800_249, 1_706_743_800_250]).cast(pyarrow.timestamp("ms", "America/New_York"))
    for times in (["1706743800249", "2024-01-31T23:30:00.250Z"], [1_706_743_800_249, 1_706_743_800_250], late):
        events = pyarrow.table({"query": ["a", "a"], "sku": ["x", "x"], "at": times})
        spec = EventsSpec(
            table=open_table(engine, events), name="the events", keys=("query",), document="sku", time="at"
        )
        result = join(engine, open_table(engine, pyarrow.Table.from_pylist(shown)), spec)
        assert engine.fetch(result.table)["click"].to_pylist() == [1, 1]
        assert result.unmatched == {"click": 1}


def test_days_are_times_too(engine: Engine) -> None:
    import datetime

    shown = [{"query": "a", "sku": "x", "at": datetime.date(2024, 1, day)} for day in (1, 2)]
    events = [{"query": "a", "sku": "x", "at": datetime.datetime(2024, 1, 2, 0, 10)}]
    _, rows = joined(engine, shown, events, keys=("query",), document="sku", time="at")
    assert [row["click"] for row in sorted(rows, key=lambda row: row["at"])] == [0, 1]


CLICKED: Row = {"query": "a", "sku": "x", "at": 3, "kind": "click", "number": 0}


def drawn(random: np.random.Generator) -> list[Row]:
    """One row that is the same each time, and up to eleven others."""
    choices: dict[str, list[Any]] = {
        "query": ["a", "b", None],
        "sku": ["x", "y"],
        "at": [*range(12), None],
        "kind": ["click", "buy", "view"],
        "number": [0, 1],
    }
    others = range(random.integers(12))
    return [CLICKED, *({name: each[random.integers(len(each))] for name, each in choices.items()} for _ in others)]


@pytest.mark.parametrize("seed", range(12))
def test_the_join_by_time_is_that_of_a_search_by_hand(seed: int, engine: Engine) -> None:
    random = np.random.default_rng(seed)
    shown, events = drawn(random), drawn(random)
    expected: Counter[tuple[Any, ...]] = Counter()
    unmatched: Counter[str] = Counter()
    distinct = {tuple(event.items()): event for event in events if event["kind"] != "view"}.values()
    for event in distinct:
        places = [
            page["at"]
            for page in shown
            if (page["query"], page["sku"]) == (event["query"], event["sku"])
            and None not in (page["query"], page["at"], event["at"])
            and 0 <= event["at"] - page["at"] <= 4
        ]
        if places:
            expected[event["query"], event["sku"], max(places), event["kind"]] += 1
        else:
            unmatched[event["kind"]] += 1
    result, rows = joined(
        engine,
        shown,
        events,
        keys=("query",),
        document="sku",
        time="at",
        window=4,
        action="kind",
        signals={"click": ("click",), "sale": ("buy",)},
    )
    assert len(rows) == len(shown)
    for row in rows:
        key = (row["query"], row["sku"], row["at"])
        assert (row["click"], row["sale"]) == (expected[*key, "click"], expected[*key, "buy"])
    assert result.unmatched == {"click": unmatched["click"], "sale": unmatched["buy"]}
    assert result.duplicates == sum(event["kind"] != "view" for event in events) - len(distinct)


def test_events_come_from_any_place_a_log_comes_from(engine: Engine, tmp_path: Path) -> None:
    events = pyarrow.Table.from_pylist([{"page": 1, "sku": "x"}])
    parquet.write_table(events, tmp_path / "events.parquet")
    (tmp_path / "events.jsonl").write_text(json.dumps({"page": 1, "sku": "x"}))
    with duckdb.connect(str(tmp_path / "events.db")) as connection:
        connection.execute(f"CREATE TABLE happened AS FROM '{tmp_path / 'events.parquet'}'")
    sources = [
        tmp_path / "events.parquet",
        tmp_path / "events.jsonl",
        f"duckdb:{tmp_path / 'events.db'}?table=happened",
    ]
    sources += [f"sql:FROM '{tmp_path / 'events.parquet'}'", events]
    shown = open_table(engine, pyarrow.Table.from_pylist(SHOWN))
    for source in sources:
        spec = EventsSpec(table=open_table(engine, source), name="the events", impression=("page",), document="sku")
        result = join(engine, shown, spec)
        assert result.unmatched == {"click": 0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"document": "sku"}, "joined by the columns of the impression, or by a query, user or session and a time"),
        ({"document": "sku", "keys": ("query",)}, "and a time; name one or the other"),
        ({"document": "sk", "impression": ("page",)}, "has no column 'sk', did you mean 'sku'"),
        ({"document": "sku", "impression": ("visit",)}, "the pyarrow frame has no column 'visit'"),
        ({"document": "what", "impression": ("page",)}, "the table of shown documents has no column 'what'"),
        ({"document": "sku", "impression": ("page",), "signals": {"buy": ("buy",)}}, "need the column of the action"),
        ({"document": "sku", "impression": ("page",), "signals": {"query": ()}}, "have a column 'query' already"),
        ({"document": "sku", "impression": ("page",), "window": 0}, "window must be a positive number"),
        (
            {"document": "sku", "impression": ("page",), "action": "what"},
            r"no event of the action 'click', did you mean 'item_click'; .*--click ACTION: view 2, item_click 1",
        ),
        (
            {"document": "sku", "impression": ("page",), "action": "what", "signals": {"sale": ("items_click",)}},
            "did you mean 'item_click'; say which of its actions are the signal 'sale', as in --signal sale=ACTION",
        ),
        (
            {"document": "sku", "keys": ("sku",), "time": "what", "shown": {"what": "at"}},
            "column 'what' of the pyarrow frame holds no times",
        ),
        ({"document": "page", "impression": ("page",)}, "none of the 3 events of the pyarrow frame fits a shown row"),
    ],
)
def test_what_does_not_fit_is_one_sentence(options: Any, message: str, engine: Engine) -> None:
    events = [{"page": 9, "sku": "x", "what": "view"}, {"page": 9, "sku": "y", "what": "view"}]
    events.append({"page": 9, "sku": "x", "what": "item_click"})
    with pytest.raises((DataError, OptionError), match=message) as caught:
        joined(engine, SHOWN, events, **options)
    assert "\n" not in str(caught.value)


def test_a_signal_that_did_not_occur_is_counted_as_zero(engine: Engine) -> None:
    events = [{"page": 1, "sku": "x", "what": "click"}]
    signals = {"click": ("click",), "sale": ("purchase",)}
    _, rows = joined(engine, SHOWN, events, impression=("page",), document="sku", action="what", signals=signals)
    assert {row["sale"] for row in rows} == {0}

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import csv, parquet

from ultr.errors import DataError, OptionError
from ultr.preparation.engine import connect
from ultr.preparation.log import prepare
from ultr.preparation.ubi import UbiLog, read_ubi

QUERIES = [
    {"query_id": "1", "user_query": "laptop", "query_response_hit_ids": ["x", "y", "z"], "application": "shop"},
    {"query_id": "2", "user_query": "laptop", "query_response_hit_ids": ["x", "y", "z"], "application": "shop"},
    {"query_id": "3", "user_query": "phone", "query_response_hit_ids": ["y", "x"], "application": "app"},
]


def event(query: str, action: str, document: str, ordinal: int | None = None, **other: Any) -> dict[str, Any]:
    place = {} if ordinal is None else {"position": {"ordinal": ordinal}}
    attributes = {"object": {"object_id": document, "object_id_field": "sku"}, **place, **other}
    return {"query_id": query, "action_name": action, "event_attributes": attributes}


EVENTS = [
    event("1", "click", "x"),
    event("1", "click", "x"),
    event("2", "product_hover", "y"),
    event("3", "click", "x"),
    event("3", "click", "elsewhere"),
]


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_queries_and_events_become_a_log(tmp_path: Path) -> None:
    write(tmp_path, "ubi_queries", QUERIES)
    write(tmp_path, "ubi_events", EVENTS)
    prepared = prepare(tmp_path, tmp_path / "log", columns="ubi", factors=["application"], rare=0)
    log = prepared.log
    assert log.query_ids.tolist() == ["laptop", "phone"]
    assert log.impressions.tolist() == [2, 1]
    assert log.clicks.tolist() == [1, 0, 0, 0, 1]
    assert log.factors[1].levels == ("app", "shop")
    assert prepared.summary.elsewhere == {"click": 1}


def test_the_action_that_is_a_click_is_named_as_the_message_says(tmp_path: Path) -> None:
    write(tmp_path, "ubi_queries", QUERIES)
    write(tmp_path, "ubi_events", [row | {"action_name": "item_open"} for row in EVENTS])
    with pytest.raises(DataError, match=r"signal 'click', as in --click ACTION: item_open \d"):
        prepare(tmp_path, tmp_path / "log", columns="ubi")
    assert prepare(tmp_path, tmp_path / "log", columns="ubi", click="item_open").log.clicks.sum() > 0


def test_a_query_without_hits_is_a_page_without_a_document(tmp_path: Path) -> None:
    nothing = {"query_id": "4", "user_query": "sofa", "query_response_hit_ids": [], "application": "shop"}
    write(tmp_path, "ubi_queries", [*QUERIES, nothing])
    write(tmp_path, "ubi_events", EVENTS)
    summary = prepare(tmp_path, tmp_path / "log", columns="ubi").summary
    assert [(each.reason, each.rows) for each in summary.reasons] == [("no document", 1)]
    assert (summary.pages.read, summary.pages.kept) == (4, 3)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    write(tmp_path, "ubi_queries", QUERIES)
    with pytest.raises(
        DataError, match=r"has no ubi_events; give a folder with ubi_queries.jsonl and ubi_events.jsonl"
    ):
        prepare(tmp_path, tmp_path / "log", columns="ubi")
    write(tmp_path, "ubi_events", [{"query_id": "1", "action_name": "click"}])
    with pytest.raises(DataError, match=r"ubi_events has no event_attributes.object.object_id"):
        prepare(tmp_path, tmp_path / "log", columns="ubi")


@contextmanager
def read(
    folder: Path, queries: list[dict[str, Any]], events: list[dict[str, Any]], **options: Any
) -> Iterator[tuple[UbiLog, dict[tuple[str, str], dict[str, Any]]]]:
    """The log, and its rows by query_id and document."""
    write(folder, "ubi_queries", queries)
    write(folder, "ubi_events", events)
    (folder / "work").mkdir()
    with connect("duckdb", folder / "work", memory="1GB") as engine:
        found = read_ubi(engine, folder, **options)
        rows = engine.fetch(found.joined.table).to_pylist()
        yield found, {(row["impression"], row["document"]): row for row in rows}


def positions(rows: Mapping[tuple[str, str], dict[str, Any]]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for (query, _), row in sorted(rows.items(), key=lambda item: item[1]["position"]):
        places.setdefault(query, []).append(row["position"])
    return places


def test_any_action_is_a_signal_and_the_others_are_told(tmp_path: Path) -> None:
    events = [*EVENTS, event("1", "add_to_cart", "y"), event("2", "purchase", "x"), event("2", "purchase", "q")]
    signals = {"click": ("click", "product_hover"), "cart": ("add_to_cart",), "order": ("purchase",)}
    with read(tmp_path, QUERIES, events, signals=signals) as (log, rows):
        counted = {key: [row[name] for name in signals] for key, row in rows.items() if any(row[n] for n in signals)}
        expected = {("1", "x"): [1, 0, 0], ("1", "y"): [0, 1, 0], ("2", "y"): [1, 0, 0]}
        assert counted == expected | {("2", "x"): [0, 0, 1], ("3", "x"): [1, 0, 0]}
        assert log.joined.unmatched == {"click": 1, "cart": 0, "order": 1}
        assert log.joined.duplicates == 1


def test_actions_are_not_guessed_but_listed(tmp_path: Path) -> None:
    write(tmp_path, "ubi_queries", QUERIES)
    write(tmp_path, "ubi_events", [event("1", "item_opened", "x"), event("1", "view", "x"), event("2", "view", "x")])
    with pytest.raises(
        DataError, match=r"ubi_events of .* has no event of the action 'click'.*: view 2, item_opened 1"
    ):
        prepare(tmp_path, tmp_path / "log", columns="ubi")


@pytest.mark.parametrize("start", [0, 1])
def test_the_first_ordinal_is_found_out(start: int, tmp_path: Path) -> None:
    events = [event("1", "click", "y", start + 1), event("2", "click", "z", start + 2), event("3", "click", "y", start)]
    with read(tmp_path, QUERIES, events) as (log, rows):
        assert f"ordinals of events count from {start}: 3 of 3 are the place in the list" in log.notes
        assert positions(rows) == {"1": [1, 2, 3], "2": [1, 2, 3], "3": [1, 2]}


@pytest.mark.parametrize("start", [0, 1])
def test_a_later_page_begins_where_the_ordinals_of_its_events_say(start: int, tmp_path: Path) -> None:
    pages = [
        *QUERIES,
        {"query_id": "4", "user_query": "phone", "query_response_hit_ids": ["v", "w"]},
        {"query_id": "5", "user_query": "phone", "query_response_hit_ids": ["v", "w"]},
    ]
    events = [event("1", "click", "x", start), event("2", "click", "x", start), event("3", "click", "y", start)]
    # The second page of ten has places 11 and 12; query 5 has events that do not agree with each other.
    events += [event("4", "click", "w", start + 11), event("4", "impression", "v", start + 10)]
    events += [event("5", "click", "v", start + 10), event("5", "click", "w", start + 3)]
    with read(tmp_path, pages, events) as (log, rows):
        assert positions(rows) == {"1": [1, 2, 3], "2": [1, 2, 3], "3": [1, 2], "4": [11, 12], "5": [1, 2]}
        assert log.notes == (
            f"ordinals of events count from {start}: 3 of 7 are the place in the list",
            "1 result page begins further down, as the ordinals of events say",
            "1 result page has ordinals that do not fit the list; the list counts",
        )


def test_events_of_actions_that_do_not_count_move_nothing(tmp_path: Path) -> None:
    events = [event("1", "click", "x", 1), event("2", "click", "x", 1), event("3", "page_exit", "y", 40)]
    with read(tmp_path, QUERIES, events) as (log, rows):
        assert positions(rows)["3"] == [1, 2]
        assert log.notes == ("ordinals of events count from 1: 2 of 2 are the place in the list",)


def test_ordinals_that_never_fit_are_told(tmp_path: Path) -> None:
    with read(tmp_path, QUERIES, [event("1", "click", "x", 7), event("3", "click", "x", 9)]) as (log, rows):
        assert log.notes == ("none of the 2 ordinals of events is a place in its list; the list counts",)
        assert positions(rows) == {"1": [1, 2, 3], "2": [1, 2, 3], "3": [1, 2]}


def test_it_is_said_that_pages_without_events_cannot_be_moved(tmp_path: Path) -> None:
    events = [event("1", "click", "x", 1), event("2", "click", "x", 1), event("3", "click", "y", 11)]
    with read(tmp_path, QUERIES, events) as (log, _):
        assert any("and such pages without an event stay at the top" in note for note in log.notes)


def test_the_number_of_results_before_a_page_may_be_given(tmp_path: Path) -> None:
    pages = [{**query, "query_attributes": {"from": 10 * (query["query_id"] == "3")}} for query in QUERIES]
    events = [event("1", "click", "x", 1), event("2", "click", "x", 31)]
    with read(tmp_path, pages, events, offset="query_attributes.from") as (log, rows):
        assert positions(rows) == {"1": [1, 2, 3], "2": [1, 2, 3], "3": [11, 12]}
        assert log.notes[1:] == ("1 result page has ordinals that do not fit the list; the list counts",)


def test_responses_of_one_query_are_its_pages_and_a_repeated_one_is_none(tmp_path: Path) -> None:
    def response(number: int, *documents: str) -> dict[str, Any]:
        more = {"query_response_id": str(number), "timestamp": f"2024-01-01T00:00:{number:02}Z"}
        return {"query_id": "1", "user_query": "laptop", "query_response_hit_ids": documents, **more}

    pages = [response(3, "v", "w"), response(1, "x", "y", "z"), response(2, "x", "y", "z")]
    with read(tmp_path, pages, [event("1", "click", "w", 5)]) as (log, rows):
        assert {document: row["position"] for (_, document), row in rows.items()} == {
            "x": 1,
            "y": 2,
            "z": 3,
            "v": 4,
            "w": 5,
        }
        assert log.notes == (
            "ordinals of events count from 1: 1 of 1 are the place in the list",
            "1 response repeats the documents of another of the same query_id; it is left out",
        )


@pytest.mark.parametrize("form", ["jsonl", "flat", "text", "parquet"])
def test_attributes_are_columns_in_every_form(form: str, tmp_path: Path) -> None:
    devices = ["phone", "desk", "phone"]
    pages: list[dict[str, Any]] = [
        {
            "query_id": query["query_id"],
            "user_query": query["user_query"],
            "query_response_object_ids": query["query_response_hit_ids"],
        }
        for query in QUERIES
    ]
    events = [event("1", "click", "y", 2), event("3", "click", "y", 1)]
    if form in ("jsonl", "parquet"):
        for page, device in zip(pages, devices, strict=True):
            page["query_attributes"] = {"device": device, "size": 3}
    else:
        for page, device in zip(pages, devices, strict=True):
            page["query_response_object_ids"] = json.dumps(page["query_response_object_ids"])
            page |= (
                {"query_attributes.device": device}
                if form == "flat"
                else {"query_attributes": json.dumps({"device": device})}
            )
        for each in events:
            inside = each.pop("event_attributes")
            if form == "flat":
                each |= {"event_attributes.object.object_id": inside["object"]["object_id"]}
                each |= {"event_attributes.position.ordinal": inside["position"]["ordinal"]}
            else:
                each["event_attributes"] = json.dumps(inside)
    for name, rows in {"ubi_queries": pages, "ubi_events": events}.items():
        table = pyarrow.Table.from_pylist(rows)
        if form == "jsonl":
            write(tmp_path, name, rows)
        elif form == "parquet":
            parquet.write_table(table, tmp_path / f"{name}.parquet")
        else:
            csv.write_csv(table, tmp_path / f"{name}.csv")
    prepared = prepare(tmp_path, tmp_path / "log", columns="ubi", factors=["query_attributes.device"], rare=0)
    assert prepared.log.factors[1].levels == ("desk", "phone")
    assert prepared.log.clicks.sum() == 2
    assert prepared.summary.notes == ("ordinals of events count from 1: 2 of 2 are the place in the list",)


def test_an_attribute_that_is_not_there_is_named(tmp_path: Path) -> None:
    pages = [{**query, "query_attributes": {"device": "phone"}} for query in QUERIES]
    write(tmp_path, "ubi_queries", pages)
    write(tmp_path, "ubi_events", EVENTS)
    with pytest.raises(DataError, match=r"has no 'query_attributes.devise', did you mean 'query_attributes.device'"):
        prepare(tmp_path, tmp_path / "log", columns="ubi", factors=["query_attributes.devise"])


def test_attributes_of_events_are_those_of_what_was_seen(tmp_path: Path) -> None:
    name = "event_attributes.column"
    clicks = [event("1", "click", "x", column="left"), event("3", "click", "x", column="right")]
    write(tmp_path, "ubi_queries", QUERIES)
    write(tmp_path, "ubi_events", clicks)
    with pytest.raises(DataError, match="so that it would tell the clicks; ubi_events must have events of the action"):
        prepare(tmp_path, tmp_path / "log", columns="ubi", factors=[name])
    seen = [event("1", "impression", document, column="left") for document in "xyz"]
    with read(tmp_path, QUERIES, [*clicks, *seen], others=(name,)) as (_, rows):
        assert {key[1]: row[name] for key, row in rows.items() if key[0] == "1"} == dict.fromkeys("xyz", "left")
        assert rows["3", "x"][name] is None


@pytest.mark.parametrize(
    "times",
    [
        [1717527761998, 1717527762998, 1717527763998],
        ["2024-06-04T19:02:41.998Z", "1717527762998", "2024-06-04T21:02:43.998+02:00"],
    ],
)
def test_times_are_milliseconds_or_text(times: list[Any], tmp_path: Path) -> None:
    write(tmp_path, "ubi_queries", [{**query, "timestamp": time} for query, time in zip(QUERIES, times, strict=True)])
    write(tmp_path, "ubi_events", EVENTS)
    prepared = prepare(tmp_path, tmp_path / "log", columns="ubi", time="timestamp", periods=3)
    assert prepared.summary.periods == tuple(f"2024-06-04 19:02:4{second}" for second in (1, 2, 3))


def test_the_made_up_shop_is_counted_as_by_hand(shared_data: Path, tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, Any]]] = {"ubi_queries": [], "ubi_events": []}
    with gzip.open(shared_data / "ubi" / "chorus.tsv.gz", "rt") as lines:
        for line in lines:
            name, _, row = line.partition("\t")
            tables[name].append(json.loads(row))
    hits = {query["query_id"]: query["query_response_object_ids"] for query in tables["ubi_queries"]}
    counted: Counter[tuple[str, str, str]] = Counter()
    elsewhere: Counter[str] = Counter()
    distinct = {json.dumps(row, sort_keys=True): row for row in tables["ubi_events"]}.values()
    for each in distinct:
        document = each["event_attributes"].get("object", {}).get("object_id")
        if document in hits.get(each["query_id"], ()):
            counted[each["query_id"], document, each["action_name"]] += 1
        else:
            elsewhere[each["action_name"]] += 1
    signals = {"click": ("item_click",), "cart": ("add_to_cart",)}
    with read(tmp_path, tables["ubi_queries"], tables["ubi_events"], signals=signals) as (log, rows):
        shown = {key: row for key, row in rows.items() if key[1] is not None}
        assert {key: row["position"] for key, row in shown.items()} == {
            (query, document): place for query, documents in hits.items() for place, document in enumerate(documents, 1)
        }
        for signal, (action,) in signals.items():
            assert {key: row[signal] for key, row in shown.items() if row[signal]} == {
                key[:2]: count for key, count in counted.items() if key[2] == action
            }
            assert log.joined.unmatched[signal] == elsewhere[action]
        assert log.notes[0].startswith("ordinals of events count from 1: ")
        assert not any("result page" in note for note in log.notes)
        assert log.joined.ignored["on_search"] == sum(row["action_name"] == "on_search" for row in tables["ubi_events"])
    with pytest.raises(OptionError, match="must be one of"):
        prepare(tmp_path, tmp_path / "log", columns="ubi_")


def test_documents_in_a_text_may_have_any_name(tmp_path: Path) -> None:
    """A list as JSON in a cell, as databases and CSV have it, or names between commas."""
    names = ["Shirt, red", "é", '5" tv', "7"]
    rows = [
        {"query_id": str(i), "user_query": f"q{i % 2}", "query_response_hit_ids": json.dumps(names)} for i in range(4)
    ]
    rows += [{"query_id": f"p{i}", "user_query": f"q{i}", "query_response_hit_ids": "é,7"} for i in range(2)]
    write(tmp_path, "ubi_queries", rows)
    clicks = [event(str(i), "click", name) for i, name in enumerate(names)] + [event("p0", "click", "7")]
    write(tmp_path, "ubi_events", clicks)
    prepared = prepare(tmp_path, tmp_path / "log", columns="ubi")
    assert prepared.summary.clicks.kept == 5
    assert not prepared.summary.elsewhere
    assert sorted(prepared.log.lengths.tolist()) == [2, 2, 4, 4]

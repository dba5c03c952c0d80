from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ultr.errors import DataError
from ultr.preparation import prepare

QUERIES = [
    {"query_id": "1", "user_query": "laptop", "query_response_hit_ids": ["x", "y", "z"], "application": "shop"},
    {"query_id": "2", "user_query": "laptop", "query_response_hit_ids": ["x", "y", "z"], "application": "shop"},
    {"query_id": "3", "user_query": "phone", "query_response_hit_ids": ["y", "x"], "application": "app"},
]


def event(query: str, action: str, document: str) -> dict[str, Any]:
    return {
        "query_id": query,
        "action_name": action,
        "event_attributes": {"object": {"object_id": document, "object_id_field": "sku"}, "position": {"ordinal": 1}},
    }


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
    assert prepared.summary.clicks_elsewhere == 1


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

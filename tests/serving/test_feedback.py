from __future__ import annotations

import errno
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from pyarrow import parquet
from tests.cli.console import ultr
from tests.serving.ranker_file import weights_of
from tests.serving.service import PATIENCE, Client, client, error_of, running
from tests.serving.test_routes import counted

from ultr.data.exploration_plan import ExplorationPlan, PlannedPair
from ultr.errors import OptionError
from ultr.preparation.engine import connect
from ultr.preparation.log import prepare
from ultr.preparation.ubi import read_ubi
from ultr.serving.exploration import SWAPS, Exploration
from ultr.serving.settings import ServiceSettings

EPSILON = 0.5


def query(name: str | None = "q", *, size: int = 4, **other: Any) -> dict[str, Any]:
    # The weights of the ranker are not all of one sign, so the order is not that of the request.
    rows = [[number % 3, number, -number] for number in range(size)]
    candidates = [{"id": f"sku-{number}", "features": row} for number, row in enumerate(rows)]
    return {**({} if name is None else {"id": name}), "user_query": "red shoes", "candidates": candidates, **other}


def ask(service: Client, *queries: dict[str, Any]) -> list[dict[str, Any]]:
    answer = service.post("/rank", json={"queries": list(queries)})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["queries"]
    return found


def read(folder: Path, table: str) -> list[dict[str, Any]]:
    """The rows of all files of a table, without what is null."""
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"{table}-*")):
        if path.suffix == ".parquet":
            rows += parquet.read_table(path).to_pylist()
        else:
            rows += map(json.loads, path.read_text().splitlines())
    return [filled(row) for row in rows]


def filled(row: dict[str, Any]) -> dict[str, Any]:
    parts = {name: filled(value) if isinstance(value, dict) else value for name, value in row.items()}
    return {name: value for name, value in parts.items() if value is not None}


def impressions(folder: Path) -> list[dict[str, Any]]:
    return [each for each in read(folder, "ubi_events") if each["action_name"] == "impression"]


@pytest.fixture
def service(model: Path, tmp_path: Path) -> Iterator[Client]:
    with client(model, ServiceSettings(log_to=tmp_path, explore=Exploration(SWAPS, EPSILON), shown=3)) as found:
        yield found


def test_an_answer_is_in_the_log_as_it_was_shown(service: Client, tmp_path: Path) -> None:
    answers = ask(service, *(query(f"q{number}") for number in range(40)))
    service.service.close()
    logged = read(tmp_path, "ubi_queries")
    digest = service.service.slot.current.scorer.digest
    assert [each["query_id"] for each in logged] == [f"q{number}" for number in range(40)]
    for answer, row in zip(answers, logged, strict=True):
        assert answer["query_id"] == answer["id"] == row["query_id"]
        assert row["user_query"] == "red shoes"
        assert row["query_response_hit_ids"] == [each["id"] for each in answer["ranking"][:3]]
        assert row["query_attributes"]["ultr"] == {
            "policy": digest,
            "explore": "swaps",
            "epsilon": EPSILON,
            "shown": 3,
            "candidates": 4,
        }
    seen = iter(impressions(tmp_path))
    for answer in answers:
        by_score = sorted(answer["ranking"], key=lambda each: -each["score"])
        assert by_score[3:] == answer["ranking"][3:], "what is not shown is not explored"
        for place, each in enumerate(answer["ranking"][:3], start=1):
            event = next(seen)
            assert event["query_id"] == answer["query_id"]
            attributes = event["event_attributes"]
            assert attributes["object"]["object_id"] == each["id"]
            assert attributes["position"]["ordinal"] == place
            base = by_score.index(each) + 1
            # Each of the two pairs is exchanged in half of the explored lists; the middle is in both.
            stays = 1 - EPSILON / 2 * (2 if base == 2 else 1)
            chance = pytest.approx(stays if base == place else EPSILON / 2)
            assert attributes["ultr"] == {"propensity": chance, "score": each["score"], "base_rank": base}
    assert next(seen, None) is None
    moved = sum(row["query_response_hit_ids"] != logged[0]["query_response_hit_ids"] for row in logged)
    assert moved, "some lists are explored"
    assert counted(service, "ultr_shown_queries_total", result="logged") == 40
    swapped = [a for a in answers if a["ranking"] != sorted(a["ranking"], key=lambda each: -each["score"])]
    assert 8 <= len(swapped) <= 32
    assert counted(service, "ultr_explored_queries_total") == len(swapped)


def test_scores_are_those_of_the_ranker(service: Client, tmp_path: Path) -> None:
    (answer,) = ask(service, query())
    service.service.close()
    features = {each["id"]: each["features"] for each in query()["candidates"]}
    for event in impressions(tmp_path):
        name = event["event_attributes"]["object"]["object_id"]
        # The file adds the number of queries.
        expected = float(weights_of() @ features[name]) + 1
        assert event["event_attributes"]["ultr"]["score"] == pytest.approx(expected, abs=1e-5)
    assert len(answer["ranking"]) == 4


def test_a_query_without_an_id_gets_one_of_its_own(service: Client, tmp_path: Path) -> None:
    answers = ask(service, query(None), query(None))
    service.service.close()
    assert len({answer["query_id"] for answer in answers}) == 2
    assert [each["query_id"] for each in read(tmp_path, "ubi_queries")] == [each["query_id"] for each in answers]
    assert all("id" not in answer for answer in answers)


def test_a_request_that_is_sent_again_is_shown_alike_and_logged_once(service: Client, tmp_path: Path) -> None:
    first = [ask(service, query(f"q{number}"))[0] for number in range(10)]
    again = [ask(service, query(f"q{number}"))[0] for number in range(10)]
    service.service.close()
    assert first == again
    assert len(read(tmp_path, "ubi_queries")) == 10
    assert len(impressions(tmp_path)) == 30
    assert counted(service, "ultr_shown_queries_total", result="repeated") == 10


def test_an_id_that_is_used_for_another_list_is_replaced(service: Client, tmp_path: Path) -> None:
    (first,), (other,) = ask(service, query("q")), ask(service, query("q", size=2))
    service.service.close()
    assert first["query_id"] == "q"
    assert other["id"] == "q" != other["query_id"]
    assert [each["query_id"] for each in read(tmp_path, "ubi_queries")] == ["q", other["query_id"]]


def test_a_query_says_how_many_are_shown(service: Client, tmp_path: Path) -> None:
    ask(service, query("one", shown=1), query("all", shown=100), query("none", size=0))
    service.service.close()
    sizes = {each["query_id"]: len(each["query_response_hit_ids"]) for each in read(tmp_path, "ubi_queries")}
    assert sizes == {"one": 1, "all": 4, "none": 0}
    assert Counter(each["query_id"] for each in impressions(tmp_path)) == {"one": 1, "all": 4}


def test_what_cannot_be_learned_from_is_answered_in_order_and_counted(service: Client, tmp_path: Path) -> None:
    nameless = query("q")
    for each in nameless["candidates"]:
        del each["id"]
    untyped = [query(f"q{number}") for number in range(20)]
    for each in untyped:
        del each["user_query"]
    answers = ask(service, nameless, *untyped)
    service.service.close()
    for answer in answers:
        assert "query_id" not in answer
        scores = [each["score"] for each in answer["ranking"]]
        assert scores == sorted(scores, reverse=True), "it is not explored"
    assert read(tmp_path, "ubi_queries") == []
    assert counted(service, "ultr_shown_queries_total", result="no_ids") == 1
    assert counted(service, "ultr_shown_queries_total", result="no_user_query") == 20


def test_without_a_folder_nothing_is_logged_or_named(model: Path) -> None:
    with client(model) as service:
        assert "query_id" not in ask(service, query())[0]


def test_a_full_disk_is_counted_and_ranking_goes_on(
    service: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def full(file: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    ask(service, query("lost"))
    end = time.monotonic() + PATIENCE
    while not counted(service, "ultr_shown_queries_total", result="disk") and time.monotonic() < end:
        time.sleep(0.05)
    monkeypatch.setattr(os, "write", write)
    ask(service, query("kept"))
    service.service.close()
    assert [each["query_id"] for each in read(tmp_path, "ubi_queries")] == ["kept"]
    assert counted(service, "ultr_shown_queries_total", result="disk") == 1
    assert counted(service, "ultr_shown_queries_total", result="logged") == 1


def test_a_plan_is_said_at_the_start_and_followed(model: Path, tmp_path: Path) -> None:
    pair = PlannedPair(first=1, second=3, probability=0.5, pages=100, why="for want of links")
    ExplorationPlan(pairs=(pair,), most_ranks_lost=2).write(tmp_path / "plan.json")
    with running(model, "--log-to", tmp_path / "shown", "--explore", tmp_path / "plan.json") as service:
        said = service.wait_for("exploration")["what"]
        assert "1 and 3 in 50.00% of the lists; no document is shown more than 2 ranks lower" in said
        queries = [query(f"q{number}") for number in range(40)]
        httpx.post(f"{service.url}/rank", json={"queries": queries}).raise_for_status()
        assert service.stop() == 0
    moved = 0
    for event in impressions(tmp_path / "shown"):
        place, told = event["event_attributes"]["position"]["ordinal"], event["event_attributes"]["ultr"]
        assert told["propensity"] == (0.5 if place in (1, 3) else 1.0)
        assert {place, told["base_rank"]} in ({1, 3}, {place})
        moved += place != told["base_rank"]
    assert 2 * 8 <= moved <= 2 * 32
    assert {each["query_attributes"]["ultr"]["explore"] for each in read(tmp_path / "shown", "ubi_queries")} == {"plan"}


def test_a_file_that_is_no_plan_is_refused_in_a_sentence(model: Path, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"format": "ultr exploration plan 1", "pairs": [1]}')
    refused = ultr("serve", model, "--log-to", tmp_path / "shown", "--explore", tmp_path / "plan.json", expect=2)
    assert "is not an exploration plan" in refused.stderr
    assert not (tmp_path / "shown").exists()


def test_exploring_without_a_log_is_refused() -> None:
    with pytest.raises(OptionError, match="--log-to"):
        ServiceSettings(explore=Exploration(SWAPS, 0.1))


def test_what_was_answered_is_logged_once_over_a_kill(model: Path, tmp_path: Path) -> None:
    flushed, late = [f"flushed-{number}" for number in range(20)], ["late"]
    with running(model, "--log-to", tmp_path, "--explore", "swaps=0.5") as service:
        with httpx.Client(base_url=service.url) as connection:
            for name in flushed:
                connection.post("/rank", json={"queries": [query(name)]}).raise_for_status()
            end = time.monotonic() + PATIENCE
            while 'ultr_shown_queries_total{result="logged"} 20.0' not in connection.get("/metrics").text:
                assert time.monotonic() < end
                time.sleep(0.05)
            connection.post("/rank", json={"queries": [query(late[0])]}).raise_for_status()
        service.process.kill()
        service.process.wait(PATIENCE)
    assert read(tmp_path, "ubi_queries") == [], "no file has its name before it is whole"
    with running(model, "--log-to", tmp_path) as service:
        after = httpx.post(f"{service.url}/rank", json={"queries": [query("after")]})
        assert service.stop() == 0
    names = [each["query_id"] for each in read(tmp_path, "ubi_queries")]
    assert sorted(set(names) - set(late)) == sorted([*flushed, "after"])
    assert len(names) == len(set(names))
    seen = Counter(each["query_id"] for each in impressions(tmp_path))
    assert all(seen[name] == len(after.json()["queries"][0]["ranking"]) for name in names)
    assert not list(tmp_path.glob(".*"))


def act(service: Client, *events: dict[str, Any]) -> dict[str, int]:
    answer = service.post("/events", json={"events": list(events)})
    assert answer.status_code == 202, answer.text
    found: dict[str, int] = answer.json()
    return {name: count for name, count in found.items() if count}


def event(document: str, action: str = "click", *, query_id: str = "q", **other: Any) -> dict[str, Any]:
    return {"query_id": query_id, "object_id": document, "action_name": action, **other}


def test_events_are_logged_and_told_how_they_fit(service: Client, tmp_path: Path) -> None:
    (answer,) = ask(service, query("q"))
    names = [each["id"] for each in answer["ranking"]]
    assert act(service, event(names[1]), event(names[1], "purchase")) == {"joined": 2}
    assert act(service, event(names[1]), event(names[3])) == {"duplicate": 1, "not_shown": 1}
    assert act(service, event(names[0], query_id="never")) == {"unknown": 1}
    assert act(service, event(names[0], timestamp="2999-01-01T01:00:00+01:00")) == {"late": 1}
    for result, count in {"joined": 2, "duplicate": 1, "not_shown": 1, "unknown": 1, "late": 1}.items():
        assert counted(service, "ultr_events_total", result=result) == count
    service.service.close()
    actions = [each for each in read(tmp_path, "ubi_events") if each["action_name"] != "impression"]
    found = [
        (each["query_id"], each["action_name"], each["event_attributes"]["object"]["object_id"]) for each in actions
    ]
    assert found == [
        ("q", "click", names[1]),
        ("q", "purchase", names[1]),
        ("q", "click", names[1]),
        ("q", "click", names[3]),
        ("never", "click", names[0]),
        ("q", "click", names[0]),
    ]
    places = [each["event_attributes"].get("position", {}).get("ordinal") for each in actions]
    assert places == [2, 2, 2, None, None, 1]
    assert actions[-1]["timestamp"] == "2999-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b"{}", 422, "events is missing"),
        (b'{"events": []}', 422, "at least 1"),
        (b'{"events": [{"query_id": "q", "object_id": "x"}]}', 422, "events.0.action_name is missing"),
        (b'{"events": [{"query_id": "q", "action_name": "click"}]}', 422, "events.0.object_id is missing"),
        (json.dumps({"events": [event("x", query_id="q" * 257)]}).encode(), 422, "events.0.query_id must be a text"),
        (json.dumps({"events": [event("x", "a b")]}).encode(), 422, "events.0.action_name"),
        (json.dumps({"events": [event("x", "Impression")]}).encode(), 422, "leave it out"),
        (json.dumps({"events": [event("x", timestamp="2026-01-01T00:00:00")]}).encode(), 422, "events.0.timestamp"),
        (
            json.dumps({"events": [event("x", timestamp="9999-12-31T23:59:59-01:00")]}).encode(),
            422,
            "events.0.timestamp",
        ),
        (json.dumps({"events": [event("x", price=3)]}).encode(), 422, "events.0.price is not known here"),
        (b'{"events": [' + b" " * 2**20 + b"]}", 413, "fewer events"),
    ],
)
def test_events_that_are_none_are_refused(service: Client, body: bytes, status: int, said: str) -> None:
    answer = service.post("/events", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert said in error_of(answer)


def test_a_service_without_a_folder_says_that_it_keeps_no_events(model: Path) -> None:
    with client(model) as service:
        answer = service.post("/events", json={"events": [event("x")]})
    assert answer.status_code == 404
    assert "--log-to" in error_of(answer)


def test_the_folder_is_a_log_that_can_be_prepared(service: Client, tmp_path: Path) -> None:
    words = ["red shoes", "blue shoes"]
    answers = ask(service, *(query(f"q{number}", user_query=words[number % 2]) for number in range(30)))
    clicks: Counter[tuple[str, int]] = Counter()
    pages: Counter[tuple[str, int]] = Counter()
    for number, answer in enumerate(answers):
        shown = [each["id"] for each in answer["ranking"][:3]]
        place = number % 3
        pages.update((name, rank) for rank, name in enumerate(shown, start=1))
        clicks[shown[place], place + 1] += 1
        act(service, event(shown[place], query_id=answer["query_id"]))
    act(service, event(shown[place], query_id=answer["query_id"]), event("sku-0", query_id="never"))
    service.service.close()
    (tmp_path / "work").mkdir()
    with connect("duckdb", tmp_path / "work", memory="1GB") as engine:
        rows = engine.fetch(read_ubi(engine, tmp_path).joined.table).to_pylist()
    found = Counter((row["document"], row["position"]) for row in rows)
    assert found == pages
    clicked = Counter((row["document"], row["position"]) for row in rows if row["click"])
    assert clicked == clicks
    prepared = prepare(tmp_path, tmp_path / "log", columns="ubi", rare=0)
    log = prepared.log
    assert sorted(log.query_ids.tolist()) == sorted(words)
    assert np.bincount(log.positions, np.repeat(log.impressions, log.lengths)).tolist() == [0, 30, 30, 30]
    assert np.bincount(log.positions, log.clicks).tolist() == [0, 10, 10, 10]
    assert prepared.summary.elsewhere == {"click": 1}

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.serving.ranker_file import NAMES
from tests.serving.service import Client, client, error_of, read_log

from ultr.errors import DataError, OptionError
from ultr.serving import logs, ranking
from ultr.serving import service as service_module
from ultr.serving.app import build_app
from ultr.serving.body import SMALL
from ultr.serving.limits import RequestLimits
from ultr.serving.model_slot import ModelSlot
from ultr.serving.service import Service
from ultr.serving.settings import ServiceSettings, read_token

TOKEN = "a-token-of-enough-characters"
REQUEST = {"queries": [{"candidates": [{"features": [1, 2, 3]}, {"features": [3, 2, 1]}]}]}


@pytest.fixture
def service(model: Path) -> Iterator[Client]:
    with client(model) as found:
        yield found


@pytest.fixture
def guarded(model: Path) -> Iterator[Client]:
    with client(model, ServiceSettings(token=TOKEN)) as found:
        yield found


def counted(service: Client, name: str, **labels: str) -> float:
    text = service.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


def test_the_model_tells_its_features_and_the_limits(service: Client) -> None:
    answer = service.get("/model").json()
    assert answer["card"]["feature_names"] == list(NAMES)
    assert answer["limits"]["candidates"] == RequestLimits().candidates
    assert len(answer["digest"]) == 32


def test_every_example_of_the_specification_works(service: Client) -> None:
    operation = service.get("/openapi.json").json()["paths"]["/rank"]["post"]
    shown = operation["responses"]["200"]["content"]["application/json"]["example"]
    examples = operation["requestBody"]["content"]["application/json"]["examples"]
    assert len(examples) == 2
    for example in examples.values():
        answer = service.post("/rank", json=example["value"])
        assert answer.status_code == 200
        assert answer.json() == shown


def test_every_refusal_is_in_the_specification(service: Client, guarded: Client) -> None:
    known = {"200", "400", "405", "408", "413", "415", "421", "422", "429", "503"}
    assert set(service.get("/openapi.json").json()["paths"]["/rank"]["post"]["responses"]) == known
    events = service.get("/openapi.json").json()["paths"]["/events"]["post"]["responses"]
    assert set(events) == (known | {"202", "404"}) - {"200"}
    paths = guarded.get("/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()["paths"]
    assert set(paths["/rank"]["post"]["responses"]) == (known | {"401"}) - {"421"}
    assert set(paths["/ready"]["get"]["responses"]) == {"200", "405", "503"}


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_ask_nobody_else(service: Client, path: str) -> None:
    answer = service.get(path)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "://" not in answer.text
    assert "page.css" not in answer.text, "it is in one piece"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/rank/", 404),
        ("POST", "/status", 405),
        ("POST", "/nothing", 404),
        ("GET", "/rank", 405),
        ("GET", "/events", 405),
        ("POST", "/model", 405),
    ],
)
def test_unknown_paths_and_methods_have_the_shape_of_all_errors(
    service: Client, method: str, path: str, status: int
) -> None:
    answer = service.request(method, path)
    assert answer.status_code == status
    error_of(answer)
    if status == 405:
        assert answer.headers["allow"] in ("GET", "POST")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_other_types_than_json_are_refused(service: Client, headers: dict[str, str]) -> None:
    answer = service.post("/rank", content=b"{}", headers=headers)
    assert answer.status_code == 415
    error_of(answer)


def test_json_may_name_its_charset(service: Client) -> None:
    headers = {"Content-Type": 'Application/JSON; charset="UTF-8"'}
    assert service.post("/rank", content=b'{"queries":[{"candidates":[]}]}', headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/rank", "/events", "/model", "/metrics", "/status", "/openapi.json", "/nothing"])
@pytest.mark.parametrize(
    "value", [None, "", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \xe4"]
)
def test_without_the_token_nothing_is_told(guarded: Client, path: str, value: str | None) -> None:
    headers = {} if value is None else {"Authorization": value.encode("latin-1")}
    answer = guarded.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in error_of(answer)


def test_with_the_token_everything_is(guarded: Client) -> None:
    for scheme in ("Bearer", "bearer"):
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        assert guarded.post("/rank", json=REQUEST, headers=headers).status_code == 200
        assert guarded.get("/model", headers=headers).status_code == 200
    assert TOKEN not in guarded.get("/model", headers=headers).text


@pytest.mark.parametrize("path", ["/health", "/ready", "/docs", "/"])
def test_probes_and_the_pages_need_no_token(guarded: Client, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_it_is_not_ready_while_it_shuts_down(model: Path) -> None:
    with client(model) as asked:
        assert asked.get("/ready").status_code == 200
        asked.service.closing = True
        answer = asked.get("/ready")
        assert answer.status_code == 503
        assert "shutting down" in error_of(answer)
        assert asked.get("/health").status_code == 200
        assert asked.post("/rank", json=REQUEST).status_code == 200


def test_requests_are_counted_by_route_status_and_reason(service: Client) -> None:
    for _ in range(3):
        service.post("/rank", json=REQUEST)
    service.post("/rank", json={"queries": [{"candidates": [{"features": [1]}]}]})
    service.get("/no/such/path")
    assert counted(service, "ultr_requests_total", route="/rank", status="200") == 3
    assert counted(service, "ultr_requests_total", route="/rank", status="422") == 1
    assert counted(service, "ultr_requests_total", route="other", status="404") == 1
    assert counted(service, "ultr_request_seconds_count", route="/rank") == 4
    assert counted(service, "ultr_refused_total", reason="wrong_length") == 1
    assert counted(service, "ultr_queries_total") == 3
    assert counted(service, "ultr_candidates_total") == 6
    assert counted(service, "ultr_in_flight") == 1, "the one that asks"
    digest = service.get("/model").json()["digest"]
    assert counted(service, "ultr_model_loaded_timestamp_seconds", digest=digest) > 1e9


def test_two_services_count_for_themselves(model: Path) -> None:
    with client(model) as one, client(model) as other:
        one.post("/rank", json=REQUEST)
        assert counted(one, "ultr_queries_total") == 1
        assert counted(other, "ultr_queries_total") == 0


def _held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Requests are not scored before this event."""
    go_on = threading.Event()
    rank = ranking.rank

    def wait(*arguments: Any, **options: Any) -> Any:
        assert go_on.wait(30)
        return rank(*arguments, **options)

    monkeypatch.setattr(service_module, "rank", wait)
    return go_on


def test_requests_beyond_those_at_once_are_told_to_come_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = _held(monkeypatch)
    service = Service(ModelSlot(model), ServiceSettings(limits=RequestLimits(requests=3), threads=1))

    async def run() -> tuple[list[httpx.Response], httpx.Response]:
        transport = httpx.ASGITransport(build_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asked:
            begun = [asyncio.create_task(asked.post("/rank", json=REQUEST)) for _ in range(5)]
            finished: set[asyncio.Task[httpx.Response]] = set()
            while len(finished) < 2:
                finished, _ = await asyncio.wait(begun, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            go_on.set()
            return [await task for task in begun], await asked.post("/rank", json=REQUEST)

    answers, later = asyncio.run(run())
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].headers["retry-after"] == "1"
    assert "3 requests are being answered" in error_of(answers[-1])
    assert later.status_code == 200


def test_bodies_share_a_limit_that_is_given_back(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = _held(monkeypatch)
    large = json.dumps(REQUEST).encode() + b" " * SMALL
    size, headers = len(large), {"Content-Type": "application/json"}
    with client(model, ServiceSettings(limits=RequestLimits(all_body_bytes=2 * size), threads=3)) as asked:

        async def run() -> list[httpx.Response]:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(asked.app), base_url="http://localhost"
            ) as client:
                begun = [asyncio.create_task(client.post("/rank", content=large, headers=headers)) for _ in range(3)]
                await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
                begun += [asyncio.create_task(client.post("/rank", json=REQUEST)) for _ in range(3)]
                go_on.set()
                return [await task for task in begun]

        answers = asyncio.run(run())
        assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 200, 429]
        assert "too many large requests" in error_of(max(answers, key=lambda answer: answer.status_code))
        assert asked.service.bodies.held == 0
        assert asked.post("/rank", content=b"{", headers={"Content-Type": "application/json"}).status_code == 400
        assert asked.service.bodies.held == 0


def test_an_answer_that_takes_too_long_is_given_up(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = _held(monkeypatch)
    with client(model, ServiceSettings(limits=RequestLimits(score_seconds=0.05))) as service:
        answer = service.post("/rank", json=REQUEST)
        go_on.set()
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "1"
    assert "no answer within 0.05 seconds" in error_of(answer)


def test_it_is_not_ready_while_every_thread_works_on_what_was_given_up(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = _held(monkeypatch)
    with client(model, ServiceSettings(limits=RequestLimits(score_seconds=0.05), threads=2)) as service:
        for stuck, ready in ((1, 200), (2, 503)):
            assert service.post("/rank", json=REQUEST).status_code == 429
            assert counted(service, "ultr_stuck_threads") == stuck
            assert service.get("/ready").status_code == ready
        assert "given up" in error_of(service.get("/ready"))
        assert service.get("/health").status_code == 200
        assert not service.service.close(), "threads are left behind"
        go_on.set()
        assert service.service.close()
        assert service.get("/ready").status_code == 200


def test_a_request_by_another_name_is_refused_unless_there_is_a_token(service: Client, guarded: Client) -> None:
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:80", "[::1]:8000", "[::1]"):
        assert service.get("/model", headers={"Host": host}).status_code == 200, host
    for host in ("attacker.example", "localhost.attacker.example", "[::2]", "[", "", "127.0.0.1@attacker.example:80"):
        answer = service.get("/model", headers={"Host": host})
        assert answer.status_code == 421, host
        assert "--allow-host" in error_of(answer)
    assert service.get("/health", headers=[("Host", "localhost"), ("Host", "attacker.example")]).status_code == 421
    headers = {"Host": "attacker.example", "Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/model", headers=headers).status_code == 200


def test_names_can_be_added(model: Path) -> None:
    with client(model, ServiceSettings(host="127.0.0.2", allowed_hosts=("Ranker.example", "[fd00::1]"))) as service:
        for host in ("ranker.example:443", "127.0.0.2:8000", "[fd00::1]:8000", "localhost"):
            assert service.get("/model", headers={"Host": host}).status_code == 200, host
        assert service.get("/model", headers={"Host": "other.example"}).status_code == 421
    assert ServiceSettings(token=TOKEN).hosts is None
    assert ServiceSettings(open_without_token=True).hosts is None


def test_lines_that_cannot_be_written_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is a pipe that nobody reads until the end."""
    reader, writer = os.pipe()
    monkeypatch.setattr(logs, "_STDERR", writer)
    monkeypatch.setattr(logs, "_MOST_WAITING", 5)
    dropped: list[int] = []
    logs.configure("info", dropped=lambda: dropped.append(1))
    most = 200_000 // 200
    for number in range(most):
        logs.write("x" * 200, number=number)
    assert 0 < len(dropped) < most
    with os.fdopen(reader) as stream:
        lines = 0
        while lines + len(dropped) < most:
            assert json.loads(stream.readline())["event"] == "x" * 200
            lines += 1
    logs.close()
    os.close(writer)


def test_a_fault_of_the_service_has_the_same_shape_and_tells_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(service_module, "rank", fail)
    logs.configure("info")
    with client(model) as service:
        answer = service.post("/rank", json=REQUEST)
    assert answer.status_code == 500
    assert "secret" not in error_of(answer)
    log = read_log(capfd)
    assert "secret" not in log
    fault, request = map(json.loads, log.splitlines())
    assert (fault["event"], fault["exception"]) == ("error", "RuntimeError")
    assert fault["at"][-1].endswith(" fail")
    assert (request["status"], request["request"]) == (500, fault["request"])


def test_a_request_id_is_given_back_if_it_is_plain(service: Client) -> None:
    assert service.get("/health", headers={"X-Request-ID": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    for odd in ("a b", "a" * 65, "", "<script>", "ä"):
        given = service.get("/health", headers={"X-Request-ID": odd.encode()}).headers["x-request-id"]
        assert given != odd
        assert re.fullmatch(r"[0-9a-f]{8}-\d+", given)


@pytest.mark.parametrize(
    "token", ["", "short", "spaces in the middle of it", "umläute-are-not-plain", "line\nbreak-in-the-token"]
)
def test_tokens_that_protect_nothing_or_cannot_be_sent_are_refused(token: str) -> None:
    with pytest.raises(OptionError, match="openssl rand -hex 32"):
        ServiceSettings(token=token)


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file, {"ULTR_TOKEN": "other"}) == TOKEN
    assert read_token(None, {"ULTR_TOKEN": f" {TOKEN}"}) == TOKEN
    assert read_token(None, {}) is None
    with pytest.raises(DataError, match="cannot read the token"):
        read_token(tmp_path / "none", {})
    assert TOKEN not in repr(ServiceSettings(token=TOKEN))


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "fe80::1%eth0"])
def test_other_machines_need_a_token_unless_told_otherwise(address: str) -> None:
    ServiceSettings(token=TOKEN).check_exposure(address)
    ServiceSettings(open_without_token=True).check_exposure(address)
    with pytest.raises(OptionError, match="--no-token"):
        ServiceSettings().check_exposure(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1"])
def test_the_same_machine_needs_none(address: str) -> None:
    ServiceSettings().check_exposure(address)


@pytest.mark.parametrize(
    "limits", [{"queries": 0}, {"candidates": 1.5}, {"body_seconds": 0}, {"score_seconds": float("nan")}]
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(limits))):
        RequestLimits(**limits)

"""Whatever is sent: never a 500, always the one shape of errors, and nothing that the specification does not say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.serving.ranker_file import NAMES
from tests.serving.service import Client, client, error_of

from ultr.serving.features import Missing
from ultr.serving.limits import RequestLimits
from ultr.serving.settings import ServiceSettings

QUICK = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TOKEN = "a-token-of-enough-characters"
LIMITS = RequestLimits(queries=3, candidates=4, all_candidates=6)
NUMBERS = st.floats(allow_nan=False, width=32) | st.integers(-(10**6), 10**6)
ODD: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.floats()
    | st.integers()
    | st.just(10**400)
    | st.just([])
    | st.just({})
)
IDS = st.none() | st.text(max_size=5) | st.integers(-9, 9)
JSON = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


def features(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    array = st.lists(values, min_size=2, max_size=4)
    named = st.dictionaries(st.sampled_from([*NAMES, "other"]), values, min_size=2)
    return array | named | st.fixed_dictionaries(dict.fromkeys(NAMES, values)) | st.tuples(*[values] * 3).map(list)


def requests(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    candidate = st.fixed_dictionaries({"features": features(values)}, optional={"id": IDS})
    query = st.fixed_dictionaries({"candidates": st.lists(candidate, max_size=5)}, optional={"id": IDS})
    return st.fixed_dictionaries({"queries": st.lists(query, max_size=4)})


@pytest.fixture(scope="module", params=["as-trained", "fill"])
def service(model: Path, mixed_model: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    missing: Missing = request.param
    with client(model if missing == "fill" else mixed_model, ServiceSettings(missing=missing, limits=LIMITS)) as found:
        yield found


def check(answer: httpx.Response) -> None:
    assert answer.status_code in (200, 400, 413, 415, 422)
    if answer.status_code != 200:
        error_of(answer)
        return
    for query in answer.json()["queries"]:
        scores = [place["score"] for place in query["ranking"]]
        assert all(map(math.isfinite, scores))
        assert scores == sorted(scores, reverse=True)
        assert sorted(place["index"] for place in query["ranking"]) == list(range(len(scores)))


def post(service: Client, body: bytes) -> httpx.Response:
    return service.post("/rank", content=body, headers={"Content-Type": "application/json"})


@QUICK
@given(body=st.binary(max_size=200))
def test_bytes(service: Client, body: bytes) -> None:
    check(post(service, body))


@QUICK
@given(content=JSON)
def test_json(service: Client, content: Any) -> None:
    check(post(service, json.dumps(content).encode()))
    check(post(service, json.dumps({"queries": content}).encode()))


@QUICK
@given(content=requests(NUMBERS | ODD))
@example(content={"queries": [{"candidates": [{"features": [1, 2, 10**400]}]}]})
def test_requests_with_odd_values(service: Client, content: Any) -> None:
    check(post(service, json.dumps(content).encode()))


@QUICK
@given(content=requests(NUMBERS), place=st.integers(0, 400), piece=st.binary(max_size=6), length=st.integers(0, 6))
def test_requests_with_bytes_exchanged(service: Client, content: Any, place: int, piece: bytes, length: int) -> None:
    body = json.dumps(content).encode()
    place = min(place, len(body))
    check(post(service, body[:place] + piece + body[place + length :]))


@QUICK
@given(
    name=st.sampled_from(["Content-Type", "Content-Length", "Content-Encoding", "X-Request-ID", "Authorization"]),
    value=st.binary(max_size=30),
)
def test_headers(service: Client, name: str, value: bytes) -> None:
    headers: dict[bytes | str, bytes] = {"Content-Type": b"application/json", name: value}
    check(service.post("/rank", content=b'{"queries": [{"candidates": []}]}', headers=headers))


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("missing", ["as-trained", "refuse", "fill"])
@pytest.mark.parametrize("mode", GenerationMode)
def test_the_service_does_what_its_specification_says(
    model: Path, mixed_model: Path, token: str | None, missing: Missing, mode: GenerationMode
) -> None:
    # The number of candidates in all queries is the one limit that the specification has no words for.
    limits = RequestLimits(queries=3, candidates=4, all_candidates=12)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    asks_for = model if missing == "refuse" else mixed_model
    settings_ = ServiceSettings(token=token, missing=missing, limits=limits, allowed_hosts=("testserver",))
    with client(asks_for, settings_) as asked:
        schema = schemathesis.openapi.from_dict(asked.get("/openapi.json", headers=headers).json())
        schema.app = asked.app
        seen: set[str] = set()
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            operation = result.ok()
            if mode is GenerationMode.NEGATIVE and operation.method == "get":
                continue

            @settings(QUICK, max_examples=40 if operation.method == "post" else 2, phases=[Phase.generate])
            @given(case=operation.as_strategy(generation_mode=mode))
            def run(case: schemathesis.Case[Any]) -> None:
                seen.add(case.operation.label)
                answer = case.call(headers=headers)
                # Nor has it words for ids that must differ, or for models that cannot be explained.
                beyond = any(words in answer.content for words in (b"has the same id as", b"cannot be explained"))
                excluded: list[Any] = [positive_data_acceptance] if beyond else []
                # Parameters that it does not know, such as those of a proxy, are let be.
                if set(case.query or {}) - {"explain"}:
                    excluded.append(negative_data_rejection)
                case.validate_response(answer, excluded_checks=excluded)

            run()
    every = {"POST /rank", "POST /events", "GET /model", "GET /health", "GET /ready", "GET /metrics", "GET /status"}
    assert seen == (every if mode is GenerationMode.POSITIVE else {"POST /rank", "POST /events"})

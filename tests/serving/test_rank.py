from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.serving.ranker_file import NAMES, weights_of, write_ranker
from tests.serving.service import Client, client, error_of

from ultr.scoring import FORMS, Scorer
from ultr.serving.features import FeatureRules
from ultr.serving.limits import RequestLimits
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import Query
from ultr.serving.settings import ServiceSettings


@pytest.fixture(scope="module")
def service(model: Path) -> Iterator[Client]:
    with client(model) as found:
        yield found


@pytest.fixture(scope="module")
def filling(model: Path) -> Iterator[Client]:
    with client(model, ServiceSettings(missing="fill")) as found:
        yield found


def ask(*candidates: Any, **query: Any) -> dict[str, Any]:
    """A request with one query."""
    return {"queries": [{**query, "candidates": [{"features": features} for features in candidates]}]}


def named(*values: Any) -> dict[str, Any]:
    return dict(zip(NAMES, values, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_candidates_come_back_by_their_scores(tmp_path: Path, form: Any) -> None:
    path = write_ranker(tmp_path / "model.onnx", form=form)
    random = np.random.default_rng(1)
    sizes = (4, 0, 7)
    queries = [random.normal(size=(size, len(NAMES))).astype(np.float32) for size in sizes]
    request = {
        "queries": [
            {
                "id": f"q{number}",
                "candidates": [{"id": f"d{i}", "features": row.tolist()} for i, row in enumerate(rows)],
            }
            for number, rows in enumerate(queries)
        ]
    }
    with client(path) as service:
        answer = service.post("/rank", json=request)
        digest = service.get("/model").json()["digest"]
    assert answer.status_code == 200
    assert answer.json()["model"] == digest
    assert [query["id"] for query in answer.json()["queries"]] == ["q0", "q1", "q2"]
    for rows, query in zip(queries, answer.json()["queries"], strict=True):
        expected = rows @ weights_of() + (len(sizes) if form == "flat" else 0)
        assert [place["index"] for place in query["ranking"]] == np.argsort(-expected).tolist()
        assert [place["id"] for place in query["ranking"]] == [f"d{i}" for i in np.argsort(-expected)]
        np.testing.assert_allclose([place["score"] for place in query["ranking"]], np.sort(expected)[::-1], rtol=1e-5)


def test_features_by_name_and_as_an_array_mean_the_same(service: Client) -> None:
    by_name = {"age": 3, "bm25": 1.5, "clicks:30d": -2}
    answer = service.post("/rank", json=ask(by_name, [1.5, -2, 3])).json()
    first, second = answer["queries"][0]["ranking"]
    assert first["score"] == second["score"]


def test_ties_keep_the_order_sent(service: Client) -> None:
    rows = [[1, 2, 3]] * 30 + [[1, 2, 2]]
    (query,) = service.post("/rank", json=ask(*rows)).json()["queries"]
    order = [place["index"] for place in query["ranking"]]
    assert [index for index in order if index < 30] == list(range(30))


def test_ids_are_given_back_as_they_came_and_left_out_if_there_were_none(service: Client) -> None:
    candidates = [{"id": 1, "features": [0, 0, 0]}, {"id": "01", "features": [0, 0, 0]}, {"features": [0, 0, 0]}]
    (query,) = service.post("/rank", json={"queries": [{"candidates": candidates}]}).json()["queries"]
    assert [place.get("id") for place in query["ranking"]] == [1, "01", None]
    assert "id" not in query
    assert "id" not in query["ranking"][2]


@pytest.mark.parametrize(
    ("features", "feature", "words"),
    [
        ({"bm25": 1, "age": 1}, "clicks:30d", "lacks feature 'clicks:30d'"),
        ({**named(1, 1, 1), "bm52": 1}, "bm52", "did you mean 'bm25'?"),
        ({**named(1, 1, 1), "colour": 1}, "colour", "does not know"),
        ({"bm25": 1, "age": 1, "x": 1}, "x", "does not know"),
        (named(1, None, 1), "clicks:30d", "null"),
        (named(1, "1", 1), "clicks:30d", "a text"),
        (named(True, 1, 1), "bm25", "true or false"),
        (named(1, 1, [1]), "age", "an array"),
        (named(1, 1, {}), "age", "an object"),
        (named(1, 1, 1e39), "age", "32 bits"),
        (named(1, 1, -1e39), "age", "32 bits"),
        (named(1, 1, 10**400), "age", "32 bits"),
        ([1, True, 1], "clicks:30d", "true or false"),
        ([1, 1, None], "age", "null"),
        ([1, 1, "a"], "age", "a text"),
        ([1, 1], None, "has 2 features, the model knows 3"),
        ([1, 1, 1, 1], None, "has 4 features"),
        ([], None, "has 0 features"),
        ({}, "bm25", "lacks feature 'bm25'"),
        ([[1, 2, 3]], None, "has 1 features"),
        (7, None, "not a number"),
        ("bm25", None, "not a text"),
        (None, None, "not null"),
    ],
)
def test_bad_features_name_the_candidate_and_the_feature(
    service: Client, features: Any, feature: str | None, words: str
) -> None:
    good = {"candidates": [{"features": [1, 1, 1]}]}
    bad = {"id": "shoes", "candidates": [{"features": [1, 1, 1]}, {"id": "doc", "features": features}]}
    answer = service.post("/rank", json={"queries": [good, bad]})
    assert answer.status_code == 422
    sentence = error_of(answer)
    assert sentence.startswith("candidate 1 ('doc') of query 1 ('shoes') ")
    assert words in sentence
    where = {"query": 1, "query_id": "shoes", "candidate": 1, "candidate_id": "doc"}
    assert answer.json()["where"] == where | ({} if feature is None else {"feature": feature})


def test_an_embedding_sent_as_an_array_gets_the_hint_how_to_send_it() -> None:
    card = SimpleNamespace(feature_names=("age", "image[0]", "image[1]"), missing={})
    rules = FeatureRules(cast("Scorer", SimpleNamespace(card=card, codes={})))
    query = Query.model_validate({"candidates": [{"features": {"age": 1, "image": [0.5, 0.5]}}]})
    with pytest.raises(Refusal, match=r"'image' that the model .*; give its numbers one by one, as 'image\[0\]'"):
        rules.matrix([query])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_name_the_feature(service: Client, filling: Client, value: str) -> None:
    body = '{"queries": [{"candidates": [{"features": [1, VALUE, 3]}]}]}'.replace("VALUE", value)
    for each in (service, filling):
        answer = each.post("/rank", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert "'clicks:30d'" in error_of(answer)


def test_missing_features_take_their_typical_value_if_the_service_is_told_so(filling: Client) -> None:
    request = ask({"bm25": 5}, named(5, None, None), [5, None, None], [5, 0.5, 1.0])
    ranking = filling.post("/rank", json=request).json()["queries"][0]["ranking"]
    assert len({place["score"] for place in ranking}) == 1
    assert error_of(filling.post("/rank", json=ask({"bm52": 1}))).startswith(
        "candidate 0 of query 0 has a feature 'bm52'"
    )
    assert "a text" in error_of(filling.post("/rank", json=ask(["1", None, 1])))


@pytest.fixture(scope="module")
def mixed(mixed_model: Path) -> Iterator[Client]:
    with client(mixed_model) as found:
        yield found


def _scores(answer: Any) -> list[float]:
    """The scores of one query's candidates in the order sent."""
    places = {place["index"]: place["score"] for place in answer.json()["queries"][0]["ranking"]}
    return [places[number] for number in range(len(places))]


def test_what_was_missing_in_training_may_be_null_and_nothing_else(mixed: Client) -> None:
    weights = weights_of()
    null, named_null, filled = _scores(
        mixed.post("/rank", json=ask([None, 2, "young"], named(None, 2, "young"), [0.0, 2, "young"]))
    )
    assert null == named_null == filled == pytest.approx(2 * weights[1] + 1)
    refused = error_of(mixed.post("/rank", json=ask([1, None, "young"])))
    assert refused == (
        "candidate 0 of query 0 has null as feature 'clicks:30d', which was never missing in training; give a number, "
        "or start the service with --missing fill"
    )
    left_out = error_of(mixed.post("/rank", json=ask({"clicks:30d": 1, "age": "young"})))
    assert "lacks feature 'bm25'; give every feature, null if it is missing" in left_out
    assert mixed.get("/model").json()["missing"] == "as-trained"


def test_all_missing_features_are_refused_or_taken_where_the_service_is_told_so(mixed_model: Path) -> None:
    with client(mixed_model, ServiceSettings(missing="refuse")) as strict:
        assert "has null as feature 'bm25'; give a number" in error_of(strict.post("/rank", json=ask([None, 2, "old"])))
    with client(mixed_model, ServiceSettings(missing="fill")) as filling:
        assert filling.post("/rank", json=ask([None, None, None], {})).status_code == 200


def test_categories_are_sent_as_texts(mixed: Client) -> None:
    """The model multiplies the code by its weight: those of the values are their places, others that of `other`."""
    values = ["young", "old: 9+", "other", "17", 17, 17.0, "ancient"]
    scores = _scores(mixed.post("/rank", json=ask(*(named(0, 0, value) for value in values))))
    weight = weights_of()[2]
    np.testing.assert_allclose(np.array(scores) - 1, weight * np.array([0, 1, 2, 3, 3, 3, 2]), rtol=1e-5, atol=1e-6)
    assert _scores(mixed.post("/rank", json=ask(*([0, 0, value] for value in values)))) == scores
    assert "ultr_unseen_values_total 2.0" in mixed.get("/metrics").text


@pytest.mark.parametrize(
    "value", ["1.5", "true", "[]", "{}", "1e300", "NaN", "1" + 400 * "0"], ids=lambda text: text[:5]
)
def test_what_is_no_value_of_a_category_is_refused(mixed: Client, value: str) -> None:
    body = '{"queries": [{"candidates": [{"features": [1, 1, VALUE]}]}]}'.replace("VALUE", value)
    answer = mixed.post("/rank", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "as feature 'age', which is categorical; give a text" in error_of(answer)
    assert answer.json()["where"]["feature"] == "age"


def test_a_key_that_stands_twice_is_seen_beside_values_with_colons(mixed: Client) -> None:
    body = '{"queries": [{"candidates": [{"features": {"bm25": 1, "bm25": 2, "clicks:30d": 1, "age": "old: 9+"}}]}]}'
    answer = mixed.post("/rank", content=body, headers={"Content-Type": "application/json"})
    assert "the key 'bm25' twice" in error_of(answer)


def test_features_so_large_that_there_is_no_score_are_refused(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(9)]
    extreme = 3e38 * np.sign(weights_of(names))
    with client(write_ranker(tmp_path / "model.onnx", names)) as service:
        answer = service.post("/rank", json=ask([1] * 9, extreme.tolist()))
    assert answer.status_code == 422
    assert "candidate 1 of query 0 has no score" in error_of(answer)


def test_two_candidates_of_a_query_cannot_have_the_same_id(service: Client) -> None:
    candidates = [
        {"id": "a", "features": [1, 1, 1]},
        {"id": "b", "features": [1, 1, 1]},
        {"id": "a", "features": [1, 1, 1]},
    ]
    answer = service.post("/rank", json={"queries": [{"candidates": candidates}]})
    assert answer.status_code == 422
    assert error_of(answer).startswith("candidate 2 ('a') of query 0 has the same id as candidate 0")
    alike = [{"id": "7", "features": [1, 1, 1]}, {"id": 7, "features": [1, 1, 1]}]
    answer = service.post("/rank", json={"queries": [{"candidates": alike}]})
    assert error_of(answer).startswith("candidate 1 (7) of query 0 has the same id as candidate 0")
    two = [{"id": "q", "candidates": candidates[:1]}, {"id": "q", "candidates": candidates[:1]}]
    assert service.post("/rank", json={"queries": two}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        '{"queries": [{"candidates": [{"features": {"bm25": 1, "bm25": 2, "clicks:30d": 1, "age": 1}}]}]}',
        '{"queries": [{"candidates": [{"features": [1, 1, 1], "features": [2, 2, 2]}]}]}',
        '{"queries": [], "queries": [{"candidates": []}]}',
        '{"queries": [{"id": "a:b", "id": "c:", "candidates": []}]}',
        '{"queries": [{"id": "\\u003a", "candidates": [{"features": [1, 1, 1], "features": [2, 2, 2]}]}]}',
        '{"queries": [{"candidates": [{"features": {"bm25": 1, "bm25": 2, "clicks\\u003A30d": 1, "age": 1}}]}]}',
        '{"queries": [{"id": "\\\\u003a", "id": "\\u003a", "candidates": []}]}',
    ],
)
def test_a_key_that_stands_twice_is_refused(service: Client, body: str) -> None:
    answer = service.post("/rank", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "twice" in error_of(answer)


@pytest.mark.parametrize(("sent", "id_"), [("a\\u003ab:c", "a:b:c"), ("\\u003A", ":"), ("\\\\u003a", "\\u003a")])
def test_colons_in_ids_are_no_keys(service: Client, sent: str, id_: str) -> None:
    body = f'{{"queries": [{{"id": "::", "candidates": [{{"id": "{sent}", "features": [1, 1, 1]}}]}}]}}'
    answer = service.post("/rank", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["queries"][0]["ranking"][0]["id"] == id_


@pytest.mark.parametrize("name", ["\n", "a\r\nb", "\x1b[2J", "\u2028", "\u202e"])
def test_a_sentence_has_no_line_breaks_of_the_request(service: Client, name: str) -> None:
    for request in ({"queries": [{"candidates": [], name: 1}]}, ask({name: 1}), {name: 1}):
        answer = service.post("/rank", json=request)
        assert answer.status_code == 422
        assert error_of(answer).isprintable()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe{}", 400),
        (b'{"queries": [{"id": "\xff", "candidates": []}]}', 400),
        (b'{"queries": [{"id": "\\ud800", "candidates": []}]}', 400),
        ('{"queries": []}'.encode("utf-16"), 400),
        (b"[" * 10_000, 400),
        (b'{"a":' * 10_000, 400),
        (b"[" * 100_000, 422),
        (b'{"queries": [{"candidates": [{"features": [' + b"9" * 5_000 + b", 1, 1]}]}]}", 400),
        (b"{}", 422),
        (b"[]", 422),
        (b"null", 422),
        (b"1", 422),
        (b'{"queries": []}', 422),
        (b'{"queries": null}', 422),
        (b'{"queries": {}}', 422),
        (b'{"queries": [1]}', 422),
        (b'{"queries": [{}]}', 422),
        (b'{"queries": [{"candidates": [{}]}]}', 422),
        (b'{"queries": [{"candidates": [], "colour": 1}]}', 422),
        (b'{"queries": [{"candidates": [], "id": 1.5}]}', 422),
        (b'{"queries": [{"candidates": [], "id": true}]}', 422),
        (b'{"queries": [{"candidates": [], "id": 99999999999999999999}]}', 422),
        (b'{"queries": [{"candidates": [], "id": "' + b"a" * 300 + b'"}]}', 422),
    ],
)
def test_bodies_that_are_no_request_are_refused(service: Client, body: bytes, status: int) -> None:
    answer = service.post("/rank", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    error_of(answer)


def test_a_fault_outside_of_the_features_names_its_place(service: Client) -> None:
    answer = service.post("/rank", json={"queries": [{"candidates": [{"id": [], "features": [1, 1, 1]}]}]})
    assert answer.json()["where"] == {"field": "queries.0.candidates.0.id"}
    assert "id must be a text of at most 256 characters or an integer" in error_of(answer)
    assert error_of(service.post("/rank", json={"queries": [], "strange": 1})).startswith(
        "queries is wrong: list should"
    )
    assert error_of(service.post("/rank", json={"queries": [{"candidates": []}], "strange": 1})).startswith(
        "strange is not"
    )
    answer = service.post("/rank", json={"queries": [{"candidates": [], "colour": 1}]})
    assert error_of(answer) == "queries.0.colour is not known here; /docs shows an example"


@pytest.mark.parametrize(
    ("limits", "status", "words"),
    [
        (RequestLimits(queries=1), 422, "2 queries in one request, at most 1 may be"),
        (RequestLimits(candidates=2), 422, "query 1 has 3 candidates, at most 2 may be"),
        (RequestLimits(all_candidates=3), 422, "4 candidates in one request, at most 3 may be"),
        (RequestLimits(body_bytes=100), 413, "the body has more than 100 bytes"),
    ],
)
def test_more_than_a_limit_is_too_much(model: Path, limits: RequestLimits, status: int, words: str) -> None:
    one, three = ask([1, 1, 1])["queries"], ask(*[[1, 1, 1]] * 3)["queries"]
    with client(model, ServiceSettings(limits=limits)) as service:
        answer = service.post("/rank", json={"queries": one + three})
        assert answer.status_code == status
        assert words in error_of(answer)
        assert service.post("/rank", json={"queries": one}).status_code == 200

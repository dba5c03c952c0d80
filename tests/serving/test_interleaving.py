from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.console import ultr
from tests.serving.ranker_file import NAMES, weights_of, write_ranker
from tests.serving.service import PATIENCE, Client, client
from tests.serving.test_feedback import act, ask, event, impressions, query, read
from tests.serving.test_routes import counted

from ultr.arrays import Floats
from ultr.errors import ModelFileError, OptionError
from ultr.evaluation.interleaved import compare_interleaved
from ultr.preparation.interleaved_lists import CreditedClicks, read_interleaved
from ultr.scoring import Scorer
from ultr.serving.exploration import SWAPS, Exploration
from ultr.serving.settings import ServiceSettings
from ultr.serving.team_draft import placements

OLD_SEED, NEW_SEED = 0, 1


@pytest.fixture
def rival(tmp_path: Path) -> Path:
    return write_ranker(tmp_path / "new.onnx", seed=NEW_SEED)


def settings_of(folder: Path, rival: Path, **other: Any) -> ServiceSettings:
    chosen = {"interleaved_share": 1.0, "interleave_seconds": PATIENCE, "shown": 3, **other}
    return ServiceSettings(log_to=folder / "log", interleave=rival, **chosen)


@pytest.fixture
def service(model: Path, rival: Path, tmp_path: Path) -> Iterator[Client]:
    with client(model, settings_of(tmp_path, rival)) as found:
        yield found


def orders(asked: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The candidates of a query as both rankers order them, by their weights."""
    names = [each["id"] for each in asked["candidates"]]
    rows = np.array([each["features"] for each in asked["candidates"]], dtype=np.float32)
    old, new = (np.argsort(-(rows @ weights_of(seed=seed)), kind="stable") for seed in (OLD_SEED, NEW_SEED))
    return [names[index] for index in old], [names[index] for index in new]


def results(service: Client) -> dict[str, float]:
    known = ("shown", "slow", "failed", "resting", "same_model", "other_features")
    found = {name: counted(service, "ultr_interleaved_queries_total", result=name) for name in known}
    return {name: count for name, count in found.items() if count}


def test_lists_are_drafts_of_both_orders_and_logged_with_teams(service: Client, rival: Path, tmp_path: Path) -> None:
    asked = [query(f"q{number}") for number in range(60)]
    answers = ask(service, *asked)
    service.service.close()
    old, new = orders(asked[0])
    assert old != new
    chances = placements([old.index(name) for name in new][:3])
    rows = {row["query_id"]: row for row in read(tmp_path / "log", "ubi_queries")}
    seen = iter(impressions(tmp_path / "log"))
    lists = set()
    for answer in answers:
        ultr = rows[answer["query_id"]]["query_attributes"]["ultr"]
        assert ultr["explore"] == "team-draft"
        assert (ultr["policy"], ultr["against"]) == (
            service.service.slot.current.scorer.digest,
            Scorer.load(rival).digest,
        )
        assert (ultr["share"], ultr["epsilon"], ultr["shown"]) == (1.0, 0.0, 3)
        names = [each["id"] for each in answer["ranking"]]
        assert rows[answer["query_id"]]["query_response_hit_ids"] == names[:3]
        assert names[3:] == [name for name in old if name not in names[:3]], "the rest is as the old one orders it"
        teams = []
        for place, name in enumerate(names[:3]):
            attributes = next(seen)["event_attributes"]
            assert attributes["object"]["object_id"] == name
            assert attributes["ultr"]["propensity"] == chances[place][old.index(name)]
            assert attributes["ultr"]["base_rank"] == old.index(name) + 1
            teams.append((attributes["ultr"]["team"], attributes["ultr"]["credited"]))
        taken: list[str] = []
        for name, (team, _) in zip(names[:3], teams, strict=True):
            assert name == next(each for each in (new if team == "new" else old) if each not in taken)
            taken.append(name)
        assert {team for team, _ in teams[:2]} == {"old", "new"}
        lists.add((tuple(names[:3]), tuple(teams)))
    assert len(lists) == 4, "two coins"
    assert results(service) == {"shown": 60}
    assert counted(service, "ultr_explored_queries_total") == 0


def test_a_share_is_interleaved_and_the_rest_explored(model: Path, rival: Path, tmp_path: Path) -> None:
    chosen = settings_of(tmp_path, rival, interleaved_share=0.3, explore=Exploration(SWAPS, 0.5))
    with client(model, chosen) as service:
        for start in range(0, 400, 100):
            ask(service, *(query(f"q{number}") for number in range(start, start + 100)))
        service.service.close()
        told = results(service)
    explore = [row["query_attributes"]["ultr"]["explore"] for row in read(tmp_path / "log", "ubi_queries")]
    assert abs(explore.count("team-draft") / 400 - 0.3) < 4 * np.sqrt(0.21 / 400)
    assert explore.count("swaps") == 400 - explore.count("team-draft")
    assert told == {"shown": explore.count("team-draft")}


def test_a_request_that_is_sent_again_is_drafted_alike_and_logged_once(service: Client, tmp_path: Path) -> None:
    first = ask(service, *(query(f"q{number}") for number in range(20)))
    again = ask(service, *(query(f"q{number}") for number in range(20)))
    other = ask(service, query("q0", size=2))[0]
    service.service.close()
    assert first == again
    assert other["query_id"] != "q0"
    assert len(read(tmp_path / "log", "ubi_queries")) == 21


def test_queries_that_cannot_be_logged_are_not_interleaved(service: Client) -> None:
    nameless = query("a")
    del nameless["candidates"][2]["id"]
    untyped = query("b")
    del untyped["user_query"]
    answers = ask(service, nameless, untyped, query("c", size=1), query("d", size=0))
    for answer in answers:
        scores = [each["score"] for each in answer["ranking"]]
        assert scores == sorted(scores, reverse=True)
    assert results(service) == {}


def test_the_winner_is_found_in_the_log(service: Client, tmp_path: Path) -> None:
    """Users who click what the new ranker has first: from the service to the verdict."""
    _, new = orders(query())
    for answer in ask(service, *(query(f"q{number}") for number in range(60))):
        act(service, event(new[0], query_id=answer["query_id"]))
    service.service.close()
    later = read(tmp_path / "log", "ubi_queries")[0] | {"query_id": "later", "timestamp": "2999-01-01T00:00:00Z"}
    (tmp_path / "log" / "ubi_queries-later.jsonl").write_text(json.dumps(later) + "\n")
    (found,) = read_interleaved(tmp_path / "log")
    assert (found.outcomes, found.young) == ({CreditedClicks(0, 1, 1): 60}, 1)
    assert compare_interleaved(found).answer.winner == "new"


class Faulty:
    """A second ranker that does something else than score."""

    def __init__(self, scorer: Scorer, act: Any) -> None:
        self._scorer, self._act = scorer, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    def score(self, features: Floats, offsets: Any = None, *, run: Any = None) -> Floats:
        return self._act(self._scorer.score(features, offsets), run)  # type: ignore[no-any-return]


def replace_rival(service: Client, act: Any) -> None:
    slot = service.service.rivals["interleave"]
    object.__setattr__(slot.current, "scorer", Faulty(slot.current.scorer, act))


def fail(scores: Floats, run: Any) -> Floats:
    raise ModelFileError("cannot score")


@pytest.mark.parametrize(
    ("act", "result"),
    [(fail, "failed"), (lambda scores, run: scores * np.nan, "failed")],
)
def test_a_second_model_that_fails_is_left_alone_and_counted(service: Client, act: Any, result: str) -> None:
    replace_rival(service, act)
    for number in range(5):
        (answer,) = ask(service, query(f"q{number}"))
        scores = [each["score"] for each in answer["ranking"]]
        assert scores == sorted(scores, reverse=True), "as the old one orders it"
    assert results(service) == {result: 3, "resting": 2}


def test_a_second_model_that_is_slow_holds_nobody_up(model: Path, rival: Path, tmp_path: Path) -> None:
    end, terminated = Event(), []

    def wait(scores: Floats, run: Any) -> Floats:
        end.wait(PATIENCE)
        terminated.append(run.terminate)
        return scores

    with client(model, settings_of(tmp_path, rival, interleave_seconds=0.05, threads=2)) as service:
        replace_rival(service, wait)
        started = time.monotonic()
        for number in range(6):
            ask(service, query(f"q{number}"))
        assert time.monotonic() - started < PATIENCE / 2
        assert results(service) == {"slow": 3, "resting": 3}
        end.set()
    assert terminated
    assert all(terminated), "what nobody waits for is told to end"


def test_a_model_that_is_the_same_is_not_interleaved(model: Path, tmp_path: Path) -> None:
    with client(model, settings_of(tmp_path, model)) as service:
        ask(service, query())
        assert results(service) == {"same_model": 1}


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        (["bm25", "age"], {}, "lacks feature 'clicks:30d'"),
        ([*NAMES, "price"], {}, "has a further feature 'price'"),
        (NAMES[::-1], {}, "has the features in another order"),
        (NAMES, {"categories": {"age": ("old",)}, "typical": [0.0, 0.5, 0.0]}, "has other categories of feature 'age'"),
    ],
)
def test_a_model_with_other_features_is_refused(
    model: Path, tmp_path: Path, names: list[str], more: dict[str, Any], said: str
) -> None:
    other = write_ranker(tmp_path / "other.onnx", names, **more)
    for option in ("--interleave", "--shadow"):
        failed = ultr("serve", model, "--log-to", tmp_path / "log", option, other, "--port", "0", expect=2)
        assert said in " ".join(failed.stderr.split())
        assert "with the same features" in " ".join(failed.stderr.split())


def test_new_files_are_loaded_and_broken_or_strange_ones_refused(service: Client, rival: Path) -> None:
    slot = service.service.rivals["interleave"]
    first = slot.current.scorer.digest
    for content in (b"broken", write_ranker(rival.with_name("x.onnx"), ["a", "b"]).read_bytes()):
        rival.write_bytes(content)
        asyncio.run(service.service.reload())
        assert slot.current.scorer.digest == first
    write_ranker(rival, seed=7)
    asyncio.run(service.service.reload())
    assert slot.current.scorer.digest not in (first, service.service.slot.current.scorer.digest)
    assert counted(service, "ultr_rival_reloads_total", role="interleave", result="failed") == 2
    assert counted(service, "ultr_rival_reloads_total", role="interleave", result="new") == 1
    assert counted(service, "ultr_reloads_total", result="same") == 3
    assert ask(service, query())[0]["ranking"]
    text = service.get("/metrics").text
    assert f'ultr_rival_loaded_timestamp_seconds{{digest="{slot.current.scorer.digest}"' in text


def test_models_of_other_features_take_over_together(rival: Path, tmp_path: Path) -> None:
    """The new file may come before the old one: it is tried again with it."""
    first = write_ranker(tmp_path / "model.onnx")
    with client(first, settings_of(tmp_path, rival)) as service:
        write_ranker(rival, ["a", "b"], seed=1)
        asyncio.run(service.service.reload())
        assert counted(service, "ultr_rival_reloads_total", role="interleave", result="failed") == 1
        write_ranker(first, ["a", "b"])
        asyncio.run(service.service.reload())
        assert counted(service, "ultr_rival_reloads_total", role="interleave", result="new") == 1
        candidates = [{"id": str(number), "features": [number, -number]} for number in range(4)]
        ask(service, {"id": "q", "user_query": "x", "candidates": candidates})
        assert results(service) == {"shown": 1}


def test_options_that_do_not_fit_are_refused(model: Path, rival: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--interleave needs --log-to"):
        ServiceSettings(interleave=rival)
    for share in (0.0, 1.5, float("nan")):
        with pytest.raises(OptionError, match="share must be a share"):
            ServiceSettings(interleave=rival, log_to=tmp_path, interleaved_share=share)
    failed = ultr("serve", model, "--share", "0.1", expect=2)
    assert "--share is for --interleave" in failed.stderr


def test_clients_are_logged_with_their_lists(service: Client, tmp_path: Path) -> None:
    ask(service, query("a", client_id="me"), query("b", client_id=7), query("c"))
    service.service.close()
    assert [row.get("client_id") for row in read(tmp_path / "log", "ubi_queries")] == ["me", "7", None]


@settings(
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), max_size=30),
    st.integers(1, 40),
    st.integers(0, 10**6),
)
def test_whatever_is_asked_every_candidate_is_answered_once(
    service: Client, rows: list[list[int]], shown: int, number: int
) -> None:
    candidates = [{"id": f"d{index}", "features": row} for index, row in enumerate(rows)]
    (answer,) = ask(service, {"id": str(number), "user_query": "x", "shown": shown, "candidates": candidates})
    assert sorted(each["index"] for each in answer["ranking"]) == list(range(len(rows)))

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Error
from tests.pages.browser import chromium
from tests.serving.ranker_file import write_ranker
from tests.serving.service import client, running
from tests.serving.test_feedback import act, ask, event, query

from ultr.serving.settings import ServiceSettings

TOKEN = "a-token-of-enough-characters"


def test_the_status_says_what_the_service_does(model: Path, tmp_path: Path) -> None:
    rival = write_ranker(tmp_path / "new.onnx", seed=1)
    chosen = ServiceSettings(log_to=tmp_path / "log", interleave=rival, interleaved_share=0.25, shadow=rival)
    with client(model, chosen) as service:
        (answer,) = ask(service, query())
        act(service, event(answer["ranking"][0]["id"]))
        status = service.get("/status").json()
        digests = {role: each["digest"] for role, each in status["rivals"].items()}
        second = service.service.rivals["shadow"].current.scorer
        assert digests == dict.fromkeys(("interleave", "shadow"), second.digest)
        assert status["model"]["digest"] == service.service.slot.current.scorer.digest
        assert (status["features"], status["ready"], status["logs"]) == (3, True, True)
        assert (status["explore"], status["share"], status["ranges"]) == (False, 0.25, False)
        numbers = status["numbers"]
        assert numbers["ultr_queries_total"] == 1
        assert numbers['ultr_requests_total{route="/rank",status="200"}'] == 1
        assert numbers['ultr_events_total{result="joined"}'] == 1
        assert not any("_bucket" in name or "_created" in name for name in numbers)
        service.service.closing = True
        assert service.get("/status").json()["ready"] is False


@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_shows_it_after_the_token_and_fits_the_screen(model: Path, tmp_path: Path, width: int) -> None:
    (tmp_path / "token").write_text(TOKEN)
    rival = write_ranker(tmp_path / "new.onnx", seed=1)
    options = ["--token-file", tmp_path / "token", "--log-to", tmp_path / "log", "--explore", "swaps=0.1"]
    options += ["--interleave", rival, "--shadow", rival]
    with running(model, *options) as service, chromium() as browser:
        tab = browser.new_page(viewport={"width": width, "height": 900})
        problems: list[Error] = []
        tab.on("pageerror", lambda problem: problems.append(problem))
        tab.goto(service.url)
        tab.get_by_placeholder("token").fill("wrong")
        tab.get_by_text("Continue").click()
        tab.get_by_text("This is not the token.").wait_for()
        tab.get_by_placeholder("token").fill(TOKEN)
        tab.get_by_text("Continue").click()
        tab.get_by_text("Requests may be sent.").wait_for()
        titles = tab.locator("section h2").all_inner_texts()
        assert titles == [
            "Requests",
            "Model",
            "Drift of the inputs",
            "Log of what is shown",
            "What users did",
            "Interleaving",
            "Shadow",
        ]
        assert "5.0\u00a0%" in tab.locator("section", has_text="share of queries").inner_text()
        assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        tab.get_by_text("what it can be asked").click()
        tab.get_by_text("This service needs a token").wait_for()
        assert problems == []
        assert service.stop() == 0

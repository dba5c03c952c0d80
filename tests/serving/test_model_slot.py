from __future__ import annotations

import asyncio
import json
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.serving.ranker_file import weights_of, write_ranker
from tests.serving.service import PATIENCE, client, read_log, running

from ultr.errors import ModelFileError
from ultr.serving import logs
from ultr.serving.model_slot import ModelSlot
from ultr.serving.settings import ServiceSettings

REQUEST = {"queries": [{"candidates": [{"features": [1, 2, 3]}]}]}


@pytest.fixture
def file(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(model, tmp_path / "model.onnx"))


def test_another_file_takes_the_place_of_the_first(file: Path) -> None:
    slot = ModelSlot(file)
    first = slot.current
    write_ranker(file, seed=1)
    assert slot.put(slot.read()) == "new"
    assert slot.current.scorer.digest != first.scorer.digest
    rows = np.ones((2, 3), dtype=np.float32)
    np.testing.assert_allclose(slot.current.scorer.score(rows), rows @ weights_of(seed=1) + 1, rtol=1e-5)
    np.testing.assert_allclose(first.scorer.score(rows), rows @ weights_of() + 1, rtol=1e-5)


def test_the_same_content_changes_nothing(file: Path) -> None:
    slot = ModelSlot(file)
    first = slot.current
    file.touch()
    assert slot.put(slot.read()) == "same"
    assert slot.current is first


@pytest.mark.parametrize("broken", ["empty", "half", "no card", "infinite", "removed"])
def test_a_file_that_cannot_serve_leaves_the_old_model(file: Path, tmp_path: Path, broken: str) -> None:
    slot = ModelSlot(file)
    first = slot.current
    content = file.read_bytes()
    match broken:
        case "empty":
            file.write_bytes(b"")
        case "half":
            file.write_bytes(content[: len(content) // 2])
        case "no card":
            file.write_bytes(content.replace(b"ultr", b"xxxx"))
        case "infinite":
            write_ranker(
                file, typical=[3e38 * np.sign(weight) for weight in weights_of(["a"] * 9)], names=list("abcdefghi")
            )
        case "removed":
            file.unlink()
    with pytest.raises(ModelFileError):
        slot.put(slot.read())
    assert slot.current is first


def test_a_change_counts_once_it_has_settled(file: Path) -> None:
    slot = ModelSlot(file)
    assert not slot.has_changed()
    whole = write_ranker(file.with_name("other.onnx"), seed=1).read_bytes()
    file.write_bytes(whole[:100])
    assert not slot.has_changed(), "it may still be written"
    file.write_bytes(whole)
    assert not slot.has_changed()
    assert slot.has_changed()
    slot.put(slot.read())
    assert not slot.has_changed()


def test_a_broken_file_is_tried_once(file: Path) -> None:
    slot = ModelSlot(file)
    file.write_bytes(b"broken")
    assert [slot.has_changed(), slot.has_changed()] == [False, True]
    with pytest.raises(ModelFileError):
        slot.put(slot.read())
    assert not slot.has_changed()
    file.unlink()
    assert [slot.has_changed(), slot.has_changed()] == [False, False]


def test_a_failed_reload_is_told_and_the_service_goes_on(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    with client(file) as asked:
        file.write_bytes(b"broken")
        asyncio.run(asked.service.reload())
        assert asked.get("/ready").status_code == 200
        assert asked.post("/rank", json=REQUEST).status_code == 200
        assert 'ultr_reloads_total{result="failed"} 1.0' in asked.get("/metrics").text
    line = json.loads(read_log(capfd).splitlines()[0])
    assert line["event"] == "reload failed"
    assert line["level"] == "error"
    assert "is damaged or not an ONNX model" in line["problem"]


def test_a_model_with_other_features_is_told_by_their_names(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    with client(file) as asked:
        write_ranker(file, ["bm25", "price"])
        asyncio.run(asked.service.reload())
        new = asked.service.slot.current.scorer.digest
        shown = [line for line in asked.get("/metrics").text.splitlines() if line.startswith("ultr_model_loaded")]
        assert [line.partition('digest="')[2][:32] for line in shown] == [new]
        assert "has 3 features, the model knows 2" in asked.post("/rank", json=REQUEST).json()["error"]
        assert asked.get("/openapi.json").text.count('"price"')
    line = json.loads(read_log(capfd).splitlines()[0])
    assert line["feature_names"] == ["bm25", "price"]


def test_the_file_is_watched(file: Path) -> None:
    with client(file, ServiceSettings(watch_seconds=0.01)) as asked:

        async def run() -> str:
            first = asked.service.slot.current
            watcher = asyncio.create_task(asked.service.watch())
            write_ranker(file, seed=3)
            async with asyncio.timeout(30):
                while asked.service.slot.current is first:
                    await asyncio.sleep(0.01)
            watcher.cancel()
            return asked.service.slot.current.scorer.digest

        digest = asyncio.run(run())
        assert asked.post("/rank", json=REQUEST).json()["model"] == digest


def test_no_request_fails_while_the_model_is_exchanged(file: Path, tmp_path: Path) -> None:
    variants = [write_ranker(tmp_path / f"variant{seed}.onnx", seed=seed) for seed in range(2)]
    expected = {round(float(np.array([1, 2, 3], dtype=np.float32) @ weights_of(seed=seed)) + 1, 4) for seed in range(2)}
    answers: list[tuple[int, str, float]] = []
    stop = threading.Event()

    def ask(url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as asked:
            while not stop.is_set():
                answer = asked.post("/rank", json=REQUEST)
                content: dict[str, Any] = answer.json()
                answers.append((answer.status_code, content["model"], content["queries"][0]["ranking"][0]["score"]))

    def wait_for_answers(number: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(answers) < number:
            assert time.monotonic() < end
            time.sleep(0.01)

    with running(file, "--watch-seconds", 0) as service:
        clients = [threading.Thread(target=ask, args=(service.url,)) for _ in range(3)]
        for each in clients:
            each.start()
        wait_for_answers(10)
        for number in range(1, 21):
            draft = Path(shutil.copy(variants[number % 2], tmp_path / "draft.onnx"))
            draft.replace(file)
            service.process.send_signal(signal.SIGHUP)
            assert service.wait_for("reloaded")["result"] == "new"
            wait_for_answers(len(answers) + 10)
        stop.set()
        for each in clients:
            each.join(30)
        assert service.stop() == 0
    assert {status for status, _, _ in answers} == {200}
    by_model = {model: score for _, model, score in answers}
    assert len(by_model) == 2
    assert {round(score, 4) for score in by_model.values()} == expected
    assert all(by_model[model] == score for _, model, score in answers)

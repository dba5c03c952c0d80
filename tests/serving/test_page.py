from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import httpx
import pyarrow
import pytest
from pyarrow import parquet
from tests.cli.console import ultr
from tests.serving.ranker_file import write_ranker
from tests.serving.service import running

from ultr.data.click_log import ClickLog
from ultr.serving.limits import RequestLimits
from ultr.serving.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
TOKEN = "a-token-of-enough-characters"


def test_the_requests_of_the_page_get_the_answers_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_text(TOKEN)
    model = write_ranker(tmp_path / "model.onnx", ["bm25", "clicks", "age"])
    asked = 0
    with running(model, "--log-to", "shown") as service:
        for number, (kind, text) in enumerate(BLOCKS):
            if kind != "bash":
                continue
            command = text.replace("http://127.0.0.1:8000", service.url)
            answer = json.loads(
                subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True).stdout
            )
            asked += 1
            if BLOCKS[number + 1][0] == "json":
                shown = json.loads(BLOCKS[number + 1][1])
                assert _comparable(answer) == _comparable(shown)
        another = {"id": "2", "user_query": "blue shoes", "candidates": [{"id": "sku-3", "features": [1, 2, 3]}]}
        httpx.post(f"{service.url}/rank", json={"queries": [another]}).raise_for_status()
        assert service.stop() == 0
    assert asked == 5
    documents = [{"document": f"sku-{number}", "bm25": 1.5 * number} for number in (1, 2, 3)]
    parquet.write_table(pyarrow.Table.from_pylist(documents), "documents.parquet")
    (line,) = re.findall(r"^ultr (prepare shown .*)$", PAGE, re.MULTILINE)
    ultr(*line.split())
    log = ClickLog.load("log")
    assert log.query_ids.tolist() == ["blue shoes", "red shoes"]
    assert log.feature_names == ("bm25",)
    assert log.clicks.sum() == 1, "the click of the page; purchases are no clicks"


def _comparable(answer: object) -> str:
    """Digests differ with the weights, and scores are rounded on the page."""
    text = re.sub(r'"model": "[0-9a-f]{32}"', '"model": ""', json.dumps(answer))
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.2f}", text)


def test_the_page_names_every_option_limit_and_metric() -> None:
    options = set(re.findall(r"--(?:max-[a-z-]+|[a-z]+-seconds)", ultr("serve", "--help").stdout))
    assert len(options) > 10
    assert [option for option in options if f"`{option}" not in PAGE and option not in PAGE] == []
    for value in ("8 MiB", "100", "2,000", "10,000", "32 KiB", "75 s", "512", "64"):
        assert f"| {value} |" in PAGE
    assert RequestLimits() == RequestLimits(
        body_bytes=8 * 2**20, header_bytes=32 * 2**10, idle_seconds=75, connections=512, requests=64
    )
    for family in Metrics().registry.collect():
        if not family.name.startswith("process_"):
            assert f"`{family.name}" in PAGE

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.experiments.demo import run
from ultr.methods import load


def few_queries(**sizes: int) -> Splits:
    return letor_like(**sizes | {"validation_queries": 50, "test_queries": 200})


@pytest.mark.usefixtures("_few_draws")
def test_the_demo_writes_log_models_table_plot_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ultr.experiments.demo.letor_like", few_queries)
    said: list[str] = []
    result = run(tmp_path / "demo", queries=100, impressions=20_000, steps=30, say=said.append)
    names = ["Click", "Vectorization d=2", "Vectorization d=3", "Labeled"]
    assert [row["method"] for row in result.rows()] == names
    assert result.gap_closed("Click") == 0
    assert result.gap_closed("Labeled") == 1
    assert list(json.loads((tmp_path / "demo" / "results.json").read_text())) == names
    assert (tmp_path / "demo" / "results.md").read_text().count("\n") == 6
    assert (tmp_path / "demo" / "demo.png").stat().st_size > 10_000
    assert (tmp_path / "demo" / "demo.svg").read_text().startswith("<?xml")
    assert load(tmp_path / "demo" / "vectorization-3").options["dimension"] == 3
    assert any("ClickLog" in line for line in said)
    assert "Report on" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert load(tmp_path / "demo" / "click").data_fingerprint == ClickLog.load(tmp_path / "demo" / "log").fingerprint()


@pytest.mark.usefixtures("_few_draws")
@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_unless_it_is_not_wanted(
    *, progress: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ultr.experiments.demo.letor_like", few_queries)
    run(tmp_path / "demo", queries=60, impressions=6_000, steps=3, progress=progress)
    assert ("LabelBaseline" in capfd.readouterr().err) is progress

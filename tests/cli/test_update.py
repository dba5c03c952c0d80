"""`ultr update` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.console import ultr
from tests.updating.days import FIRST, SECOND, THIRD, first_log, new_run, write_day

from ultr.data.click_log import ClickLog
from ultr.files import read_json
from ultr.updating.actions import _missing_days


def test_a_run_from_the_first_log_to_a_rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first_log(tmp_path)
    write_day(tmp_path / "clicks", SECOND)
    init = ("update", "run", "--init", "--log", "log", "--source", "clicks/{day}.parquet", "--served", "s/ranker.onnx")
    missing = ultr("update", "run", "--init", "--log", "log", expect=2).stderr
    assert missing == "ultr: --init needs --source and --served\n"
    assert not Path("run").exists()
    quick = ("--method", "click", "--set", "hidden=8", "--set", "steps=20", "--tolerance", "5")
    assert f"served: {FIRST}" in ultr(*init, *quick).stdout
    text = Path("run/settings.toml").read_text()
    assert 'log = "../log"' in text
    assert "hidden = [8]" in text
    Path("run/settings.toml").write_text(text.replace("largest_shift = 1.5", "largest_shift = 10.0"))

    shown = ultr("update", "run", "--log-day", SECOND, "--dry-run").stdout
    assert "would be promoted: the gain in clicks is " in shown
    assert "not in it" not in shown
    quiet = ultr("update", "run", "--log-day", SECOND, "--dry-run", "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    told = json.loads(ultr("update", "run", "--log-day", SECOND, "--json").stdout)
    assert (told["decision"], told["model"], told["dry_run"]) == ("promoted", SECOND, False)
    assert told == read_json("run/ledger/000002.json") | {"dry_run": False}
    assert "done already: promoted" in ultr("update", "run", "--log-day", SECOND, expect=2).stderr
    assert f"rolled back: from {SECOND} back to {FIRST}" in ultr("update", "run", "--rollback").stdout
    assert Path("s/ranker.onnx").read_bytes() == Path(f"run/models/{FIRST}.onnx").read_bytes()
    assert ClickLog.load("log").period_names == (FIRST,)


def test_a_day_that_was_left_out_is_named(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    text = ultr("update", run.path, "--log-day", THIRD, "--dry-run").stdout
    log, gap, *_ = text.splitlines()
    assert log.startswith(f"log: {FIRST} to {THIRD}, ")
    assert gap == f"days between that are not in it: {SECOND}; days are added in order, so they stay out"
    told = json.loads(ultr("update", run.path, "--log-day", THIRD, "--dry-run", "--json").stdout)
    assert told["data"]["missing_days"] == [SECOND]


@pytest.mark.parametrize(
    ("days", "missing"),
    [
        (["2026-03-01"], []),
        (["2026-02-28", "2026-03-01"], []),
        (["2026-02-27", "2026-03-02", "2026-03-04"], ["2026-02-28", "2026-03-01", "2026-03-03"]),
        (["monday", "wednesday"], []),
    ],
)
def test_days_between_are_counted_where_they_are_dates(days: list[str], missing: list[str]) -> None:
    assert _missing_days(days) == missing


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give one of --log-day DATE, --rollback and --init"),
        (("--rollback", "--log-day", SECOND), "give one of"),
        (("--log-day", SECOND, "--method", "dla"), "--method is for --init; afterwards it stands in"),
        (("--init", "--dry-run"), "--dry-run is for"),
        (("--log-day", SECOND), "is no folder of a run"),
        (("--rollback",), "is no folder of a run"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    err = ultr("update", tmp_path / "run", *arguments, expect=2).stderr
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_training_can_begin_with_an_earlier_model(tmp_path: Path) -> None:
    first_log(tmp_path)
    quick = ("--log", tmp_path / "log", "--set", "hidden=8", "--steps", 5)
    ultr("train", "click", *quick, "--out", tmp_path / "old")
    ultr("train", "click", *quick, "--init-model", tmp_path / "old", "--out", tmp_path / "new")
    old, new = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("old", "new"))
    assert new["provenance"]["init_model"] == old["weights_digest"] != new["weights_digest"]
    refused = ultr("train", "dla", *quick, "--init-model", tmp_path / "old", "--out", tmp_path / "x", expect=2)
    assert "training cannot begin with the earlier model: it is a ranker by click" in refused.stderr
    assert not (tmp_path / "x").exists()

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from ultr.train import progress
from ultr.train.checkpoint import Record
from ultr.train.progress import Bar

RECORD = Record("second half, clicks", 100, 2.7942, -2.8516)


def shown(monkeypatch: pytest.MonkeyPatch, record: Record = RECORD, **console: Any) -> str:
    """What the longest title of a stage writes to standard error."""
    file = StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=file, **console))
    bar = Bar("Vectorization d=3", lambda stage: "held-out log-likelihood" if "clicks" in stage else "other")
    with bar.watch(record.stage, 300, done=0):
        bar.step(100)
        bar.record(record, best=-2.85)
    return file.getvalue()


def test_in_a_file_a_record_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, force_terminal=False, width=80).splitlines()
    assert lines[0] == (
        "Vectorization d=3 · second half, clicks · step 100: loss 2.7942, held-out log-likelihood -2.8516, best -2.8500"
    )


def test_in_80_columns_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown(monkeypatch, force_terminal=True, width=80))
    lines = [line for line in re.split(r"[\r\n]+", text) if "best" in line]
    assert "…" not in text
    assert lines
    assert all("Vectorization d=3 · second half, clicks" in line and "best -2.8500" in line for line in lines)
    assert all(len(line.rstrip()) <= 80 for line in lines)


def test_a_wide_terminal_shows_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, force_terminal=True, width=140)
    assert "loss 2.7942, held-out log-likelihood -2.8516, best -2.8500" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_without_validation_the_loss_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, Record("trees", 10, 0.5, None), force_terminal=False, width=80).splitlines()
    assert lines[0] == "Vectorization d=3 · trees · step 10: loss 0.5000"


def test_in_a_file_a_stage_has_eleven_lines_however_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    file = StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=file, force_terminal=False, width=200))
    bar = Bar("LambdaMART")
    with bar.watch("trees", 300, done=0):
        for step in range(10, 310, 10):
            bar.record(Record("trees", step, 0.5, None), best=None)
    steps = [int(number) for number in re.findall(r"step (\d+):", file.getvalue())]
    assert steps == [10, *range(30, 310, 30)]

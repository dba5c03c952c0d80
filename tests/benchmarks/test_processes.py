from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from benchmarks.measurement import read
from benchmarks.processes import Workers

from benchmarks import processes


@pytest.fixture(autouse=True)
def _half_as_long_with_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting takes longer with more processes, a step of the batch takes less."""

    def train(workers: Workers, folder: Path, *, batch: int, steps: int) -> float:
        assert (folder / "log").is_dir()
        return 5.0 * workers.processes + steps * batch * 0.001 / (workers.processes * workers.threads)

    monkeypatch.setattr(Workers, "train", train)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)


def test_what_a_step_takes_does_not_depend_on_the_start(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert Workers(1, 1).step(tmp_path, batch=64) == pytest.approx(0.064)
    assert Workers(2, 1).step(tmp_path, batch=64) == pytest.approx(0.032)


def test_threads_and_processes_are_set_against_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.json"
    options = ["--features", "3", "--batches", "50", "--processes", "2", "--rounds", "1", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["processes", *options])
    processes.main()
    assert [each.value for each in read(file) if each.headline] == pytest.approx([4.0, 2.0])
    assert "| 3 | 50 | 2 x 1 | 25.0 | 2,000 | 2.00 (2.00 to 2.00) |" in capsys.readouterr().out

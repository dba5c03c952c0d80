"""What the default method says of the choices that it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.console import ultr

FEW = ("--steps", 3, "--set", "hidden=4")


def _log(clicks: str, folder: Path) -> Path:
    ultr("simulate", "--data", "letor-like=120", "--clicks", clicks, "--impressions", 40_000, "--out", folder)
    return folder


@pytest.mark.parametrize(("clicks", "stop"), [("cascade", True), ("position-based", False)])
def test_users_who_stop_are_named_once_and_what_is_kept_per_seed(clicks: str, *, stop: bool, tmp_path: Path) -> None:
    log = _log(clicks, tmp_path / "log")
    printed = ultr("train", "--log", log, *FEW, "--seeds", 2, "--out", tmp_path / "model").stdout
    assert printed.count("users stop: 100% look at nothing further after a click") == stop
    assert printed.count("of what debiasing changes is kept") == 2
    choices = json.loads((tmp_path / "model" / "manifest.json").read_text())["choices"]["seeds"]
    assert [each["stopping"] for each in choices] == [float(stop)] * 2
    kept = [f"{each['kept']:.0%} of what debiasing changes is kept" for each in choices]
    assert all(each in printed for each in kept)

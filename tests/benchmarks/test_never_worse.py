from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.never_worse import Found, World

from benchmarks import never_worse
from ultr.experiments.stored_tables import StoredTables

GAINS = {"dla": (-0.030, 0.010), "auto": (0.0, 0.050)}
"""In two worlds, each with a standard error of .005."""


def _found() -> list[Found]:
    worlds = [
        World(number, f"letor-like {50 + number}", "trust", 10**4, "one ranking", "weak old ranker")
        for number in range(2)
    ]
    raw = [Found(world, "click", 0.5, 0.0, 0.0, 1.0, None, 0.05) for world in worlds]
    return raw + [
        Found(world, method, 0.5, gain, 0.005, seconds, None, new)
        for method, gains in GAINS.items()
        for world, gain, seconds, new in zip(worlds, gains, (2.0, 4.0), (0.05, 0.5), strict=True)
    ]


def test_gains_are_means_over_worlds_with_intervals_and_counts_beyond_chance() -> None:
    rows = {row[""]: row for row in never_worse.gain_table(_found()).rows}
    half = 1.96 * np.std([-0.030, 0.010], ddof=1) / np.sqrt(2)
    assert f"{half:.3f}" == "0.039"
    assert rows["all"] == {"": "all", "worlds": "2", "dla": "-.010 ± .039", "auto": "+.025 ± .049"}
    assert rows["trust"]["dla"] == rows["10,000 impressions"]["dla"] == "-.010 ± .039"
    assert "letor-like 50" not in rows, "one world has no interval"
    assert (rows["below raw clicks beyond chance"]["dla"], rows["below raw clicks beyond chance"]["auto"]) == ("1", "0")
    assert (rows["above raw clicks beyond chance"]["dla"], rows["above raw clicks beyond chance"]["auto"]) == ("0", "1")
    assert rows["worst"]["dla"] == "-.030"
    # The best are raw clicks in the first world, which lose nothing there, and auto in the second.
    assert rows["behind the best of all, mean"]["dla"] == ".035"
    assert rows["behind the best of all, mean"]["auto"] == ".000"
    assert rows["processor seconds, mean"]["dla"] == "3"


def test_weights_are_compared_with_none_in_the_same_worlds() -> None:
    worlds = {each.world for each in _found()}
    gains = {"vectorization": (-0.2, 0.1), "vectorization, weights": (-0.1, 0.1)}
    some = [
        Found(world, method, 0.5, gains[method][world.number], 0.005, 1.0, None, 0.05)
        for method in gains
        for world in worlds
    ]
    rows = {row[""]: row for row in never_worse.weights_table([*_found(), *some]).rows}
    # The changes are .1 and 0: far less apart than the gains of either.
    half = 1.96 * np.std([0.1, 0.0], ddof=1) / np.sqrt(2)
    assert rows["all"] == {"": "all", "worlds": "2", "nDCG@10": f"+.050 ± {half:.3f}".replace("0.", ".")}
    assert "letor-like 50" not in rows


def test_the_forecast_is_set_beside_the_gain() -> None:
    rows = {row["the doctor says"]: row for row in never_worse.forecast_table(_found()).rows}
    assert list(rows) == ["hardly", "should pay", "all"]
    assert (rows["hardly"]["gain, mean"], rows["should pay"]["largest"]) == ("+.000", "+.050")
    assert rows["all"]["correlation with what is new"] == "1.00"
    assert rows["hardly"]["correlation with what is new"] == ""


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["never_worse", *map(str, arguments)])
    never_worse.main()


def test_what_was_kept_can_be_stored_and_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, stored, again = tmp_path / "kept", tmp_path / "stored.json", tmp_path / "again.json"
    kept.write_text("".join(json.dumps(asdict(each)) + "\n" for each in _found()))
    _main(monkeypatch, "--show", kept, "--relevance", "trees", "--methods", "dla", "auto", "--tables", stored)
    printed = capsys.readouterr().out
    tables = StoredTables.read(stored)
    assert tables.command == "python -m benchmarks.never_worse --worlds 2 --relevance trees --methods dla auto"
    assert [table.title for table in tables.tables] == ["gains", "forecast"]
    assert all(table.as_markdown() in printed for table in tables.tables)
    _main(monkeypatch, "--show", stored, "--tables", again)
    assert StoredTables.read(again).tables == tables.tables


def test_worlds_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, stored = tmp_path / "kept", tmp_path / "stored.json"
    moved = [replace(each, world=replace(each.world, number=2 + 2 * each.world.number)) for each in _found()]
    kept.write_text("".join(json.dumps(asdict(each)) + "\n" for each in moved))
    _main(monkeypatch, "--show", kept, "--tables", stored)
    command = "python -m benchmarks.never_worse --worlds 5 --first 2 without worlds 3"
    assert StoredTables.read(stored).command == command


def test_other_sizes_make_other_worlds_and_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"letor-like {size}" for size in never_worse.QUERIES]
    usual, large = never_worse.drawn(20, names), never_worse.drawn(20, ["letor-like 10000"], [10**7])
    assert {world.impressions for world in usual} == set(never_worse.IMPRESSIONS)
    assert {(world.data, world.impressions) for world in large} == {("letor-like 10000", 10**7)}
    kept, stored = tmp_path / "kept", tmp_path / "stored.json"
    kept.write_text("".join(json.dumps(asdict(each)) + "\n" for each in _found()))
    sizes = ["--queries", 10_000, "--impressions", 10**7]
    _main(monkeypatch, "--show", kept, *sizes, "--tables", stored)
    command = "python -m benchmarks.never_worse --worlds 2 --queries 10000 --impressions 10000000"
    assert StoredTables.read(stored).command == command


def test_worlds_of_another_relevance_model_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.write_text("".join(json.dumps(asdict(each) | {"relevance": "trees"}) + "\n" for each in _found()))
    with pytest.raises(SystemExit):
        _main(monkeypatch, "--show", kept)

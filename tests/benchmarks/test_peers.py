from __future__ import annotations

import json
import sys
from copy import deepcopy
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.arena import Arena, Sessions
from benchmarks.clax_models import BATCH, LabelStopping, Stream
from benchmarks.contender import Showing
from benchmarks.measurement import read

from benchmarks import contender, peers
from ultr.datasets.source import Source
from ultr.evaluation.judged import of_scores

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def arena() -> Arena:
    return peers.arena_of(Source.parse("letor-like=20"), "trust", impressions=500, seed=3)


def test_the_sessions_add_up_to_the_log(arena: Arena) -> None:
    sessions, log = arena.sessions, arena.log
    assert len(sessions.clicks) == log.impressions.sum() == 500
    shown = sessions.positions > 0
    views = np.bincount(log.documents, weights=np.repeat(log.impressions, log.lengths))
    assert np.array_equal(np.bincount(sessions.documents[shown]), views)
    clicks = np.bincount(sessions.documents[shown], weights=sessions.clicks[shown])
    assert np.array_equal(clicks, np.bincount(log.documents, weights=log.clicks))
    assert not sessions.clicks[~shown].any()


def test_what_a_child_reads_is_what_was_written(arena: Arena, tmp_path: Path) -> None:
    arena.save(tmp_path)
    again = Arena.load(tmp_path)
    assert again.log.fingerprint() == arena.log.fingerprint()
    assert np.array_equal(again.sessions.clicks, arena.sessions.clicks)
    for part in ("validation", "test"):
        before, after = getattr(arena, part), getattr(again, part)
        assert np.array_equal(before.features, after.features)
        assert np.array_equal(before.labels, after.labels)
        assert np.array_equal(before.offsets, after.offsets)
        assert before.feature_names == after.feature_names


def test_networks_of_one_width_have_as_many_weights() -> None:
    for features, layers in ((64, (128, 64)), (46, (64, 32)), (136, (512, 256, 128)), (10, (20,))):
        width = peers.even_width(features, layers)
        sizes = [features, *layers]
        weights = sum(a * b for a, b in pairwise(sizes))
        assert features * width + (len(layers) - 1) * width**2 == pytest.approx(weights, rel=0.02)


def test_the_best_of_ours_by_quality_is_set_against_the_best_peer_in_each_respect() -> None:
    first = Showing(quality=0.6, seconds=12, processor=10, before=0, peak=200_000_000, rate=1_000)
    round_ = {
        "click": first,
        "dla": replace(first, quality=0.8, processor=20),
        "lightgbm": replace(first, quality=0.4, processor=5, rate=4_000),
        "xgboost": replace(first, quality=0.5, peak=100_000_000),
    }
    found = {each.name: each for each in peers.measurements("tiny", [round_, round_])}
    headlines = {name: each.value for name, each in found.items() if each.headline}
    assert headlines == {
        "tiny, nDCG@10 (higher is better), dla to the best peer, xgboost": pytest.approx(0.8 / 0.5),
        "tiny, training, processor (lower is better), dla to the best peer, lightgbm": pytest.approx(20 / 5),
        "tiny, peak memory (lower is better), dla to the best peer, xgboost": pytest.approx(2.0),
        "tiny, scoring (higher is better), dla to the best peer, lightgbm": pytest.approx(0.25),
    }
    assert (found["tiny, dla: nDCG@10"].low, found["tiny, dla: nDCG@10"].high) == (0.8, 0.8)


def test_a_missing_package_is_left_out_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contender, "find_spec", lambda name: None if name == "clax" else object())
    assert peers.present(["click", "xgboost", "clax-pbm", "clax-pbm-cross"]) == ["click", "xgboost"]
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "'.[bench]'" in said


def _run(patch: pytest.MonkeyPatch, *arguments: str) -> None:
    patch.setattr(sys, "argv", ["peers", *arguments])
    peers.main()


def test_rankers_are_compared_in_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    command = ["--data", "letor-like=20", "--impressions", "500", "--clicks", "trust", "--hidden", "4"]
    who = ["--steps", "20", "--rankers", "click", "lightgbm"]
    file = tmp_path / "numbers.json"
    _run(monkeypatch, *command, *who, "--json", str(file))
    assert [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")] == [
        "| ranker",
        "| click",
        "| lightgbm",
    ]
    found = {each.name: each.value for each in read(file)}
    assert 0 < found["letor-like, trust, click: nDCG@10"] <= 1
    assert all(value > 0 for value in found.values())
    assert json.loads(file.read_text())


def test_a_wrong_data_set_ends_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        _run(monkeypatch, "--data", "mq2007", "--rankers", "click")
    assert end.value.code == 2
    assert capsys.readouterr().err == "data set mq2007 needs its folder, as in mq2007=FOLDER\n"


@pytest.mark.skipif(find_spec("clax") is None, reason="clax-models is not installed (extra bench)")
@pytest.mark.parametrize("name", ["clax-ctr", "clax-pbm", "clax-ubm", "clax-dbn"])
def test_a_click_model_of_clax_learns_to_rank(name: str, tmp_path: Path) -> None:
    arena = peers.arena_of(Source.parse("letor-like=200"), "position-based", impressions=20_000, seed=0)
    arena.save(tmp_path)
    ranker = peers.Ranker(name, name, {"hidden": 16, "layers": 1, "learning_rate": 0.01, "looks": 10})
    found = ranker.train(tmp_path, seed=0)
    scores = np.random.default_rng(0).random(arena.test.documents)
    assert found.quality > of_scores(scores, arena.test, ("nDCG@10",)).mean("nDCG@10") + 0.03


def test_the_weights_of_the_best_look_are_kept_until_it_is_too_long_ago() -> None:
    values = iter([0.3, 0.5, 0.4, 0.5, 0.2])
    seen: list[float] = []

    def measure() -> float:
        seen.append(next(values))
        return seen[-1]

    stopping = LabelStopping(measure, lambda: len(seen), looks=10, patience=2)
    told = [(each.has_improved, each.should_stop) for each in (stopping.update(None) for _ in range(4))]
    assert told == [(True, False), (True, False), (False, False), (False, True)]
    assert (stopping.best, stopping.kept) == (0.5, 2)
    assert deepcopy(stopping) is stopping


def test_the_last_look_ends_the_training() -> None:
    stopping = LabelStopping(lambda: 0.5, lambda: "weights", looks=2, patience=5)
    assert [stopping.update(None).should_stop for _ in range(2)] == [False, True]


def test_a_pass_shows_every_session_once() -> None:
    count = 2 * BATCH
    clicks = np.zeros((count, 1), dtype=np.int8)
    sessions = Sessions(np.arange(count, dtype=np.int32)[:, None], np.ones_like(clicks), clicks)
    features = np.arange(count, dtype=np.float32)[:, None]
    stream = Stream(features, sessions, batches=2, seed=0)
    passes = [np.concatenate([batch["query_doc_features"].ravel() for batch in stream]) for _ in range(2)]
    assert all(np.array_equal(np.sort(each), features.ravel()) for each in passes)
    assert not np.array_equal(passes[0], passes[1])

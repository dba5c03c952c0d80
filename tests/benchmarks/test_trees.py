from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.contender import Showing, trainer

from benchmarks import forest_scoring, peers, trees
from ultr import ClickLog, click_model, letor_like, simulate
from ultr.datasets.source import Source
from ultr.exporting.forest_file import forest_of


@pytest.fixture(scope="module")
def log() -> ClickLog:
    data = letor_like(train_queries=20, validation_queries=1, test_queries=1)
    return simulate(data.train, click_model("trust"), impressions=500)


def test_all_rankers_grow_as_many_trees_of_the_same_size() -> None:
    arena = peers.arena_of(Source.parse("letor-like=20"), "trust", impressions=500, seed=3)
    asked = trees.rankers(["click", "vectorization"], lists=arena.log.lists, rounds=7, leaves=3, hidden=[4])
    for ranker in asked:
        options = ranker.options | ({"vector_steps": 1} if ranker.name == "vectorization" else {})
        fitted = trainer(ranker.name, arena, seed=0, options=options, validated=ranker.validated)()
        forest = forest_of(fitted.ranker_)
        assert forest is not None
        assert len(forest) == 7
        assert np.bincount(np.cumsum(np.isin(np.arange(len(forest.features)), forest.roots))).max() <= 5
    assert asked[0].options["sessions"] == arena.log.lists


def test_the_time_of_ours_is_divided_by_that_of_lightgbm() -> None:
    one = Showing(quality=0.6, seconds=1, processor=10, before=0, peak=1, rate=1)
    showings = {
        trees.SAME_ROWS: replace(one, processor=4),
        trees.SESSIONS: replace(one, processor=20),
        "dla": replace(one, processor=6),
        "affine": one,
    }
    found = {each.name: each for each in trees.measurements("tiny", showings)}
    ratio = found[f"tiny, processor time for as many trees, dla to {trees.SAME_ROWS}"]
    assert (ratio.value, ratio.headline) == (1.5, True)
    ratio = found[f"tiny, processor time for as many trees, affine to {trees.SESSIONS}"]
    assert (ratio.value, ratio.headline) == (0.5, False)
    assert "| dla | 6.0 | 1.50 | 0.30 |" in trees.table(showings)


def test_a_forest_scores_alike_by_onnxruntime_and_by_lightgbm(log: ClickLog, tmp_path: Path) -> None:
    scorers = forest_scoring.forest(log, tmp_path, trees=5, leaves=4) | forest_scoring.networks(log, tmp_path, [4])
    scores = [score(log.features[:50]) for score in scorers.values()]
    for ours, theirs in zip(scores[::2], scores[1::2], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        assert np.ptp(ours) > 0
    found = forest_scoring.rates(scorers, log.features, candidates=1_000, rounds=1)
    assert list(found) == list(scorers)
    assert all(rate > 0 for rate in found.values())


def test_the_rate_of_a_forest_is_divided_by_those_of_lightgbm_and_the_network_and_ours_by_the_runtimes_own() -> None:
    names = ("forest of 2 x 3, ONNX", "forest of 2 x 3, LightGBM", "network 4, ONNX", "network 4, bare")
    found = forest_scoring.measurements({1_000: dict(zip(names, (60.0, 20.0, 40.0, 50.0), strict=True))})
    ratios = {each.name.partition(" to ")[2]: each.value for each in found if each.unit == "times"}
    assert ratios == {names[1]: 3.0, names[2]: 1.5, "onnxruntime alone": 0.8}

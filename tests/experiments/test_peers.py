from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ultr.cli import EXTRAS
from ultr.clicks.position_based import PositionBased
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.evaluation import evaluate
from ultr.evaluation.judged import of_scores
from ultr.experiments.peers import PEERS, Peer, draw_sessions
from ultr.simulation.log import simulate_log

FEW: dict[str, Any] = {"sessions": 400, "trees": 5}
CHANGES: dict[str, Any] = {"sessions": 300, "trees": 4, "leaves": 4, "learning_rate": 0.3}


@pytest.fixture(params=list(PEERS.values()), ids=list(PEERS))
def peer(request: pytest.FixtureRequest) -> Peer:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def log() -> ClickLog:
    """Three lists of two queries, one of them shown often and one never clicked."""
    return ClickLog.of(
        features=[[0.1], [0.5], [0.2], [0.9]],
        documents=[0, 1, 2, 2, 1, 0, 3],
        offsets=[0, 3, 6, 7],
        clicks=[30, 10, 0, 5, 10, 2, 0],
        impressions=[40, 10, 5],
        queries=["a", "a", "b"],
    )


def _clicks(log: ClickLog) -> Counter[tuple[int, int]]:
    """The clicks of each document at each position, counted one by one; those without a click are left out."""
    counts: Counter[tuple[int, int]] = Counter()
    for document, position, clicks in zip(log.documents, log.positions, log.clicks, strict=True):
        counts[int(document), int(position)] += int(clicks)
    return +counts


def test_all_impressions_drawn_have_the_clicks_of_the_log(log: ClickLog) -> None:
    assert _clicks(draw_sessions(log, sessions=55, seed=3)) == _clicks(log)


def test_sessions_without_a_click_are_drawn_where_they_are_asked_for(log: ClickLog) -> None:
    drawn = draw_sessions(log, sessions=55, seed=3, only_clicked=False)
    assert drawn.lists == log.impressions.sum()
    assert _clicks(drawn) == _clicks(log)


def test_more_sessions_than_impressions_are_not_drawn(log: ClickLog) -> None:
    assert _clicks(draw_sessions(log, sessions=1_000, seed=3)) == _clicks(draw_sessions(log, sessions=55, seed=3))


def test_the_expected_clicks_of_a_document_are_its_rate_times_the_sessions_of_its_list(log: ClickLog) -> None:
    # Of 11 sessions, 8 are of the first list by its 40 of 55 impressions, and 2 of the second.
    expected = {(0, 1): 8 * 30 / 40, (1, 2): 8 * 10 / 40 + 2 * 10 / 10, (2, 1): 2 * 5 / 10, (0, 3): 2 * 2 / 10}
    draws = 2_000
    total: Counter[tuple[int, int]] = Counter()
    for seed in range(draws):
        total += _clicks(draw_sessions(log, sessions=11, seed=seed))
    assert {key: total[key] / draws for key in expected} == pytest.approx(expected, abs=0.05)
    assert set(total) == set(expected)


def test_two_documents_are_clicked_together_as_often_as_by_chance() -> None:
    log = ClickLog.of(features=[[0.0], [1.0]], documents=[0, 1], offsets=[0, 2], clicks=[30, 60], impressions=[100])
    draws = 3_000
    both = sum(
        int((drawn.clicks[0::2] & drawn.clicks[1::2]).sum())
        for drawn in (draw_sessions(log, sessions=5, seed=seed) for seed in range(draws))
    )
    assert both / draws == pytest.approx(5 * 0.3 * 0.6, abs=0.05)


def test_a_session_is_a_list_of_the_log_from_the_top_down_with_a_click(small_log: ClickLog) -> None:
    drawn = draw_sessions(small_log, sessions=1_000, seed=0)
    lists = {
        tuple(small_log.documents[start:end].tolist())
        for start, end in zip(small_log.offsets[:-1], small_log.offsets[1:], strict=True)
    }
    assert 700 < drawn.lists <= 1_000
    assert (drawn.impressions == 1).all()
    for start, end in zip(drawn.offsets[:-1], drawn.offsets[1:], strict=True):
        assert drawn.positions[start:end].tolist() == list(range(1, end - start + 1))
        assert tuple(drawn.documents[start:end].tolist()) in lists
        assert set(drawn.clicks[start:end].tolist()) in ({0, 1}, {1})


def test_a_seed_draws_the_same_sessions_and_another_one_others(small_log: ClickLog) -> None:
    first, again, other = (draw_sessions(small_log, sessions=500, seed=seed) for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


@pytest.fixture(scope="module")
def world() -> Splits:
    return letor_like(train_queries=300, validation_queries=100, test_queries=200)


@pytest.fixture(scope="module")
def biased(world: Splits) -> ClickLog:
    """Users look at position p with chance 1/p, and lists are in the order of a feature that means nothing."""
    examination = tuple(1 / position for position in range(1, 11))
    shown = world.train.features[:, world.train.feature_names.index("noise_1")].astype(np.float64)
    model = PositionBased(examination=examination)
    return simulate_log(world.train, model, scores=shown, impressions=300_000, rankings=4, noise=0.3)


@pytest.fixture(scope="module")
def values(world: Splits, biased: ClickLog) -> dict[str, float]:
    rankers = {name: replace(peer, sessions=6_000, trees=60).fit(biased, seed=0) for name, peer in PEERS.items()}
    return {name: evaluate(ranker, world.test).mean("nDCG@10") for name, ranker in rankers.items()}


def test_every_peer_ranks_better_than_chance(world: Splits, values: dict[str, float]) -> None:
    chance = of_scores(np.random.default_rng(0).random(world.test.documents), world.test).mean("nDCG@10")
    assert min(values.values()) > chance + 0.05


def test_debiasing_helps_xgboost_on_strongly_biased_clicks(values: dict[str, float]) -> None:
    assert values["xgboost-unbiased"] > values["xgboost"]


def test_debiasing_helps_lightgbm_on_strongly_biased_clicks(values: dict[str, float]) -> None:
    assert values["lightgbm-position"] > values["lightgbm"] + 0.03


def test_the_same_seed_gives_the_same_scores_and_another_one_others(
    peer: Peer, small: Splits, small_log: ClickLog
) -> None:
    first, again, other = (
        replace(peer, **FEW).fit(small_log, validation=small.validation, seed=seed).score(small.test.features)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("option", CHANGES)
def test_every_option_changes_the_scores(option: str, peer: Peer, small: Splits, small_log: ClickLog) -> None:
    few = replace(peer, **FEW)
    plain = few.fit(small_log).score(small.test.features)
    changed = replace(few, **{option: CHANGES[option]}).fit(small_log).score(small.test.features)
    assert (plain != changed).any()


def test_labels_choose_the_number_of_trees_with_the_best_ndcg(peer: Peer, small: Splits, small_log: ClickLog) -> None:
    few = replace(peer, sessions=400, trees=8, learning_rate=0.5)
    kept = few.fit(small_log, validation=small.validation)
    prefixes = [replace(few, trees=trees).fit(small_log) for trees in range(1, 9)]
    best = max(evaluate(ranker, small.validation).mean("nDCG@10") for ranker in prefixes)
    assert evaluate(kept, small.validation).mean("nDCG@10") == pytest.approx(best, abs=1e-6)


def test_clicks_choose_the_number_of_trees_with_the_best_ndcg(peer: Peer, small: Splits, small_log: ClickLog) -> None:
    log, held_out = small_log.split(0.3)
    few = replace(peer, sessions=400, trees=8, learning_rate=0.5)
    kept = few.fit(log, validation=held_out)
    prefixes = [replace(few, trees=trees).fit(log) for trees in range(1, 9)]
    drawn = draw_sessions(held_out, sessions=80, seed=0)
    sessions = JudgedLists.of(features=drawn.features[drawn.documents], labels=drawn.clicks, offsets=drawn.offsets)
    worth = [of_scores(ranker.score(sessions.features), sessions).mean("nDCG@10") for ranker in (kept, *prefixes)]
    assert worth[0] == pytest.approx(max(worth[1:]), abs=1e-6)


def test_patience_decides_when_to_stop(peer: Peer, small: Splits, small_log: ClickLog) -> None:
    hasty, patient = (
        replace(peer, sessions=400, trees=60, patience=patience).fit(small_log, validation=small.validation)
        for patience in (1, 40)
    )
    worth = [evaluate(ranker, small.validation).mean("nDCG@10") for ranker in (hasty, patient)]
    assert worth[0] < worth[1]


def test_a_document_is_scored_on_its_own(peer: Peer, small: Splits, small_log: ClickLog) -> None:
    ranker = replace(peer, **FEW).fit(small_log)
    features, offsets = small.test.features, small.test.offsets
    first = ragged.rows_of(np.array([0]), offsets)
    scores = ranker.score(features, offsets)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores[first], ranker.score(features[first]))


def test_what_does_not_fit_is_refused(peer: Peer, small: Splits, small_log: ClickLog) -> None:
    few = replace(peer, **FEW)
    with pytest.raises(OptionError, match="sessions must be an integer of at least 1"):
        replace(few, sessions=0).fit(small_log)
    with pytest.raises(OptionError, match="leaves must be an integer of at least 2"):
        replace(few, leaves=1).fit(small_log)
    silent = replace(small_log, clicks=np.zeros_like(small_log.clicks), pair_clicks=None)
    with pytest.raises(DataError, match="the training data have no click"):
        few.fit(silent)
    with pytest.raises(DataError, match="the validation data have no click"):
        few.fit(small_log, validation=silent)
    with pytest.raises(DataError, match="same features as the training data"):
        few.fit(small_log, validation=replace(small.test, feature_names=tuple("x" * 64)))
    with pytest.raises(DataError, match="the ranker knows 64 features"):
        few.fit(small_log).score(small.test.features[:, :3])


def test_options_can_be_given_by_name(peer: Peer) -> None:
    assert peer.with_options(**FEW) == replace(peer, **FEW)
    with pytest.raises(OptionError, match="did you mean 'trees'"):
        peer.with_options(tree=3)


def test_a_missing_library_is_an_extra(peer: Peer, small_log: ClickLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("xgboost", "lightgbm"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError) as missing:
        replace(peer, **FEW).fit(small_log)
    assert EXTRAS[str(missing.value.name)] == "peers"

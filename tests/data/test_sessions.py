from __future__ import annotations

from collections import Counter

import pytest

from ultr.data.click_log import ClickLog
from ultr.data.sessions import draw_sessions


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

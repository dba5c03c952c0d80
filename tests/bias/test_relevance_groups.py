from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Integers
from ultr.bias import click_groups, group_table, list_click_groups, score_groups
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError


def _log() -> tuple[ClickLog, Integers]:
    log = ClickLog.of(
        features=[[0.0]] * 4,
        documents=[0, 1, 2, 1, 0, 3],
        offsets=[0, 3, 6],
        clicks=[4, 1, 0, 6, 2, 1],
        impressions=[10, 20],
    )
    return log, np.array([2, 0, 0, -1])[log.documents]


def test_the_table_counts_each_group_at_each_position() -> None:
    log, labels = _log()
    clicks, impressions = group_table(log, labels)
    assert impressions.tolist() == [[20, 10, 10], [0, 0, 0], [10, 20, 0]]
    assert clicks.tolist() == [[6, 1, 0], [0, 0, 0], [4, 2, 0]]


def test_groups_must_fit_the_log() -> None:
    log, labels = _log()
    with pytest.raises(DataError, match="6 shown documents, but 4 groups"):
        group_table(log, labels[:4])
    with pytest.raises(DataError, match="no shown document has a group"):
        group_table(log, np.full(6, -1))


def test_score_groups_hold_equal_weight_and_keep_the_order() -> None:
    random = np.random.default_rng(0)
    scores, weights = random.normal(size=1_000), random.integers(1, 10, size=1_000)
    groups = score_groups(scores, weights, count=4)
    np.testing.assert_allclose(np.bincount(groups, weights) / weights.sum(), 0.25, atol=0.01)
    assert (np.diff(groups[np.argsort(scores)]) >= 0).all()
    assert len(np.unique(score_groups(np.zeros(9), np.ones(9)))) == 1
    with pytest.raises(OptionError, match="count"):
        score_groups(scores, weights, count=0)


def test_the_halves_have_all_impressions_between_them_and_the_groups_know_only_one() -> None:
    # All documents are alike, so groups made from the other half can say nothing about this one.
    documents, positions = np.repeat(np.arange(4_000), 2), np.tile([0, 1], 4_000)
    impressions = np.full(8_000, 20)
    clicks = np.random.default_rng(0).binomial(impressions, np.tile([0.4, 0.2], 4_000))
    cells = Cells.of(documents, positions, impressions, clicks, count=2)
    groups, half = click_groups(cells, count=2, seed=1)
    assert abs(half.impressions.sum() / impressions.sum() - 0.5) < 0.01
    upper = groups[half.documents] == 1
    rates = [half.clicks[part].sum() / half.impressions[part].sum() for part in (upper, ~upper)]
    assert abs(rates[0] - rates[1]) < 0.01
    by_all = groups[cells.documents] == 1
    assert cells.clicks[by_all].mean() > 1.1 * cells.clicks[~by_all].mean()


def test_documents_at_one_position_have_no_group() -> None:
    cells = Cells.of(np.array([0, 1, 1]), np.array([0, 0, 1]), np.full(3, 50), np.full(3, 9), count=2)
    assert (click_groups(cells)[0] >= 0).tolist() == [False, True]
    alone = cells.choose(np.array([0]))
    assert click_groups(alone)[0].tolist() == [-1]


def test_groups_by_lists_do_not_know_the_luck_of_the_lists_they_are_tested_on() -> None:
    # All documents are alike, but each list has luck of its own: 3,000 queries with two documents in four lists.
    random = np.random.default_rng(0)
    pairs = 2 * np.arange(3_000)[:, None] + np.array([[0, 1, 1, 0] * 2])
    luck = np.repeat(random.uniform(0.1, 0.9, size=(3_000, 4)), 2, axis=1)
    log = ClickLog.of(
        features=np.zeros((6_000, 1)),
        documents=pairs.ravel(),
        offsets=np.arange(0, 24_001, 2),
        clicks=random.binomial(50, luck).ravel(),
        impressions=np.full(12_000, 50),
        queries=np.repeat(np.arange(3_000), 4),
        device=np.tile(np.repeat(["desk", "phone"], 4), 3_000),
    )

    def apart(groups: Integers, half: Cells) -> float:
        upper, lower = (half.choose(np.flatnonzero(groups[half.documents] == group)) for group in (1, 0))
        return float(upper.clicks.sum() / upper.impressions.sum() - lower.clicks.sum() / lower.impressions.sum())

    assert apart(*click_groups(log.cells(), count=2)) > 0.1
    groups, half = list_click_groups(log, count=2)
    assert abs(apart(groups, half)) < 0.02
    assert half.impressions.sum() == 50 * len(log.documents) / 2
    assert set(half.together) == {49.0}
    again, _ = list_click_groups(log, count=2, seed=1)
    assert not np.array_equal(groups, again)

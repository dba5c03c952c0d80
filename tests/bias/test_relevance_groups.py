from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Integers
from ultr.bias import Cells, click_groups, document_groups, group_table, score_groups
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
    assert document_groups(log, labels).tolist() == [2, 0, 0, -1]


def test_groups_must_fit_the_log() -> None:
    log, labels = _log()
    with pytest.raises(DataError, match="6 shown documents, but 4 groups"):
        group_table(log, labels[:4])
    with pytest.raises(DataError, match="no shown document has a group"):
        group_table(log, np.full(6, -1))
    with pytest.raises(DataError, match="a document has two groups"):
        document_groups(log, np.arange(6))


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
    documents, positions = np.repeat(np.arange(4_000), 2), np.tile([1, 2], 4_000)
    impressions = np.full(8_000, 20)
    clicks = np.random.default_rng(0).binomial(impressions, np.tile([0.4, 0.2], 4_000))
    cells = Cells.of(documents, positions, impressions, clicks, positions_shown=2)
    groups, half = click_groups(cells, count=2, seed=1)
    assert abs(half.impressions.sum() / impressions.sum() - 0.5) < 0.01
    upper = groups[half.documents] == 1
    rates = [half.clicks[part].sum() / half.impressions[part].sum() for part in (upper, ~upper)]
    assert abs(rates[0] - rates[1]) < 0.01
    by_all = groups[cells.documents] == 1
    assert cells.clicks[by_all].mean() > 1.1 * cells.clicks[~by_all].mean()


def test_documents_at_one_position_have_no_group() -> None:
    cells = Cells.of(np.array([0, 1, 1]), np.array([1, 1, 2]), np.full(3, 50), np.full(3, 9), positions_shown=2)
    assert (click_groups(cells)[0] >= 0).tolist() == [False, True]
    alone = cells.choose(np.array([0]))
    assert click_groups(alone)[0].tolist() == [-1]

"""What was clicked above shown documents, by hand, and its thresholds from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.bias.below_clicks import BelowClicks
from ultr.data.click_log import ClickLog


def _rows(clicks: list[list[int]], impressions: list[int], devices: list[str] | None = None) -> BelowClicks:
    """Lists of as many documents each, none of which is shown twice."""
    lists, width = len(clicks), len(clicks[0])
    log = ClickLog.of(
        features=np.zeros((lists * width, 1)),
        documents=np.arange(lists * width),
        offsets=np.arange(lists + 1) * width,
        clicks=np.ravel(clicks),
        impressions=np.array(impressions),
        queries=np.arange(lists),
        device=np.repeat(devices or ["desk"] * lists, width),
    )
    return BelowClicks.of(log, np.arange(lists))


def test_clicks_above_are_per_impression_of_their_list() -> None:
    rows = _rows([[3, 1, 0], [0, 2, 4]], [10, 5])
    np.testing.assert_allclose(rows.above, [0, 0.3, 0.4, 0, 0, 0.4])
    np.testing.assert_allclose(rows.per_impression, [0.4, 1.2])
    assert rows.query.tolist() == [0, 0, 0, 1, 1, 1]
    assert rows.shown.tolist() == [10, 10, 10, 5, 5, 5]


def test_what_fewer_than_one_in_a_hundred_may_have_seen_tells_nothing() -> None:
    rows = _rows([[989, 0], [990, 1], [991, 2]], [1_000] * 3)
    assert rows.seen().clicked.tolist() == [989, 0, 990, 1, 991]


@pytest.mark.parametrize(("phones", "apart"), [(49, False), (50, True), (51, True)])
def test_a_value_has_positions_of_its_own_from_one_in_twenty_shown_documents_on(phones: int, *, apart: bool) -> None:
    """The share is of impressions, not of lists."""
    rows = _rows([[1, 0], [1, 0]], [phones, 1_000 - phones], devices=["phone", "desk"])
    phone, desk = rows.place.reshape(2, 2)
    assert (phone[1] - phone[0], desk[1] - desk[0]) == (1, 1)
    common = {0, 1}
    assert not common & set(desk)
    assert (not common & set(phone)) == apart


@pytest.mark.parametrize(("full", "once"), [(9, False), (10, True)])
@pytest.mark.parametrize("clicks", [89, 90])
def test_one_list_in_a_hundred_must_have_nine_clicks_in_ten_impressions(full: int, clicks: int, *, once: bool) -> None:
    rows = _rows([[clicks, 0]] * full + [[50, 0]] * (1_000 - full), [100] * 1_000)
    assert rows.once == (once and clicks == 90)


@pytest.mark.parametrize(("more", "once"), [(99, True), (101, False)])
def test_of_a_thousand_clicks_one_may_be_more_than_one_per_impression(more: int, *, once: bool) -> None:
    """100,000 clicks, of which so many are beyond the thousand impressions of the first list."""
    rows = _rows([[1_000, more], [98_000, 1_000 - more]], [1_000, 99_000])
    assert rows.once == once


def test_clicks_beyond_are_counted_where_chance_does_not_explain_them() -> None:
    """Two clicks per impression at most, and twice a deviation of 2 / sqrt(100) more by chance: 2.4."""
    assert _rows([[100, 100, 40]], [100]).beyond(2) == 0
    assert _rows([[100, 100, 50], [350, 0, 0]], [100, 1_000]).beyond(2) == pytest.approx(10 / 600)

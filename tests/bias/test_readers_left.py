"""The share of users who are still there to see a document."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.bias.below_clicks import FEWEST_LEFT
from ultr.bias.readers_left import ReadersLeft
from ultr.clicks.examination_chain import Cascade, DependentClick

WIDTH = 6


def _found(share: float, clicks: Integers | Doubles, impressions: Integers) -> tuple[ReadersLeft, Doubles]:
    lists, width = clicks.shape
    shown = (np.tile(np.arange(width), lists), np.arange(lists + 1) * width, clicks.ravel(), impressions)
    readers = ReadersLeft.fit(share, *shown, position_count=width)
    return readers, readers.at(*shown).reshape(lists, width)


def _users(
    attraction: Doubles, share: float, impressions: int, random: np.random.Generator
) -> tuple[Integers, Doubles]:
    """Clicks of users who stop, and the share of them who were still there, [lists, width]."""
    left = np.full(len(attraction), impressions)
    clicks, there = np.zeros(attraction.shape, dtype=np.int64), np.zeros(attraction.shape)
    for place in range(attraction.shape[1]):
        there[:, place] = left / impressions
        clicks[:, place] = random.binomial(left, attraction[:, place])
        left = left - random.binomial(clicks[:, place], share)
    return clicks, there


def test_with_exact_clicks_they_are_those_who_examine_in_the_models_that_stop() -> None:
    """P(examined) by the click model itself: click rate over attraction."""
    labels = np.random.default_rng(2).integers(0, 5, size=(50, 5))
    for model, share in ((Cascade(), 1.0), (DependentClick(continuation=(0.6,) * 5), 0.4)):
        rates = model.probabilities(labels, max_label=4)
        attraction = model.chain(4).click[:, 0][labels]
        _, left = _found(share, rates * 10**9, np.full(50, 10**9))
        np.testing.assert_allclose(left, np.maximum(rates / attraction, FEWEST_LEFT), atol=1e-6)


@pytest.mark.parametrize("impressions", [3, 8, 1_000])
def test_where_all_stop_they_are_counted(impressions: int) -> None:
    random = np.random.default_rng(0)
    clicks, there = _users(random.uniform(0, 0.6, size=(300, WIDTH)), 1.0, impressions, random)
    _, left = _found(1.0, clicks, np.full(300, impressions))
    np.testing.assert_allclose(left, np.maximum(there, FEWEST_LEFT))


def test_what_chance_adds_is_not_believed() -> None:
    """All lists are alike, so that whoever differs from the mean does so by chance."""
    random = np.random.default_rng(0)
    clicks, there = _users(np.full((2_000, WIDTH), 0.4), 0.4, 8, random)
    readers, left = _found(0.4, clicks, np.full(2_000, 8))
    plain = 1 - 0.4 * (np.cumsum(clicks, axis=1) - clicks) / 8
    np.testing.assert_allclose(readers.means, there.mean(axis=0), atol=0.01)
    assert plain[:, -1].min() < FEWEST_LEFT
    assert left[:, -1].min() > 0.5 * there[:, -1].mean()
    assert ((left - there)[:, 1:] ** 2).mean() < ((plain - there)[:, 1:] ** 2).mean()
    believed = (clicks / 8 / np.maximum(plain, FEWEST_LEFT)).mean(axis=0)
    assert believed[-1] > 1.15 * 0.4
    np.testing.assert_allclose((clicks / 8 / left).mean(axis=0), 0.4, rtol=0.05)


@pytest.mark.parametrize("impressions", [8, 30, 300])
def test_a_click_over_the_users_left_is_the_attraction_on_average(impressions: int) -> None:
    random = np.random.default_rng(1)
    attraction = random.beta(1, 2, size=(4_000, WIDTH))
    clicks, _ = _users(attraction, 0.4, impressions, random)
    _, left = _found(0.4, clicks, np.full(4_000, impressions))
    found = (clicks / impressions / left).mean(axis=0)
    np.testing.assert_allclose(found, attraction.mean(axis=0), rtol=0.08)


def test_the_formula_by_hand() -> None:
    clicks, impressions = np.array([[4, 1], [6, 2], [0, 1]]), np.array([10, 20, 5])
    readers, left = _found(0.5, clicks, impressions)
    above = np.array([0.4, 0.3, 0.0])
    plain, mean = 1 - 0.5 * above, 1 - 0.5 * above.mean()
    chance = 0.25 * above.mean()
    variance = max(plain.var() - (chance / impressions).mean(), 0)
    assert readers.variances[1] == pytest.approx(variance)
    np.testing.assert_allclose(left[:, 1], mean + variance / (variance + chance / impressions) * (plain - mean))
    np.testing.assert_allclose(left[:, 0], 1)


def test_at_a_position_that_no_list_had_the_clicks_above_are_believed() -> None:
    shown = (np.array([0, 2]), np.array([0, 2]), np.array([5, 1]), np.array([10]))
    readers = ReadersLeft.fit(0.4, *shown, position_count=4)
    there = readers.at(np.array([1, 3]), np.array([0, 2]), np.array([5, 1]), np.array([10]))
    np.testing.assert_allclose(there, [1, 1 - 0.4 * 0.5])

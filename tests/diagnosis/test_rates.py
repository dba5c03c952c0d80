from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.diagnosis.factor_rates import ClickRates
from ultr.diagnosis.rates import Rates, click_rates, wilson
from ultr.metrics.query_bootstrap import units_of


def log_of(clicks: list[int], *, queries: list[int], impressions: int = 100) -> ClickLog:
    """One document a list."""
    return ClickLog.of(
        features=np.zeros((len(clicks), 0)),
        documents=np.arange(len(clicks)),
        offsets=np.arange(len(clicks) + 1),
        clicks=clicks,
        impressions=[impressions] * len(clicks),
        queries=queries,
    )


def test_rates_are_clicks_over_impressions_and_unknown_where_nothing_was_shown() -> None:
    log = log_of([10, 30, 0], queries=[1, 2, 3])
    rates = click_rates(log, np.array([0, 0, 2]), count=3)
    assert rates.impressions.tolist() == [200, 0, 100]
    assert rates.clicks.tolist() == [40, 0, 0]
    np.testing.assert_allclose(rates.values, [0.2, np.nan, 0])
    assert np.isnan(rates.low[1])
    assert rates.low[2] == 0
    assert 0.03 < rates.high[2] < 0.04


def test_intervals_cover_the_true_rate_where_queries_differ() -> None:
    """The plain interval of Wilson covers a third of the time here."""
    random = np.random.default_rng(0)
    inside, plain = 0, 0
    for _ in range(400):
        chances = random.beta(1, 9, size=60)
        log = log_of(random.binomial(400, chances).tolist(), queries=list(range(60)), impressions=400)
        rates = click_rates(log, np.zeros(60, dtype=np.int64), count=1)
        inside += int(rates.low[0] <= 0.1 <= rates.high[0])
        low, high = wilson(rates.values, rates.impressions.astype(np.float64))
        plain += int(low[0] <= 0.1 <= high[0])
    assert 0.91 <= inside / 400 <= 0.98
    assert plain / 400 < 0.5


def test_lists_are_what_differs_by_chance_where_queries_are_few() -> None:
    assert units_of(log_of([1] * 5, queries=[7, 7, 7, 8, 8])).tolist() == [0, 1, 2, 3, 4]
    many = log_of([1] * 60, queries=[number // 2 for number in range(60)])
    assert len(np.unique(units_of(many))) == 30


def _said(shown: list[int], clicks: list[int]) -> tuple[str, str]:
    """The verdict on pages of which so many reach each position, one page a query."""
    lengths = [sum(count > page for count in shown) for page in range(shown[0])]
    places = np.concatenate([np.arange(length) for length in lengths])
    pages = np.repeat(np.arange(len(lengths)), lengths)
    log = ClickLog.of(
        features=np.zeros((len(places), 0)),
        documents=np.arange(len(places)),
        offsets=np.cumsum([0, *lengths]),
        clicks=(pages < np.array(clicks)[places]).astype(int),
        queries=np.arange(len(lengths)),
    )
    found = ClickRates.of(log).section()
    return str(found.verdict), found.answer


def test_rates_are_compared_with_the_last_position_that_is_shown_often() -> None:
    """One page reaches position 4, which says nothing about whether rates fall; nor how much, three clicks."""
    verdict, said = _said([400, 400, 200, 1], [120, 60, 10, 0])
    assert verdict == "good"
    assert said.startswith("Position 1 is clicked 6.0 times as often as position 3 (0.300 and 0.050)")
    verdict, said = _said([400, 400, 60, 1], [120, 60, 3, 0])
    assert verdict == "good"
    assert said.startswith("Position 1 is clicked 2.0 times as often as position 2 (0.300 and 0.150)")
    verdict, said = _said([400, 400, 60, 1], [120, 9, 0, 0])
    assert verdict == "good"
    assert said.startswith("Position 1 is clicked at a rate of 0.300, position 3 never; ")
    verdict, said = _said([400, 400, 60, 1], [120, 60, 18, 1])
    assert verdict == "careful"
    assert said == "Click rates do not fall beyond chance from position 1 (0.300) to position 3 (0.300)."


def test_where_every_page_has_one_click_rates_do_not_tell_whether_a_device_matters() -> None:
    shown: dict[str, Any] = {"features": np.zeros((8, 0)), "documents": np.arange(8), "offsets": [0, 2, 4, 6, 8]}
    devices = ["phone"] * 4 + ["desk"] * 4
    clicks = [1, 0, 1, 0, 0, 1, 0, 1]
    for clicked, device, fixed in (
        (clicks, devices, True),
        ([1, 1, 0, 0, 0, 1, 0, 1], devices, False),
        (clicks, ["phone", "desk"] * 4, False),
    ):
        said = ClickRates.of(ClickLog.of(**shown, clicks=clicked, queries=np.arange(4), device=device)).section().answer
        assert ("rates do not tell whether device matters" in said) is fixed


def _effect(clicks: list[int], impressions: int) -> float:
    """Variance of the clicks of a list over that of independent ones, by definition."""
    rate, count = sum(clicks) / (impressions * len(clicks)), len(clicks)
    between = count / (count - 1) * sum((each - rate * impressions) ** 2 for each in clicks)
    return between / (rate * (1 - rate) * impressions * count)


@pytest.mark.parametrize(
    ("clicks", "impressions"), [([10, 30], 100), ([2, 30], 100), ([5, 10, 40], 100), ([2, 0], 2), ([1, 0, 0], 1)]
)
def test_lists_that_differ_widen_the_interval_as_if_there_were_fewer_impressions(
    clicks: list[int], impressions: int
) -> None:
    log = log_of(clicks, queries=list(range(len(clicks))), impressions=impressions)
    found = click_rates(log, np.zeros(len(clicks), dtype=np.int64))
    effect, shown = _effect(clicks, impressions), float(impressions * len(clicks))
    assert effect > 1
    low, high = wilson(np.array([sum(clicks) / shown]), np.array([shown / effect]))
    assert (found.low[0], found.high[0]) == pytest.approx((low[0], high[0]))


def test_lists_that_are_more_alike_than_chance_makes_them_do_not_narrow_it() -> None:
    found = click_rates(log_of([20, 20, 21], queries=[0, 1, 2]), np.zeros(3, dtype=np.int64))
    low, high = wilson(np.array([61 / 300]), np.array([300.0]))
    assert (found.low[0], found.high[0]) == pytest.approx((low[0], high[0]))


def test_one_list_has_the_interval_of_its_impressions() -> None:
    found = click_rates(log_of([20, 90], queries=[0, 1]), np.array([0, 1]))
    low, high = wilson(np.array([0.2, 0.9]), np.array([100.0, 100.0]))
    np.testing.assert_allclose([found.low, found.high], [low, high])
    once = click_rates(log_of([1], queries=[0], impressions=1), np.array([0]))
    np.testing.assert_allclose([once.low, once.high], wilson(np.array([1.0]), np.array([1.0])))


def test_cells_have_the_interval_that_they_have_alone() -> None:
    clicks, cells = [10, 40, 5, 30, 60, 25], np.array([0, 1, 2, 0, 1, 2])
    found = click_rates(log_of(clicks, queries=list(range(6))), cells)
    for cell in range(3):
        alone = click_rates(log_of([clicks[cell], clicks[cell + 3]], queries=[0, 1]), np.array([0, 0]))
        assert (found.low[cell], found.high[cell]) == pytest.approx((alone.low[0], alone.high[0]))


def test_wilsons_interval_holds_the_rates_whose_distance_is_less_than_1_96_errors() -> None:
    """The ends p solve (r - p)^2 = z^2 p (1 - p) / n."""
    rate, n = np.array([0.0, 0.02, 0.5, 1.0, 0.5]), np.array([40.0, 100.0, 1_000.0, 7.0, 0.5])
    for end in wilson(rate, n):
        np.testing.assert_allclose((rate - end) ** 2, 1.959964**2 * end * (1 - end) / n, atol=1e-12)
    low, high = wilson(np.array([0.0, 1.0]), np.array([3.0, 3.0]))
    assert (low[0], high[1]) == pytest.approx((0.0, 1.0), abs=1e-12)
    assert np.isnan(wilson(np.array([0.0]), np.array([0.0]))).all()


def test_a_table_leaves_out_what_was_not_shown() -> None:
    ends = np.array([0.9, np.nan, 0.0]), np.array([1.0, np.nan, 0.8])
    rates = Rates(np.array([1_000, 0, 1]), np.array([1_000, 0, 0]), *ends)
    table = rates.table("a title", "device", ["desk", "watch", "phone"])
    assert (table.title, table.folded) == ("a title", True)
    columns = ("device", "documents shown", "clicks", "rate", "low", "high")
    assert [tuple(row.values()) for row in table.rows] == [
        ("desk", "1,000", "1,000", "1.0000", "0.9000", "1.0000"),
        ("phone", "1", "0", "0.0000", "0.0000", "0.8000"),
    ]
    assert tuple(table.rows[0]) == columns

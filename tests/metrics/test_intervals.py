from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

from ultr.arrays import Doubles
from ultr.errors import DataError, OptionError
from ultr.metrics import intervals
from ultr.metrics.intervals import bootstrap_interval, bootstrap_ratio, paired_test
from ultr.metrics.student import student_quantile
from ultr.seeding import generator


def normal_sample(seed: int, size: int, mean: float = 0.0) -> Doubles:
    return np.random.default_rng(seed).normal(mean, 1.0, size)


VALUES: dict[str, Callable[[np.random.Generator, int], Doubles]] = {
    "normal": lambda random, count: random.normal(3.0, 1.0, count),
    "skewed": lambda random, count: 2.0 + random.exponential(size=count),
    "ties": lambda random, count: 3.0 + random.laplace(size=count) * (random.random(count) < 0.3),
}
"""With a mean of 3. Python -m benchmarks.intervals has more of them, and ratios."""


@pytest.mark.parametrize(
    ("values", "queries", "least"),
    [*product(["normal", "ties"], [5, 10, 20, 50], [0.93]), *product(["skewed"], [10, 20, 50], [0.92])],
)
def test_intervals_hold_the_truth_as_often_as_they_say_also_with_few_queries(
    values: str, queries: int, least: float
) -> None:
    random = np.random.default_rng(queries)
    found = [bootstrap_interval(VALUES[values](random, queries), samples=200, seed=i) for i in range(600)]
    assert least <= np.mean([interval.low <= 3.0 <= interval.high for interval in found])


def test_intervals_of_many_queries_hold_the_truth_no_more_often_than_they_say() -> None:
    found = [bootstrap_interval(normal_sample(i, 50, mean=3.0), level=0.9, samples=500) for i in range(400)]
    assert 0.87 < np.mean([interval.low <= 3.0 <= interval.high for interval in found]) < 0.95


@pytest.mark.parametrize("freedom", [1, 2, 9, 100, 10**6])
def test_student_quantiles_are_those_of_scipy(freedom: int) -> None:
    for level in (0.5, 0.95, 0.999):
        assert student_quantile(level, freedom) == pytest.approx(stats.t.ppf((1 + level) / 2, freedom), rel=1e-4)


def test_one_query_tells_nothing_about_others() -> None:
    one = bootstrap_interval(np.array([0.5, np.nan]))
    assert one.mean == 0.5
    assert np.isnan([one.low, one.high]).all()
    assert student_quantile(0.95, 0) == math.inf


def test_two_queries_have_an_interval_as_wide_as_students() -> None:
    interval = bootstrap_interval(np.array([0.0, 1.0]))
    assert (interval.low, interval.high) == pytest.approx((0.5 - 12.706 / 2, 0.5 + 12.706 / 2), abs=1e-3)


def test_a_ratio_that_one_query_decides_has_no_interval() -> None:
    assert math.isnan(bootstrap_ratio(np.array([2.0, 1.0]), np.array([0.0, 2.0])).low)


def test_the_bootstrap_interval_is_as_wide_as_the_normal_one() -> None:
    values = normal_sample(1, 2_000)
    interval = bootstrap_interval(values, samples=4_000)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half, abs=half / 10)
    assert interval.high == pytest.approx(values.mean() + half, abs=half / 10)


def test_a_higher_level_gives_a_wider_interval() -> None:
    values = normal_sample(2, 100)
    narrow, wide = bootstrap_interval(values, level=0.5), bootstrap_interval(values, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_intervals_depend_only_on_the_values_and_the_seed() -> None:
    values = normal_sample(3, 40)
    assert bootstrap_interval(values) == bootstrap_interval(values)
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)
    assert paired_test(values, values[::-1]) == paired_test(values, values[::-1])
    assert paired_test(values, values[::-1], seed=1) != paired_test(values, values[::-1], seed=2)


def test_queries_without_a_value_are_left_out() -> None:
    values = normal_sample(4, 30)
    with_gaps = np.insert(values, [0, 7, 30], np.nan)
    assert bootstrap_interval(with_gaps) == bootstrap_interval(values)
    zeros = np.where(np.isnan(with_gaps), np.nan, 0.0)
    assert paired_test(with_gaps, zeros) == paired_test(values, np.zeros(30))


def test_small_chunks_give_the_same_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    values = normal_sample(5, 30)
    at_once = bootstrap_interval(values, samples=500)
    monkeypatch.setattr(intervals, "_CHUNK", 70)
    assert bootstrap_interval(values, samples=500) == at_once


def test_small_chunks_still_take_every_sample_of_the_randomisation_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intervals, "_CHUNK", 70)
    same = np.ones(30)
    assert paired_test(same, same, samples=501).p_value == 1.0


def test_identical_rankers_have_a_p_value_of_one() -> None:
    values = normal_sample(6, 50)
    found = paired_test(values, values)
    assert (found.difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_clear_difference_has_the_smallest_p_value_there_is() -> None:
    found = paired_test(normal_sample(7, 200, mean=2.0), normal_sample(8, 200), samples=999)
    assert found.p_value == 1 / 1000
    assert 0 < found.low < found.difference < found.high


def test_exchanging_the_rankers_turns_the_difference_round() -> None:
    a, b = normal_sample(9, 60), normal_sample(10, 60)
    one, other = paired_test(a, b), paired_test(b, a)
    assert one.difference == -other.difference
    assert one.p_value == pytest.approx(other.p_value, abs=0.02)


def test_p_values_are_uniform_when_the_rankers_do_not_differ() -> None:
    values = [paired_test(normal_sample(i, 20), np.zeros(20), samples=400).p_value for i in range(500)]
    deciles = np.histogram(values, bins=10, range=(0, 1))[0]
    assert deciles.min() > 25
    assert deciles.max() < 80


@pytest.mark.parametrize("seed", range(3))
def test_the_randomisation_test_agrees_with_all_sign_flips(seed: int) -> None:
    differences = normal_sample(seed, 8, mean=0.5)
    sums = np.abs([np.dot(signs, differences) for signs in product([-1, 1], repeat=8)])
    exact = np.mean(sums >= abs(differences.sum()) - 1e-9)
    assert paired_test(differences, np.zeros(8), samples=40_000).p_value == pytest.approx(exact, abs=0.01)


def test_rounding_does_not_decide_what_is_as_extreme_as_the_observed() -> None:
    # The sum is 4 tenths; so far from 0 are flips with at most 3 or at least 7 plus signs of 10.
    differences = np.array([0.1] * 7 + [-0.1] * 3)
    exact = 2 * sum(comb(10, plus) for plus in range(4)) / 2**10
    assert paired_test(differences, np.zeros(10), samples=40_000).p_value == pytest.approx(exact, abs=0.01)


def test_rankers_measured_on_other_queries_cannot_be_paired() -> None:
    with pytest.raises(DataError, match="same queries twice, got 2 and 3 values"):
        paired_test(np.zeros(2), np.zeros(3))
    with pytest.raises(DataError, match="query 1 is NaN in only one"):
        paired_test(np.zeros(2), np.array([0.0, np.nan]))


def test_an_interval_needs_a_value_and_options_that_fit() -> None:
    with pytest.raises(DataError, match="at least one query with a value"):
        bootstrap_interval(np.array([np.nan]))
    with pytest.raises(DataError, match="at least one query with a value"):
        paired_test(np.array([np.nan]), np.array([np.nan]))
    with pytest.raises(OptionError, match="level must be a share"):
        bootstrap_interval(np.zeros(2), level=95)
    with pytest.raises(OptionError, match="samples must be an integer of at least 1"):
        paired_test(np.zeros(2), np.zeros(2), samples=0)


def test_a_ratio_of_sums_weighs_each_query_by_its_denominator() -> None:
    values, weights = np.array([1.0, 0.0, 3.0, 2.0]), np.array([10.0, 1.0, 5.0, 4.0])
    interval = bootstrap_ratio(values, weights)
    assert interval.mean == pytest.approx(6 / 20)
    assert interval.low < interval.mean < interval.high


def test_a_ratio_with_equal_denominators_is_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=40)
    ratio, mean = bootstrap_ratio(values, np.ones(40), samples=3_000), bootstrap_interval(values, samples=3_000)
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((mean.mean, mean.low, mean.high))


def test_queries_without_a_size_are_left_out_of_a_ratio() -> None:
    values, sizes = np.array([1.0, 0.0, 3.0, 2.0]), np.array([10.0, 1.0, 5.0, 4.0])
    assert bootstrap_ratio(np.append(values, 0.0), np.append(sizes, 0.0)) == bootstrap_ratio(values, sizes)


@pytest.mark.parametrize("denominators", [np.zeros(2), np.array([1.0, -1.0]), np.ones(3)])
def test_a_ratio_over_nothing_is_refused(denominators: Doubles) -> None:
    with pytest.raises(DataError, match=r"denominators of a ratio|the same queries twice"):
        bootstrap_ratio(np.ones(2), denominators)


def test_by_default_ten_thousand_signs_are_drawn() -> None:
    assert paired_test(np.full(40, 1.0), np.zeros(40)).p_value == 1 / 10_001


@pytest.mark.parametrize("size", [0.0, 3.0])
def test_a_query_with_a_size_or_a_value_counts(size: float) -> None:
    """One with neither is left out; of two queries with a size there is an interval, of one there is none."""
    found = bootstrap_ratio(np.array([1.0, 0.0]), np.array([2.0, size]))
    assert found.mean == pytest.approx(1 / (2 + size))
    assert math.isnan(found.low) is (size == 0)


def test_an_interval_is_students_where_that_is_the_wider_one() -> None:
    """Of a ratio by the jackknife: (Q - 1) / Q sum (r_q - mean)^2, r_q the ratio without query q."""
    values, sizes = np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 3.0])
    ratios = np.array(
        [(values.sum() - value) / (sizes.sum() - size) for value, size in zip(values, sizes, strict=True)]
    )
    error = np.sqrt(2 / 3 * ((ratios - ratios.mean()) ** 2).sum())
    found = bootstrap_ratio(values, sizes, samples=1)
    half = stats.t.ppf(0.975, 2) * error
    assert min(found.mean - found.low, found.high - found.mean) == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_either_end_is_the_wider_of_students_and_the_bootstrap_of_students_t(sign: float) -> None:
    """One resample after the other, by the formulas; values are skewed, so that the ends differ."""
    random, count = np.random.default_rng(3), 12
    sizes = random.integers(1, 9, size=count).astype(np.float64)
    values = sign * random.exponential(size=count) ** 2 * sizes
    found = bootstrap_ratio(values, sizes, level=0.9, samples=300, seed=5)
    ratio = values.sum() / sizes.sum()

    def error_of(rests: Doubles, of: Doubles) -> float:
        return float(np.sqrt(count / (count - 1) * (rests**2).sum()) / of.sum())

    rests, ts = values - ratio * sizes, [0.0]
    for rows in generator(5, "bootstrap").integers(count, size=(300, count)):
        off = rests[rows].sum() / sizes[rows].sum()
        ts.append(off / error_of(rests[rows] - off * sizes[rows], sizes[rows]))
    low, high = error_of(rests, sizes) * np.quantile(ts, [0.05, 0.95])
    without = [(values.sum() - value) / (sizes.sum() - size) for value, size in zip(values, sizes, strict=True)]
    student = stats.t.ppf(0.95, count - 1) * np.sqrt((count - 1) / count * ((without - np.mean(without)) ** 2).sum())
    assert found.low == pytest.approx(ratio - max(student, high), rel=1e-3)
    assert found.high == pytest.approx(ratio + max(student, -low), rel=1e-3)
    assert max(high, -low) > 1.1 * student


def test_the_level_is_95_percent_unless_another_is_asked_for() -> None:
    values = normal_sample(11, 12)
    by_default = paired_test(values, np.zeros(12), samples=10)
    assert by_default == paired_test(values, np.zeros(12), level=0.95, samples=10)
    interval = bootstrap_interval(values)
    assert (by_default.difference, by_default.low, by_default.high) == (interval.mean, interval.low, interval.high)
    assert bootstrap_ratio(values, np.ones(12)) == bootstrap_ratio(values, np.ones(12), level=0.95)

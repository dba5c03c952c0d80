"""The contracts that come with the package find what is wrong with members of other packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers, Mask
from ultr.clicks import IndependentClicks, relevance
from ultr.metrics import rank_lists
from ultr.testing.clicks import ClickModelContract
from ultr.testing.metrics import MetricContract

clicks, metrics = ClickModelContract(), MetricContract()


@dataclass(frozen=True)
class Eager(IndependentClicks):
    name: ClassVar[str] = "eager"

    noise: float = 0.1
    positions: int = 6

    def rates(self, max_label: int) -> Doubles:
        by_grade = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)
        return np.repeat(by_grade[:, None], self.positions, axis=1)


@pytest.mark.parametrize("model", [Eager(), Eager(noise=0.5, positions=1)])
class TestEager(ClickModelContract): ...


def success(scores: Doubles, labels: Integers, offsets: Integers) -> Doubles:
    """1 if the first document is relevant."""
    ranked = rank_lists(scores, labels, offsets)
    return ranked.where_judged(ranked.total(ranked.relevant & ranked.up_to(1)))


@pytest.mark.parametrize("metric", [success, "nDCG@5"], ids=["success", "nDCG@5"])
class TestSuccess(MetricContract): ...


class OnceMore(Eager):
    """Each impression is drawn twice."""

    def counts(self, labels: Any, impressions: Any, generator: Any, *, max_label: int) -> Integers:
        return super().counts(labels, 2 * impressions, generator, max_label=max_label)


class Sleepy(Eager):
    """Sessions without any click."""

    def sessions(self, labels: Any, generator: Any, *, max_label: int) -> Mask:
        return super().sessions(labels, generator, max_label=max_label) & False


class Absolute(Eager):
    """A grade means the same on every scale."""

    def rates(self, max_label: int) -> Doubles:
        return super().rates(4)[: max_label + 1]


@pytest.mark.parametrize(
    ("check", "model"),
    [
        (clicks.test_counts_never_exceed_impressions_and_zero_impressions_give_no_click, OnceMore()),
        (clicks.test_a_trillion_impressions_cost_no_more_and_give_the_exact_rates, OnceMore()),
        (clicks.test_single_sessions_have_the_same_rates, Sleepy()),
    ],
)
def test_a_click_model_that_draws_other_clicks_than_it_says_is_found(check: Callable[..., None], model: Any) -> None:
    check(Eager())
    with pytest.raises(AssertionError):
        check(model)


def test_a_click_model_whose_grades_depend_on_the_scale_is_found() -> None:
    check = clicks.test_the_lowest_and_the_highest_grade_mean_the_same_on_every_scale
    check(Eager(), 2)
    with pytest.raises(AssertionError):
        check(Absolute(), 2)


def optimistic(scores: Doubles, labels: Integers, offsets: Integers) -> Doubles:
    """Ties count for the ranker."""
    return success(scores + 1e-9 * labels, labels, offsets)


def in_order(scores: Doubles, labels: Integers, offsets: Integers) -> Doubles:
    """Of tied documents the first one given is counted first."""
    return success(scores - 1e-9 * np.arange(len(scores)), labels, offsets)


def lenient(scores: Doubles, labels: Integers, offsets: Integers) -> Doubles:
    """0 where nothing is relevant."""
    return np.nan_to_num(success(scores, labels, offsets))


@pytest.mark.parametrize(
    ("check", "metric"),
    [
        (metrics.test_ties_get_the_worst_value_of_all_orders_of_the_tied_documents, optimistic),
        (metrics.test_a_constant_ranker_is_never_better_than_another, optimistic),
        (metrics.test_the_order_of_the_candidates_does_not_matter, in_order),
        (metrics.test_queries_without_a_relevant_document_and_empty_ones_get_nan, lenient),
    ],
)
def test_a_metric_that_breaks_a_rule_is_found(check: Callable[..., None], metric: Any) -> None:
    check(metric=success)
    with pytest.raises(AssertionError):
        check(metric=metric)

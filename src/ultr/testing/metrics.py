"""What every measure of a ranking against labels keeps to; `ultr.metrics.rank_lists` does most of it for a new one.

@pytest.mark.parametrize("metric", [success, "nDCG@5"])
class TestSuccess(MetricContract): ...
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.errors import DataError
from ultr.metrics import Measure

MAX_LABEL = 4
Metric: TypeAlias = str | Measure | Callable[..., Doubles]

# A contract is inherited by several classes, which hypothesis takes for a mistake.
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.differing_executors])


class Lists(NamedTuple):
    """Scored and judged lists."""

    scores: Doubles
    labels: Integers
    offsets: Integers

    def queries(self) -> list[tuple[list[float], list[int]]]:
        """Scores and labels of each list."""
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return [(self.scores[a:b].tolist(), self.labels[a:b].tolist()) for a, b in bounds]


@st.composite
def ragged_lists(draw: st.DrawFn, *, ties: bool = False, longest: int = 12) -> Lists:
    """Up to six lists, some of them empty."""
    lengths = draw(st.lists(st.integers(0, longest), min_size=1, max_size=6))
    total = sum(lengths)
    labels = draw(st.lists(st.integers(0, MAX_LABEL), min_size=total, max_size=total))
    if ties:
        scores = draw(st.lists(st.sampled_from([-1.0, 0.0, 2.5]), min_size=total, max_size=total))
    else:
        scores = [float(score) for score in draw(st.permutations(range(total)))]
    return Lists(np.array(scores), np.array(labels, dtype=np.int64), ragged.from_lengths(np.array(lengths)))


class MetricContract:
    """Tests of a measure `metric` (a name, a `Measure` or a function), given by `pytest.mark.parametrize`."""

    @given(lists=ragged_lists(ties=True, longest=5))
    @settings(quick, max_examples=40)
    def test_ties_get_the_worst_value_of_all_orders_of_the_tied_documents(self, metric: Metric, lists: Lists) -> None:
        worst = min if Measure.of(metric).higher_is_better else max
        for value, (scores, labels) in zip(_values(metric, *lists), lists.queries(), strict=True):
            if any(labels):
                every_order = [
                    order
                    for order in permutations(range(len(labels)))
                    if all(scores[a] >= scores[b] for a, b in pairwise(order))
                ]
                tie_free = -np.arange(len(labels), dtype=np.float64)
                values = [_value(metric, tie_free, np.array(labels)[list(order)]) for order in every_order]
                assert value == pytest.approx(worst(values))

    @given(labels=st.lists(st.integers(0, MAX_LABEL), min_size=1, max_size=8), scores=st.permutations(range(8)))
    @quick
    def test_a_constant_ranker_is_never_better_than_another(
        self, metric: Metric, labels: list[int], scores: list[int]
    ) -> None:
        assume(any(labels))
        constant = _value(metric, np.zeros(len(labels)), labels)
        other = _value(metric, np.array(scores[: len(labels)], dtype=np.float64), labels)
        gain = other - constant if Measure.of(metric).higher_is_better else constant - other
        assert gain >= -1e-12

    @given(lists=ragged_lists(ties=True), seed=st.integers(0, 1000))
    @quick
    def test_the_order_of_the_candidates_does_not_matter(self, metric: Metric, lists: Lists, seed: int) -> None:
        shuffled = np.random.default_rng(seed).permutation(len(lists.labels))
        order = shuffled[np.argsort(ragged.list_numbers(lists.offsets)[shuffled], kind="stable")]
        agree(_values(metric, lists.scores[order], lists.labels[order], lists.offsets), _values(metric, *lists))

    @given(lists=ragged_lists(ties=True))
    @quick
    def test_a_strictly_increasing_transform_of_the_scores_does_not_matter(self, metric: Metric, lists: Lists) -> None:
        moved = np.exp(lists.scores) * 3 - 7
        np.testing.assert_array_equal(_values(metric, moved, lists.labels, lists.offsets), _values(metric, *lists))

    @given(lists=ragged_lists(ties=True))
    @quick
    def test_each_query_is_measured_on_its_own(self, metric: Metric, lists: Lists) -> None:
        agree(_values(metric, *lists), [_value(metric, np.array(s), y) for s, y in lists.queries()])

    def test_queries_without_a_relevant_document_and_empty_ones_get_nan(self, metric: Metric) -> None:
        values = _values(metric, [1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 2, 3, 3])
        assert np.isnan(values).tolist() == [True, True, False, True]

    def test_no_queries_give_no_values(self, metric: Metric) -> None:
        assert _values(metric, [], np.empty(0, dtype=int), [0]).shape == (0,)

    def test_scores_in_float32_and_infinite_scores_are_ranked(self, metric: Metric) -> None:
        infinite = _value(metric, np.array([-np.inf, 0.5, np.inf], dtype=np.float32), [1, 0, 2])
        assert infinite == _value(metric, [1.0, 2.0, 3.0], [1, 0, 2])

    def test_arrays_of_the_caller_stay_as_they_were(self, metric: Metric) -> None:
        scores, labels, offsets = np.array([0.2, 0.2, 0.9]), np.array([1, 0, 2]), np.array([0, 2, 3])
        _values(metric, scores, labels, offsets)
        assert (scores.tolist(), labels.tolist(), offsets.tolist()) == ([0.2, 0.2, 0.9], [1, 0, 2], [0, 2, 3])

    def test_nan_scores_raise_and_name_the_query(self, metric: Metric) -> None:
        with pytest.raises(DataError, match=r"scores of query 2 .* contain NaN"):
            _values(metric, [1.0, 2.0, np.nan], [0, 1, 1], [0, 2, 2, 3])

    def test_arrays_that_do_not_fit_raise(self, metric: Metric) -> None:
        with pytest.raises(DataError, match="do not fit labels"):
            _values(metric, np.ones(2), [1, 1, 1], [0, 3])
        with pytest.raises(DataError, match="integers of at least 0"):
            _values(metric, np.ones(2), [-1, 1], [0, 2])
        with pytest.raises(DataError, match="integers of at least 0"):
            _values(metric, np.ones(2), [0.5, 1.0], [0, 2])
        with pytest.raises(DataError, match="offsets of scored documents"):
            _values(metric, np.ones(2), [0, 1], [0, 1])


def agree(ours: Doubles, theirs: Doubles | list[float]) -> None:
    """Raise an `AssertionError` unless two sets of values are the same up to rounding."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def _values(metric: Metric, scores: Any, labels: Any, offsets: Any) -> Doubles:
    arrays = np.asarray(scores), np.asarray(labels), np.asarray(offsets)
    return Measure.of(metric).values(*arrays, max_label=MAX_LABEL)


def _value(metric: Metric, scores: Any, labels: Any) -> float:
    """The value of a single list."""
    return float(_values(metric, scores, np.asarray(labels, dtype=int), [0, len(labels)])[0])

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise, permutations
from math import log2
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.errors import DataError, OptionError
from ultr.metrics import ranking

MAX_LABEL = 4
CUTOFFS = st.sampled_from([None, 1, 2, 3, 5, 10, 20])

quick = settings(deadline=None, max_examples=60)


class Lists(NamedTuple):
    scores: Doubles
    labels: Integers
    offsets: Integers

    def queries(self) -> list[tuple[list[float], list[int]]]:
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        return [(self.scores[a:b].tolist(), self.labels[a:b].tolist()) for a, b in bounds]


@st.composite
def ragged_lists(draw: st.DrawFn, *, ties: bool = False, longest: int = 12) -> Lists:
    lengths = draw(st.lists(st.integers(0, longest), min_size=1, max_size=6))
    total = sum(lengths)
    labels = draw(st.lists(st.integers(0, MAX_LABEL), min_size=total, max_size=total))
    if ties:
        scores = draw(st.lists(st.sampled_from([-1.0, 0.0, 2.5]), min_size=total, max_size=total))
    else:
        scores = [float(score) for score in draw(st.permutations(range(total)))]
    return Lists(np.array(scores), np.array(labels, dtype=np.int64), ragged.from_lengths(np.array(lengths)))


Metric = Callable[..., Doubles]

EVERY: dict[str, Metric] = {
    "ndcg": ranking.ndcg,
    "reciprocal_rank": ranking.reciprocal_rank,
    "average_precision": ranking.average_precision,
    "expected_reciprocal_rank": partial(ranking.expected_reciprocal_rank, max_label=MAX_LABEL),
    "average_relevance_position": ranking.average_relevance_position,
    "precision": partial(ranking.precision, cutoff=3),
}
with_every_metric = pytest.mark.parametrize("metric", EVERY.values(), ids=EVERY)
WITH_CUTOFF = {name: metric for name, metric in EVERY.items() if name != "average_relevance_position"}
with_every_cutoff_metric = pytest.mark.parametrize("metric", WITH_CUTOFF.values(), ids=WITH_CUTOFF)


def by_trec(measure: Any, lists: Lists) -> Doubles:
    """The values of ir-measures, NaN for queries without a relevant document."""
    queries = [(str(number), query) for number, query in enumerate(lists.queries()) if any(query[1])]
    judgments = {q: {str(d): y for d, y in enumerate(labels)} for q, (_, labels) in queries}
    run = {q: {str(d): s for d, s in enumerate(scores)} for q, (scores, _) in queries}
    values = np.full(len(lists.offsets) - 1, np.nan)
    for metric in ir_measures.iter_calc([measure], judgments, run) if queries else []:
        values[int(metric.query_id)] = metric.value
    return values


def by_formula(formula: Callable[[list[int]], float], lists: Lists) -> list[float]:
    """A formula over the labels in ranked order, for each query; needs scores without ties."""
    return [
        formula([y for _, y in sorted(zip(scores, labels, strict=True), reverse=True)]) if any(labels) else float("nan")
        for scores, labels in lists.queries()
    ]


def agree(ours: Doubles, theirs: Doubles | list[float]) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@given(ragged_lists(), CUTOFFS)
@quick
def test_ndcg_agrees_with_trec_eval_on_exponential_gains(lists: Lists, cutoff: int | None) -> None:
    measure = ir_measures.nDCG(gains={y: 2**y - 1 for y in range(MAX_LABEL + 1)})
    agree(ranking.ndcg(*lists, cutoff=cutoff), by_trec(measure @ cutoff if cutoff else measure, lists))


@given(ragged_lists(), CUTOFFS)
@quick
def test_ndcg_agrees_with_scikit_learn_on_exponential_gains(lists: Lists, cutoff: int | None) -> None:
    ours = ranking.ndcg(*lists, cutoff=cutoff)
    for value, (scores, labels) in zip(ours, lists.queries(), strict=True):
        if any(labels) and len(labels) > 1:
            assert value == pytest.approx(ndcg_score([np.exp2(labels) - 1], [scores], k=cutoff))


@given(ragged_lists(), CUTOFFS)
@quick
def test_reciprocal_rank_agrees_with_trec_eval(lists: Lists, cutoff: int | None) -> None:
    measure = ir_measures.RR @ cutoff if cutoff else ir_measures.RR
    agree(ranking.reciprocal_rank(*lists, cutoff=cutoff), by_trec(measure, lists))


@given(ragged_lists(), CUTOFFS)
@quick
def test_average_precision_agrees_with_trec_eval(lists: Lists, cutoff: int | None) -> None:
    measure = ir_measures.AP @ cutoff if cutoff else ir_measures.AP
    agree(ranking.average_precision(*lists, cutoff=cutoff), by_trec(measure, lists))


@given(ragged_lists())
@quick
def test_average_precision_agrees_with_scikit_learn(lists: Lists) -> None:
    for value, (scores, labels) in zip(ranking.average_precision(*lists), lists.queries(), strict=True):
        if any(labels):
            assert value == pytest.approx(average_precision_score(np.array(labels) > 0, scores))


@given(ragged_lists(), st.integers(1, 20))
@quick
def test_precision_agrees_with_trec_eval_also_for_lists_shorter_than_the_cutoff(lists: Lists, cutoff: int) -> None:
    agree(ranking.precision(*lists, cutoff=cutoff), by_trec(ir_measures.P @ cutoff, lists))


@given(ragged_lists(), CUTOFFS, st.integers(MAX_LABEL, MAX_LABEL + 2))
@quick
def test_expected_reciprocal_rank_is_the_sum_of_its_definition(
    lists: Lists, cutoff: int | None, max_label: int
) -> None:
    def formula(labels: list[int]) -> float:
        value, unsatisfied = 0.0, 1.0
        for rank, label in enumerate(labels[:cutoff], start=1):
            satisfaction = (2**label - 1) / 2**max_label
            value += unsatisfied * satisfaction / rank
            unsatisfied *= 1 - satisfaction
        return value

    ours = ranking.expected_reciprocal_rank(*lists, max_label=max_label, cutoff=cutoff)
    agree(ours, by_formula(formula, lists))


@given(ragged_lists())
@quick
def test_average_relevance_position_is_the_sum_of_its_definition(lists: Lists) -> None:
    def formula(labels: list[int]) -> float:
        return sum(rank * label for rank, label in enumerate(labels, start=1)) / sum(labels)

    agree(ranking.average_relevance_position(*lists), by_formula(formula, lists))


def test_ndcg_of_a_list_worked_out_by_hand() -> None:
    value = ranking.ndcg(np.array([3.0, 2.0, 1.0]), np.array([0, 2, 1]), np.array([0, 3]))
    assert value.tolist() == pytest.approx([(3 / log2(3) + 1 / 2) / (3 + 1 / log2(3))])


@with_every_metric
@given(lists=ragged_lists(ties=True, longest=5))
@settings(quick, max_examples=40)
def test_ties_get_the_worst_value_of_all_orders_of_the_tied_documents(metric: Metric, lists: Lists) -> None:
    worst = max if metric is EVERY["average_relevance_position"] else min
    for value, (scores, labels) in zip(metric(*lists), lists.queries(), strict=True):
        if any(labels):
            every_order = [
                order
                for order in permutations(range(len(labels)))
                if all(scores[a] >= scores[b] for a, b in pairwise(order))
            ]
            tie_free = -np.arange(len(labels), dtype=np.float64)
            offsets = np.array([0, len(labels)])
            values = [metric(tie_free, np.array(labels)[list(order)], offsets)[0] for order in every_order]
            assert value == pytest.approx(worst(values))


@with_every_metric
@given(labels=st.lists(st.integers(0, MAX_LABEL), min_size=1, max_size=8), scores=st.permutations(range(8)))
@quick
def test_a_constant_ranker_is_never_better_than_another(metric: Metric, labels: list[int], scores: list[int]) -> None:
    assume(any(labels))
    offsets = np.array([0, len(labels)])
    constant = metric(np.zeros(len(labels)), np.array(labels), offsets)[0]
    other = metric(np.array(scores[: len(labels)], dtype=np.float64), np.array(labels), offsets)[0]
    if metric is EVERY["average_relevance_position"]:
        assert constant >= other - 1e-12
    else:
        assert constant <= other + 1e-12


@with_every_metric
@given(lists=ragged_lists(ties=True), seed=st.integers(0, 1000))
@quick
def test_the_order_of_the_candidates_does_not_matter(metric: Metric, lists: Lists, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(len(lists.labels))
    order = shuffled[np.argsort(ragged.list_numbers(lists.offsets)[shuffled], kind="stable")]
    agree(metric(lists.scores[order], lists.labels[order], lists.offsets), metric(*lists))


@with_every_metric
@given(lists=ragged_lists(ties=True))
@quick
def test_a_strictly_increasing_transform_of_the_scores_does_not_matter(metric: Metric, lists: Lists) -> None:
    moved = np.exp(lists.scores) * 3 - 7
    np.testing.assert_array_equal(metric(moved, lists.labels, lists.offsets), metric(*lists))


@with_every_metric
@given(lists=ragged_lists(ties=True))
@quick
def test_each_query_is_measured_on_its_own(metric: Metric, lists: Lists) -> None:
    alone = [metric(np.array(s), np.array(y, dtype=int), np.array([0, len(y)]))[0] for s, y in lists.queries()]
    agree(metric(*lists), alone)


@with_every_metric
def test_queries_without_a_relevant_document_and_empty_ones_get_nan(metric: Metric) -> None:
    values = metric(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 2, 3, 3]))
    assert np.isnan(values).tolist() == [True, True, False, True]


@with_every_metric
def test_no_queries_give_no_values(metric: Metric) -> None:
    assert metric(np.empty(0), np.empty(0, dtype=int), np.array([0])).shape == (0,)


@with_every_metric
def test_scores_in_float32_and_infinite_scores_are_ranked(metric: Metric) -> None:
    labels, offsets = np.array([1, 0, 2]), np.array([0, 3])
    infinite = metric(np.array([-np.inf, 0.5, np.inf], dtype=np.float32), labels, offsets)
    np.testing.assert_array_equal(infinite, metric(np.array([1.0, 2.0, 3.0]), labels, offsets))


@with_every_metric
def test_nan_scores_raise_and_name_the_query(metric: Metric) -> None:
    with pytest.raises(DataError, match=r"scores of query 2 .* contain NaN"):
        metric(np.array([1.0, 2.0, np.nan]), np.array([0, 1, 1]), np.array([0, 2, 2, 3]))


@with_every_metric
def test_arrays_that_do_not_fit_raise(metric: Metric) -> None:
    with pytest.raises(DataError, match="do not fit labels"):
        metric(np.ones(2), np.ones(3, dtype=int), np.array([0, 3]))
    with pytest.raises(DataError, match="integers of at least 0"):
        metric(np.ones(2), np.array([-1, 1]), np.array([0, 2]))
    with pytest.raises(DataError, match="integers of at least 0"):
        metric(np.ones(2), np.array([0.5, 1.0]), np.array([0, 2]))
    with pytest.raises(DataError, match="offsets of scored documents"):
        metric(np.ones(2), np.array([0, 1]), np.array([0, 1]))


@with_every_cutoff_metric
@pytest.mark.parametrize("cutoff", [0, -1, 2.5])
def test_a_cutoff_must_be_an_integer_of_at_least_one(metric: Metric, cutoff: object) -> None:
    with pytest.raises(OptionError, match="cutoff must be an integer of at least 1"):
        metric(np.ones(2), np.array([0, 1]), np.array([0, 2]), cutoff=cutoff)


def test_a_label_above_max_label_raises() -> None:
    with pytest.raises(DataError, match="must not exceed max_label = 2, got 3"):
        ranking.expected_reciprocal_rank(np.ones(1), np.array([3]), np.array([0, 1]), max_label=2)

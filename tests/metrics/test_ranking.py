from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from math import log2
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from ultr.arrays import Doubles
from ultr.errors import DataError, OptionError
from ultr.metrics import METRICS, Measure, ranking
from ultr.testing.metrics import MAX_LABEL, Lists, MetricContract, agree, quick, ragged_lists

CUTOFFS = st.sampled_from([None, 1, 2, 3, 5, 10, 20])

Metric = Callable[..., Doubles]


def measures_of(name: str) -> list[Measure]:
    """A metric of the package without a cutoff and with one, as far as it has it."""
    parameter = signature(METRICS[name]).parameters.get("cutoff")
    cutoffs = [None] if parameter is None else [3] if parameter.default is Parameter.empty else [None, 3]
    return [Measure(name, cutoff) for cutoff in cutoffs]


@pytest.mark.parametrize("metric", [measure for name in METRICS for measure in measures_of(name)], ids=str)
class TestEveryMetric(MetricContract): ...


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


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("cutoff", [0, -1, 2.5])
def test_a_cutoff_must_be_an_integer_of_at_least_one(metric: Metric, cutoff: object) -> None:
    parameters = signature(metric).parameters
    if "cutoff" in parameters:
        options = {"max_label": MAX_LABEL} if "max_label" in parameters else {}
        with pytest.raises(OptionError, match="cutoff must be an integer of at least 1"):
            metric(np.ones(2), np.array([0, 1]), np.array([0, 2]), cutoff=cutoff, **options)


def test_a_label_above_max_label_raises() -> None:
    with pytest.raises(DataError, match="must not exceed max_label = 2, got 3"):
        ranking.expected_reciprocal_rank(np.ones(1), np.array([3]), np.array([0, 1]), max_label=2)

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.metrics import lower_is_better, ranking
from ultr.metrics.measures import Measure, mean

WRITTEN = ["nDCG@10", "nDCG", "MRR", "MRR@5", "MAP", "MAP@3", "ERR@10", "ERR", "ARP", "P@5"]


def judged_lists(max_label: int = 4) -> JudgedLists:
    features = np.zeros((7, 1))
    labels = [0, 2, 1, 0, 3, 0, 0]
    return JudgedLists.of(features=features, labels=labels, offsets=[0, 3, 3, 5, 7], max_label=max_label)


SCORES = np.array([0.9, 0.5, 0.1, 0.2, 0.3, 0.0, 1.0])


@pytest.mark.parametrize("text", WRITTEN)
def test_a_measure_prints_as_it_is_parsed(text: str) -> None:
    assert str(Measure.parse(text)) == text
    assert str(Measure.parse(f" {text.lower()} ")) == text
    assert Measure.parse(text.upper()) == Measure.parse(text)


def test_measures_are_values() -> None:
    assert Measure("nDCG", 10) == Measure.parse("ndcg@10")
    assert len({Measure("P", 5), Measure("P", 5), Measure("P", 3)}) == 2


def test_an_unknown_name_lists_the_measures_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"one of nDCG, MRR, MAP, ERR, ARP, P, got 'nDCC'.*mean 'nDCG'\?"):
        Measure.parse("nDCC@10")
    with pytest.raises(OptionError, match="measure must be one of"):
        Measure("recall")


@pytest.mark.parametrize("text", ["nDCG@", "nDCG@ten", "nDCG@0", "nDCG@-3", "nDCG@2.5", "nDCG@5@5", "nDCG@٣"])
def test_a_bad_cutoff_is_one_sentence(text: str) -> None:
    with pytest.raises(OptionError, match=r"the cutoff of nDCG must be an integer of at least 1, got .* in "):
        Measure.parse(text)


def test_a_bad_cutoff_in_the_constructor_is_refused() -> None:
    with pytest.raises(OptionError, match="the cutoff of nDCG must be an integer of at least 1, got 0"):
        Measure("nDCG", 0)


def test_precision_needs_a_cutoff_and_relevance_position_refuses_one() -> None:
    with pytest.raises(OptionError, match="P needs a cutoff; write for example P@5"):
        Measure.parse("P")
    with pytest.raises(OptionError, match="ARP is about the whole list"):
        Measure.parse("ARP@10")


def test_only_the_relevance_position_is_better_when_lower() -> None:
    assert [text for text in WRITTEN if not Measure.parse(text).higher_is_better] == ["ARP"]


@pytest.mark.parametrize("text", [*WRITTEN[:-1], "P@1"])
def test_a_better_ranker_has_a_better_value(text: str) -> None:
    measure, judged = Measure.parse(text), judged_lists()
    good = mean(measure.compute(judged.labels.astype(np.float64), judged))
    bad = mean(measure.compute(np.zeros(judged.documents), judged))
    assert (good > bad) == measure.higher_is_better


def test_compute_gives_the_function_of_that_name_at_the_cutoff() -> None:
    judged = judged_lists()
    arrays = SCORES, judged.labels, judged.offsets
    expected = {
        "nDCG@2": ranking.ndcg(*arrays, cutoff=2),
        "MRR@1": ranking.reciprocal_rank(*arrays, cutoff=1),
        "MAP@2": ranking.average_precision(*arrays, cutoff=2),
        "ERR@2": ranking.expected_reciprocal_rank(*arrays, max_label=4, cutoff=2),
        "ARP": ranking.average_relevance_position(*arrays),
        "P@2": ranking.precision(*arrays, cutoff=2),
    }
    for text, values in expected.items():
        np.testing.assert_array_equal(Measure.parse(text).compute(SCORES, judged), values)


def test_expected_reciprocal_rank_uses_the_highest_label_of_the_data_set() -> None:
    narrow = Measure("ERR").compute(SCORES, judged_lists(max_label=3))
    wide = Measure("ERR").compute(SCORES, judged_lists(max_label=4))
    assert (narrow[[0, 2]] > wide[[0, 2]]).all()


@pytest.mark.parametrize("text", WRITTEN)
def test_lists_without_any_relevant_document_give_only_nan(text: str) -> None:
    judged = JudgedLists.of(features=np.zeros((2, 1)), labels=[0, 0], offsets=[0, 2])
    values = Measure.parse(text).compute(np.array([1.0, 2.0]), judged)
    assert np.isnan(values).all()
    with pytest.raises(DataError, match="none of 1 queries has a relevant document"):
        mean(values)


def test_the_mean_leaves_nan_out() -> None:
    assert mean(np.array([np.nan, 1.0, 0.0, np.nan])) == 0.5


def shortest(scores: Doubles, labels: Integers, offsets: Integers) -> Doubles:
    return np.diff(offsets).astype(np.float64)


def test_a_function_is_a_measure_under_its_own_name() -> None:
    measure = Measure.of(shortest)
    assert str(measure) == "shortest"
    assert measure.higher_is_better
    assert measure.compute(SCORES, judged_lists()).tolist() == [3, 0, 2, 2]
    assert Measure.of(measure) is measure
    assert Measure.of("mrr") == Measure("MRR")


def test_a_function_may_say_that_lower_is_better() -> None:
    @lower_is_better
    def length(scores: Doubles, labels: Integers, offsets: Integers) -> Doubles:
        return np.diff(offsets)

    assert not Measure.of(length).higher_is_better


def test_a_function_that_asks_for_the_highest_grade_of_the_data_set_gets_it() -> None:
    def top(scores: Doubles, labels: Integers, offsets: Integers, *, max_label: int) -> Doubles:
        return np.full(len(offsets) - 1, float(max_label))

    assert Measure.of(top).compute(SCORES, judged_lists(max_label=9)).tolist() == [9.0] * 4


def test_a_function_with_a_cutoff_is_used_at_a_cutoff() -> None:
    whole, cut = Measure.of(ranking.ndcg), Measure("ndcg", 2, ranking.ndcg)
    assert str(cut) == "ndcg@2"
    for ours, named in ((whole, Measure("nDCG")), (cut, Measure("nDCG", 2))):
        np.testing.assert_array_equal(ours.compute(SCORES, judged_lists()), named.compute(SCORES, judged_lists()))
    with pytest.raises(OptionError, match=r"precision needs a cutoff; write .* Measure\('precision', 5, precision\)"):
        Measure.of(ranking.precision)


@pytest.mark.parametrize("measure", [3, None, partial(shortest)])
def test_what_is_no_measure_is_refused(measure: Any) -> None:
    with pytest.raises(OptionError, match=r"must be a name such as 'nDCG@10' or a function with a __name__, got "):
        Measure.of(measure)


@pytest.mark.parametrize(
    ("values", "got"),
    [(0.5, r"float of shape \[\]"), (np.ones(7), r"ndarray of shape \[7\]"), (["a"] * 4, r"list of shape \[4\]")],
)
def test_a_function_must_give_a_number_for_each_list(values: Any, got: str) -> None:
    def broken(scores: Doubles, labels: Integers, offsets: Integers) -> Any:
        return values

    with pytest.raises(DataError, match=f"measure broken must give one number for each of 4 lists, got {got}"):
        Measure.of(broken).compute(SCORES, judged_lists())

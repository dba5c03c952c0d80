from __future__ import annotations

import numpy as np
import pytest

from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.metrics import ranking
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

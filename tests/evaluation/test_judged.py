from __future__ import annotations

import math

import numpy as np
import pytest

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.evaluation import evaluate, gap_closed
from ultr.evaluation.judged import Evaluation, of_scores
from ultr.metrics import Interval, Measure, bootstrap_interval, ndcg, paired_test, rank_lists

JUDGED = JudgedLists.of(
    features=np.array([[3], [1], [2], [5], [4]]), labels=[2, 0, 1, 0, 1], offsets=[0, 3, 5], feature_names=["bm25"]
)


class ByFirstFeature:
    feature_names: tuple[str, ...] = ("bm25",)

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, 0]


def test_every_measure_has_a_value_for_each_query() -> None:
    result = evaluate(ByFirstFeature(), JUDGED, ["nDCG@1", "mrr"])
    assert list(result.values) == ["nDCG@1", "MRR"]
    assert result.values["nDCG@1"].tolist() == [1.0, 0.0]
    assert result.values["MRR"].tolist() == [1.0, 0.5]
    assert result.mean("MRR") == 0.75
    assert result.interval("MRR") == Interval(0.75, 0.0, 1.0), "two queries tell nothing"


def test_measures_are_names_values_and_functions() -> None:
    def first_label(scores: Floats, labels: Integers, offsets: Integers) -> Doubles:
        ranked = rank_lists(scores, labels, offsets)
        return ranked.total(ranked.labels * ranked.up_to(1))

    result = evaluate(ByFirstFeature(), JUDGED, ["nDCG@1", Measure("MRR"), first_label])
    assert list(result.values) == ["nDCG@1", "MRR", "first_label"]
    assert result.values["first_label"].tolist() == [2.0, 0.0]
    assert result.mean("first_label") == 1.0
    assert evaluate(ByFirstFeature(), JUDGED, "MRR").mean("MRR") == 0.75


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(OptionError, match=r"two measures called <lambda>; give one of the functions another name"):
        evaluate(ByFirstFeature(), JUDGED, [lambda s, y, o: np.ones(2), lambda s, y, o: np.zeros(2)])
    assert list(evaluate(ByFirstFeature(), JUDGED, ["MRR", Measure("MRR")]).values) == ["MRR"]


def test_two_rankers_are_compared_on_the_same_queries() -> None:
    random = np.random.default_rng(0)
    judged = JudgedLists.of(
        features=random.normal(size=(400, 1)), labels=random.integers(3, size=400), offsets=np.arange(0, 401, 8)
    )
    good, bad = of_scores(judged.labels + 0.0, judged), of_scores(random.normal(size=400), judged)
    test = good.against(bad, "nDCG@10")
    assert test == paired_test(good.values["nDCG@10"], bad.values["nDCG@10"])
    assert test.difference > 0
    assert test.p_value < 0.01


def test_scores_are_measured_like_rankers() -> None:
    values = of_scores(JUDGED.features[:, 0], JUDGED).values["nDCG@10"]
    np.testing.assert_allclose(values, ndcg(JUDGED.features[:, 0], JUDGED.labels, JUDGED.offsets, cutoff=10))


def test_other_features_than_the_ranker_knows_are_refused() -> None:
    other = JudgedLists.of(features=np.eye(2), labels=[0, 1], offsets=[0, 2], feature_names=["bm25", "age"])
    with pytest.raises(DataError, match=r"the judged data has columns that the ranker does not know: 'age'"):
        evaluate(ByFirstFeature(), other)


def test_features_in_another_order_are_measured_the_same() -> None:
    class ByAge(ByFirstFeature):
        feature_names = ("age", "bm25")

    judged = JudgedLists.of(
        features=np.stack([np.zeros(5), JUDGED.features[:, 0]], axis=1),
        labels=JUDGED.labels,
        offsets=JUDGED.offsets,
        feature_names=["bm25", "age"],
    )
    np.testing.assert_array_equal(
        evaluate(ByAge(), judged).values["nDCG@10"], evaluate(ByFirstFeature(), JUDGED).values["nDCG@10"]
    )


def test_the_gap_is_measured_from_clicks_to_labels() -> None:
    assert gap_closed(0.7, lower=0.7, upper=0.8) == 0
    assert gap_closed(0.8, lower=0.7, upper=0.8) == 1
    assert gap_closed(0.65, lower=0.7, upper=0.8) == -0.5
    assert math.isnan(gap_closed(0.7, lower=0.7, upper=0.7))


def test_a_notebook_shows_how_many_queries_each_measure_has() -> None:
    values = np.array([0.45, np.nan, 0.55, 0.5])
    shown = Evaluation({"nDCG@10": values})._repr_html_()
    found = bootstrap_interval(values)
    assert "means over queries with 95 % intervals" in shown
    for cell in ("nDCG@10", "0.5000", f"{found.low:.4f}", f"{found.high:.4f}", "3"):
        assert f">{cell}<" in shown


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_have_the_level_that_is_asked_for(level: float) -> None:
    values = np.array([0.45, 0.6, 0.55, 0.5])
    found = Evaluation({"MRR": values})
    assert found.interval("MRR", level=level) == bootstrap_interval(values, level=level)
    assert (found.interval("MRR") == found.interval("MRR", level=level)) is (level == 0.95)


@pytest.mark.parametrize(
    ("measure", "ends"),
    [("nDCG@10", (0.0, 1.0)), ("MRR", (0.0, 1.0)), ("ARP", (-np.inf, np.inf)), ("mine", (-np.inf, np.inf))],
)
def test_intervals_end_where_their_measure_does(measure: str, ends: tuple[float, float]) -> None:
    """Few queries have wide intervals, but no nDCG is above 1 or below 0."""
    values = np.array([1.0, 1.0, 0.9, 0.1])
    plain, found = bootstrap_interval(values), Evaluation({measure: values}).interval(measure)
    assert plain.low < 0 < 1 < plain.high
    assert found.mean == plain.mean
    assert (found.low, found.high) == (max(plain.low, ends[0]), min(plain.high, ends[1]))


def test_one_query_has_no_interval_to_cut_off() -> None:
    found = Evaluation({"nDCG@10": np.array([0.5])}).interval("nDCG@10")
    assert math.isnan(found.low)
    assert math.isnan(found.high)

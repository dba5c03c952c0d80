from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.bias.explored_world import Context, adjacent, expected_log

from ultr.arrays import Doubles, Floats, Integers
from ultr.clicks.model import EXAMINATION, relevance
from ultr.clicks.position_based import PositionBased
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Provenance
from ultr.errors import DataError, OptionError
from ultr.evaluation import Candidates, CounterfactualValue, Evidence, Valuation, counterfactual_value
from ultr.evaluation.placement import Placement
from ultr.metrics import bootstrap_ratio
from ultr.simulation.log import simulate

THETA = np.array([1.0, 0.5, 0.25])
UNCLIPPED = 1e-9


class ByFirstFeature:
    provenance = Provenance()

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, 0]


def two_queries() -> ClickLog:
    """Query q shows documents 0 1 2 eight times and 1 0 2 twice, query r shows 3 4 five times; 5 is never shown."""
    return ClickLog.of(
        features=[[1.0], [2.0], [3.0], [1.0], [2.0], [9.0]],
        documents=[0, 1, 2, 1, 0, 2, 3, 4],
        offsets=[0, 3, 6, 8],
        clicks=[4, 2, 1, 1, 1, 0, 0, 2],
        impressions=[8, 2, 5],
        queries=["q", "q", "r"],
    )


def test_the_evidence_counts_where_each_document_was_shown_and_clicked() -> None:
    evidence = Evidence.of(two_queries())
    assert evidence.documents.tolist() == [0, 1, 2, 3, 4]
    assert evidence.impressions.tolist() == [10, 5]
    (part,) = evidence.parts()
    shown_at = np.zeros((5, 3))
    shown_at[part.shown, part.positions] = part.times
    assert shown_at.tolist() == [[8, 2, 0], [2, 8, 0], [0, 0, 10], [5, 0, 0], [0, 5, 0]]
    assert part.clicks.tolist() == [5, 3, 1, 0, 2]
    (clicked,) = evidence.parts(clicked=True)
    assert clicked.candidates.tolist() == [0, 1, 2, 4]
    np.testing.assert_allclose(clicked.mean(np.array([1.0, 0.5, 0.25])), [0.9, 0.6, 0.25, 0.5])


def test_clicks_without_relevance_are_taken_off_by_position() -> None:
    # Examined on average 0.9, 0.6 and 0.25 in q; of 10 impressions, 8 x .2 + 2 x .1 clicks on the first are no merit.
    evidence = Evidence.of(two_queries())
    floor = np.array([0.2, 0.1, 0.05])
    value = Valuation(THETA, floor=floor).of_scores(np.array([1.0, 2.0, 3.0, 1.0, 2.0]), evidence)
    of_q = (1 - 0.5) / 0.25 * 1.0 + (3 - 1.2) / 0.6 * 0.5 + (5 - 1.8) / 0.9 * 0.25
    of_r = (2 - 0.5) / 0.5 * 1.0 + (0 - 1.0) / 1.0 * 0.5
    np.testing.assert_allclose(value.totals, [of_q, of_r])
    for wrong in ({"weighting": "self-normalised", "floor": floor}, {"floor": floor[:2]}):
        with pytest.raises(OptionError, match="a floor is for weighting ips"):
            Valuation(THETA, **wrong)


def test_expected_clicks_by_hand() -> None:
    # Examined on average: 0.9, 0.6 and 0.25 in q, 1 and 0.5 in r. The ranker turns both lists around.
    value = counterfactual_value(ByFirstFeature(), two_queries(), propensities=THETA)
    of_q = 1 / 0.25 * 1.0 + 3 / 0.6 * 0.5 + 5 / 0.9 * 0.25
    of_r = 2 / 0.5 * 1.0 + 0
    np.testing.assert_allclose(value.totals, [of_q, of_r])
    assert value.bases.tolist() == [10, 5]
    assert value.value == pytest.approx((of_q + of_r) / 15)


def test_discounted_relevance_by_hand() -> None:
    value = counterfactual_value(ByFirstFeature(), two_queries(), propensities=THETA, utility="dcg")
    of_q = 1 / 0.25 + 3 / 0.6 / np.log2(3) + 5 / 0.9 / 2
    np.testing.assert_allclose(value.totals, [of_q, 2 / 0.5])
    first = counterfactual_value(ByFirstFeature(), two_queries(), propensities=THETA, utility="dcg", cutoff=1)
    np.testing.assert_allclose(first.totals, [1 / 0.25, 2 / 0.5])
    assert first.clicks == 3


def test_the_self_normalised_value_is_the_mean_rank_weight_of_relevance() -> None:
    value = counterfactual_value(ByFirstFeature(), two_queries(), propensities=THETA, weighting="self-normalised")
    found = np.array([5 / 0.9, 3 / 0.6, 1 / 0.25, 0, 2 / 0.5])
    assert value.value == pytest.approx(found @ [0.25, 0.5, 1, 0.5, 1] / found.sum())


@pytest.mark.parametrize("utility", ["clicks", "dcg"])
def test_the_self_normalised_value_does_not_depend_on_the_unit_of_the_propensities(utility: str) -> None:
    log = two_queries()
    values = [
        counterfactual_value(
            ByFirstFeature(),
            log,
            propensities=THETA * factor,
            weighting="self-normalised",
            utility=utility,
            smallest=0.4,
        ).value
        for factor in (1.0, 0.07)
    ]
    assert values[0] == pytest.approx(values[1])


def test_the_doubly_robust_value_by_hand() -> None:
    g = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.6])
    value = counterfactual_value(
        ByFirstFeature(), two_queries(), propensities=THETA, weighting="doubly-robust", relevance=g, smallest=0.5
    )
    # Only document 2, examined in 0.25 < tau = 0.5, leaves something to g: 10 * 0.3 + (1 - 10 * 0.25 * 0.3) / 0.5.
    of_q = 3.5 * 1.0 + 3 / 0.6 * 0.5 + 5 / 0.9 * 0.25
    np.testing.assert_allclose(value.totals, [of_q, 4.0])


def test_clipping_and_the_effective_number_of_clicks_by_hand() -> None:
    value = counterfactual_value(ByFirstFeature(), two_queries(), propensities=THETA, smallest=0.5)
    # One click of weight 1 / 0.25, now 1 / 0.5; three of 0.5 / 0.6, five of 0.25 / 0.9, two of 1 / 0.5.
    weights = np.array([2.0, *[0.5 / 0.6] * 3, *[0.25 / 0.9] * 5, 2.0, 2.0])
    assert value.clicks == 11
    assert value.effective_clicks == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert value.clipped == pytest.approx(2 / (weights.sum() + 2))
    assert value.unsupported == 0


def test_a_candidate_that_was_never_shown_is_worth_nothing_to_ips_and_what_g_says_to_doubly_robust() -> None:
    log = two_queries()
    candidates = Candidates(np.array([0, 1, 2, 3, 4, 5]), np.array([0, 3, 6]))
    options: dict[str, Any] = {"propensities": THETA, "candidates": candidates}
    ips = counterfactual_value(ByFirstFeature(), log, **options)
    # Document 5 comes first in r, so that 4 and 3 move down.
    assert ips.totals[1] == pytest.approx(2 / 0.5 * 0.5)
    g = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.6])
    robust = counterfactual_value(ByFirstFeature(), log, **options, weighting="doubly-robust", relevance=g)
    assert robust.totals[1] == pytest.approx(5 * 0.6 + 2 / 0.5 * 0.5)
    assert ips.unsupported == robust.unsupported == pytest.approx(5 * 1.0 / (10 * 1.75 + 5 * 1.5))


def test_tied_documents_share_their_ranks() -> None:
    log = two_queries()
    evidence = Evidence.of(log)
    tied = Valuation(THETA).of_scores(np.array([0.0, 0.0, -1.0, 2.0, 2.0]), evidence)
    np.testing.assert_allclose(tied.totals, [(5 / 0.9 + 3 / 0.6) * 0.75 + 1 / 0.25 * 0.25, 2 / 0.5 * 0.75])


def test_the_lists_as_shown_are_worth_the_clicks_they_had() -> None:
    log = two_queries()
    evidence = Evidence.of(log)
    value = Valuation(THETA).of(Placement.as_shown(evidence), evidence)
    np.testing.assert_allclose(value.totals, [9, 2])
    assert value.value == pytest.approx(log.clicks.sum() / log.impressions.sum())


def test_two_values_are_compared_query_by_query() -> None:
    evidence = Evidence.of(two_queries())
    up, down = (
        Valuation(THETA).of_scores(sign * evidence.features[evidence.documents, 0], evidence) for sign in (1, -1)
    )
    difference = up.against(down)
    assert difference.mean == pytest.approx(up.value - down.value)
    assert difference.low <= difference.mean <= difference.high
    assert up.against(up).high == 0
    with pytest.raises(DataError, match="on the same log"):
        up.against(Valuation(THETA, "self-normalised").of_scores(np.arange(5.0), evidence))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"propensities": [1.0, 0.0, 0.5]}, "propensities must be a number above 0"),
        ({"propensities": [1.0, 0.5]}, "the log shows 3 positions, but 2 propensities"),
        ({"weighting": "snips"}, "weighting must be one of"),
        ({"utility": "ndcg"}, "utility must be one of"),
        ({"cutoff": 4}, "cutoff must be at most 3"),
        ({"smallest": 0.0}, "smallest must be a share"),
        ({"weighting": "doubly-robust"}, "doubly-robust needs a relevance"),
        ({"relevance": np.ones(6)}, "doubly-robust needs a relevance"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        counterfactual_value(ByFirstFeature(), two_queries(), **({"propensities": THETA} | options))


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        (Candidates(np.array([0, 0]), np.array([0, 2, 2])), "twice among the candidates"),
        (Candidates(np.array([0]), np.array([0, 1])), "one list for each of the log's 2 query ids"),
        (Candidates(np.array([6]), np.array([0, 1, 1])), "rows of the 6 feature vectors"),
    ],
)
def test_candidates_that_do_not_fit_are_one_sentence(candidates: Candidates, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Evidence.of(two_queries(), candidates)


def test_a_relevance_that_does_not_fit_is_one_sentence() -> None:
    with pytest.raises(DataError, match="a number for each of 6 documents"):
        counterfactual_value(
            ByFirstFeature(), two_queries(), propensities=THETA, weighting="doubly-robust", relevance=np.ones(5)
        )


MODEL = PositionBased()
POOL = 2_000


def _pool() -> tuple[JudgedLists, Doubles, Doubles]:
    """Queries of six documents, the scores of the ranker that is logged, and those of a better one."""
    random = np.random.default_rng(0)
    labels = random.integers(5, size=6 * POOL)
    judged = JudgedLists.of(
        features=random.normal(size=(6 * POOL, 1)), labels=labels, offsets=np.arange(0, 6 * POOL + 1, 6), max_label=4
    )
    return judged, labels + 3 * random.normal(size=6 * POOL), labels + random.normal(size=6 * POOL)


JUDGED, LOGGED, NEW = _pool()


def _true_values(scores: Doubles) -> Doubles:
    """The expected clicks on the list of each query in the order of the scores, by the click model itself."""
    order = np.lexsort((-scores, ragged.list_numbers(JUDGED.offsets)))
    values: Doubles = MODEL.probabilities(JUDGED.labels[order].reshape(-1, 6), max_label=4).sum(axis=1)
    return values


TRUE = _true_values(NEW)


def _simulations(
    count: int, *, queries: int = 60, impressions: int = 20
) -> Iterator[tuple[Evidence, Doubles, Doubles]]:
    """The evidence of fresh queries with fresh clicks, the better ranker's scores and the true relevance."""
    for seed in range(count):
        chosen = np.sort(np.random.default_rng(seed).choice(POOL, queries, replace=False))
        part, rows = JUDGED.select(chosen), ragged.rows_of(chosen, JUDGED.offsets)
        log = simulate(
            part, MODEL, scores=LOGGED[rows], impressions=impressions * queries, rankings=2, noise=0.3, seed=seed
        )
        yield Evidence.of(log), NEW[rows], relevance(part.labels, max_label=4, noise=MODEL.noise)


def _values(valuations: dict[str, Any], *, count: int) -> dict[str, list[CounterfactualValue]]:
    found: dict[str, list[CounterfactualValue]] = {name: [] for name in valuations}
    for evidence, scores, true in _simulations(count):
        for name, options in valuations.items():
            settings = {key: value(true) if callable(value) else value for key, value in options.items()}
            found[name].append(Valuation(EXAMINATION, **settings).of_scores(scores, evidence))
    return found


@pytest.fixture(scope="module")
def simulated() -> dict[str, list[CounterfactualValue]]:
    robust = {"weighting": "doubly-robust"}
    return _values(
        {
            "ips": {"smallest": UNCLIPPED},
            "clipped": {"smallest": 0.6},
            "robust, any g": robust | {"smallest": UNCLIPPED, "relevance": lambda true: 0.9 - true},
            "robust, true g, clipped": robust | {"smallest": 0.6, "relevance": lambda true: true},
        },
        count=400,
    )


def _error(values: list[CounterfactualValue]) -> tuple[float, float, float]:
    """The mean error over the simulations, its standard error, and the deviation of one value."""
    errors = np.array([value.value for value in values]) - TRUE.mean()
    deviation = float(errors.std(ddof=1))
    return float(errors.mean()), deviation / np.sqrt(len(errors)), deviation


@pytest.mark.parametrize("name", ["ips", "robust, any g", "robust, true g, clipped"])
def test_values_are_unbiased_on_position_based_clicks(
    name: str, simulated: dict[str, list[CounterfactualValue]]
) -> None:
    bias, error, _ = _error(simulated[name])
    assert abs(bias) < 3 * error
    assert error < 0.01 * TRUE.mean()


def test_clipping_trades_bias_for_variance(simulated: dict[str, list[CounterfactualValue]]) -> None:
    bias, error, deviation = _error(simulated["clipped"])
    assert bias < -5 * error
    assert deviation < _error(simulated["ips"])[2]
    lost = np.mean([value.clipped for value in simulated["clipped"]])
    assert lost == pytest.approx(-bias / TRUE.mean(), rel=0.15)


@pytest.mark.parametrize("name", ["ips", "robust, true g, clipped"])
def test_intervals_hold_the_truth_as_often_as_they_say(
    name: str, simulated: dict[str, list[CounterfactualValue]]
) -> None:
    level = 0.9
    intervals = [value.interval(level=level, samples=400) for value in simulated[name]]
    held = sum(interval.low <= TRUE.mean() <= interval.high for interval in intervals)
    # Three standard errors of 400 coins; a percentile interval of 60 queries is also a little short.
    assert held / len(intervals) == pytest.approx(level, abs=3 * np.sqrt(0.9 * 0.1 / 400))


def test_the_gain_over_the_logged_ranker_is_found() -> None:
    truth = TRUE.mean() - _true_values(LOGGED).mean()
    gains = []
    for evidence, scores, _ in _simulations(100):
        valuation = Valuation(EXAMINATION)
        shown = valuation.of(Placement.as_shown(evidence), evidence)
        gains.append(valuation.of_scores(scores, evidence).against(shown, samples=10).mean)
    # The lists as shown have some swaps, which cost them a little.
    assert np.mean(gains) == pytest.approx(truth, abs=0.04)
    assert np.mean(gains) > 0.1


def test_a_part_of_a_log_is_valued_as_a_log_of_its_own() -> None:
    evidence = Evidence.of(two_queries().select(np.array([2])))
    assert evidence.query_numbers.tolist() == [1]
    assert Valuation(THETA).of_scores(np.array([0.0, 1.0]), evidence).totals == pytest.approx([4.0])


def test_placement_propensities_cancel_in_a_value_which_is_given_what_was_shown() -> None:
    """The mean examination by logged probabilities is the same, and one by what was shown varies less."""
    relevance, theta, chance = np.array([0.8, 0.4, 0.2]), THETA, 0.2
    log = expected_log([Context(dict(zip("abc", relevance.tolist(), strict=True)), adjacent(3, chance))])
    (part,) = Evidence.of(log).parts()
    # P(document at position), with each of the two adjacent pairs exchanged on a fifth of the pages.
    placed = np.array([[1 - chance, chance, 0], [chance, 1 - 2 * chance, chance], [0, chance, 1 - chance]])
    np.testing.assert_allclose(part.mean(theta), placed @ theta)
    np.testing.assert_allclose(part.clicks / part.impressions / part.mean(theta), relevance)

    random, pages = np.random.default_rng(0), 50
    outcomes = np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]])
    given_shown, given_chances = [], []
    for _ in range(4_000):
        drawn = outcomes[random.choice(3, size=pages, p=[1 - 2 * chance, chance, chance])]
        examined = theta[np.argsort(drawn, axis=1)]
        clicks = (random.random((pages, 3)) < examined * relevance).sum(axis=0)
        given_shown.append(clicks / examined.sum(axis=0))
        given_chances.append(clicks / (pages * placed @ theta))
    for found in (given_shown, given_chances):
        error = np.std(found, axis=0) / np.sqrt(len(found))
        assert (np.abs(np.mean(found, axis=0) - relevance) < 4 * error).all()
    assert (np.var(given_shown, axis=0) < np.var(given_chances, axis=0)).all()


def test_a_log_without_a_click_has_no_relevance_to_normalise_by() -> None:
    log = two_queries()
    silent = replace(log, clicks=np.zeros_like(log.clicks))
    with pytest.raises(DataError, match="no click on a candidate"):
        counterfactual_value(ByFirstFeature(), silent, propensities=THETA, weighting="self-normalised")
    nothing = counterfactual_value(ByFirstFeature(), silent, propensities=THETA)
    assert (nothing.value, nothing.effective_clicks, nothing.clipped) == (0, 0, 0)


@pytest.mark.parametrize(("second", "share"), [(0.0105, 0.0), (0.01, 0.0), (0.0095, 1 - 0.0095 / 0.01)])
def test_by_default_a_hundredth_of_the_highest_propensity_is_the_least_that_is_divided_by(
    second: float, share: float
) -> None:
    """A document that is always second and has the only clicks; ranked second, each of its clicks weighs 1."""
    log = ClickLog.of(features=[[2.0], [1.0]], documents=[0, 1], offsets=[0, 2], clicks=[0, 3], impressions=[8])
    found = counterfactual_value(ByFirstFeature(), log, propensities=[1.0, second])
    evidence = Evidence.of(log)
    for value in (found, Valuation([1.0, second]).of_scores(np.array([2.0, 1.0]), evidence)):
        assert value.clipped == pytest.approx(share, abs=1e-9)
        assert value.totals == pytest.approx([3 * (1 - share)])


def test_intervals_are_those_of_a_bootstrap_over_queries_at_95_percent() -> None:
    up, down = (
        CounterfactualValue(np.array(totals), np.array([4.0, 2.0, 6.0, 8.0]), 9, 9, 0, 0)
        for totals in ([3.0, 1.0, 5.0, 2.0], [1.0, 1.0, 2.0, 3.0])
    )
    assert up.interval() == bootstrap_ratio(up.totals, up.bases)
    assert up.interval(level=0.5) == bootstrap_ratio(up.totals, up.bases, level=0.5)
    assert up.against(down) == bootstrap_ratio(np.array([2.0, 0.0, 3.0, -1.0]), up.bases)
    with pytest.raises(DataError, match="on the same log"):
        up.against(replace(down, bases=down.bases[:3], totals=down.totals[:3]))


def test_a_query_without_a_click_has_no_relevance_but_others_have() -> None:
    log = two_queries()
    quiet = replace(log, clicks=np.where(np.repeat(log.queries, log.lengths) == 1, 0, log.clicks))
    value = counterfactual_value(ByFirstFeature(), quiet, propensities=THETA, weighting="self-normalised")
    found = np.array([5 / 0.9, 3 / 0.6, 1 / 0.25])
    assert value.bases.tolist() == pytest.approx([found.sum(), 0.0])
    assert value.value == pytest.approx(found @ [0.25, 0.5, 1] / found.sum())


def test_a_cutoff_may_be_as_many_ranks_as_there_are_propensities_and_more_for_discounts() -> None:
    evidence = Evidence.of(two_queries())
    scores = np.array([1.0, 2.0, 3.0, 1.0, 2.0])
    whole, cut = (Valuation(THETA, cutoff=cutoff).of_scores(scores, evidence) for cutoff in (None, 3))
    assert whole.totals.tolist() == cut.totals.tolist()
    assert Valuation(THETA, utility="dcg", cutoff=5).rank_weights() == pytest.approx(1 / np.log2(np.arange(2, 7)))


def test_relevance_must_be_known_of_every_document() -> None:
    unknown = np.array([0.5, 0.4, np.nan, 0.2, 0.1, 0.6])
    with pytest.raises(DataError, match=r"^relevance must be a number for each of 6 documents of the log$"):
        counterfactual_value(
            ByFirstFeature(), two_queries(), propensities=THETA, weighting="doubly-robust", relevance=unknown
        )


def test_queries_without_candidates_are_worth_nothing_and_lack_no_support() -> None:
    evidence = Evidence.of(two_queries(), Candidates(np.array([], dtype=np.int64), np.zeros(3, dtype=np.int64)))
    value = Valuation(THETA).of_scores(np.array([]), evidence)
    assert (value.totals.tolist(), value.bases.tolist()) == ([0.0, 0.0], [10.0, 5.0])
    assert (value.clicks, value.effective_clicks, value.clipped, value.unsupported) == (0, 0, 0, 0)


def short_and_long_pages() -> ClickLog:
    """Two queries whose pages show 1, 2 or 4 documents, q's always in the same order."""
    return ClickLog.of(
        features=[[4.0], [3.0], [2.0], [1.0], [9.0], [8.0]],
        documents=[0, 0, 1, 0, 1, 2, 3, 5, 4, 4],
        offsets=[0, 1, 3, 7, 9, 10],
        clicks=[3, 2, 1, 2, 2, 1, 1, 1, 2, 3],
        impressions=[5, 3, 2, 4, 4],
        queries=["q", "q", "q", "r", "r"],
    )


@pytest.mark.parametrize("utility", ["clicks", "dcg"])
def test_the_order_that_pages_of_any_length_had_is_worth_what_they_were(utility: str) -> None:
    evidence = Evidence.of(short_and_long_pages())
    valuation = Valuation([1.0, 0.6, 0.4, 0.3], utility=utility, smallest=UNCLIPPED)
    shown, ranked = (
        valuation.of(each, evidence)
        for each in (Placement.as_shown(evidence), Placement.ranked(-evidence.documents.astype(np.float64), evidence))
    )
    assert ranked.totals[0] == pytest.approx(shown.totals[0])
    if utility == "clicks":
        assert shown.totals[0] == pytest.approx(12), "all of its clicks"


def test_a_ranker_fills_the_places_that_each_page_had() -> None:
    """Place by place: r shows 5 and 4 four times and 4 alone four times, so that its second place was there half."""
    log, theta = short_and_long_pages(), np.array([1.0, 0.6, 0.4, 0.3])
    evidence = Evidence.of(log, Candidates.shown(log))
    value = Valuation(theta, smallest=UNCLIPPED).of_scores(np.array([0.0, 1.0, 1.0, 2.0, 9.0, 8.0]), evidence)
    places = _places(evidence)
    np.testing.assert_allclose(places, [[1.0, 0.5, 0.2, 0.2], [1.0, 0.5, 0, 0]])
    relevance = np.array([7 / 10, 3 / (5 * 0.6), 1 / (2 * 0.4), 1 / (2 * 0.3), 5 / (4 + 4 * 0.6), 1 / 4])
    weights = theta * places * [[10], [8]]
    of_q = (
        relevance[3] * weights[0, 0]
        + (relevance[1] + relevance[2]) * weights[0, 1:3].mean()
        + relevance[0] * weights[0, 3]
    )
    of_r = relevance[4] * weights[1, 0] + relevance[5] * weights[1, 1]
    np.testing.assert_allclose(value.totals, [of_q, of_r])


def test_the_places_of_pages_are_those_of_all_that_was_shown() -> None:
    """Also of what is no candidate: r shows something in its second place half of the time."""
    log = short_and_long_pages()
    evidence = Evidence.of(log, Candidates(np.array([3, 0, 4]), np.array([0, 2, 3])))
    np.testing.assert_allclose(_places(evidence), [[1.0, 0.5, 0.2, 0.2], [1.0, 0.5, 0, 0]])


def _places(evidence: Evidence) -> Doubles:
    """[queries, ranks], the share of its query's impressions whose page had this rank."""
    cells = evidence.places
    times = np.bincount(cells.ids[cells.documents], cells.impressions, minlength=2 * evidence.longest)
    shares: Doubles = times.reshape(2, evidence.longest) / evidence.impressions[:, None]
    return shares

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.test_comparison import GRADES, GUESSES, UNTESTED, judged, log_of

from ultr.clicks.trust_bias import TrustBias
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.evaluation import Evidence, compare
from ultr.evaluation.halves import Halves, ranked_halves
from ultr.simulation.log import simulate

MODEL = TrustBias(
    examination=TrustBias().examination[:6],
    relevant_taken=TrustBias().relevant_taken[:6],
    irrelevant_taken=TrustBias().irrelevant_taken[:6],
)


def trusting(lists: JudgedLists, *, impressions: int, seed: int = 0) -> ClickLog:
    return simulate(
        lists,
        MODEL,
        scores=lists.features[:, 1].astype(np.float64),
        impressions=impressions * lists.queries,
        rankings=6,
        noise=1.0,
        seed=seed,
    )


def test_documents_at_one_place_are_halved_by_the_ranks_of_both_rankers() -> None:
    log = log_of(judged(), noise=0.0)
    # The guesses are the logged order, by which alone the halves would be the upper and the lower positions.
    high, low = ranked_halves((GRADES, GUESSES), log)
    assert not (high & low).any()
    assert (high | low).all()
    np.testing.assert_array_equal(ranked_halves((GUESSES, GRADES), log)[0], high)
    evidence = Evidence.of(log)
    ranks = np.zeros(len(log.features))
    for column in (0, 1):
        scores = log.features[:, column].reshape(-1, 6)
        # The mean of the ranks that documents of one score share.
        ranks += (
            (scores[:, None] > scores[:, :, None]).sum(-1) + (scores[:, None] == scores[:, :, None]).sum(-1) / 2
        ).ravel()
    place = np.zeros(len(log.features), dtype=np.int64)
    place[evidence.documents[evidence.cells.documents]] = evidence.cells.positions
    clicks = np.bincount(log.documents, log.clicks, minlength=len(log.features))
    for position in range(6):
        here = place == position
        assert ranks[here & high].max() < ranks[here & low].min()
        share = clicks[here & high].sum() / clicks[here].sum()
        # All documents with the rank in the middle are on one side.
        assert 0.35 < share < 0.75


def test_lines_through_the_rates_of_the_halves_are_those_of_trust_bias() -> None:
    log = trusting(judged(400), impressions=20_000)
    halves = Halves.of((GUESSES, GRADES), log)
    assert halves is not None
    theta, beta, drawn, floors = halves.lines()
    rates = np.stack([MODEL.probabilities(np.full((1, 6), grade), max_label=4)[0] for grade in range(5)])
    # Chance of a click by grade and position: a line in the first position's, with slopes that theta must follow.
    slopes = (rates[4] - rates[0]) / (rates[4, 0] - rates[0, 0])
    # Curves are weighted by clicks and rates are not, so the two points of a line are a little off it.
    np.testing.assert_allclose(theta / theta[0], slopes, rtol=0.12)
    np.testing.assert_array_equal(beta, halves.low.rates)
    np.testing.assert_allclose(theta + beta, halves.high.rates)
    assert drawn.shape == floors.shape == (200, 6)
    assert halves.separation(np.full(6, 1 / 6)) > 10


def test_under_trust_bias_the_difference_is_that_of_the_click_model() -> None:
    lists = judged(400)
    log = trusting(lists, impressions=2_000)
    difference = compare(GUESSES, GRADES, log, assumption=UNTESTED).value
    assert difference.difference is not None
    assert "with trust bias taken off" in difference.reason

    def clicks(column: int) -> float:
        order = np.argsort(-lists.features[:, column].reshape(-1, 6), axis=1, kind="stable")
        shown = np.take_along_axis(lists.labels.reshape(-1, 6), order, axis=1)
        return float(MODEL.probabilities(shown, max_label=4).sum(axis=1).mean())

    truth = clicks(0) - clicks(1)
    found = difference.difference
    assert found.low < truth < found.high
    assert found.mean == pytest.approx(truth, abs=0.01)
    assert difference.winner == "B"


def test_one_number_for_each_position_is_enough_where_the_halves_agree() -> None:
    answer = compare(GUESSES, GRADES, log_of(judged(), seed=1), assumption=UNTESTED).value
    assert "trust bias" not in answer.reason
    assert "between documents" not in answer.reason


def test_without_swaps_there_are_no_halves() -> None:
    assert Halves.of((GUESSES, GRADES), log_of(judged(), noise=0.0)) is None

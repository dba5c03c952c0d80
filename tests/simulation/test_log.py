from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.toy import separable

from ultr.clicks import CLICK_MODELS, ClickMatrix, click_model
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.seeding import generator
from ultr.simulation import ceiling_scores, simulate, simulate_more
from ultr.simulation.log import READOUTS

every_model = pytest.mark.parametrize("name", sorted(CLICK_MODELS))


@every_model
def test_no_impression_is_lost_and_the_log_points_at_the_judged_documents(name: str) -> None:
    judged = separable(40)
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, click_model(name), scores=scores, impressions=10_007, rankings=3, noise=0.5)
    assert log.impressions.sum() == 10_007
    assert log.features is judged.features
    assert log.query_ids is judged.query_ids
    assert len(log.factors[0].levels) == 10
    assert log.clicks.sum() > 0
    query_of_document = np.repeat(np.arange(judged.queries), judged.lengths)
    assert (query_of_document[log.documents] == np.repeat(log.queries, log.lengths)).all()


@every_model
def test_click_rates_converge_to_the_exact_probabilities(name: str) -> None:
    judged = separable(30)
    model, impressions = click_model(name), 30 * 10**8
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, model, scores=scores, impressions=impressions)
    labels = judged.labels[log.documents]
    for number in range(log.lists):
        rows = slice(log.offsets[number], log.offsets[number + 1])
        exact = model.probabilities(labels[None, rows], max_label=4)[0]
        rates = log.clicks[rows] / log.impressions[number]
        assert (np.abs(rates - exact) <= 6 * np.sqrt(exact * (1 - exact) / 1e8) + 1e-12).all()


def test_without_pairs_the_clicks_are_the_counts_of_the_model() -> None:
    judged, model = separable(30), click_model("trust")
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, model, scores=scores, impressions=3_000)
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=10, fill=-1)
    counts = model.counts(labels, log.impressions, generator(0, "clicks"), max_label=4)
    assert log.clicks.tolist() == counts[labels >= 0].tolist()
    assert log.pair_clicks is None


@every_model
def test_pairs_and_clicks_are_those_of_the_same_sessions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Chunks that cut lists in two, and the same sessions counted one after the other.
    monkeypatch.setattr("ultr.simulation.log.SESSIONS_AT_ONCE", 1_000)
    judged, model = separable(12), click_model(name)
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, model, scores=scores, impressions=4_321, pairs=True)
    assert log.impressions.sum() == 4_321
    random, of_session = generator(0, "sessions"), np.repeat(np.arange(log.lists), log.impressions)
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=10, fill=-1)
    clicks, both = np.zeros((log.lists, 10), dtype=np.int64), np.zeros((log.lists, 10, 10), dtype=np.int64)
    for start in range(0, 4_321, 1_000):
        lists = of_session[start : start + 1_000]
        for number, session in zip(lists, model.sessions(labels[lists], random, max_label=4), strict=True):
            clicks[number] += session
            both[number] += np.outer(session, session)
    assert log.clicks.tolist() == clicks[labels >= 0].tolist()
    assert log.pair_clicks is not None
    upper = np.triu(np.ones((10, 10), dtype=np.bool_), 1) & (labels >= 0)[:, None, :]
    assert log.pair_clicks.tolist() == both[upper].tolist()


def test_independent_clicks_come_together_as_often_as_chance_has_it() -> None:
    judged, model = separable(10), click_model("trust")
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, model, scores=scores, impressions=10 * 40_000, pairs=True)
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=10, fill=-1)
    chances = model.probabilities(labels, max_label=4)[labels >= 0]
    first, second = ragged.pair_members(log.offsets)
    expected = chances[first] * chances[second]
    assert log.pair_clicks is not None
    noise = np.sqrt(expected * (1 - expected) / 40_000)
    assert (np.abs(log.pair_clicks / 40_000 - expected) <= 5 * noise).all()
    assert (np.abs(log.clicks / 40_000 - chances) <= 5 * np.sqrt(chances * (1 - chances) / 40_000)).all()


def test_users_who_leave_with_their_first_click_click_nothing_together() -> None:
    judged = separable(20)
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, click_model("cascade"), scores=scores, impressions=20_000, pairs=True)
    assert log.clicks.sum() > 10_000
    assert log.pair_clicks is not None
    assert not log.pair_clicks.any()


def test_the_seed_decides_the_sessions_and_equal_lists_are_summed() -> None:
    judged = separable(20)
    scores = np.random.default_rng(1).normal(size=judged.documents)
    logs = [
        simulate(judged, ClickMatrix(), scores=scores, impressions=5_000, rankings=3, pairs=True, seed=seed)
        for seed in (3, 3, 4)
    ]
    assert logs[0].fingerprint() == logs[1].fingerprint()
    assert logs[0].clicks.tolist() != logs[2].clicks.tolist()
    assert logs[0].lists == judged.queries
    assert logs[0].impressions.sum() == 5_000


@every_model
def test_more_impressions_show_the_same_lists_with_clicks_of_their_own(name: str) -> None:
    judged, model = separable(30), click_model(name)
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(judged, model, scores=scores, impressions=3_000, rankings=2, noise=0.5, pairs=True)
    more = simulate_more(log, judged, model, share=10**6)
    assert (more.documents == log.documents).all()
    assert (more.impressions == log.impressions * 10**6).all()
    assert more.pair_clicks is None
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=model.positions, fill=-1)
    exact = model.probabilities(labels, max_label=4)[ragged.mask(log.offsets, width=model.positions)]
    np.testing.assert_allclose(more.clicks / np.repeat(more.impressions, more.lengths), exact, atol=1e-3)
    assert simulate_more(log, judged, model, share=1e-9).impressions.max() == 1
    again = simulate_more(log, judged, model, share=1.0)
    assert (again.clicks != log.clicks).any()
    assert (again.clicks != simulate_more(log, judged, model, share=1.0, seed=1).clicks).any()


def test_the_lists_are_the_top_of_the_scores() -> None:
    judged = separable(20)
    scores = np.random.default_rng(1).normal(size=judged.documents)
    log = simulate(judged, ClickMatrix(), scores=scores, impressions=100)
    for number, query in enumerate(log.queries):
        rows = log.documents[log.offsets[number] : log.offsets[number + 1]]
        candidates = np.arange(judged.offsets[query], judged.offsets[query + 1])
        assert rows.tolist() == candidates[np.argsort(-scores[candidates])][:10].tolist()
    assert log.positions.max() == 10


def test_identical_rankings_are_merged_into_one_row() -> None:
    judged = separable(20)
    scores = np.random.default_rng(1).normal(size=judged.documents)
    log = simulate(judged, ClickMatrix(), scores=scores, impressions=1000, rankings=7)
    assert log.lists == judged.queries
    assert log.impressions.sum() == 1000


def test_noise_shows_more_lists() -> None:
    judged = separable(20)
    scores = np.random.default_rng(1).normal(size=judged.documents)
    log = simulate(judged, ClickMatrix(), scores=scores, impressions=1000, rankings=7, noise=1.0)
    assert judged.queries < log.lists <= 7 * judged.queries


def test_impressions_are_spread_evenly_and_the_seed_decides_who_gets_one_more() -> None:
    judged = separable(30)
    scores = np.zeros(judged.documents)
    logs = [simulate(judged, ClickMatrix(), scores=scores, impressions=100, seed=seed) for seed in (0, 0, 1)]
    assert sorted(logs[0].impressions) == [3] * 20 + [4] * 10
    assert logs[0].fingerprint() == logs[1].fingerprint()
    assert logs[0].impressions.tolist() != logs[2].impressions.tolist()


def test_a_list_without_an_impression_is_refused() -> None:
    judged = separable(30)
    scores = np.zeros(judged.documents)
    with pytest.raises(OptionError, match=r"impressions must be at least 60, .* got 59"):
        simulate(judged, ClickMatrix(), scores=scores, impressions=59, rankings=2)


def test_queries_without_documents_are_left_out() -> None:
    judged = JudgedLists.of(features=np.eye(3), labels=[0, 1, 2], offsets=[0, 2, 2, 3])
    log = simulate(judged, ClickMatrix(), scores=np.arange(3.0), impressions=10)
    assert log.queries.tolist() == [0, 2]
    empty = judged.select(np.array([1]))
    with pytest.raises(DataError, match="no query has a document"):
        simulate(empty, ClickMatrix(), scores=np.zeros(0), impressions=10)


def test_scores_must_fit_the_judged_documents() -> None:
    with pytest.raises(DataError, match="but 3 scores"):
        simulate(separable(5), ClickMatrix(), scores=np.zeros(3), impressions=100)


def test_simulate_fits_the_ranker_itself() -> None:
    judged = separable(60)
    log = simulate(judged, click_model("trust"), impressions=6_000, svm_share=1.0)
    assert log.impressions.sum() == 6_000
    first = judged.labels[log.documents[log.offsets[:-1]]]
    best = np.maximum.reduceat(judged.labels, judged.offsets[:-1])
    assert first.tolist() == best[log.queries].tolist()


def test_simulate_repeats_itself_exactly() -> None:
    judged = separable(60)
    logs = [
        simulate(judged, click_model("trust"), impressions=500, rankings=2, noise=0.3, seed=seed) for seed in (3, 3, 4)
    ]
    assert logs[0].fingerprint() == logs[1].fingerprint()
    assert logs[0].fingerprint() != logs[2].fingerprint()


def test_the_ceilings_of_a_matrix_are_means_of_rates_relative_rates_and_logarithms() -> None:
    judged = JudgedLists.of(features=np.eye(4), labels=[0, 2, 1, 0], offsets=[0, 4])
    model = ClickMatrix(matrix=((0.4, 0.2), (0.0, 0.0), (0.2, 0.2), (0.0, 0.0), (0.9, 0.1)))
    np.testing.assert_allclose(ceiling_scores(judged, model), [0.3, 0.5, 0.2, 0.3])
    # The mean rates of the four documents are (0.4 + 0.4 + 0.2 + 0.9) / 4 and (0.2 + 0.2 + 0.2 + 0.1) / 4.
    first, second = 1.9 / 4, 0.7 / 4
    relative = [(high / first + low / second) / 2 for high, low in ((0.4, 0.2), (0.9, 0.1), (0.2, 0.2), (0.4, 0.2))]
    np.testing.assert_allclose(ceiling_scores(judged, model, readout="relative-rate"), relative)
    logs = [np.log(high * low) / 2 for high, low in ((0.4, 0.2), (0.9, 0.1), (0.2, 0.2), (0.4, 0.2))]
    np.testing.assert_allclose(ceiling_scores(judged, model, readout="log-rate"), logs)
    with pytest.raises(OptionError, match="did you mean 'log-rate'"):
        ceiling_scores(judged, model, readout="lograte")


@pytest.mark.parametrize(
    ("readout", "order", "of_three"),
    [
        ("rate", [4, 3, 0, 2, 1], [2, 0, 1]),
        ("relative-rate", [3, 4, 2, 0, 1], [2, 1, 0]),
        ("log-rate", [3, 4, 2, 0, 1], [2, 1, 0]),
    ],
)
def test_real_clicks_order_the_grades_by_what_is_made_of_them(
    readout: str, order: list[int], of_three: list[int]
) -> None:
    for best_first in (order, of_three):
        count = len(best_first)
        judged = JudgedLists.of(features=np.eye(count), labels=np.arange(count), offsets=[0, count])
        assert np.argsort(-ceiling_scores(judged, ClickMatrix(), readout=readout)).tolist() == best_first


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("name", sorted(set(CLICK_MODELS) - {"real"}))
def test_the_ceiling_of_every_other_model_is_the_ideal_order(name: str, readout: str) -> None:
    judged = JudgedLists.of(features=np.eye(5), labels=[3, 1, 4, 0, 2], offsets=[0, 5])
    assert np.argsort(ceiling_scores(judged, click_model(name), readout=readout)).tolist() == [3, 1, 4, 0, 2]


def test_the_labels_are_the_grades_of_the_log() -> None:
    judged = separable(20)
    log = simulate(judged, ClickMatrix(), scores=np.zeros(judged.documents), impressions=100)
    assert log.grades is not None
    assert log.grades.levels == ("0", "1", "2", "3", "4")
    assert log.grades.values.tolist() == judged.labels.tolist()
    three = JudgedLists.of(features=np.eye(2), labels=[2, 0], offsets=[0, 2])
    graded = simulate(three, ClickMatrix(), scores=np.zeros(2), impressions=10).grades
    assert graded is not None
    assert [graded.levels[value] for value in graded.values] == ["2", "0"]


def test_signals_follow_clicks_at_the_rate_of_the_grade_wherever_the_click_was() -> None:
    judged, rates = separable(30), np.array([0.02, 0.05, 0.1, 0.2, 0.4])
    scores = np.random.default_rng(0).normal(size=judged.documents)
    log = simulate(
        judged, click_model("trust"), scores=scores, impressions=30 * 10**7, signals={"cart": rates * 2, "buy": rates}
    )
    assert [signal.name for signal in log.signals] == ["cart", "buy"]
    for name, factor in (("cart", 2), ("buy", 1)):
        rate = factor * rates[judged.labels[log.documents]]
        deviation = np.sqrt(log.clicks * rate * (1 - rate))
        assert (np.abs(log.signal(name) - log.clicks * rate) <= 6 * deviation).all()


def test_signals_may_have_a_rate_for_each_document_and_change_no_click() -> None:
    judged = separable(30)
    scores = np.random.default_rng(0).normal(size=judged.documents)
    rates = np.zeros(judged.documents)
    rates[::2] = 1.0
    model = click_model("trust")
    usual = simulate(judged, model, scores=scores, impressions=3_000)
    log = simulate(judged, model, scores=scores, impressions=3_000, signals={"buy": rates.tolist()})
    np.testing.assert_array_equal(log.clicks, usual.clicks)
    np.testing.assert_array_equal(log.signal("buy"), np.where(log.documents % 2 == 0, log.clicks, 0))


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ((0.1, 0.2), "signal 'buy' needs a probability for each of 5 grades, or for each of .* documents, got 2"),
        ((0.1, 0.2, 0.3, 0.4, 1.1), "the probabilities of signal 'buy' must be from 0 to 1"),
        ((0.1, 0.2, 0.3, 0.4, float("nan")), "the probabilities of signal 'buy' must be from 0 to 1"),
    ],
    ids=str,
)
def test_rates_of_signals_that_do_not_fit_are_refused(rates: tuple[float, ...], message: str) -> None:
    judged = separable(5)
    with pytest.raises(OptionError, match=message):
        simulate(
            judged, click_model("trust"), scores=np.zeros(judged.documents), impressions=100, signals={"buy": rates}
        )


def test_more_impressions_of_a_log_have_no_signals() -> None:
    judged, model = separable(20), click_model("trust")
    log = simulate(judged, model, scores=np.zeros(judged.documents), impressions=1_000, signals={"buy": (0.5,) * 5})
    assert simulate_more(log, judged, model, share=0.5).signals == ()

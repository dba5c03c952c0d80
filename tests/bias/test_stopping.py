"""Users who stop after a click: the model by exact expectation, every click model, and thresholds from both sides."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers, Mask
from ultr.bias.stopping import Stopping
from ultr.clicks.registry import CLICK_MODELS, click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.simulation.log import simulate

LISTS, WIDTH = 400, 6
STOPPING = {"cascade", "dependent-click", "dynamic-bayesian"}
"""Click models whose users stop after a click that satisfies them."""


def _attraction(random: np.random.Generator) -> tuple[Doubles, Doubles]:
    """Two features of each document of each list, and how attractive they make it."""
    features = random.normal(size=(LISTS, WIDTH, 2))
    return features, np.exp(-2 + 0.5 * features @ np.array([1.0, -0.5])).clip(max=0.9)


def _rates(attraction: Doubles, *, share: float, examination: Doubles) -> Doubles:
    """Click rates where a share of those who click at a document looks at nothing below it."""
    rates, left = np.zeros_like(attraction), np.ones(len(attraction))
    for place in range(attraction.shape[1]):
        rates[:, place] = left * examination[place] * attraction[:, place]
        left = left - share * rates[:, place]
    return rates


def _clicks(attraction: Doubles, users: int, random: np.random.Generator) -> Doubles:
    """The clicks of so many users per list, of whom every second one stops after a click."""
    clicks, left = np.zeros_like(attraction), np.full(len(attraction), users)
    for place in range(attraction.shape[1]):
        clicked = random.binomial(left, attraction[:, place])
        clicks[:, place] = clicked
        left = left - random.binomial(clicked, 0.5)
    return clicks


def _found(features: Doubles, clicks: Doubles, impressions: Integers, *, queries: Integers | None = None) -> Stopping:
    lists, width = clicks.shape
    found = Stopping.of(_shown(features.reshape(lists * width, -1), clicks, impressions, queries=queries))
    assert found is not None
    return found


def _shown(features: Doubles, clicks: Doubles, impressions: Integers, *, queries: Integers | None = None) -> ClickLog:
    """Lists of documents that are shown once each, with the clicks on them."""
    lists, width = clicks.shape
    return ClickLog.of(
        features=features.astype(np.float32),
        documents=np.arange(lists * width),
        offsets=np.arange(lists + 1) * width,
        clicks=np.rint(clicks.ravel()).astype(np.int64),
        impressions=impressions,
        queries=np.arange(lists) if queries is None else queries,
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_the_share_is_that_of_the_model_with_exact_click_rates(share: float) -> None:
    features, attraction = _attraction(np.random.default_rng(0))
    examination: Doubles = np.arange(1, WIDTH + 1, dtype=np.float64) ** -0.5
    impressions = np.full(LISTS, 10**6)
    rates = _rates(attraction, share=share, examination=examination)
    found = _found(features, rates * impressions[:, None], impressions)
    # Features are cut off at three deviations, and have a prior: the last digits are not those of the model.
    assert found.share == pytest.approx(share, abs=0.03)


def test_the_interval_holds_the_share_as_often_as_it_says() -> None:
    """Relevance that no feature knows makes queries differ; each has its own error, over which the interval goes."""
    held, runs = 0, 60
    for seed in range(runs):
        random = np.random.default_rng(seed)
        features, attraction = _attraction(random)
        unknown = np.exp(0.3 * random.normal(size=attraction.shape))
        clicks = _clicks(np.minimum(attraction * unknown, 0.9), 30, random)
        found = _found(features, clicks, np.full(LISTS, 30))
        held += abs(found.share - 0.5) < 2 * found.error
    assert held >= 0.85 * runs


def test_the_error_is_over_queries_not_over_lists() -> None:
    """Every list twice, as two of one query: as much is known as of each once."""
    random = np.random.default_rng(1)
    features, attraction = _attraction(random)
    impressions = np.full(LISTS, 1_000)
    clicks = _clicks(attraction, 1_000, random)
    once = _found(features, clicks, impressions)
    queries = np.tile(np.arange(LISTS), 2)
    twice = _found(
        np.concatenate([features, features]), np.concatenate([clicks] * 2), np.tile(impressions, 2), queries=queries
    )
    assert twice.error == pytest.approx(once.error, rel=0.05)


@pytest.mark.parametrize("name", CLICK_MODELS)
@pytest.mark.parametrize("rankings", [1, 3])
def test_users_of_every_click_model_stop_or_do_not(name: str, rankings: int) -> None:
    judged = letor_like(train_queries=600, validation_queries=1, test_queries=1, seed=3).train
    log = simulate(judged, click_model(name), impressions=200_000, rankings=rankings, noise=0.5 * (rankings > 1))
    found = Stopping.of(log)
    assert found is not None
    if name not in STOPPING:
        assert found.known == 0
    elif name == "cascade":
        assert found.known == 1
    else:
        assert 0.05 < found.share < 0.5


@pytest.mark.parametrize(
    ("share", "error", "once", "known"),
    [
        (0.121, 0.01, False, 0.121),
        (0.119, 0.01, False, 0.0),
        (-0.8, 0.01, True, 0.0),
        (0.521, 0.01, True, 1.0),
        (0.519, 0.01, True, 0.519),
        (0.521, 0.01, False, 0.521),
        (0.9, 0.5, True, 0.0),
    ],
)
def test_what_is_reckoned_with_is_beyond_doubt(share: float, error: float, *, once: bool, known: float) -> None:
    assert Stopping(share, error, once).known == pytest.approx(known)
    assert Stopping(share, error, once, beyond=True).known == 0


def _log_of_devices(share: float, *, rare: bool = False) -> ClickLog:
    """Half of the lists on phones, whose users hardly look below the first document; on desks they look at all alike.

    With `rare`, each page of a desk has a layout of its own.
    """
    features, attraction = _attraction(np.random.default_rng(0))
    phone = np.arange(LISTS) % 2 == 0
    examination = np.where(phone[:, None], np.arange(1, WIDTH + 1) ** -2.0, 0.5)
    left, rates = np.ones(LISTS), np.zeros_like(attraction)
    for place in range(WIDTH):
        rates[:, place] = left * examination[:, place] * attraction[:, place]
        left = left - share * rates[:, place]
    kind = np.where(phone, "phone", np.char.add("desk", np.arange(LISTS).astype(str)) if rare else "desk")
    return ClickLog.of(
        features=features.reshape(LISTS * WIDTH, -1),
        documents=np.arange(LISTS * WIDTH),
        offsets=np.arange(LISTS + 1) * WIDTH,
        clicks=np.round(rates.ravel() * 10**6).astype(np.int64),
        impressions=np.full(LISTS, 10**6),
        kind=np.repeat(kind, WIDTH),
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_users_of_one_device_who_look_less_far_are_not_users_who_stop(share: float) -> None:
    log = _log_of_devices(share)
    found = Stopping.of(log)
    assert found is not None
    assert found.share == pytest.approx(share, abs=0.03)


def test_rare_values_of_bias_factors_share_the_rates_of_their_positions() -> None:
    """With a rate for each of 200 layouts at each position there would be fewer queries than rates."""
    found = Stopping.of(_log_of_devices(0.5, rare=True))
    assert found is not None
    assert found.share == pytest.approx(0.5, abs=0.03)


def _in_several_orders(
    relevance: Doubles, random: np.random.Generator, *, share: float, orders: int = 3, impressions: int = 200
) -> ClickLog:
    """Documents of each query in some orders, good ones above, and users who stop; features say nothing."""
    queries, width = relevance.shape
    noisy = np.log(relevance)[:, None] + 0.7 * random.normal(size=(queries, orders, width))
    order = np.argsort(-noisy, axis=2)
    documents = (np.arange(queries)[:, None, None] * width + order).reshape(-1, width)
    examination = np.arange(1, width + 1) ** -0.5
    clicks, left = np.zeros(documents.shape, dtype=np.int64), np.full(len(documents), impressions)
    for place in range(width):
        clicks[:, place] = random.binomial(left, examination[place] * relevance.ravel()[documents[:, place]])
        left = left - random.binomial(clicks[:, place], share)
    return ClickLog.of(
        features=random.normal(size=(queries * width, 2)),
        documents=documents.ravel(),
        offsets=np.arange(len(documents) + 1) * width,
        clicks=clicks.ravel(),
        impressions=np.full(len(documents), impressions),
        queries=np.repeat(np.arange(queries), orders),
    )


def _navigational(random: np.random.Generator, queries: int = 200) -> Doubles:
    """Half of the queries have one document that nearly all want, and nobody wants another."""
    relevance = random.uniform(0.1, 0.3, size=(queries, WIDTH))
    relevance[::2] = 0.01
    relevance[::2, 0] = 0.9
    return relevance


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_queries_for_one_document_are_no_users_who_stop_if_documents_moved(share: float, seed: int) -> None:
    """Where its document stands at the top, little is clicked below, whether users are there or not."""
    random = np.random.default_rng(seed)
    relevance = _navigational(random)
    found = Stopping.of(_in_several_orders(relevance, random, share=share))
    assert found is not None
    assert abs(found.share - share) < 3 * found.error
    assert (found.known > 0) == (share > 0)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_users_stop_or_do_not_where_some_queries_are_clicked_far_more_than_others(share: float) -> None:
    """More is then clicked below what is clicked much, of which features know nothing."""
    random = np.random.default_rng(0)
    relevance = np.exp(random.normal(-2, 1, size=(200, 1)) + random.normal(0, 0.5, size=(200, WIDTH))).clip(max=0.9)
    found = Stopping.of(_in_several_orders(relevance, random, share=share))
    assert found is not None
    assert abs(found.share - share) < 3 * found.error
    assert (found.known > 0) == (share > 0)


def test_features_tell_where_documents_hardly_moved_unless_these_contradict_them() -> None:
    """With few impressions documents tell little, but that it is not what features say."""
    random = np.random.default_rng(3)
    relevance = _navigational(random)
    log = _in_several_orders(relevance, random, share=0.0, orders=2, impressions=40)
    fixed = _in_several_orders(relevance, random, share=0.0, orders=1, impressions=40)
    by_features, by_both = Stopping.of(fixed), Stopping.of(log)
    assert by_features is not None
    assert by_both is not None
    assert by_features.known > 0, "nothing but features, which know nothing of the queries"
    assert by_both.error > 0.1
    assert by_both.known == 0


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("seed", [0, 1])
def test_so_many_do_not_stop_that_lists_could_not_have_the_clicks_that_they_have(share: float, seed: int) -> None:
    """Queries for one document in one order: if half of the users stopped, no list could have more than two clicks."""
    random = np.random.default_rng(seed)
    relevance = random.uniform(0.5, 0.95, size=(200, WIDTH)) / (1 + 2 * share)
    if not share:
        relevance[::2] = [0.9] + [0.01] * (WIDTH - 1)
    found = Stopping.of(_in_several_orders(relevance, random, share=share, orders=1))
    assert found is not None
    assert found.beyond == (share == 0)
    assert (found.known > 0) == (share > 0)


def test_single_impressions_may_have_more_clicks_than_users_who_stop_make_on_average() -> None:
    random = np.random.default_rng(0)
    relevance = random.uniform(0.1, 0.9, size=(2_000, WIDTH))
    log = _in_several_orders(relevance, random, share=0.5, orders=2, impressions=3)
    found = Stopping.of(log)
    assert found is not None
    assert (np.add.reduceat(log.clicks, log.offsets[:-1]) / 3).max() > 2
    assert not found.beyond
    assert found.known > 0.3


def test_so_many_stop_that_users_are_left_for_the_clicks_that_there_are() -> None:
    """With two clicks per impression above most of the clicks at the last place, no more than half can stop."""
    features, _ = _attraction(np.random.default_rng(0))
    rates = np.tile([0.9, 0.3, 0.8, 0.0, 0.0, 0.5], (LISTS, 1))
    rates[::2, 1], rates[::2, 0] = 0.9, 0.3
    rates[:4] *= 0.3
    assert _found(features, rates * 100, np.full(LISTS, 100)).share <= 0.5


def _log(impressions: int, queries: int) -> ClickLog:
    random = np.random.default_rng(0)
    rows = queries * 3
    return ClickLog.of(
        features=random.normal(size=(rows, 2)),
        documents=np.arange(rows),
        offsets=np.arange(queries + 1) * 3,
        clicks=random.integers(0, impressions + 1, size=rows),
        impressions=np.full(queries, impressions),
    )


def test_lists_that_were_shown_once_and_few_queries_do_not_tell() -> None:
    """There are two features, three positions and the share."""
    assert Stopping.of(_log(1, 30)) is None
    assert Stopping.of(_log(5, 6)) is None
    assert Stopping.of(_log(5, 7)) is not None


@pytest.mark.parametrize("kept", [True, False])
def test_pages_without_a_click_that_were_left_out_are_no_users_who_stop(*, kept: bool) -> None:
    """Users who look at every place; on a page that was logged for its click, one click is a reason for no other."""
    random = np.random.default_rng(0)
    features, attraction = _attraction(random)
    pages = random.random((LISTS, 30, WIDTH)) < attraction[:, None]
    counted: Mask = np.logical_or(pages.any(axis=2), kept)
    clicks, impressions = (pages & counted[..., None]).sum(axis=1).astype(float), counted.sum(axis=1)
    found = Stopping.of(_shown(features.reshape(clicks.size, -1), clicks, impressions))
    assert (found is not None) == kept
    assert found is None or found.known == 0


@pytest.mark.parametrize(("lists", "told"), [(4_990, True), (5_010, False)])
def test_one_list_in_five_hundred_must_be_shown_without_a_click(lists: int, *, told: bool) -> None:
    """Ten lists are."""
    random = np.random.default_rng(0)
    clicks = random.multinomial(3, np.full(WIDTH, 1 / WIDTH), size=lists).astype(float)
    clicks[np.arange(10), clicks[:10].argmax(axis=1)] -= 1
    found = Stopping.of(_shown(random.normal(size=(clicks.size, 2)), clicks, np.full(lists, 3)))
    assert (found is not None) == told


def test_principal_components_stand_for_more_features_than_there_are_queries() -> None:
    """500 features that are mixtures of two, and 400 queries."""
    random = np.random.default_rng(0)
    features, attraction = _attraction(random)
    rates = _rates(attraction, share=0.5, examination=np.ones(WIDTH))
    wide = features @ random.normal(size=(2, 500))
    impressions = np.full(LISTS, 10**6)
    assert _found(wide, rates * 10**6, impressions).share == pytest.approx(0.5, abs=0.05)


def test_few_queries_with_many_features_do_not_make_users_stop() -> None:
    """Relevance by itself moves what is clicked below; with 60 queries and 40 features it looked like a share."""
    wrong = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        relevance = np.exp(random.normal(-2, 0.7, size=(60, WIDTH))).clip(max=0.9)
        features = random.normal(size=(60, WIDTH, 40))
        found = _found(features, random.binomial(10_000, relevance).astype(float), np.full(60, 10_000))
        wrong += found.known > 0
    assert wrong <= 2


def test_of_a_large_log_some_lists_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = letor_like(train_queries=200, validation_queries=1, test_queries=1).train
    log = simulate(judged, click_model("dynamic-bayesian"), impressions=40_000)
    whole = Stopping.of(log)
    monkeypatch.setattr("ultr.bias.linear_inputs.MOST_LISTS", 130)
    part, other = Stopping.of(log), Stopping.of(log, seed=1)
    assert whole is not None
    assert part is not None
    assert other is not None
    assert whole.share != part.share != other.share
    assert part.error > whole.error


def test_of_a_large_log_all_lists_of_some_queries_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document in each of its orders; some lists of all queries would show most documents once."""
    random = np.random.default_rng(0)
    relevance = np.exp(random.normal(-2, 0.7, size=(600, WIDTH))).clip(max=0.9)
    log = _in_several_orders(relevance, random, share=0.5, orders=5)
    whole = Stopping.of(log)
    monkeypatch.setattr("ultr.bias.linear_inputs.MOST_LISTS", 500)
    part, other = Stopping.of(log), Stopping.of(log, seed=1)
    assert whole is not None
    assert part is not None
    assert other is not None
    assert part.share != other.share
    for found in (part, other):
        assert abs(found.share - 0.5) < 3 * found.error
        assert found.error == pytest.approx(whole.error * 6**0.5, rel=0.3), "a sixth of the queries, all of each"


def test_sums_before_are_those_of_a_loop() -> None:
    random = np.random.default_rng(0)
    offsets = np.array([0, 3, 3, 7, 8])
    values = random.random(8)
    expected = [values[start:row].sum() for start, stop in pairwise(offsets) for row in range(start, stop)]
    np.testing.assert_allclose(ragged.sums_before(values, offsets), expected)

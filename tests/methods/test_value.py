"""Rankers by what follows the click, in a world where everything is known exactly."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from tests.relevance.documents import inputs_of

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.signal import Signal
from ultr.errors import DataError, OptionError, UltrWarning
from ultr.exporting import export
from ultr.exporting.forest_file import forest_of
from ultr.methods import DLA, METHODS, UPE, Affine, Auto, ClickBaseline, InversePropensity, RegressionEM, Vectorization
from ultr.methods.estimator import Estimator
from ultr.methods.value_option import FEWEST, check_signals, squared_weights
from ultr.relevance import MLP, Relevance, Trees
from ultr.scoring import Scorer
from ultr.train.lists import TrainingLists

EXAMINED = np.array([1.0, 0.5, 0.25, 0.12])
CLICKED = np.array([0.8, 0.6, 0.4, 0.2])
"""Of each document, where it is examined."""
BOUGHT = np.array([0.02, 0.05, 0.1, 0.3])
"""Of each document, once it is clicked."""
BY_VALUE, BY_CLICKS, BY_RAW_PURCHASES = [3, 2, 1, 0], [0, 1, 2, 3], [1, 3, 0, 2]
USUAL = [1, 0, 3, 2]
"""The ranking that most users are shown."""
SHORT = MLP(hidden=(8,), steps=20, batch_size=24)
NETWORK, TREES = MLP(hidden=(16,), steps=300, batch_size=24), Trees(rounds=150, leaves=4, fewest_documents=1)
WITH_A_VALUE = {name: kind for name, kind in METHODS.items() if "value" not in kind.without}
DEBIASED = [name for name in WITH_A_VALUE if name != "click"]


@cache
def world() -> ClickLog:
    """Expected clicks and purchases of a position-based model, the four documents in every order for ten queries."""
    orders = list(permutations(range(4)))
    wrong = [sum(order.index(a) > order.index(b) for a, b in combinations(USUAL, 2)) for order in orders]
    impressions = np.rint(1e6 * 0.3 ** np.array(wrong)).astype(np.int64)
    documents = np.concatenate(orders)
    examined = np.repeat(impressions, 4) * np.tile(EXAMINED, len(orders))
    clicks = np.rint(examined * CLICKED[documents]).astype(np.int64)
    purchases = np.rint(examined * CLICKED[documents] * BOUGHT[documents]).astype(np.int64)
    return ClickLog.of(
        features=np.tile(np.eye(4), (10, 1)),
        documents=np.concatenate([documents + 4 * query for query in range(10)]),
        offsets=np.arange(0, 10 * len(documents) + 1, 4),
        clicks=np.tile(clicks, 10),
        impressions=np.tile(impressions, 10),
        queries=np.repeat(np.arange(10), len(orders)),
        signals={"purchase": np.tile(purchases, 10), "cart": np.tile(2 * purchases, 10)},
    )


def made(method: type[Estimator], relevance: Relevance = NETWORK, **options: Any) -> Estimator:
    if method in (Auto, Vectorization) and isinstance(relevance, Trees):
        options = {"vector_hidden": (16,), "vector_steps": 300} | options
    if method is UPE and relevance is NETWORK:
        # It unlearns what it gave to the logging score only when its ranker knows.
        relevance = replace(NETWORK, steps=600)
    return method(relevance=relevance, **options)


@cache
def fitted(method: type[Estimator], relevance: Relevance) -> Estimator:
    """A ranker by purchases, trained once for all tests that only look at it."""
    return made(method, relevance, value={"purchase": 1}).fit(world())


def scores(estimator: Estimator) -> Doubles:
    return estimator.score(np.eye(4)).astype(np.float64)


def order(values: Doubles) -> list[int]:
    best: list[int] = np.argsort(-values).tolist()
    return best


def test_the_orders_of_the_world_differ() -> None:
    log = world()
    raw = np.bincount(log.documents % 4, log.signal("purchase")).astype(np.float64)
    assert order(CLICKED * BOUGHT) == BY_VALUE
    assert order(CLICKED) == BY_CLICKS
    assert order(raw) == BY_RAW_PURCHASES


@pytest.mark.parametrize(
    ("method", "relevance"),
    [
        pytest.param(name, each, id=f"{name}-{each.kind}")
        for name in DEBIASED
        for each in (NETWORK, TREES)
        if isinstance(each, WITH_A_VALUE[name].takes)
    ],
)
def test_the_order_by_value_is_recovered(method: str, relevance: Relevance) -> None:
    assert order(scores(fitted(WITH_A_VALUE[method], relevance))) == BY_VALUE


def test_raw_purchases_give_another_order() -> None:
    assert order(scores(fitted(ClickBaseline, NETWORK))) == BY_RAW_PURCHASES


@pytest.mark.parametrize("method", [DLA, InversePropensity, RegressionEM])
def test_scores_are_logarithms_of_the_value_where_the_click_model_is_right(method: type[Estimator]) -> None:
    found, value = scores(fitted(method, TREES)), CLICKED * BOUGHT
    np.testing.assert_allclose(np.exp(found - found[3]), value / value[3], rtol=0.05)


def test_a_value_is_the_weighted_sum_of_its_signals() -> None:
    found = scores(made(InversePropensity, TREES, value={"click": 1, "purchase": 4, "cart": 3}).fit(world()))
    value = CLICKED * (1 + 4 * BOUGHT + 3 * 2 * BOUGHT)
    assert order(value) == [0, 1, 2, 3]
    np.testing.assert_allclose(np.exp(found - found[3]), value / value[3], rtol=0.05)


def test_only_the_proportions_of_weights_count() -> None:
    log, inputs = world(), inputs_of(world().features)
    lists = TrainingLists.of_log(log, inputs)
    ones, twenties = (
        lists.with_value({"click": weight, "purchase": 3 * weight}).batch(np.arange(5)) for weight in (1, 20)
    )
    assert ones.values is not None
    assert twenties.values is not None
    np.testing.assert_allclose(ones.values, twenties.values, rtol=1e-6)


def test_all_lists_have_as_much_value_as_clicks() -> None:
    log = world()
    lists = TrainingLists.of_log(log, inputs_of(log.features)).with_value({"purchase": 7})
    values = lists.batch(np.arange(log.lists)).values
    assert values is not None
    totals = values.double().numpy() * log.impressions[:, None]
    np.testing.assert_allclose(totals.sum(), log.clicks.sum())
    np.testing.assert_allclose(totals.ravel(), log.signal("purchase") * log.clicks.sum() / log.signal("purchase").sum())


@pytest.mark.parametrize("method", list(WITH_A_VALUE))
def test_clicks_are_predicted_as_without_a_value(method: str) -> None:
    log, kind = world(), WITH_A_VALUE[method]
    usual, valued = (
        made(kind, SHORT, evaluate_every=5, **options).fit(log, validation=log)
        for options in ({}, {"value": {"purchase": 1}})
    )
    np.testing.assert_array_equal(valued.click_shares(log), usual.click_shares(log))
    np.testing.assert_array_equal(valued.click_probabilities(log), usual.click_probabilities(log))
    assert [record for record in valued.history_ if not record.stage.endswith("value")] == usual.history_
    assert valued.history_[-1].stage == ("second half, value" if kind is Auto else "value")
    assert (scores(valued) != scores(usual)).any()


def test_attractiveness_is_that_of_clicks() -> None:
    usual, valued = (RegressionEM(relevance=SHORT, value=value).fit(world()) for value in (None, {"purchase": 1}))
    features = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(valued.attractiveness(features), usual.attractiveness(features))


def test_held_out_value_chooses_the_weights() -> None:
    """A held-out log with other purchases gives other values of validation, in the stage of the value alone."""
    log = world()
    flat = replace(log, signals=(Signal("purchase", log.clicks), *log.signals[1:]))
    first, second = (
        made(Affine, SHORT, value={"purchase": 1}, evaluate_every=5).fit(log, validation=validation).history_
        for validation in (log, flat)
    )
    for mine, other in zip(first, second, strict=True):
        assert (mine == other) == (mine.stage != "value")


@pytest.mark.usefixtures("_operators_read_once")
@pytest.mark.parametrize(
    ("relevance", "way"), [(NETWORK, {"form": "lists"}), (TREES, {"pointwise": True})], ids=["mlp", "trees"]
)
def test_an_exported_ranker_scores_by_value(relevance: Relevance, way: dict[str, Any], tmp_path: Any) -> None:
    written = export(fitted(Vectorization, relevance), tmp_path / "ranker.onnx", **way)
    assert written.parity.kendall_tau > 0.999
    found = Scorer.load(tmp_path / "ranker.onnx").score(np.eye(4, dtype=np.float32))
    assert order(found.astype(np.float64)) == BY_VALUE


@pytest.mark.parametrize("method", [DLA, Auto])
def test_the_forest_of_the_value_is_what_engines_get(method: type[Estimator]) -> None:
    estimator = fitted(method, TREES)
    forest = forest_of(estimator.ranker_)
    assert forest is not None
    np.testing.assert_allclose(forest.predict(np.eye(4, dtype=np.float32), 1)[:, 0], scores(estimator), rtol=1e-5)


@pytest.mark.parametrize("method", ["pair-debias", "lightgbm", "xgboost", "label"])
def test_methods_without_a_click_model_refuse_a_value(method: str) -> None:
    with pytest.raises(OptionError, match="has no use for the option value: it has no click model"):
        METHODS[method](value={"purchase": 1}).check()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "value must have a weight above 0"),
        ({"purchase": 0}, "value must have a weight above 0"),
        ({"purchase": 1, "cart": -1}, "the weight of 'cart' in value must be a number of at least 0, got -1"),
        ({"purchase": float("nan")}, "the weight of 'purchase' in value must be a number"),
        ("purchase", "value must be weights of signals by name"),
        ({1: 1}, "value must be weights of signals by name"),
    ],
    ids=str,
)
def test_weights_that_do_not_fit_are_refused(value: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        DLA(value=value).fit(world())


def test_a_log_without_the_signal_names_those_that_it_has() -> None:
    with pytest.raises(
        DataError, match="the training log has no signal 'order'; its signals are click, purchase, cart"
    ):
        DLA(value={"order": 1}).fit(world())
    without = replace(world(), signals=())
    with pytest.raises(DataError, match=r"the validation log has no signal 'purchase'; its signals are click$"):
        DLA(value={"purchase": 1}).fit(world(), validation=without)


def test_a_log_without_any_value_is_refused() -> None:
    log = world()
    silent = replace(log, signals=(Signal("purchase", np.zeros_like(log.clicks)),))
    with pytest.raises(DataError, match="the training log has no purchase, so there is no value to learn from"):
        DLA(value={"purchase": 1}).fit(silent)
    with pytest.raises(DataError, match="the validation log has no purchase, so there is no value to learn from"):
        DLA(value={"purchase": 1}).fit(log, validation=silent)


def _bought(count: int, *, row: int) -> ClickLog:
    log = world()
    totals = np.zeros_like(log.clicks)
    totals[row] = count
    return replace(log, signals=(Signal("purchase", totals),))


@pytest.mark.parametrize(("count", "warned"), [(FEWEST - 1, True), (FEWEST, False)])
def test_few_occurrences_of_a_signal_are_counted_in_a_warning(count: int, warned: bool) -> None:  # noqa: FBT001
    estimator = DLA(relevance=MLP(hidden=(4,), steps=1), value={"purchase": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(_bought(count, row=0))
    messages = [str(each.message) for each in caught if each.category is UltrWarning]
    expected = [f"signal 'purchase' occurs {count} times in the training log, too few to tell much of its value"]
    assert messages == (expected if warned else [])


@pytest.mark.parametrize(("unclicked", "warned"), [(21, True), (20, False)])
def test_purchases_without_a_click_get_a_warning(unclicked: int, warned: bool) -> None:  # noqa: FBT001
    log = _bought(2_000 - unclicked, row=0)
    clicks, totals = log.clicks.copy(), log.signal("purchase").copy()
    clicks[1], totals[1] = 0, unclicked
    log = replace(log, clicks=clicks, signals=(Signal("purchase", totals),))
    estimator = DLA(relevance=MLP(hidden=(4,), steps=1), value={"purchase": 1})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(log)
    messages = [str(each.message) for each in caught if each.category is UltrWarning]
    expected = (
        "21 of 2,000 'purchase' are on documents that were not clicked; "
        "they are taken for what follows a click, with its bias"
    )
    assert messages == ([expected] if warned else [])


def test_amounts_are_no_number_of_events() -> None:
    """Prices of 18 and 129 on one click each, and 3 purchases on 10 clicks."""
    log = ClickLog.of(
        features=np.zeros((3, 1)),
        documents=[0, 1, 2],
        offsets=[0, 3],
        clicks=[1, 1, 10],
        impressions=[20],
        signals={"revenue": [18, 129, 0], "purchase": [1, 0, 3]},
    )
    assert squared_weights(log, {"revenue": 2.0}).tolist() == [4 * 18**2, 4 * 129**2, 0]
    assert squared_weights(log, {"click": 1.0, "purchase": 20.0}).tolist() == [401, 1, 10 + 3 * 400]
    with pytest.warns(UltrWarning, match="signal 'revenue' occurs 2 times in the training log"):
        check_signals({"revenue": 1.0}, log, None)

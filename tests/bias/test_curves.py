from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.bias.result_pages import click_log

from ultr.bias import (
    CURVE_ESTIMATORS,
    SWAP_ESTIMATORS,
    SwapTable,
    bias_curves,
    click_rate_propensities,
    fit_poisson,
)
from ultr.clicks.model import EXAMINATION
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import OptionError
from ultr.simulation.log import simulate


@pytest.fixture(scope="module")
def log() -> ClickLog:
    judged = letor_like(train_queries=150, validation_queries=1, test_queries=1).train
    model = click_model("position-based")
    return simulate(judged, model, impressions=300_000, svm_share=0.1, rankings=10, noise=0.5)


def test_the_values_are_those_of_the_estimators_on_their_own(log: ClickLog) -> None:
    curves = bias_curves(log, samples=1)
    assert tuple(curve.estimator for curve in curves.curves) == CURVE_ESTIMATORS
    np.testing.assert_allclose(curves.of("click-rate").values, click_rate_propensities(log))
    for name, estimate in SWAP_ESTIMATORS.items():
        np.testing.assert_allclose(curves.of(name).values, estimate(SwapTable.of_log(log)), rtol=1e-6)
    cells = log.cells()
    em = fit_poisson(cells.choose(cells.moved()))
    np.testing.assert_allclose(curves.of("em").values, em, atol=1e-4)


def test_intervals_hold_the_curve_of_the_click_model(log: ClickLog) -> None:
    curves = bias_curves(log, samples=40, level=0.99)
    assert (curves.units, curves.count) == ("queries", 150)
    true = np.array(EXAMINATION) / EXAMINATION[0]
    for curve in curves.curves:
        assert curve.failed == 0
        assert curve.problem is None
        assert curve.values[0] == curve.low[0] == curve.high[0] == 1
        assert (curve.low <= curve.values + 0.02).all()
        assert (curve.values <= curve.high + 0.02).all()
        if curve.estimator == "click-rate":
            # Better documents stand higher, so that click rates fall faster than attention.
            assert (curve.high[1:] < true[1:]).any()
        else:
            width = curve.high - curve.low
            assert (np.abs(curve.values - true) <= width + 1e-9).all()
            assert width.max() < 0.2


def test_the_same_seed_gives_the_same_intervals_and_a_wider_level_wider_ones(log: ClickLog) -> None:
    asked = {"estimators": ("all-pairs",), "samples": 20}
    first, again = (bias_curves(log, **asked).curves[0] for _ in range(2))  # type: ignore[arg-type]
    np.testing.assert_array_equal(first.low, again.low)
    narrow = bias_curves(log, level=0.5, **asked).curves[0]  # type: ignore[arg-type]
    assert (narrow.high - narrow.low <= first.high - first.low).all()
    other = bias_curves(log, seed=1, **asked).curves[0]  # type: ignore[arg-type]
    assert (other.low != first.low).any()


def test_a_log_without_swaps_has_a_problem_and_click_rates() -> None:
    log = ClickLog.of(
        features=[[0.0]] * 4,
        documents=[0, 1, 2, 3],
        offsets=[0, 2, 4],
        clicks=[6, 3, 4, 2],
        impressions=[10, 10],
        queries=["a", "b"],
    )
    curves = bias_curves(log, samples=10)
    assert curves.units == "lists"
    np.testing.assert_allclose(curves.of("click-rate").values, [1.0, 0.5])
    for name in SWAP_ESTIMATORS:
        curve = curves.of(name)
        assert np.isnan(curve.values).all()
        assert curve.failed == 1
        assert curve.problem is not None
        assert "cannot be compared" in curve.problem
    assert curves.of("em").problem is not None


def test_documents_with_one_impression_each_do_not_bias_any_estimator() -> None:
    """A clicked document with one impression would be perfectly relevant, and its position perfectly seen."""
    random = np.random.default_rng(0)
    theta = np.array([1.0, 0.4, 0.1])
    pages = 6_000
    documents = random.permuted(np.tile(np.arange(30), (pages, 1)), axis=1)[:, :3]
    alone = random.random(documents.shape) < 0.3
    documents[alone] += 30 * np.arange(1, alone.sum() + 1)  # shown once only, as relevant as before
    chances = np.linspace(0.1, 0.5, 30)[documents % 30] * theta
    log = ClickLog.of(
        features=np.zeros((documents.max() + 1, 0)),
        documents=documents.reshape(-1),
        offsets=np.arange(0, 3 * pages + 1, 3),
        clicks=random.binomial(1, chances).reshape(-1),
        queries=np.arange(pages) % 50,
    )
    for curve in bias_curves(log, samples=1).curves:
        if curve.problem is None and curve.estimator != "click-rate":
            np.testing.assert_allclose(curve.values, theta, atol=0.06)
    assert bias_curves(log, estimators=("em",), samples=1).curves[0].problem is None


def test_unknown_estimators_are_refused(log: ClickLog) -> None:
    with pytest.raises(OptionError, match="did you mean 'all-pairs'"):
        bias_curves(log, estimators=("all-pair",))


def test_the_yandex_log_gives_its_published_curve(shared_data: Path) -> None:
    log = click_log(shared_data / "yandex" / "sessions.tsv.gz", query="query_region")
    assert log.impressions.sum() == 56_477
    curves = bias_curves(log, samples=20)
    assert (curves.units, curves.count) == ("lists", 1_505)
    published = [1, 0.71, 0.59, 0.49, 0.39, 0.34, 0.30, 0.25, 0.24, 0.22]
    np.testing.assert_allclose(curves.of("adjacent-chain").values, published, atol=0.011)
    for name in ("all-pairs", "em"):
        np.testing.assert_allclose(curves.of(name).values, published, atol=0.04)

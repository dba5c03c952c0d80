from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.bias import dispersion, document_dispersion, draw_clicks, group_dispersion
from ultr.clicks.registry import click_model
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.simulation.log import simulate


def _contexts(rho: float, *, contexts: int = 20_000, seed: int = 0) -> tuple[Integers, Integers, Integers]:
    """Contexts of many sizes, most cells with hardly any expected click, with beta-binomial clicks."""
    random = np.random.default_rng(seed)
    cells, shown = random.integers(0, contexts // 5, size=contexts), random.integers(1, 60, size=contexts)
    rates = random.uniform(0.001, 0.5, size=contexts)[cells] ** 2
    if rho:
        rates = random.beta(rates * (1 / rho - 1), (1 - rates) * (1 / rho - 1))
    return cells, shown, random.binomial(shown, rates)


@pytest.mark.parametrize("rho", [0.0, 0.01, 0.1])
def test_the_correlation_of_beta_binomial_clicks_is_found(rho: float) -> None:
    found = [dispersion(*_contexts(rho, seed=seed)) for seed in range(8)]
    estimates = np.array([one.correlation for one in found])
    errors = np.array([(one.high - one.low) / 2 / 1.96 for one in found])
    # The mean of eight lies within four of its deviations, which are those that the intervals claim.
    assert abs(estimates.mean() - rho) < 4 * errors.mean() / 8**0.5
    assert 0.4 < estimates.std() / errors.mean() < 2
    # Two or more of eight outside would have a chance of 6 %, four of 0.04 %.
    assert sum(not one.low <= rho <= one.high for one in found) < 4


def test_phi_is_the_factor_of_the_variance() -> None:
    random = np.random.default_rng(0)
    cells, shown = np.repeat(np.arange(2_000), 10), np.full(20_000, 40)
    assert abs(dispersion(cells, shown, random.binomial(shown, 0.2)).phi - 1) < 0.03
    rates = random.beta(0.2 * 19, 0.8 * 19, size=20_000)
    assert abs(dispersion(cells, shown, random.binomial(shown, rates)).phi - (1 + 39 / 20)) < 0.1


def test_small_cells_have_no_bias() -> None:
    # A context with one and one with two impressions: all outcomes, as often as independent clicks at 0.5 have them.
    clicks = [(first, second) for first in (0, 1) for second in (0, 1, 1, 2)]
    found = dispersion(np.repeat(np.arange(8), 2), np.tile([1, 2], 8), np.array(clicks).ravel())
    assert found.cells == 6
    np.testing.assert_allclose(found.correlation, 0, atol=1e-9)


def test_independent_clicks_of_a_position_based_log_have_a_phi_of_one() -> None:
    judged = letor_like(train_queries=60, validation_queries=1, test_queries=1).train
    model = click_model("position-based")
    log = simulate(judged, model, impressions=60_000, svm_share=0.2, rankings=10, noise=0.5)
    found = document_dispersion(log)
    assert abs(found.phi - 1) < 0.05
    assert found.low < 0 < found.high
    by_label, factors = group_dispersion(log, judged.labels[log.documents])
    assert abs(by_label.phi - 1) < 0.15
    assert factors.shape == (5, 10)


def test_a_group_of_unlike_documents_is_dispersed_by_query() -> None:
    # Half of the queries are clicked at 0.2, half at 0.6: the variance of the rate over p (1 - p) is 0.04 / 0.24.
    log = ClickLog.of(
        features=np.zeros((400, 1)),
        documents=np.arange(400),
        offsets=np.arange(401),
        clicks=np.where(np.arange(400) % 2, 6, 18),
        impressions=np.full(400, 30),
    )
    found, factors = group_dispersion(log, np.zeros(400, dtype=np.int64))
    # Not a draw: the deviations are those of the rates alone, so what chance would add, 1 / 30, is missing.
    np.testing.assert_allclose(found.correlation, (0.04 / 0.24 - 1 / 30) * 30 / 29, rtol=0.01)
    np.testing.assert_allclose(factors, 1 + found.correlation * 29)
    assert document_dispersion(log).contexts == 0


def test_impressions_of_one_list_stand_together() -> None:
    cells = Cells.of(np.array([0, 0, 0]), np.array([0, 0, 1]), np.array([5, 1, 4]), np.zeros(3), count=2)
    # Of six impressions five have four others with them; of four, all have three.
    np.testing.assert_allclose(cells.together, [20 / 6, 3.0])
    found = dispersion(*_contexts(0.1))
    np.testing.assert_allclose(found.factors(np.array([0.0, 9.0])), [1, 1 + 9 * found.correlation])


def test_nothing_to_compare_is_no_dispersion() -> None:
    nothing = dispersion(np.arange(3), np.full(3, 9), np.full(3, 4))
    assert (nothing.phi, nothing.correlation, nothing.contexts) == (1, 0, 0)
    assert np.isnan(nothing.low)
    np.testing.assert_array_equal(nothing.factors(np.array([3.0])), 1)
    assert dispersion(np.array([0, 0, 0]), np.full(3, 9), np.zeros(3)).contexts == 0
    single = dispersion(np.arange(300) % 100, np.ones(300), (np.arange(300) < 150).astype(np.int64))
    assert (single.phi, single.contexts) == (1, 0)
    alone = dispersion(np.array([0, 0]), np.full(2, 9), np.array([1, 8]))
    assert alone.phi > 1
    assert np.isnan(alone.high)


@pytest.mark.parametrize("factor", [1.0, 1.5, 6.0])
def test_drawn_clicks_have_the_mean_and_the_variance_asked_for(factor: float) -> None:
    shown, rates = np.array([[10, 400], [50, 1]]), np.array([[0.3, 0.02], [0.9, 0.5]])
    drawn: Doubles = draw_clicks(shown, rates, factor, np.random.default_rng(0), samples=40_000)
    variance = shown * rates * (1 - rates) * np.where(shown > 1, factor, 1)
    np.testing.assert_allclose(drawn.mean(axis=0), shown * rates, atol=4 * (variance.max() / 40_000) ** 0.5)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.05)
    edge = draw_clicks(np.array([5, 5]), np.array([0.0, 1.0]), factor, np.random.default_rng(0))
    np.testing.assert_array_equal(edge, [[0, 5]])

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.simulation.toy import separable

from ultr.arrays import Doubles
from ultr.bias.position_based_fit import fit_poisson
from ultr.clicks import EXAMINATION, PositionBased, TrustBias, click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.methods import DLA, Vectorization
from ultr.relevance import MLP
from ultr.simulation import (
    CAUSES,
    Cause,
    Device,
    Grid,
    Pages,
    Pixels,
    ResultLayout,
    lay_out,
    shown_lists,
    simulate,
    simulate_more,
)

JUDGED = separable(40)
SCORES = np.random.default_rng(0).normal(size=JUDGED.documents)
CURVE = np.array(EXAMINATION)
EXPECTED = 10**12
"""Impressions at which clicks are as expected."""
every_cause = pytest.mark.parametrize("cause", [kind() for kind in CAUSES.values()], ids=list(CAUSES))


def _pages(*causes: Cause, rankings: int = 3) -> Pages:
    shown = shown_lists(SCORES, JUDGED.offsets, rankings=rankings, noise=1.0)
    return lay_out(shown, np.full(len(shown.queries), 1_000), PositionBased(), causes)


def _log(*causes: Cause, impressions: int = EXPECTED, rankings: int = 20) -> ClickLog:
    return simulate(
        JUDGED, PositionBased(), scores=SCORES, impressions=impressions, rankings=rankings, noise=1.0, factors=causes
    )


def _levels(pages: Pages, number: int) -> list[str]:
    factor = pages.factors[number]
    return [factor.levels[value] for value in factor.values]


def test_a_device_raises_the_curve_of_the_position_to_a_power() -> None:
    pages = _pages(Device())
    power = np.array([{"desktop": 1.0, "phone": 2.0, "tablet": 1.4}[device] for device in _levels(pages, 0)])
    np.testing.assert_allclose(pages.examination, CURVE[pages.shown.positions - 1] ** power)
    # The same device on a whole page, and devices in their shares.
    assert (np.diff(pages.factors[0].values)[np.diff(ragged.list_numbers(pages.shown.offsets)) == 0] == 0).all()
    by_device = np.bincount(pages.factors[0].values[pages.shown.offsets[:-1]], pages.impressions)
    np.testing.assert_allclose(by_device / by_device.sum(), [0.4, 0.45, 0.15], atol=0.01)
    assert pages.impressions.sum() == 120_000


def test_a_layout_leaves_a_share_of_the_examination_of_each_result() -> None:
    pages = _pages(ResultLayout())
    share = np.array([{"image": 1.0, "plain": 0.7, "small": 0.4}[layout] for layout in _levels(pages, 0)])
    np.testing.assert_allclose(pages.examination, CURVE[pages.shown.positions - 1] * share)
    np.testing.assert_allclose(np.bincount(pages.factors[0].values) / len(share), [0.25, 0.5, 0.25], atol=0.06)


def test_pixels_add_up_the_heights_of_the_results_above() -> None:
    pages = _pages(Pixels(heights=(100.0, 100.0), fold=500.0))
    np.testing.assert_allclose(pages.examination, np.exp(-(pages.shown.positions - 1) / 5))
    pages = _pages(Pixels())
    pixels, shown = -600 * np.log(pages.examination), pages.shown
    assert (pixels[shown.offsets[:-1]] < 1e-9).all()
    steps = np.diff(pixels)[np.diff(ragged.list_numbers(shown.offsets)) == 0]
    above = shown.documents[:-1][np.diff(ragged.list_numbers(shown.offsets)) == 0]
    assert 80 <= steps.min() < 100 < 300 < steps.max() <= 320
    # A document is as high wherever it is shown.
    for document in np.unique(above):
        assert np.ptp(steps[above == document]) < 1e-6
    (factor,) = pages.factors
    assert factor.edges[:3] == (100.0, 200.0, 300.0)
    assert (factor.values == np.minimum((pixels + 1e-9) // 100, 19)).all()


def test_a_grid_is_read_row_by_row_on_narrow_and_wide_pages() -> None:
    pages = _pages(Grid())
    rows, columns = (np.array(_levels(pages, number), dtype=int) for number in (0, 1))
    np.testing.assert_allclose(pages.examination, 0.7 ** (rows - 1) * np.array([1.0, 0.9, 0.75, 0.55])[columns - 1])
    widths = np.maximum.reduceat(columns, pages.shown.offsets[:-1])[ragged.list_numbers(pages.shown.offsets)]
    long = np.repeat(np.diff(pages.shown.offsets) >= 4, np.diff(pages.shown.offsets))
    assert set(widths[long]) == {2, 4}
    assert ((rows - 1) * widths + columns == pages.shown.positions)[long].all()


def test_all_causes_act_at_once_and_in_any_order() -> None:
    pages = _pages(Device(), ResultLayout(), Pixels())
    device, layout, pixels = pages.factors
    steepness, attention = np.array([1.0, 2.0, 1.4])[device.values], np.array([1.0, 0.7, 0.4])[layout.values]
    curve = (pages.examination / attention) ** (1 / steepness)
    assert ((-600 * np.log(curve) + 1e-9) // 100 == pixels.values)[pixels.values < 19].all()
    assert [factor.name for factor in _pages(Pixels(), Device()).factors] == ["pixels", "device"]


@every_cause
def test_clicks_are_the_exact_probabilities_times_impressions(cause: Cause) -> None:
    model = TrustBias()
    shown = shown_lists(SCORES, JUDGED.offsets)
    pages = lay_out(shown, np.full(len(shown.queries), 10**9), model, [cause])
    grades = JUDGED.labels[pages.shown.documents]
    taken = model.rates(4)[grades, pages.shown.positions - 1] / CURVE[pages.shown.positions - 1]
    chances = pages.probabilities(model, grades, max_label=4)
    np.testing.assert_allclose(chances, pages.examination * taken)
    often = np.repeat(pages.impressions, np.diff(pages.shown.offsets))
    clicks = pages.counts(model, grades, np.random.default_rng(0), max_label=4)
    assert (np.abs(clicks - often * chances) <= 6 * np.sqrt(often * chances * (1 - chances)) + 1e-9).all()


@every_cause
def test_no_impression_is_lost_and_the_same_seed_gives_the_same_log(cause: Cause) -> None:
    log = _log(cause, impressions=10_007, rankings=3)
    assert log.impressions.sum() == 10_007
    assert log.fingerprint() == _log(cause, impressions=10_007, rankings=3).fingerprint()
    assert len(log.position.levels) == 10


@pytest.mark.parametrize(
    ("cause", "truth"),
    [
        (Device(), np.outer(CURVE, np.ones(3)) ** [1.0, 2.0, 1.4]),
        (ResultLayout(), np.outer(CURVE, [1.0, 0.7, 0.4])),
        (Grid(), np.outer(0.7 ** np.arange(5), [1.0, 0.9, 0.75, 0.55])),
    ],
    ids=["device", "layout", "grid"],
)
def test_swaps_recover_the_examination_of_every_combination_of_levels(cause: Cause, truth: Doubles) -> None:
    log = _log(cause)
    first, second = log.factors[-2:]
    seen, numbers = np.unique(first.values * len(second.levels) + second.values, return_inverse=True)
    assert len(seen) > 0.6 * truth.size
    found = fit_poisson(log.cells(numbers))
    np.testing.assert_allclose(found, truth.ravel()[seen] / truth[0, 0], rtol=1e-3)


def test_swaps_recover_the_curve_over_pixels_within_its_bins() -> None:
    log = _log(Pixels())
    found = fit_poisson(log.cells(log.factors[1]))
    # The first bin is nearly all at the top; the others are within 100 pixels.
    middles = np.exp(-np.arange(150, 1_900, 100) / 600)
    np.testing.assert_allclose(found[1:-1], middles, rtol=0.08)


def test_dla_recovers_a_grid_and_a_smooth_curve_over_pixels() -> None:
    for cause, width in ((Grid(), 0.06), (Pixels(), 0.15)):
        log = _log(cause, rankings=4)
        propensities = DLA(relevance=MLP(hidden=(8,), steps=400)).fit(log).propensities()
        found = sum(np.log(propensities[factor.name])[factor.values] for factor in log.factors)
        assert isinstance(found, np.ndarray)
        if isinstance(cause, Grid):
            row, column = (factor.values for factor in log.factors[1:])
            truth = row * np.log(0.7) + np.log([1.0, 0.9, 0.75, 0.55])[column]
        else:
            truth = -np.array([0, *range(150, 2_000, 100)])[log.factors[1].values] / 600
        assert np.sqrt(np.square(_centred(found, log) - _centred(truth, log)).mean()) < width


def _centred(values: Doubles, log: ClickLog) -> Doubles:
    """Values less their mean over each list, as list-wise losses know them."""
    lists = ragged.list_numbers(log.offsets)
    centred: Doubles = values - (np.bincount(lists, values) / np.bincount(lists))[lists]
    return centred


def test_vectorization_learns_that_phones_are_steeper_which_no_sum_of_two_curves_can_say() -> None:
    log = _log(Device(), rankings=4)
    ranker = Vectorization(relevance=MLP(hidden=(8,), steps=400)).fit(log)
    device = log.factors[1].values[log.offsets[:-1]]
    for number, steepness in enumerate([1.0, 2.0, 1.4]):
        pages = log.select(device == number)
        found = np.exp(np.log(ranker.click_ratios(pages, "position")).mean(axis=0))
        np.testing.assert_allclose(found[:6], (CURVE / CURVE[0])[:6] ** steepness, rtol=0.15)


def test_what_cannot_be_simulated_is_said_in_a_sentence() -> None:
    with pytest.raises(OptionError, match="which the click model cascade has no number for; use trust"):
        simulate(JUDGED, click_model("cascade"), scores=SCORES, impressions=100, factors=[Device()])
    with pytest.raises(OptionError, match="pairs are not counted under bias factors"):
        simulate(JUDGED, PositionBased(), scores=SCORES, impressions=100, factors=[Device()], pairs=True)
    with pytest.raises(DataError, match="two bias factors of a click log have the same name"):
        _log(Device(), Device(), impressions=1_000)
    with pytest.raises(DataError, match="more impressions are simulated by the position alone"):
        simulate_more(_log(Device(), impressions=1_000), JUDGED, PositionBased(), share=0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Device(shares=(0.5, 0.5, 0.5)), "shares must add up to 1"),
        (lambda: Device(steepness=(1.0,)), "steepness must have 3 numbers, got 1"),
        (lambda: Device(steepness=(1.0, -1.0, 2.0)), "steepness must be a number of at least 0"),
        (lambda: ResultLayout(attention=(1.0, 2.0, 0.5)), "attention at position 2 must be a probability"),
        (lambda: Pixels(fold=0.0), "fold must be a number above 0"),
        (lambda: Grid(columns=(5, 2)), "column_attention must have 5 probabilities, got 4"),
    ],
)
def test_options_of_causes_are_checked(make: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()

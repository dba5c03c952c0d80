"""What every click model keeps to.

@pytest.mark.parametrize("model", [Eager(), Eager(noise=0.5)])
class TestEager(ClickModelContract): ...
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Integers
from ultr.clicks import ClickModel
from ultr.errors import DataError, OptionError

TOP = 4
CLOSE = 5.0
"""Standard errors; one in two million draws is farther out."""


class ClickModelContract:
    """Tests of a click model `model`, which is given by `pytest.mark.parametrize`."""

    def test_it_follows_the_protocol_and_says_its_name(self, model: ClickModel) -> None:
        assert isinstance(model, ClickModel)
        assert isinstance(model.name, str)
        assert model.name
        assert model.positions >= 1

    def test_it_is_a_value(self, model: Any) -> None:
        assert replace(model) == model
        assert hash(replace(model)) == hash(model)
        for option in fields(model):
            with pytest.raises(FrozenInstanceError):
                setattr(model, option.name, getattr(model, option.name))

    def test_probabilities_lie_between_zero_and_one(self, model: ClickModel) -> None:
        labels = _labels(model, 200)
        probabilities = model.probabilities(labels, max_label=TOP)
        assert probabilities.shape == labels.shape
        assert probabilities.dtype == np.float64
        assert probabilities.min() >= 0
        assert probabilities.max() <= 1

    @pytest.mark.parametrize("max_label", [1, 2, 3])
    def test_the_lowest_and_the_highest_grade_mean_the_same_on_every_scale(
        self, model: ClickModel, max_label: int
    ) -> None:
        ends = np.random.default_rng(0).integers(0, 2, size=(20, model.positions))
        few = model.probabilities(ends * max_label, max_label=max_label)
        many = model.probabilities(ends * TOP, max_label=TOP)
        np.testing.assert_allclose(few, many, atol=1e-12)

    def test_padding_is_never_clicked_and_changes_nothing_above_it(self, model: ClickModel) -> None:
        whole, shown = _labels(model, 50), (model.positions + 1) // 2
        padded = whole.copy()
        padded[:, shown:] = -1
        probabilities = model.probabilities(padded, max_label=TOP)
        assert not probabilities[:, shown:].any()
        filled, cut = (model.probabilities(labels, max_label=TOP) for labels in (whole, whole[:, :shown]))
        np.testing.assert_array_equal(probabilities[:, :shown], filled[:, :shown])
        np.testing.assert_array_equal(probabilities[:, :shown], cut)
        impressions = np.full(50, 1000)
        assert not model.counts(padded, impressions, _generator(), max_label=TOP)[:, shown:].any()
        assert not model.sessions(np.repeat(padded, 100, axis=0), _generator(), max_label=TOP)[:, shown:].any()

    def test_an_empty_list_has_no_clicks(self, model: ClickModel) -> None:
        nothing = np.full((3, model.positions), -1)
        assert not model.probabilities(nothing, max_label=TOP).any()
        assert not model.counts(nothing, np.full(3, 10), _generator(), max_label=TOP).any()
        assert not model.sessions(nothing, _generator(), max_label=TOP).any()

    def test_no_lists_at_all_give_empty_arrays(self, model: ClickModel) -> None:
        none = np.zeros((0, model.positions), dtype=np.int64)
        assert model.probabilities(none, max_label=TOP).shape == none.shape
        assert model.counts(none, np.zeros(0, dtype=np.int64), _generator(), max_label=TOP).shape == none.shape
        assert model.sessions(none, _generator(), max_label=TOP).shape == none.shape

    def test_the_same_seed_gives_the_same_clicks_and_another_seed_others(self, model: ClickModel) -> None:
        labels, impressions = _labels(model, 100), np.full(100, 500)
        rates = model.probabilities(labels, max_label=TOP)
        chance = ((rates > 0) & (rates < 1)).any()
        counts = [model.counts(labels, impressions, _generator(seed), max_label=TOP) for seed in (5, 5, 6)]
        np.testing.assert_array_equal(counts[0], counts[1])
        clicks = [model.sessions(labels, _generator(seed), max_label=TOP) for seed in (5, 5, 6)]
        np.testing.assert_array_equal(clicks[0], clicks[1])
        assert (counts[0] != counts[2]).any() == chance
        assert (clicks[0] != clicks[2]).any() == chance

    def test_arrays_of_the_caller_stay_as_they_were(self, model: ClickModel) -> None:
        labels, impressions = _labels(model, 20), np.full(20, 7)
        before = labels.copy()
        model.probabilities(labels, max_label=TOP)
        model.counts(labels, impressions, _generator(), max_label=TOP)
        model.sessions(labels, _generator(), max_label=TOP)
        np.testing.assert_array_equal(labels, before)
        assert (impressions == 7).all()

    def test_counts_never_exceed_impressions_and_zero_impressions_give_no_click(self, model: ClickModel) -> None:
        labels = _labels(model, 300)
        impressions = np.arange(300) % 7
        counts = model.counts(labels, impressions, _generator(), max_label=TOP)
        assert (counts >= 0).all()
        assert (counts <= impressions[:, None]).all()
        assert not counts[impressions == 0].any()

    def test_a_trillion_impressions_cost_no_more_and_give_the_exact_rates(self, model: ClickModel) -> None:
        labels, impressions = _labels(model, 50), 10**12
        counts = model.counts(labels, np.full(50, impressions), _generator(), max_label=TOP)
        rates = model.probabilities(labels, max_label=TOP)
        error = np.sqrt(rates * (1 - rates) / impressions)
        assert (np.abs(counts / impressions - rates) <= CLOSE * error + 1e-12).all()

    def test_single_sessions_have_the_same_rates(self, model: ClickModel) -> None:
        labels, times = _labels(model, 5), 20_000
        clicks = model.sessions(np.repeat(labels, times, axis=0), _generator(), max_label=TOP)
        assert clicks.dtype == np.bool_
        rates = model.probabilities(labels, max_label=TOP)
        error = np.sqrt(rates * (1 - rates) / times)
        assert (np.abs(clicks.reshape(5, times, -1).mean(axis=1) - rates) <= CLOSE * error + 1e-12).all()

    @pytest.mark.parametrize(
        ("labels", "sentence"),
        [
            (np.array([1, 2]), "must be integers"),
            (np.array([[1.0]]), "must be integers"),
            (np.array([[5]]), r"0\.\.4 .* got 5\.\.5"),
            (np.array([[-2]]), r"got -2\.\.-2"),
            (np.array([[-1, 1]]), "only be -1 at the end"),
        ],
    )
    def test_labels_that_are_no_shown_lists_are_refused(
        self, model: ClickModel, labels: Integers, sentence: str
    ) -> None:
        if labels.shape[-1] > model.positions:
            pytest.skip(f"the model shows {model.positions} position")
        with pytest.raises(DataError, match=sentence):
            model.probabilities(labels, max_label=TOP)
        with pytest.raises(DataError, match=sentence):
            model.counts(labels, np.array([1]), _generator(), max_label=TOP)
        with pytest.raises(DataError, match=sentence):
            model.sessions(labels, _generator(), max_label=TOP)

    def test_more_columns_than_positions_are_refused(self, model: ClickModel) -> None:
        known = model.positions
        with pytest.raises(OptionError, match=f"knows {known} positions, but {known + 1} were shown"):
            model.probabilities(np.zeros((1, known + 1), dtype=np.int64), max_label=TOP)

    def test_a_single_grade_is_refused(self, model: ClickModel) -> None:
        with pytest.raises(OptionError, match="max_label"):
            model.probabilities(np.zeros((1, 1), dtype=np.int64), max_label=0)

    @pytest.mark.parametrize("impressions", [np.array([1, 2, 3]), np.array([-1, 2]), np.array([0.5, 1.0])])
    def test_impressions_that_are_no_counts_are_refused(self, model: ClickModel, impressions: Integers) -> None:
        with pytest.raises(DataError, match="impressions"):
            model.counts(_labels(model, 2), impressions, _generator(), max_label=TOP)


def _labels(model: ClickModel, lists: int) -> Integers:
    return np.random.default_rng(0).integers(0, TOP + 1, size=(lists, model.positions))


def _generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)

"""What every registered click model keeps to; a new one inherits these tests by being registered."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from ultr.arrays import Integers
from ultr.clicks import CLICK_MODELS, ClickModel, click_model
from ultr.errors import DataError, OptionError

TOP = 4


@pytest.fixture(params=sorted(CLICK_MODELS))
def model(request: pytest.FixtureRequest) -> ClickModel:
    return click_model(request.param)


def random_labels(lists: int, columns: int) -> Integers:
    return np.random.default_rng(0).integers(0, TOP + 1, size=(lists, columns))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_it_follows_the_protocol_and_knows_its_name(model: ClickModel) -> None:
    assert isinstance(model, ClickModel)
    assert CLICK_MODELS[model.name] is type(model)
    assert model.positions == 10


def test_it_is_a_value(model: ClickModel) -> None:
    assert model == click_model(model.name)
    assert hash(model) == hash(click_model(model.name))
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(FrozenInstanceError):
        setattr(model, fields(CLICK_MODELS[model.name])[0].name, 0)


def test_probabilities_lie_between_zero_and_one(model: ClickModel) -> None:
    labels = random_labels(200, 10)
    probabilities = model.probabilities(labels, max_label=TOP)
    assert probabilities.shape == labels.shape
    assert probabilities.dtype == np.float64
    assert probabilities.min() >= 0
    assert probabilities.max() <= 1


@pytest.mark.parametrize("max_label", [1, 2, 3])
def test_it_serves_data_with_fewer_grades(model: ClickModel, max_label: int) -> None:
    """The lowest and the highest grade mean the same on every scale."""
    few = model.probabilities(np.array([[max_label, 0, max_label, 0]]), max_label=max_label)
    many = model.probabilities(np.array([[TOP, 0, TOP, 0]]), max_label=TOP)
    np.testing.assert_allclose(few, many, atol=1e-12)


def test_padding_is_never_clicked_and_changes_nothing_above_it(model: ClickModel) -> None:
    whole = random_labels(50, 10)
    padded = whole.copy()
    padded[:, 6:] = -1
    probabilities = model.probabilities(padded, max_label=TOP)
    assert not probabilities[:, 6:].any()
    np.testing.assert_array_equal(probabilities[:, :6], model.probabilities(whole, max_label=TOP)[:, :6])
    np.testing.assert_array_equal(probabilities[:, :6], model.probabilities(whole[:, :6], max_label=TOP))
    impressions = np.full(50, 1000)
    assert not model.counts(padded, impressions, generator(), max_label=TOP)[:, 6:].any()
    assert not model.sessions(np.repeat(padded, 100, axis=0), generator(), max_label=TOP)[:, 6:].any()


def test_an_empty_list_has_no_clicks(model: ClickModel) -> None:
    nothing = np.full((3, 10), -1)
    assert not model.probabilities(nothing, max_label=TOP).any()
    assert not model.counts(nothing, np.full(3, 10), generator(), max_label=TOP).any()
    assert not model.sessions(nothing, generator(), max_label=TOP).any()


def test_no_lists_at_all_give_empty_arrays(model: ClickModel) -> None:
    none = np.zeros((0, 10), dtype=np.int64)
    assert model.probabilities(none, max_label=TOP).shape == (0, 10)
    assert model.counts(none, np.zeros(0, dtype=np.int64), generator(), max_label=TOP).shape == (0, 10)
    assert model.sessions(none, generator(), max_label=TOP).shape == (0, 10)


def test_the_same_seed_gives_the_same_clicks_and_another_seed_others(model: ClickModel) -> None:
    labels, impressions = random_labels(100, 10), np.full(100, 500)
    counts = [model.counts(labels, impressions, generator(seed), max_label=TOP) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(counts[0], counts[1])
    assert (counts[0] != counts[2]).any()
    clicks = [model.sessions(labels, generator(seed), max_label=TOP) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(clicks[0], clicks[1])
    assert (clicks[0] != clicks[2]).any()


def test_arrays_of_the_caller_stay_as_they_were(model: ClickModel) -> None:
    labels, impressions = random_labels(20, 10), np.full(20, 7)
    before = labels.copy()
    model.counts(labels, impressions, generator(), max_label=TOP)
    model.sessions(labels, generator(), max_label=TOP)
    np.testing.assert_array_equal(labels, before)
    assert (impressions == 7).all()


def test_counts_never_exceed_impressions_and_zero_impressions_give_no_click(model: ClickModel) -> None:
    labels = random_labels(300, 10)
    impressions = np.arange(300) % 7
    counts = model.counts(labels, impressions, generator(), max_label=TOP)
    assert (counts >= 0).all()
    assert (counts <= impressions[:, None]).all()
    assert not counts[impressions == 0].any()


def test_a_trillion_impressions_cost_no_more_and_give_the_exact_rates(model: ClickModel) -> None:
    labels, impressions = random_labels(50, 10), 10**12
    counts = model.counts(labels, np.full(50, impressions), generator(), max_label=TOP)
    rates = model.probabilities(labels, max_label=TOP)
    error = np.sqrt(rates * (1 - rates) / impressions)
    assert (np.abs(counts / impressions - rates) <= 5 * error + 1e-12).all()


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.array([1, 2]), "must be integers"),
        (np.array([[1.0, 2.0]]), "must be integers"),
        (np.array([[0, 5]]), r"0\.\.4 .* got 0\.\.5"),
        (np.array([[0, -2]]), r"got -2\.\.0"),
        (np.array([[0, -1, 1]]), "only be -1 at the end"),
    ],
)
def test_labels_that_are_no_shown_lists_are_refused(model: ClickModel, labels: Integers, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        model.probabilities(labels, max_label=TOP)
    with pytest.raises(DataError, match=sentence):
        model.counts(labels, np.array([1]), generator(), max_label=TOP)
    with pytest.raises(DataError, match=sentence):
        model.sessions(labels, generator(), max_label=TOP)


def test_more_columns_than_positions_are_refused(model: ClickModel) -> None:
    with pytest.raises(OptionError, match="knows 10 positions, but 11 were shown"):
        model.probabilities(np.zeros((1, 11), dtype=np.int64), max_label=TOP)


def test_a_single_grade_is_refused(model: ClickModel) -> None:
    with pytest.raises(OptionError, match="max_label"):
        model.probabilities(np.zeros((1, 2), dtype=np.int64), max_label=0)


@pytest.mark.parametrize("impressions", [np.array([1, 2, 3]), np.array([-1, 2]), np.array([0.5, 1.0])])
def test_impressions_that_are_no_counts_are_refused(model: ClickModel, impressions: Integers) -> None:
    with pytest.raises(DataError, match="impressions"):
        model.counts(random_labels(2, 3), impressions, generator(), max_label=TOP)


@pytest.mark.parametrize("noise", [-0.1, 1.5, float("nan"), "much", True, None])
def test_noise_must_be_a_probability(model: ClickModel, noise: object) -> None:
    if "noise" in {field.name for field in fields(CLICK_MODELS[model.name])}:
        with pytest.raises(OptionError, match="noise must be a probability"):
            click_model(model.name, noise=noise)

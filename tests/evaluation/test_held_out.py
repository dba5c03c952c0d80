from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.evaluation import click_fit
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization


class Uniform:
    """Every document of a list is as likely as the others, and half of the impressions click."""

    def click_shares(self, log: ClickLog) -> Doubles:
        return 1 / np.repeat(log.lengths, log.lengths)

    def click_probabilities(self, log: ClickLog) -> Doubles:
        return np.full(len(log.clicks), 0.5)


def test_a_coin_has_perplexity_two_at_every_position(small_log: ClickLog) -> None:
    fit = click_fit(Uniform(), small_log)
    assert fit.perplexity == pytest.approx(2)
    np.testing.assert_allclose(fit.perplexity_by_position, 2)
    assert fit.list_log_likelihood == pytest.approx(-np.log(10))


def test_a_model_that_knows_positions_foretells_clicks_better(small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.3)
    blind = click_fit(ClickBaseline(hidden=(16,), steps=150).fit(train), held_out)
    seeing = click_fit(Vectorization(hidden=(16,), steps=150).fit(train), held_out)
    assert seeing.list_log_likelihood > blind.list_log_likelihood
    assert 1 < seeing.perplexity < 2


def test_predicted_probabilities_add_up_to_the_clicks_of_an_impression(small_log: ClickLog) -> None:
    ranker = Vectorization(hidden=(16,), steps=50).fit(small_log)
    totals = np.bincount(ragged.list_numbers(small_log.offsets), ranker.click_shares(small_log))
    np.testing.assert_allclose(totals, 1, rtol=1e-9)
    assert ranker.clicks_per_impression_ == pytest.approx(
        small_log.clicks.sum() / small_log.impressions.sum(), rel=1e-5
    )


def test_a_ranker_trained_on_labels_does_not_model_other_factors(small: Splits, small_log: ClickLog) -> None:
    ranker = LabelBaseline(hidden=(16,), steps=5).fit(small.train)
    with pytest.raises((OptionError, DataError), match="bias factors or levels"):
        click_fit(ranker, small_log)

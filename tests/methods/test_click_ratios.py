"""How clicks change with a bias factor, against what each method itself says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.reporting.runs import TINY, log, rankers

from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.methods import DLA, METHODS, ClickBaseline, PairDebias, RegressionEM, Vectorization
from ultr.methods.estimator import Estimator
from ultr.relevance import MLP, Trees


def test_a_scalar_method_has_its_propensities_for_every_document(small_log: ClickLog) -> None:
    style = np.random.default_rng(0).integers(2, size=len(small_log.documents)).astype(np.int32)
    styled = replace(small_log, factors=(*small_log.factors, BiasFactor("style", style, ("plain", "bright"))))
    ranker = DLA(**TINY).fit(styled)
    for factor in ("position", "style"):
        ratios = ranker.click_ratios(styled, factor)
        wanted = ranker.propensities()[factor]
        assert wanted[-1] != 1
        np.testing.assert_allclose(ratios, np.broadcast_to(wanted, ratios.shape), rtol=1e-5)


def test_a_factor_that_was_left_out_changes_nothing() -> None:
    ranker = rankers()["dual"]
    assert isinstance(ranker, DLA)
    assert list(ranker.propensities()) == ["position"]
    assert (ranker.click_ratios(log(), "device") == 1).all()


def test_regression_em_has_its_propensities_too(small_log: ClickLog) -> None:
    ranker = RegressionEM(**TINY).fit(small_log)
    ratios = ranker.click_ratios(small_log, "position")
    np.testing.assert_allclose(ratios, np.broadcast_to(ranker.propensities(), ratios.shape), rtol=1e-5)


def test_pair_debias_has_the_bias_of_its_clicks(pair_log: ClickLog) -> None:
    ranker = PairDebias(**TINY).fit(pair_log)
    ratios = ranker.click_ratios(pair_log, "position")
    np.testing.assert_allclose(ratios, np.broadcast_to(ranker.propensities()[0], ratios.shape), rtol=1e-5)


def test_raw_clicks_know_no_bias() -> None:
    ranker = rankers()["raw"]
    assert isinstance(ranker, ClickBaseline)
    assert (ranker.click_ratios(log(), "position") == 1).all()


def test_vectors_say_something_else_of_each_document() -> None:
    ranker = rankers()["vectors"]
    assert isinstance(ranker, Vectorization)
    relevance = ranker.relevance_embeddings(log().features)[log().documents].astype(np.float64)
    tables = ranker.observation_embeddings()
    position = tables["position"].astype(np.float64)
    device = tables["device"].astype(np.float64)[log().factors[1].values]
    logits = (relevance * device) @ position.T
    ratios = ranker.click_ratios(log(), "position")
    np.testing.assert_allclose(ratios, np.exp(logits - logits[:, :1]), rtol=1e-3)
    assert np.ptp(ratios[:, -1]) > 1e-4


@pytest.mark.parametrize("name", METHODS)
def test_the_ratios_of_every_method_are_positive_and_start_at_one(name: str, pair_log: ClickLog) -> None:
    method: type[Estimator] = METHODS[name]
    if method.learns_from is not ClickLog:
        return
    options: dict[str, Any] = TINY if issubclass(MLP, method.takes) else {"relevance": Trees(rounds=3), "debias": True}
    ratios = method(**options).fit(pair_log).click_ratios(pair_log, "position")
    assert ratios.shape == (len(pair_log.documents), 10)
    assert (ratios[:, 0] == 1).all()
    assert (ratios > 0).all()
    assert np.isfinite(ratios).all()


def test_an_unknown_factor_is_refused() -> None:
    with pytest.raises(OptionError, match="factor"):
        rankers()["raw"].click_ratios(log(), "colour")

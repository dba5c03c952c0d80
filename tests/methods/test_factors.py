from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.datasets.splits import Splits
from ultr.errors import UltrWarning
from ultr.methods import (
    DLA,
    Affine,
    ClickBaseline,
    InversePropensity,
    PairDebias,
    RegressionEM,
    TwoTower,
    Vectorization,
)
from ultr.methods.estimator import Estimator
from ultr.methods.factors import factors_of
from ultr.relevance import MLP

TINY: dict[str, Any] = {"relevance": MLP(hidden=(4,), steps=3)}
POSITION_ONLY = [Affine, RegressionEM, PairDebias, InversePropensity]


def _with_device(log: ClickLog) -> ClickLog:
    """The log with a factor that is the same for a page."""
    devices = np.repeat(np.arange(log.lists) % 2, log.lengths).astype(np.int32)
    return replace(log, factors=(*log.factors, BiasFactor("device", devices, ("phone", "desktop"))))


def _with_style(log: ClickLog) -> ClickLog:
    """The log with a factor that differs within a page."""
    styles = np.random.default_rng(0).integers(2, size=len(log.documents)).astype(np.int32)
    return replace(log, factors=(*log.factors, BiasFactor("style", styles, ("plain", "bright"))))


def test_a_factor_is_by_page_if_no_list_has_two_levels_of_it(
    small_log: ClickLog, small: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragged, "SPAN", 100)
    position, device, style = factors_of(_with_style(_with_device(small_log)))
    assert [(each.name, each.column, each.by_page) for each in (position, device, style)] == [
        ("position", 0, False),
        ("device", 1, True),
        ("style", 2, False),
    ]
    assert device.levels == ("phone", "desktop")
    # One document of the last list is enough.
    almost = _with_device(small_log)
    almost.factors[1].values[-1] ^= 1
    assert not factors_of(almost)[1].by_page
    assert factors_of(small.train) == ()


def test_the_position_is_never_by_page_and_lists_without_documents_say_nothing() -> None:
    log = ClickLog.of(features=np.eye(3), documents=[0, 1, 2], offsets=[0, 1, 1, 2, 3], clicks=[1, 0, 1])
    device = BiasFactor("device", np.array([0, 1, 0], dtype=np.int32), ("phone", "desktop"))
    position, second = factors_of(replace(log, factors=(*log.factors, device)))
    assert (position.by_page, second.by_page) == (False, True)


@pytest.mark.parametrize("method", [DLA(**TINY), TwoTower(**TINY, link="softmax")], ids=["dla", "softmax"])
def test_a_list_wise_loss_leaves_out_what_is_the_same_for_a_page(method: Estimator, small_log: ClickLog) -> None:
    log = _with_style(_with_device(small_log))
    with pytest.warns(UltrWarning, match="leaves out the bias factor 'device': what is the same for all") as caught:
        ranker = method.fit(log)
    assert len(caught) == 1
    assert ranker.ranker_.learned_factors == ("position", "style")
    assert [factor.name for factor in ranker.ranker_.factors] == ["position", "device", "style"]
    learned = ranker.propensities() if isinstance(ranker, DLA) else ranker.effects()
    assert list(learned) == ["position", "style"]
    assert learned["style"][1] != learned["style"][0]
    assert (ranker.click_ratios(log, "device") == 1).all()


def test_what_was_left_out_has_no_part_in_what_is_learned(small_log: ClickLog) -> None:
    with pytest.warns(UltrWarning):
        ranker = DLA(**TINY).fit(_with_style(_with_device(small_log)))
    without = DLA(**TINY).fit(_with_style(small_log))
    for name, values in without.propensities().items():
        np.testing.assert_array_equal(ranker.propensities()[name], values)
    np.testing.assert_array_equal(ranker.score(small_log.features), without.score(small_log.features))


@pytest.mark.parametrize("method", POSITION_ONLY, ids=lambda method: method.name)
@pytest.mark.parametrize("name", ["device", "style"])
def test_methods_of_the_position_name_every_other_factor_that_they_leave_out(
    method: type[Estimator], name: str, pair_log: ClickLog
) -> None:
    log = _with_device(pair_log) if name == "device" else _with_style(pair_log)
    with pytest.warns(UltrWarning, match=f"{method.__name__} leaves out the bias factor '{name}'") as caught:
        ranker = method(**TINY).fit(log)
    assert len(caught) == 1
    assert ranker.ranker_.learned_factors == ("position",)


def test_methods_that_learn_every_factor_or_none_do_not_warn(small_log: ClickLog) -> None:
    log = _with_style(_with_device(small_log))
    vectors, towers = Vectorization(**TINY).fit(log), TwoTower(**TINY).fit(log)
    assert list(vectors.observation_embeddings()) == ["position", "device", "style"]
    assert list(towers.effects()) == ["position", "device", "style"]
    assert ClickBaseline(**TINY).fit(log).ranker_.learned_factors == ()


@pytest.mark.parametrize("method", POSITION_ONLY, ids=lambda method: method.name)
def test_with_the_position_alone_nothing_is_left_out(method: type[Estimator], pair_log: ClickLog) -> None:
    assert method(**TINY).fit(pair_log).ranker_.learned_factors == ("position",)

"""Rankers by clicks and by purchases: the value that they are judged by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from benchmarks import conversions
from ultr.arrays import Doubles
from ultr.clicks.registry import click_model
from ultr.data.judged import JudgedLists
from ultr.relevance import MLP

LISTS = JudgedLists.of(features=[[1.0], [0.0], [-1.0]], labels=[0, 4, 2], offsets=[0, 3], feature_names=["noise_1"])


def _ranker(scores: list[float]) -> Any:
    return cast(Any, SimpleNamespace(score=lambda features, offsets: np.array(scores)))


def _known(lists: JudgedLists) -> Doubles:
    return np.array([0.5, 0.1, 0.2])


def test_the_best_order_by_value_has_all_of_it() -> None:
    bought = conversions.value_at_10(_ranker([0.1, 0.9, 0.5]), LISTS, conversions.by_grade)
    assert bought == pytest.approx(1)


def test_value_is_purchases_by_examination_over_those_of_the_best_order() -> None:
    users = click_model("position-based")
    rates = users.rates(4)  # type: ignore[attr-defined]
    examined, value = rates.mean(axis=0)[:3], rates[[0, 4, 2], 0] * [0.5, 0.1, 0.2]
    expected = examined @ value[[2, 0, 1]] / (examined @ np.sort(value)[::-1])
    assert conversions.value_at_10(_ranker([2, 1, 3]), LISTS, _known) == pytest.approx(expected)
    assert expected < 0.999


def test_purchases_rise_with_the_grade_in_one_world_and_fall_with_the_price_in_the_other() -> None:
    assert (np.diff(conversions.by_grade(LISTS)[np.argsort(LISTS.labels)]) > 0).all()
    assert (np.diff(conversions.by_price(LISTS)) > 0).all()


def test_a_small_study_prints_a_row_for_every_ranker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(conversions, "NETWORK", MLP(hidden=(4,), steps=2))
    monkeypatch.setattr(
        "sys.argv",
        [
            "conversions",
            "--queries",
            "60",
            "--impressions",
            "100000",
            "--seeds",
            "0",
            "--json",
            str(tmp_path / "numbers"),
        ],
    )
    conversions.main()
    printed = capsys.readouterr().out
    assert [printed.count(f"\n| {trained_on} |") for trained_on in conversions.TRAINED_ON] == [1] * 7
    assert (tmp_path / "numbers").exists()

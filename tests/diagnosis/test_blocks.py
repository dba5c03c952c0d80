from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.diagnosis.logs import thorough

from ultr.data import gathering, ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.diagnosis.drift import Drift
from ultr.diagnosis.factor_rates import ClickRates
from ultr.diagnosis.linkage import Linkage
from ultr.diagnosis.position_bias import PositionBias
from ultr.diagnosis.position_predictability import PositionPredictability
from ultr.diagnosis.volume import Volume
from ultr.pages import Section


def _log(kind: str) -> ClickLog:
    pages = 3_000
    random = np.random.default_rng(1)
    extra: dict[str, Any] = {
        "features": random.integers(3, size=(800, 2)),
        "periods": np.sort(random.integers(5, size=pages)),
        "device": np.repeat(random.choice(["phone", "desk", "tablet"], size=pages), 4),
        "kind": np.repeat(random.choice(["a", "b"], size=pages), 4),
    }
    log = thorough(pages=pages, **extra)
    # With few queries, lists are resampled.
    return log if kind == "many queries" else log.select(log.queries < 15)


def _drift(log: ClickLog) -> Section:
    found = Drift.of(log)
    assert found is not None
    return found.section()


QUESTIONS: dict[str, Callable[[ClickLog], Section]] = {
    "volume": lambda log: Volume.of(log).section(),
    "click rates": lambda log: ClickRates.of(log).section(),
    "drift": _drift,
    "linkage": lambda log: Linkage.of(log).section(),
    "position predictability": lambda log: PositionPredictability.of(log).section(),
    "position bias": lambda log: PositionBias.of(log, samples=10).section(),
}


@pytest.mark.parametrize("kind", ["many queries", "few queries"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_does_not_depend_on_how_many_rows_are_held_at_once(
    monkeypatch: pytest.MonkeyPatch, question: str, kind: str
) -> None:
    log = _log(kind)
    expected = QUESTIONS[question](log)
    monkeypatch.setattr(ragged, "SPAN", 101)
    monkeypatch.setattr(row_blocks, "BLOCK", 60)
    monkeypatch.setattr(gathering, "LARGE", 1)
    found = QUESTIONS[question](log)
    assert (found.verdict, found.answer, found.tables) == (expected.verdict, expected.answer, expected.tables)
    _same(found.numbers, expected.numbers)


def _same(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            _same(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, nan_ok=True)
    else:
        assert found == expected

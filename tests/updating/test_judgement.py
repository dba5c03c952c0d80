"""What the gate goes by, measured on a log whose users trust the first places."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Floats, Integers
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.evaluation import Comparison, compare
from ultr.metrics import Interval
from ultr.simulation.log import simulate
from ultr.updating import judgement
from ultr.updating.judgement import SERVED, judge


def _trusting() -> ClickLog:
    judged = letor_like(train_queries=80, validation_queries=2, test_queries=2, features=16).train
    return simulate(judged, click_model("trust"), impressions=20_000, svm_share=0.2, rankings=4, noise=0.5, seed=1)


class FixedRanker:
    """Scores are those it was given, by the first feature."""

    provenance = None

    def __init__(self, log: ClickLog, scores: Floats, **options: Any) -> None:
        self.feature_names, self.categories, self.options = log.feature_names, log.categories, options
        self.by_feature = dict(zip(log.features[:, 0].tolist(), scores.tolist(), strict=True))

    def score(self, features: Floats, offsets: Integers | None = None) -> Floats:
        return np.array([self.by_feature[value] for value in features[:, 0].tolist()], dtype=np.float32)


@pytest.mark.parametrize(("value", "worth"), [(None, 1.0), ({"click": 2.0}, 2.0)])
def test_the_gain_is_a_share_of_what_the_compared_pages_had(
    monkeypatch: pytest.MonkeyPatch, value: dict[str, float] | None, worth: float
) -> None:
    log = _trusting()
    clicks = np.bincount(log.documents, log.clicks, minlength=len(log.features)).astype(np.float32)
    chance = np.random.default_rng(0).normal(size=len(clicks)).astype(np.float32)
    found: list[Comparison] = []

    def kept(*rankers: Any, **options: Any) -> Comparison:
        found.append(compare(*rankers, **options))
        return found[-1]

    monkeypatch.setattr(judgement, "compare", kept)
    served: Any = FixedRanker(log, clicks)
    new: Any = FixedRanker(log, clicks + 20 * chance, value=value)
    judged = judge(served, new, log, swaps=log)
    lead, today = found[0].value.difference, worth * log.clicks.sum() / log.impressions.sum()
    assert judged.counted == ("clicks" if value is None else "value (2 click)")
    assert vars(judged.gain) == pytest.approx({name: number / today for name, number in vars(lead).items()})
    # Clicks that come of trust count in full, so that this would make the gain look smaller.
    assert found[0].values[SERVED].value > 1.02 * today


@pytest.mark.parametrize("supported", [True, False])
def test_what_the_log_supports_too_little_is_no_gain(monkeypatch: pytest.MonkeyPatch, supported: bool) -> None:  # noqa: FBT001
    log = _trusting()
    answer = SimpleNamespace(
        verdict="cannot tell", reason="few clicks", difference=Interval(0.1, 0.0, 0.2), supported=supported
    )
    answered = SimpleNamespace(value=answer, counted="clicks", values={})
    monkeypatch.setattr(judgement, "compare", lambda *_, **__: answered)
    ranker: Any = FixedRanker(log, log.features[:, 0])
    assert (judge(ranker, ranker, log, swaps=log).gain is not None) is supported


@pytest.mark.parametrize("stopping", [0.0, 0.4])
def test_the_ledger_says_if_users_stop_after_a_click(stopping: float) -> None:
    log = _trusting()
    ranker: Any = FixedRanker(log, log.features[:, 0])
    found = judge(ranker, ranker, log, swaps=log, assumption=replace(judgement.NOT_TESTED, stopping=stopping))
    assert any("need not bring more clicks" in remark for remark in found.remarks) is bool(stopping)

"""What debiasing offers, against a softmax regression by another optimiser and correlations by numpy."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.bias.correction import correction
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.seeding import generator

MODULE = import_module("ultr.bias.correction")


def _log(queries: int = 9, *, seed: int = 0, clicked: float = 0.25) -> ClickLog:
    """Lists of two to four documents with some clicks, lists of one document, and lists without a click."""
    random = np.random.default_rng(seed)
    lengths = random.choice([1, 2, 3, 4], p=[0.1, 0.3, 0.3, 0.3], size=4 * queries)
    offsets = ragged.from_lengths(lengths)
    documents = np.concatenate(
        [6 * (number // 4) + random.permutation(6)[:length] for number, length in enumerate(lengths)]
    )
    impressions = random.integers(1, 12, size=len(lengths))
    rates = clicked / (1 + ragged.ranks(offsets)) * np.repeat(random.random(len(lengths)) < 0.8, lengths)
    return ClickLog.of(
        features=random.normal(size=(6 * queries, 3)),
        documents=documents,
        offsets=offsets,
        clicks=random.binomial(np.repeat(impressions, lengths), rates),
        impressions=impressions,
        queries=[f"{number // 4:02}" for number in range(len(lengths))],
    )


def fitted(features: Doubles, offsets: Integers, clicks: Doubles, levels: Doubles | None = None) -> Doubles:
    """The highest penalised likelihood of the clicks of each list: width |w|^2 / 2 and 0.01 |h|^2 / 2 come off."""
    from scipy.optimize import minimize

    width = features.shape[1]
    columns = features if levels is None else np.hstack([features, levels])
    penalty = np.full(columns.shape[1], 0.01)
    penalty[:width] = width

    def loss(coefficients: Doubles) -> tuple[float, Doubles]:
        value, slope = 0.5 * penalty @ coefficients**2, penalty * coefficients
        for start, end in pairwise(offsets):
            logits = columns[start:end] @ coefficients
            total = np.log(np.exp(logits).sum())
            value -= clicks[start:end] @ (logits - total)
            expected = clicks[start:end].sum() * np.exp(logits - total)
            slope = slope - columns[start:end].T @ (clicks[start:end] - expected)
        return float(value), slope

    found: Doubles = minimize(
        loss, np.zeros(columns.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 1_000}
    ).x
    return found[:width]


@pytest.mark.parametrize("scale", [1.0, 40.0])
@pytest.mark.parametrize("with_levels", [True, False])
def test_coefficients_are_those_of_another_optimiser(scale: float, with_levels: bool) -> None:  # noqa: FBT001
    """With few clicks the penalties decide; with many clicks on one document, the first step would be far too long."""
    random = np.random.default_rng(1)
    offsets = ragged.from_lengths(np.array([3, 2, 4, 3]))
    features, clicks = random.normal(size=(12, 2)), scale * random.integers(0, 3, 12).astype(float)
    levels = np.eye(4)[:, 1:][ragged.ranks(offsets)] if with_levels else None
    found = MODULE._fit(features, offsets, clicks, levels)
    np.testing.assert_allclose(found, fitted(features, offsets, clicks, levels), atol=3e-6)


def test_a_feature_that_tells_every_click_is_held_back_by_its_penalty() -> None:
    """Two documents a list, the clicked one ahead by 2: w solves 2 n (1 - p) = w with p = 1 / (1 + exp(-2 w))."""
    from scipy.optimize import brentq

    count = 200
    features = np.tile([[1.0], [-1.0]], (count, 1))
    clicks, offsets = np.tile([5.0, 0.0], count), np.arange(0, 2 * count + 1, 2)
    expected = brentq(lambda w: 2 * 5 * count / (1 + np.exp(2 * w)) - w, 0, 10)
    assert MODULE._fit(features, offsets, clicks)[0] == pytest.approx(expected, abs=1e-6)


def by_definition(log: ClickLog, *, seed: int = 0) -> dict[str, float]:
    chosen = [
        number
        for number in range(log.lists)
        if log.lengths[number] > 1 and log.clicks[log.offsets[number] : log.offsets[number + 1]].any()
    ]
    rows = np.concatenate([np.arange(log.offsets[number], log.offsets[number + 1]) for number in chosen])
    lengths = log.lengths[chosen]
    offsets, numbers = ragged.from_lengths(lengths), np.repeat(chosen, lengths)
    values = log.features[log.documents[rows]].astype(np.float64)
    features = np.clip((values - values.mean(axis=0)) / values.std(axis=0), -3, 3)
    clicks, position = log.clicks[rows].astype(np.float64), log.position.values[rows]
    often = log.impressions[numbers]
    rate = np.array([clicks[position == p].sum() / often[position == p].sum() for p in range(position.max() + 1)])
    weighted = clicks / np.sqrt(rate[position])
    weighted *= clicks.sum() / weighted.sum()
    queries = np.unique(log.queries)
    drawn = generator(seed, "halves").permutation(len(queries))
    even = np.array([drawn[list(queries).index(log.queries[number])] % 2 == 0 for number in numbers])
    levels = np.array([[float(p == level) for level in range(1, position.max() + 1)] for p in position])
    scores = [features @ fitted(features, offsets, clicks)]
    scores += [features @ fitted(features, offsets, np.where(part, weighted, 0.0), levels) for part in (even, ~even)]
    centred = [np.concatenate([each[a:b] - each[a:b].mean() for a, b in pairwise(offsets)]) for each in scores]
    raw, first, second = centred

    def correlation(one: Doubles, other: Doubles) -> float:
        return float(one @ other / np.sqrt((one @ one) * (other @ other)))

    # Both halves without what raw clicks say: the correlation of the residuals of two regressions.
    residuals = [each - (each @ raw) / (raw @ raw) * raw for each in (first, second)]
    agreement = correlation(residuals[0], residuals[1])
    normed = [each / np.sqrt(each @ each) for each in (first, second)]
    return {
        "agreement": agreement,
        "reliable": max(2 * agreement / (1 + agreement), 0.0),
        "known": correlation(raw, normed[0] + normed[1]),
        "halves": correlation(first, second),
        "queries": len(queries),
        "clicks": clicks.sum(),
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_number_is_that_of_the_definition(seed: int) -> None:
    log = _log(seed=seed)
    assert (log.lengths == 1).any()
    found, expected = correction(log, seed=seed), by_definition(log, seed=seed)
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("lists", "values", "taken"),
    [(100, 2**23, 12), (12, 2**23, 12), (5, 2**23, 5), (100, 60, 6), (100, 59, 5), (100, 1, 2), (1, 2**23, 2)],
)
def test_as_many_lists_are_drawn_as_are_allowed(
    lists: int, values: int, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve lists of two documents, three features and two positions: ten values a list."""
    log = _lists(np.ones(24))
    monkeypatch.setattr("ultr.bias.linear_inputs.MOST_LISTS", lists)
    monkeypatch.setattr("ultr.bias.linear_inputs.MOST_VALUES", values)
    chosen = MODULE._chosen(log, seed=0)
    assert len(set(chosen.tolist())) == len(chosen) == taken
    assert chosen.tolist() == sorted(chosen.tolist())


def _lists(clicks: Any, lengths: int = 2) -> ClickLog:
    count = 24 // lengths
    return ClickLog.of(
        features=np.random.default_rng(0).normal(size=(24, 3)),
        documents=np.arange(24),
        offsets=np.arange(0, 25, lengths),
        clicks=clicks,
        queries=np.arange(count),
    )


@pytest.mark.parametrize(("clicked", "enough"), [((3,), False), ((2, 3), False), ((3, 8), True), ((0, 23), True)])
def test_two_lists_with_a_click_are_needed(clicked: tuple[int, ...], enough: bool) -> None:  # noqa: FBT001
    log = _lists(np.isin(np.arange(24), clicked).astype(np.int64))
    if enough:
        found = MODULE._chosen(log, seed=0)
        assert log.queries[found].tolist() == sorted(log.queries[found].tolist())
        assert len(found) == 2
        return
    with pytest.raises(DataError) as caught:
        MODULE._chosen(log, seed=0)
    assert str(caught.value) == (
        "fewer than two lists have a click and another document; there is nothing to learn from"
    )


def test_lists_of_one_document_leave_nothing_to_choose() -> None:
    with pytest.raises(DataError, match="fewer than two lists have a click and another document"):
        MODULE._chosen(_lists(np.ones(24), lengths=1), seed=0)

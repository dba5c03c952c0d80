from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.scaling import FeatureScaling
from ultr.methods.placement import PlacementWeights, balanced, multinomial, smoothed
from ultr.relevance import Inputs, Preprocessing
from ultr.testing.methods import small_log
from ultr.train.lists import TrainingLists


def _cells(documents: list[int], positions: list[int], impressions: Sequence[float]) -> Cells:
    shown = np.array(impressions)
    return Cells.of(np.array(documents), np.array(positions), shown, np.zeros(len(shown)), count=3)


def test_counts_are_smoothed_by_the_prior_and_one_position_tells_nothing() -> None:
    cells = _cells([0, 0, 1], [0, 2, 1], [6, 2, 50])
    prior = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(smoothed(cells, prior), [(6 + 1.5) / 11, (2 + 0.9) / 11, 0.2])


def test_weights_are_inverse_and_average_one_at_each_position() -> None:
    cells = _cells([0, 0, 1, 1], [0, 1, 0, 1], [30, 10, 10, 30])
    weights = balanced(cells, np.array([0.75, 0.25, 0.25, 0.75]), largest=100.0)
    # At the first position 1 / 0.75 and 1 / 0.25 with means (30 / 0.75 + 10 / 0.25) / 40 = 2.
    np.testing.assert_allclose(weights, [2 / 3, 2, 2, 2 / 3])
    # With these weights both documents are as often at the first position as at the second.
    np.testing.assert_allclose(weights * cells.impressions, 20)
    clipped = balanced(cells, np.array([0.75, 0.25, 0.25, 0.75]), largest=2.0)
    np.testing.assert_allclose(clipped[1] / clipped[3], 2 / (1 / 0.75))


def _inputs(features: Doubles) -> Inputs:
    matrix = features.astype(np.float32)
    return Inputs(matrix, Preprocessing(FeatureScaling.fit(matrix)))


def test_the_multinomial_model_finds_the_chances_of_a_feature() -> None:
    x, random = np.linspace(-1, 1, 400), np.random.default_rng(0)
    logits = np.stack([2 * x, np.zeros(400), -1.5 * x], axis=1)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    counts = random.multinomial(1_000, chances)
    cells = _cells(np.repeat(np.arange(400), 3).tolist(), [0, 1, 2] * 400, counts.ravel().tolist())
    np.testing.assert_allclose(multinomial(cells, _inputs(x[:, None])), chances.ravel(), atol=0.03)
    alone = _cells([0, 1], [1, 1], [3, 4])
    assert multinomial(alone, _inputs(x[:, None])).tolist() == [1, 1]


@pytest.fixture
def log() -> ClickLog:
    return small_log()


def test_each_impression_of_a_batch_finds_its_weight(log: ClickLog) -> None:
    lists = TrainingLists.of_log(log, _inputs(log.features.astype(np.float64)))
    weights = PlacementWeights.of(lists, largest=50.0)
    whole, some = lists.batch(np.arange(log.lists)), lists.batch(np.array([7, 2]))
    found = weights(whole).numpy()
    assert weights(some).tolist() == [*found[log.offsets[7] : log.offsets[8]], *found[log.offsets[2] : log.offsets[3]]]
    often = np.repeat(log.impressions, log.lengths)
    shown, sums = (np.bincount(log.position.values, each) for each in (often, often * found))
    np.testing.assert_allclose(sums / shown, 1, rtol=1e-5)
    assert found.std() > 0.1

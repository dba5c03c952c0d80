from __future__ import annotations

import numpy as np
import pytest

from ultr.clicks import TrustBias
from ultr.errors import OptionError


@pytest.mark.parametrize(
    ("label", "position", "expected"),
    [
        (4, 1, 0.68 * 0.98),
        (0, 1, 0.68 * 0.65),
        (0, 2, 0.61 * 0.325),
        (2, 3, 0.48 * (0.96 * 0.2 + 0.65 / 3 * 0.8)),
        (4, 10, 0.06 * 0.89),
        (1, 10, 0.06 * (0.89 / 15 + 0.065 * 14 / 15)),
    ],
)
def test_probabilities_by_hand(label: int, position: int, expected: float) -> None:
    labels = np.zeros((1, 10), dtype=np.int64)
    labels[0, position - 1] = label
    assert TrustBias().probabilities(labels, max_label=4)[0, position - 1] == pytest.approx(expected)


def test_the_noise_of_the_released_code_lifts_grade_zero() -> None:
    first = TrustBias(noise=0.1).probabilities(np.array([[0], [3]]), max_label=4)[:, 0]
    np.testing.assert_allclose(first, [0.68 * (0.98 * 0.1 + 0.65 * 0.9), 0.68 * (0.98 * 0.52 + 0.65 * 0.48)])


def test_its_click_rates_have_rank_two() -> None:
    singular = np.linalg.svd(TrustBias().rates(4), compute_uv=False)
    assert (singular > 1e-12).sum() == 2


def test_without_misjudgement_it_is_the_position_based_model() -> None:
    model = TrustBias(examination=(0.5, 0.25), relevant_taken=(1, 1), irrelevant_taken=(0, 0))
    assert model.probabilities(np.array([[4, 4]]), max_label=4).tolist() == [[0.5, 0.25]]


def test_the_curves_must_have_one_length() -> None:
    with pytest.raises(OptionError, match="relevant_taken must have 2 probabilities, got 10"):
        TrustBias(examination=(0.5, 0.25))

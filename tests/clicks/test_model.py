from __future__ import annotations

import numpy as np
import pytest

from ultr.clicks import EXAMINATION, relevance
from ultr.errors import OptionError


def test_relevance_of_five_grades_is_the_one_of_the_paper() -> None:
    np.testing.assert_allclose(relevance(np.arange(5), max_label=4), [0, 1 / 15, 3 / 15, 7 / 15, 1], atol=1e-15)


def test_relevance_with_noise_is_the_one_of_the_released_code() -> None:
    np.testing.assert_allclose(relevance(np.arange(5), max_label=4, noise=0.1), [0.1, 0.16, 0.28, 0.52, 1], atol=1e-15)


@pytest.mark.parametrize("max_label", [1, 2, 4, 40])
@pytest.mark.parametrize("noise", [0.0, 0.1, 1 / 3, 0.7, 1.0])
def test_relevance_never_leaves_the_unit_interval(max_label: int, noise: float) -> None:
    values = relevance(np.arange(max_label + 1), max_label=max_label, noise=noise)
    assert values.min() >= 0
    assert values[-1] == values.max() == 1


def test_relevance_needs_two_grades() -> None:
    with pytest.raises(OptionError, match="max_label must be an integer of at least 1, got 0"):
        relevance(np.array([0]), max_label=0)


def test_the_examination_curve_is_that_of_joachims_2005() -> None:
    assert EXAMINATION == (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)

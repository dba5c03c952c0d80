"""Values by hand and refused options of the models whose parameters are curves or single numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.clicks import Cascade, DependentClick, DynamicBayesian, PositionBased, UserBrowsing
from ultr.clicks.user_browsing import by_distance
from ultr.errors import OptionError


def test_position_based_rates_have_rank_one() -> None:
    singular = np.linalg.svd(PositionBased().rates(4), compute_uv=False)
    assert (singular > 1e-12).sum() == 1


def test_user_browsing_starts_the_curve_anew_after_a_click() -> None:
    model = UserBrowsing(noise=0, examination=by_distance((1.0, 0.5, 0.1)))
    assert model.probabilities(np.array([[4, 4, 4]]), max_label=4).tolist() == [[1, 1, 1]]
    assert model.probabilities(np.array([[0, 4, 0]]), max_label=4).tolist() == [[0, 0.5, 0]]
    assert model.probabilities(np.array([[4, 0, 4]]), max_label=4).tolist() == [[1, 0, 0.5]]


def test_user_browsing_with_one_row_repeated_is_position_based() -> None:
    curve = (0.9, 0.5, 0.2)
    labels = np.array([[1, 4, 2], [3, 0, 4]])
    np.testing.assert_allclose(
        UserBrowsing(examination=(curve,) * 3).probabilities(labels, max_label=4),
        PositionBased(examination=curve).probabilities(labels, max_label=4),
    )


def test_a_cascade_session_has_at_most_one_click() -> None:
    labels = np.random.default_rng(0).integers(0, 5, size=(2000, 10))
    assert Cascade().sessions(labels, np.random.default_rng(1), max_label=4).sum(axis=1).max() == 1


def test_dependent_click_without_continuation_is_the_cascade() -> None:
    labels = np.random.default_rng(0).integers(0, 5, size=(20, 10))
    np.testing.assert_allclose(
        DependentClick(continuation=(0,) * 10).probabilities(labels, max_label=4),
        Cascade().probabilities(labels, max_label=4),
    )


def test_dynamic_bayesian_without_satisfaction_reads_on_with_persistence_alone() -> None:
    model = DynamicBayesian(noise=1, satisfaction=0, persistence=0.5, positions=4)
    assert model.probabilities(np.array([[0, 4, 2, 1]]), max_label=4).tolist() == [[1, 0.5, 0.25, 0.125]]


@pytest.mark.parametrize("model", [Cascade, DynamicBayesian])
@pytest.mark.parametrize("positions", [0, 2.5, True])
def test_positions_must_be_a_positive_integer(model: type, positions: object) -> None:
    with pytest.raises(OptionError, match="positions must be an integer of at least 1"):
        model(positions=positions)


@pytest.mark.parametrize("value", [-0.1, 1.1, "often"])
def test_satisfaction_and_persistence_must_be_probabilities(value: object) -> None:
    with pytest.raises(OptionError, match="satisfaction must be a probability"):
        DynamicBayesian(satisfaction=value)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="persistence must be a probability"):
        DynamicBayesian(persistence=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("curve", [(), (0.5, 2.0), "0.5", 0.5])
def test_curves_must_hold_probabilities(curve: object) -> None:
    with pytest.raises(OptionError, match="continuation"):
        DependentClick(continuation=curve)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="examination"):
        PositionBased(examination=curve)  # type: ignore[arg-type]


def test_the_user_browsing_table_must_be_square() -> None:
    with pytest.raises(OptionError, match="examination must be square, got 1 rows of 2 columns"):
        UserBrowsing(examination=((0.5, 0.5),))

"""The climb from rank to rank: deviances and p-values by their definitions, and where it ends."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from ultr.arrays import Doubles, ratio
from ultr.bias import RankTest, rank_test
from ultr.bias.factorization import Factorization, fit_rank_one
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.bias.rank_test import _checked, _Climb, _one_more, document_rank_test
from ultr.data.cells import Cells
from ultr.errors import DataError, OptionError

MODULE = import_module("ultr.bias.rank_test")
RANK_TWO = np.outer([0.8, 0.5, 0.1], [0.9, 0.5, 0.2, 0.1]) + np.outer([0.0, 0.1, 0.4], [0.1, 0.3, 0.5, 0.9])


def _deviance(clicks: Doubles, shown: Doubles, rates: Doubles) -> float:
    raw = clicks / shown
    return 2 * float((binom.logpmf(clicks, shown, raw) - binom.logpmf(clicks, shown, rates)).sum())


def test_a_matrix_of_two_terms_ends_the_climb_at_two() -> None:
    shown = np.full((3, 4), 20_000.0)
    clicks = np.rint(shown * RANK_TWO)
    found = rank_test(clicks, shown, samples=19)
    assert (found.dimension, found.scalar, found.level, found.power) == (2, False, 0.05, None)
    assert found.p_values[0] == 1 / 20
    assert found.p_values[1] > 0.05
    one = fit_rank_one(clicks[None], shown[None]).rates[0]
    assert found.deviances[0] == pytest.approx(_deviance(clicks, shown, one))
    assert found.deviances[1] < 0.2
    np.testing.assert_allclose(found.rates, clicks / shown)
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(clicks / shown)[1])


@pytest.mark.parametrize(("largest", "dimension"), [(2, 2), (3, 3), (9, 3), (None, 3)])
def test_a_climb_ends_at_the_largest_rank_that_is_asked_for(
    largest: int | None, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each term gains 1, and nothing does by chance."""
    monkeypatch.setattr(
        _Climb,
        "_one_more_and_by_chance",
        lambda self, fit: (fit._replace(log_likelihood=fit.log_likelihood + 1), np.zeros(19)),
    )
    shown = np.full((3, 4), 200.0)
    clicks = np.rint(shown * RANK_TWO)
    found = rank_test(clicks, shown, samples=19, largest=largest)
    assert (found.dimension, found.p_values) == (dimension, (1 / 20,) * (dimension - 1))
    assert np.diff(found.deviances) == pytest.approx([-2.0] * (dimension - 1))


@pytest.mark.parametrize(("level", "dimension"), [(0.04, 1), (0.05, 2), (0.06, 2)])
def test_a_rank_is_rejected_by_a_p_value_of_at_most_the_level(level: float, dimension: int) -> None:
    """With nineteen draws no p-value is below a twentieth."""
    shown = np.full((2, 3), 5_000.0)
    clicks = np.array([[4_000.0, 1_000.0, 500.0], [500.0, 1_000.0, 4_000.0]])
    found = rank_test(clicks, shown, samples=19, level=level)
    assert (found.p_values, found.dimension) == ((1 / 20,), dimension)


@pytest.mark.parametrize("turned", [False, True])
def test_the_last_term_makes_every_rate_its_own(turned: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(0)
    shown = random.integers(5, 50, size=(2, 3, 4)).astype(np.float64)
    clicks = random.binomial(shown.astype(int), 0.4).astype(np.float64)
    if turned:
        shown, clicks = shown.transpose(0, 2, 1), clicks.transpose(0, 2, 1)
    rows, columns = clicks.shape[1:]
    two = Factorization(np.ones((2, rows, 2)), np.ones((2, 2, columns)), np.zeros(2))
    last = _one_more(clicks, shown, two, random)
    np.testing.assert_allclose(last.rates, clicks / shown)
    assert last.rows.shape[2] == 3
    one = Factorization(np.ones((2, rows, 1)), np.full((2, 1, columns), 0.4), np.full(2, -1e9))
    more = _one_more(clicks, shown, one, random)
    assert more.rows.shape[2] == 2
    assert (np.abs(more.rates - ratio(clicks, shown)).max(axis=(1, 2)) > 1e-3).all()


def test_power_is_the_share_of_trusting_counts_that_would_be_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gains of ten counts by users with trust bias, against those of nineteen by chance: three are beyond."""
    shown = np.full((2, 3), 100.0)
    clicks = np.array([[60.0, 30.0, 10.0], [20.0, 10.0, 5.0]])
    climb = _Climb(clicks, shown, np.arange(3), lambda *_: (clicks[None], shown[None]), np.random.default_rng(0))
    by_chance = np.arange(1.0, 20.0)
    fit = fit_rank_one(clicks[None], shown[None])
    monkeypatch.setattr(
        _Climb,
        "_one_more_and_by_chance",
        lambda self, fit: (fit._replace(log_likelihood=fit.log_likelihood + 12.5), by_chance),
    )
    gains = np.array([0.5, 3.0, 18.5, 19.5, 19.0, 40.0, 7.0, 25.0, 1.0, 0.0])
    zeros = Factorization(fit.rows, fit.columns, np.zeros(10))
    monkeypatch.setattr(_Climb, "_drawn", lambda self, rates, *, rank: (clicks, shown, zeros))
    monkeypatch.setattr(MODULE, "_one_more", lambda *_: Factorization(fit.rows, fit.columns, gains))
    found = climb.test(level=0.05, largest=None, power=True)
    assert found.power == pytest.approx(0.3)
    # Seven draws of nineteen gain 12.5 or more.
    assert (found.p_values, found.dimension) == ((8 / 20,), 1)
    assert climb.test(level=0.1, largest=None, power=True).power == pytest.approx(0.5)
    assert climb.test(level=0.05, largest=None, power=False).power is None


TWO = "documents of two groups or more must have been shown at two positions or more, and there"


@pytest.mark.parametrize(
    ("clicks", "shown", "sentence"),
    [
        ([[5, 3]], [[9, 9]], f"{TWO} is 1 group at 2 positions; make more groups, or log more swaps"),
        ([[5], [3]], [[9], [9]], f"{TWO} are 2 groups at 1 position; make more groups, or log more swaps"),
        ([[5, 3], [0, 0]], [[9, 9], [0, 0]], f"{TWO} is 1 group at 2 positions"),
        ([[5, 0], [5, 0]], [[9, 0], [9, 0]], f"{TWO} are 2 groups at 1 position"),
        ([[0, 0]], [[0, 0]], f"{TWO} are 0 groups at 0 positions"),
        ([[0, 0], [0, 0]], [[9, 9], [9, 9]], "a rank test needs clicks, and there are none"),
        (
            [[10, 1], [1, 1]],
            [[9, 9], [9, 9]],
            "a cell cannot have fewer than no clicks or more clicks than impressions",
        ),
        (
            [[-1, 1], [1, 1]],
            [[9, 9], [9, 9]],
            "a cell cannot have fewer than no clicks or more clicks than impressions",
        ),
        ([[1, 1], [1, 1]], [[9, 9]], "a rank test needs clicks and impressions [groups, positions], got (2, 2) and "),
        ([1, 1], [9, 9], "a rank test needs clicks and impressions [groups, positions], got (2,) and (2,)"),
    ],
)
def test_counts_that_cannot_be_tested_are_one_sentence(clicks: Any, shown: Any, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        rank_test(np.array(clicks), np.array(shown))
    assert str(caught.value).startswith(sentence)


def test_all_and_none_of_the_impressions_may_be_clicked() -> None:
    clicks, shown, seen = _checked(
        np.array([[9, 0, 0], [0, 0, 9], [0, 0, 0]]), np.array([[9, 0, 9], [9, 0, 9], [0] * 3])
    )
    assert (clicks.tolist(), shown.tolist()) == ([[9, 0], [0, 9]], [[9, 9], [9, 9]])
    assert [each.ravel().tolist() for each in seen] == [[0, 1], [0, 2]]


@pytest.mark.parametrize("options", [{"samples": 0}, {"level": 0.0}, {"largest": 1}])
def test_options_that_ask_for_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        rank_test(np.full((2, 2), 3), np.full((2, 2), 9), **options)


def _moved() -> GroupedDocuments:
    """Twelve documents at three positions in two groups, which lose clicks by position in different ways."""
    documents, positions = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    theta = np.array([[1.0, 0.5, 0.25], [1.0, 0.95, 0.9]])
    clicks = np.rint(0.4 * 400 * theta[documents % 2, positions])
    cells = Cells.of(documents, positions, np.full(36, 400), clicks, count=4)
    return GroupedDocuments.of(cells, np.arange(12) % 2, most_cells=100)


def test_documents_that_lose_clicks_in_two_ways_need_two_dimensions() -> None:
    found = document_rank_test(_moved(), samples=19)
    assert (found.dimension, found.p_values) == (2, (1 / 20,))
    counted = _moved()
    clicks, shown = counted.table(counted.cells.clicks, counted.relevance)
    np.testing.assert_allclose(found.rates, clicks[:, :3] / shown[:, :3])
    with pytest.raises(OptionError, match="samples must be an integer of at least 1"):
        document_rank_test(_moved(), samples=0)
    assert document_rank_test(_moved(), samples=1).p_values == (0.5,)


def test_a_cell_that_was_never_shown_is_filled_by_the_fit() -> None:
    shown = np.array([[100.0, 100.0], [100.0, 0.0]])
    clicks = np.array([[50.0, 20.0], [30.0, 0.0]])
    found = rank_test(clicks, shown, samples=9)
    assert found.rates[1, 1] == pytest.approx(0.3 * 0.4, rel=1e-3)
    assert found.rates[0].tolist() == [0.5, 0.2]
    assert isinstance(found, RankTest)

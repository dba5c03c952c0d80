from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import Cells, fit_poisson, fit_position_based
from ultr.errors import DataError

THETA = np.array([1.0, 0.6, 0.5, 0.2])


def _cells(seed: int, *, documents: int = 60, most: int = 40, exact: bool = False) -> Cells:
    """Documents at 2 or 3 of 4 positions, the better ones higher up."""
    random = np.random.default_rng(seed)
    relevance = random.uniform(0.05, 0.9, size=documents)
    rows = [
        (document, position + 1)
        for document in range(documents)
        for position in random.permutation(4)[: random.integers(2, 4)]
        if position > 0 or relevance[document] > 0.3
    ]
    number, position = (np.array(column) for column in zip(*rows, strict=True))
    impressions = random.integers(1, most, size=len(rows))
    chances = relevance[number] * THETA[position - 1]
    clicks = impressions * chances if exact else random.binomial(impressions, chances)
    return Cells.of(number, position, impressions, clicks, positions_shown=4)


def _slow_em(cells: Cells, rounds: int) -> Doubles:
    """The textbook: which skips were examined, which were relevant; averages of both."""
    relevance, theta = np.full(cells.documents.max() + 1, 0.5), np.full(cells.count, 0.5)
    clicks, skips = cells.clicks, cells.impressions - cells.clicks
    for _ in range(rounds):
        r, t = relevance[cells.documents], theta[cells.positions]
        examined = clicks + skips * t * (1 - r) / (1 - r * t)
        relevant = clicks + skips * r * (1 - t) / (1 - r * t)
        theta = np.bincount(cells.positions, examined) / np.bincount(cells.positions, cells.impressions)
        relevance = np.bincount(cells.documents, relevant) / np.bincount(cells.documents, cells.impressions)
    curve: Doubles = theta / theta[0]
    return curve


def test_cells_sum_the_rows_of_a_document_at_a_position() -> None:
    cells = Cells.of(
        np.array([7, 3, 7, 7]),
        np.array([2, 1, 2, 1]),
        np.array([5, 4, 3, 2]),
        np.array([1, 0, 2, 0]),
        positions_shown=2,
    )
    assert cells.documents.tolist() == [0, 1, 1]
    assert cells.positions.tolist() == [0, 0, 1]
    assert cells.impressions.tolist() == [4, 2, 8]
    assert cells.clicks.tolist() == [0, 0, 3]
    assert cells.clicked().tolist() == cells.moved().tolist() == [1, 2]


def test_exact_expectations_give_the_curve_exactly() -> None:
    cells = _cells(0, exact=True)
    np.testing.assert_allclose(fit_position_based(cells, tolerance=1e-12).examination, THETA, rtol=1e-6)
    np.testing.assert_allclose(fit_poisson(cells, tolerance=1e-12).examination, THETA, rtol=1e-6)


def test_the_fit_is_where_the_em_algorithm_ends() -> None:
    cells = _cells(1)
    np.testing.assert_allclose(
        fit_position_based(cells, tolerance=1e-9).examination, _slow_em(cells, 20_000), atol=1e-4
    )


def test_a_weight_of_two_is_the_same_as_the_document_twice() -> None:
    cells = _cells(2)
    weights = np.ones(cells.documents.max() + 1)
    weights[:20] = 2
    again = cells.documents < 20
    twice = Cells.of(
        np.concatenate([cells.documents, cells.documents[again] + 1_000]),
        np.concatenate([cells.positions, cells.positions[again]]) + 1,
        np.concatenate([cells.impressions, cells.impressions[again]]),
        np.concatenate([cells.clicks, cells.clicks[again]]),
        positions_shown=4,
    )
    for fit in (fit_position_based, fit_poisson):
        weighted = fit(cells, weights=weights, tolerance=1e-10).examination
        np.testing.assert_allclose(weighted, fit(twice, tolerance=1e-10).examination, atol=1e-6)


def test_two_impressions_a_document_do_not_bias_the_poisson_fit() -> None:
    # Each document once at each position: the ratio of the clicks is the maximum of the conditional likelihood.
    random = np.random.default_rng(3)
    documents, positions = np.repeat(np.arange(50_000), 2), np.tile([1, 2], 50_000)
    chances = np.repeat(random.choice([0.1, 0.9], size=50_000), 2) * np.tile([1.0, 0.5], 50_000)
    clicks = random.binomial(1, chances)
    cells = Cells.of(documents, positions, np.ones(100_000), clicks, positions_shown=2)
    curve = fit_poisson(cells.choose(cells.moved())).examination
    np.testing.assert_allclose(curve[1], clicks[positions == 2].sum() / clicks[positions == 1].sum(), rtol=1e-5)
    assert abs(curve[1] - 0.5) < 0.02


def test_positions_without_a_link_are_named() -> None:
    cells = Cells.of(np.array([0, 0, 1]), np.array([1, 2, 3]), np.full(3, 9), np.full(3, 2), positions_shown=3)
    for fit in (fit_position_based, fit_poisson):
        with pytest.raises(DataError, match="links position 1 with 3"):
            fit(cells)
    nothing = cells.choose(np.array([], dtype=np.int64))
    with pytest.raises(DataError, match="no clicked document was shown at two positions"):
        fit_poisson(nothing)

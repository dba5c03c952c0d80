from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import fit_poisson
from ultr.bias.position_based_fit import poisson_relevance, poisson_relevances, poisson_resamples
from ultr.data.cells import Cells
from ultr.errors import DataError

THETA = np.array([1.0, 0.6, 0.5, 0.2])


def _cells(seed: int, *, documents: int = 60, most: int = 40, exact: bool = False) -> Cells:
    """Documents at 2 or 3 of 4 positions, the better ones higher up."""
    random = np.random.default_rng(seed)
    relevance = random.uniform(0.05, 0.9, size=documents)
    rows = [
        (document, int(position))
        for document in range(documents)
        for position in random.permutation(4)[: random.integers(2, 4)]
        if position > 0 or relevance[document] > 0.3
    ]
    number, position = (np.array(column) for column in zip(*rows, strict=True))
    impressions = random.integers(1, most, size=len(rows))
    chances = relevance[number] * THETA[position]
    clicks = impressions * chances if exact else random.binomial(impressions, chances)
    return Cells.of(number, position, impressions, clicks, count=4)


def _given_clicks(cells: Cells, theta: Doubles) -> float:
    """The log-likelihood of where the clicks of each document fell: in proportion to n_dp theta_p."""
    weight = cells.impressions * theta[cells.positions]
    share = weight / np.bincount(cells.documents, weight)[cells.documents]
    return float(cells.clicks @ np.log(share))


def test_cells_sum_the_rows_of_a_document_at_a_position() -> None:
    cells = Cells.of(
        np.array([7, 3, 7, 7]),
        np.array([1, 0, 1, 0]),
        np.array([5, 4, 3, 2]),
        np.array([1, 0, 2, 0]),
        count=2,
    )
    assert cells.documents.tolist() == [0, 1, 1]
    assert cells.positions.tolist() == [0, 0, 1]
    assert cells.impressions.tolist() == [4, 2, 8]
    assert cells.clicks.tolist() == [0, 0, 3]
    assert cells.ids.tolist() == [3, 7]
    assert cells.moved().tolist() == [1, 2]


def test_exact_expectations_give_the_curve_exactly() -> None:
    cells = _cells(0, exact=True)
    np.testing.assert_allclose(fit_poisson(cells, tolerance=1e-12), THETA, rtol=1e-6)


@pytest.mark.parametrize("largest", [2**20, 0], ids=["as a table", "cell by cell"])
def test_clicks_that_are_fitted_together_give_what_each_gives_alone(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultr.bias.position_based_fit._DENSE", largest)
    cells, start = _cells(0), np.array([0.8, 1.0, 0.5, 0.4])
    # Some documents and a position without a click; fits that end at once, soon and late.
    drawn = np.random.default_rng(0).binomial(cells.impressions.astype(int), 0.1, size=(5, len(cells.clicks)))
    clicks = np.vstack([drawn, cells.clicks, np.where(cells.positions == 2, 0, cells.clicks)]).astype(np.float64)
    alone = [poisson_relevance(cells, each, start=start)[0] for each in clicks]
    np.testing.assert_allclose(poisson_relevances(cells, clicks, start=start), alone, rtol=1e-9)


def test_no_other_curve_makes_it_likelier_where_the_clicks_of_a_document_fell() -> None:
    cells = _cells(1)
    curve = fit_poisson(cells, tolerance=1e-10)
    best = _given_clicks(cells, curve)
    for position in range(1, 4):
        for factor in (0.97, 1.03):
            other = curve.copy()
            other[position] *= factor
            assert _given_clicks(cells, other) < best


def test_two_impressions_a_document_do_not_bias_the_poisson_fit() -> None:
    # Each document once at each position: the ratio of the clicks is the maximum of the conditional likelihood.
    random = np.random.default_rng(3)
    documents, positions = np.repeat(np.arange(50_000), 2), np.tile([0, 1], 50_000)
    chances = np.repeat(random.choice([0.1, 0.9], size=50_000), 2) * np.tile([1.0, 0.5], 50_000)
    clicks = random.binomial(1, chances)
    cells = Cells.of(documents, positions, np.ones(100_000), clicks, count=2)
    curve = fit_poisson(cells.choose(cells.moved()))
    np.testing.assert_allclose(curve[1], clicks[positions == 1].sum() / clicks[positions == 0].sum(), rtol=1e-5)
    assert abs(curve[1] - 0.5) < 0.02


def test_positions_without_a_link_are_named() -> None:
    cells = Cells.of(np.array([0, 0, 1]), np.array([0, 1, 2]), np.full(3, 9), np.full(3, 2), count=3)
    with pytest.raises(DataError, match="links position 1 with 3"):
        fit_poisson(cells)
    nothing = cells.choose(np.array([], dtype=np.int64))
    with pytest.raises(DataError, match="no clicked document was shown at two positions"):
        fit_poisson(nothing)


def test_a_resample_is_the_fit_to_the_documents_that_were_drawn() -> None:
    """Groups of documents drawn twice, once or not at all, against a fit from scratch with so many copies of them."""
    random = np.random.default_rng(5)
    cells = _cells(4, documents=900, most=400)
    group_of = random.integers(30, size=cells.documents.max() + 1)
    times = random.multinomial(30, np.full(30, 1 / 30), size=4).astype(np.float64)
    curve = fit_poisson(cells, tolerance=1e-10)
    found, told = poisson_resamples(cells, curve, group_of, times)
    assert told.all()
    for sample, drawn in zip(found, times, strict=True):
        copies = [
            (cells.documents[rows] + copy * 10_000, rows)
            for copy in range(int(drawn.max()))
            for rows in [np.flatnonzero(drawn[group_of[cells.documents]] > copy)]
        ]
        rows = np.concatenate([chosen for _, chosen in copies])
        again = Cells.of(
            np.concatenate([numbers for numbers, _ in copies]),
            cells.positions[rows],
            cells.impressions[rows],
            cells.clicks[rows],
            count=4,
        )
        refitted = fit_poisson(again, tolerance=1e-10)
        assert np.abs(refitted - curve).max() > 0.002
        np.testing.assert_allclose(sample, refitted, atol=3e-4)


def test_small_and_large_tables_are_fitted_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    documents, positions = random.integers(30, size=400), random.integers(5, size=400)
    shown = random.integers(1, 50, size=400)
    cells = Cells.of(documents, positions, shown, random.binomial(shown, 0.4 / (positions + 1)), count=5)
    small = poisson_relevance(cells, cells.clicks)
    monkeypatch.setattr("ultr.bias.position_based_fit._DENSE", 0)
    large = poisson_relevance(cells, cells.clicks)
    for one, other in zip(small, large, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_the_first_position_is_the_unit_though_another_is_seen_more() -> None:
    theta, relevance = np.array([0.5, 1.0, 0.25]), np.array([0.2, 0.8])
    numbers, places = (each.ravel() for each in np.indices((2, 3)))
    shown = np.full(6, 100.0)
    cells = Cells.of(numbers, places, shown, shown * theta[places] * relevance[numbers], count=3)
    np.testing.assert_allclose(fit_poisson(cells), [1, 2, 0.5])


def test_few_impressions_are_fitted_together_as_alone() -> None:
    """The clicks that a position would have if all were relevant may be less than one."""
    numbers, places = (each.ravel() for each in np.indices((2, 2)))
    cells = Cells.of(numbers, places, np.ones(4), np.zeros(4), count=2)
    clicks = np.array([[0.2, 0.1, 0.1, 0.05], [0.3, 0.1, 0.1, 0.2]])
    start = np.array([1.0, 0.9])
    together = poisson_relevances(cells, clicks, start=start)
    alone = [poisson_relevance(cells, each, start=start)[0] for each in clicks]
    np.testing.assert_allclose(together, alone)

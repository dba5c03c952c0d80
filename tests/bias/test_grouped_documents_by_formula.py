"""Tables of grouped documents and the doubt about their rates, against loops over documents."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from ultr.bias.grouped_documents import GroupedDocuments, _doubt
from ultr.bias.position_based_fit import poisson_relevance
from ultr.data.cells import Cells
from ultr.errors import DataError

MODULE = import_module("ultr.bias.grouped_documents")


def _cells() -> Cells:
    """Five documents; the last stands at one position, and the fourth has no click."""
    return Cells.of(
        np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 4]),
        np.array([0, 1, 0, 1, 2, 1, 2, 0, 1, 0]),
        np.array([40, 20, 10, 30, 20, 25, 15, 9, 9, 50]),
        np.array([20, 6, 2, 5, 1, 4, 3, 0, 0, 30]),
        count=3,
    )


GROUPS = np.array([4, 2, 2, 2, 4])


def test_moved_and_clicked_documents_of_a_group_are_counted_and_groups_numbered_anew() -> None:
    counted = GroupedDocuments.of(_cells(), GROUPS, most_cells=100)
    assert counted.cells.ids.tolist() == [0, 1, 2]
    assert counted.groups.tolist() == [1, 1, 0, 0, 0, 0, 0]
    relevance, examination = poisson_relevance(counted.cells, counted.cells.clicks)
    assert counted.relevance.tolist() == relevance.tolist()
    assert counted.examination.tolist() == examination.tolist()
    without = GroupedDocuments.of(_cells(), np.array([0, -1, 0, 0, 0]), most_cells=100)
    assert without.cells.ids.tolist() == [0, 2]
    with pytest.raises(DataError) as caught:
        GroupedDocuments.of(_cells(), np.array([-1, -1, -1, 0, 0]), most_cells=100)
    assert str(caught.value) == (
        "no clicked document of a group was shown at two positions; log some swaps, or test by labels"
    )


@pytest.mark.parametrize(
    ("most", "documents"), [(7, [0, 1, 2]), (6, [0, 1]), (5, [0, 1]), (4, [0]), (3, [0]), (2, [0])]
)
def test_documents_with_the_most_impressions_are_kept(most: int, documents: list[int]) -> None:
    """60 impressions in two cells, 60 in three, 40 in two: the first of equals comes first."""
    assert GroupedDocuments.of(_cells(), GROUPS, most_cells=most).cells.ids.tolist() == documents


@pytest.mark.parametrize("dispersion", [1.0, 2.5])
def test_the_variance_allows_for_doubt_about_each_relevance(dispersion: float) -> None:
    """1 + theta^2 Var(r) / (p (1 - p)), Var(r) = sum phi n p (1 - p) / (sum n theta)^2, at most 2."""
    counted = GroupedDocuments.of(_cells(), GROUPS, dispersion=dispersion, most_cells=100)
    cells = counted.cells
    for number in range(len(cells.documents)):
        rows = np.flatnonzero(cells.documents == cells.documents[number])
        theta = counted.examination[cells.positions[rows]]
        rates = counted.relevance[cells.documents[number]] * theta
        exposed = (cells.impressions[rows] * theta).sum()
        spread = (dispersion * cells.impressions[rows] * rates * (1 - rates)).sum() / exposed**2
        place = rows.tolist().index(number)
        doubt = theta[place] ** 2 * spread / (rates[place] * (1 - rates[place]))
        assert counted.dispersion[number] == pytest.approx(dispersion * (1 + min(doubt, 1.0)))


def test_doubt_at_most_doubles_a_variance_and_rates_are_kept_below_one() -> None:
    cells = Cells.of(np.array([0, 0]), np.array([0, 1]), np.array([1, 1]), np.array([1, 0]), count=2)
    assert _doubt(cells, np.array([0.9]), np.array([1.0, 0.1]), np.full(2, 50.0)).max() == 2.0
    # A rate above 1 counts as 0.99: with one impression each, p (1 - p) is 0.0099 and 0.16.
    found = _doubt(cells, np.array([2.0]), np.array([1.0, 0.1]), np.ones(2))
    spread = (0.99 * 0.01 + 0.2 * 0.8) / 1.1**2
    assert found.tolist() == pytest.approx([2.0, 1 + 0.01 * spread / 0.16])


def test_impressions_are_weighted_by_relevance_over_the_mean_of_the_group() -> None:
    counted = GroupedDocuments.of(_cells(), GROUPS, most_cells=100)
    cells, relevance = counted.cells, np.array([0.5, 0.2, 0.1])
    clicks, shown = counted.table(cells.clicks, relevance)
    mean = (60 * 0.2 + 40 * 0.1) / 100
    expected = np.zeros((2, 3))
    for row in range(len(cells.documents)):
        weight = 1.0 if counted.groups[row] else relevance[cells.documents[row]] / mean
        expected[counted.groups[row], cells.positions[row]] += cells.impressions[row] * weight
    np.testing.assert_allclose(shown, np.maximum(expected, clicks))
    assert clicks.tolist() == [[2, 9, 4], [20, 6, 0]]


def test_a_table_has_no_more_clicks_than_impressions_and_none_where_nothing_was_shown() -> None:
    counted = GroupedDocuments.of(_cells(), GROUPS, most_cells=100)
    clicks, shown = counted.table(np.full(7, 100.0), counted.relevance)
    assert (clicks <= shown).all()
    # A group without relevance has no impressions that count, and so no clicks.
    clicks, shown = counted.table(np.full(7, 3.0), np.array([0.5, 0.0, 0.0]))
    assert (clicks[0].tolist(), shown[0].tolist()) == ([0, 0, 0], [0, 0, 0])


@pytest.mark.parametrize(("at_once", "samples"), [(2**17, 5), (7, 3), (20, 5), (1, 2)])
def test_as_many_tables_are_drawn_as_are_asked_for(at_once: int, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = GroupedDocuments.of(_cells(), GROUPS, most_cells=100)
    monkeypatch.setattr(MODULE, "_AT_ONCE", at_once)
    rates = np.full((2, 3), 0.3)
    tables = list(counted.draw(rates, np.random.default_rng(0), samples=samples))
    assert len(tables) == samples
    assert all(clicks.shape == shown.shape == (2, 3) for clicks, shown in tables)
    whole = list(counted.draw(rates, np.random.default_rng(0), samples=1))
    assert len(whole) == 1
    np.testing.assert_array_equal(whole[0][0], tables[0][0])


def test_drawn_tables_have_the_rates_they_are_drawn_from() -> None:
    """Of the second group, one document: clicks come at the rates of its group, as they are not weighted."""
    counted = GroupedDocuments.of(_cells(), GROUPS, most_cells=100)
    rates = np.array([[0.1, 0.2, 0.3], [0.6, 0.3, 0.0]])
    drawn = np.mean([clicks for clicks, _ in counted.draw(rates, np.random.default_rng(0), samples=400)], axis=0)
    relative = counted._relative(counted.relevance)
    expected = np.zeros((2, 3))
    for row in range(7):
        place = counted.groups[row], counted.cells.positions[row]
        expected[place] += counted.cells.impressions[row] * relative[row] * rates[place]
    np.testing.assert_allclose(drawn, expected, rtol=0.1, atol=0.2)

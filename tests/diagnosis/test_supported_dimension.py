"""The dimension that links support: its limits, the cuts, and the values around them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.diagnosis.graphs import graph, places, sets

from ultr.bias.identifiability import BiasGraph
from ultr.bias.value_sets import ValueSets
from ultr.diagnosis import supported_dimension
from ultr.diagnosis.supported_dimension import Cut, SupportedDimension, side_of

CHAIN = graph((1, 2, 5, 200), (2, 3, 5, 300), (3, 4, 5, 400), names=places(4))


def of_dimension(dimension: int, values: int, *, complete: bool = True) -> SupportedDimension:
    whole, seen = graph(names=places(values)), replace(sets(values), complete=complete)
    return SupportedDimension(whole, seen, dimension, affine=False, cuts=())


@pytest.mark.parametrize(
    ("dimension", "values", "complete", "exact"),
    [
        (2, 3, True, True),
        (2, 3, False, True),  # three values have no more
        (1, 3, False, False),
        (1, 3, True, True),
        (4, 10, True, True),
        (4, 10, False, False),
        (5, 10, True, False),  # six were not looked for
        (5, 6, True, True),
        (2, 250, True, True),
        (3, 250, True, False),  # 1,000 unknowns are too many, so that four were not looked for
        (1, 333, True, True),
        (1, 400, True, False),
        (1, 600, True, False),
    ],
)
def test_a_dimension_is_exact_if_the_next_one_was_looked_for_with_all_documents(
    dimension: int,
    values: int,
    complete: bool,  # noqa: FBT001
    exact: bool,  # noqa: FBT001
) -> None:
    assert of_dimension(dimension, values, complete=complete).exact is exact


@pytest.mark.parametrize(
    ("whole", "seen", "dimension", "affine"),
    [
        (graph(names=places(1)), sets(1), 0, False),
        (graph(names=places(2)), sets(2), 0, False),
        (graph((1, 2, 5, 9), names=places(2)), sets(2, ("12", 1, 9)), 1, False),
        (graph((1, 2, 5, 9), names=places(2)), sets(2, ("12", 2, 9)), 1, True),
        (CHAIN, sets(4, ("12", 5, 9), ("23", 1, 9), ("34", 5, 9)), 1, False),
        (CHAIN, sets(4, ("12", 2, 9), ("23", 2, 9), ("34", 2, 9)), 1, True),
        (CHAIN, sets(4, ("1234", 2, 9)), 2, True),
        (CHAIN, sets(4, ("1234", 3, 9)), 3, True),
    ],
)
def test_dimensions_by_who_was_seen_where(whole: BiasGraph, seen: ValueSets, dimension: int, affine: bool) -> None:  # noqa: FBT001
    found = SupportedDimension.of(whole, seen)
    assert (found.dimension, found.affine) == (dimension, affine)
    assert [cut.link for cut in found.cuts] == (list(whole.backbone) if dimension else [])


@pytest.mark.parametrize(("most", "affine"), [(8, True), (7, False)])
def test_trust_bias_has_two_unknowns_for_each_value(
    most: int,
    affine: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supported_dimension, "MOST_UNKNOWNS", most)
    seen = sets(4, ("12", 2, 9), ("23", 2, 9), ("34", 2, 9))
    assert SupportedDimension.of(CHAIN, seen).affine is affine


def test_sides_are_what_hangs_together_without_the_link() -> None:
    """A tree: 1 - 2, 2 - 3, 2 - 4, 4 - 5."""
    tree = graph((1, 2, 1, 9), (2, 3, 1, 9), (2, 4, 1, 9), (4, 5, 1, 9), names=places(5))
    found = [(np.flatnonzero(side_of(tree, link)) + 1).tolist() for link in tree.backbone]
    assert found == [[1], [1, 2, 4, 5], [1, 2, 3], [1, 2, 3, 4]]


def test_cuts_have_the_sides_of_their_links_and_what_they_may_support() -> None:
    found = SupportedDimension.of(CHAIN, sets(4, ("1234", 1, 9), ("123", 9, 90), ("34", 9, 900)))
    assert [(np.flatnonzero(cut.side) + 1).tolist() for cut in found.cuts] == [[1], [1, 2], [1, 2, 3]]
    # Two dimensions take 2, 4 and 2 conditions; 1234 gives 1, 2 and 1, and two of 123 give 2, 2 and none.
    assert [cut.dimension for cut in found.cuts] == [2, 2, 1]
    assert found.dimension == 1
    assert found.thinnest is found.cuts[2]
    assert replace(found, dimension=2).thinnest is found.cuts[0]
    assert replace(found, dimension=0).thinnest is None


@pytest.mark.parametrize(
    ("cut", "dimension", "crossing"),
    [(0, 1, (10, 99)), (0, 2, (10, 99)), (0, 3, (1, 9)), (2, 1, (10, 909)), (2, 2, (1, 9)), (1, 2, (10, 99))],
)
def test_documents_cross_a_cut_if_they_were_seen_under_more_values_than_dimensions(
    cut: int, dimension: int, crossing: tuple[int, int]
) -> None:
    """Documents seen at d values or fewer tell nothing of dimension d; those of one side tell nothing across."""
    found = SupportedDimension.of(CHAIN, sets(4, ("1234", 1, 9), ("123", 9, 90), ("34", 9, 900)))
    assert found.crossing(found.cuts[cut], dimension) == crossing


def _by_device() -> SupportedDimension:
    """Positions 1 to 4 on desks and on phones: values 0 to 3 and 4 to 7."""
    names = [f"position {place}, device {device}" for device in ("desk", "phone") for place in range(1, 5)]
    whole = graph((2, 7, 1, 9), names=names)
    levels = np.stack([np.tile(np.arange(4), 2), np.repeat([0, 1], 4)], axis=1)
    return SupportedDimension(replace(whole, levels=levels), sets(8), 1, affine=False, cuts=())


@pytest.mark.parametrize(
    ("side", "count", "around"),
    [
        # Between position 2 of desks and position 3 of phones.
        ([0, 1, 2, 3], 1, (1, 6)),
        ([0, 1, 2, 3], 2, (0, 1, 5, 6)),
        ([0, 1, 2, 3], 3, (0, 1, 2, 5, 6, 7)),
        # Position 2 of phones is nearer to that of desks than position 4 of desks, but is another device.
        ([1, 3, 5], 2, (1, 3, 6, 7)),
        ([1, 3, 5], 3, (1, 3, 4, 5, 6, 7)),
    ],
)
def test_values_around_a_link_are_those_of_the_same_device_and_then_the_nearest_positions(
    side: list[int], count: int, around: tuple[int, ...]
) -> None:
    found = _by_device()
    cut = Cut(found.graph.links[0], np.isin(np.arange(8), side), 1)
    assert found.around(cut, count) == around


@pytest.mark.parametrize(
    ("seen", "wanted", "windows"),
    [
        (sets(4, ("12", 5, 9), ("23", 5, 9), ("34", 5, 9)), 2, ((0, 1, 2), (0, 1, 2, 3))),
        (sets(4, ("1234", 2, 9)), 2, ((0, 1, 2, 3),)),  # no cut is too thin
        (sets(4, ("1234", 1, 9), ("123", 9, 9), ("34", 9, 9)), 2, ((1, 2, 3),)),
        (sets(4, ("12", 5, 9), ("23", 5, 9), ("34", 5, 9)), 3, ((0, 1, 2, 3),)),
        (sets(4, ("12", 5, 9), ("23", 5, 9), ("34", 5, 9)), 4, ()),
    ],
)
def test_windows_are_asked_for_where_a_cut_is_too_thin(
    seen: ValueSets, wanted: int, windows: tuple[tuple[int, ...], ...]
) -> None:
    assert SupportedDimension.of(CHAIN, seen).windows(wanted) == windows


@pytest.mark.parametrize(("most", "windows"), [(8, ((0, 1, 2), (0, 1, 2, 3))), (7, ((0, 1, 2, 3),))])
def test_windows_that_are_too_many_unknowns_to_check_become_one_of_all_values(
    most: int, windows: tuple[tuple[int, ...], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = sets(4, ("12", 5, 9), ("23", 5, 9), ("34", 5, 9))
    found = SupportedDimension.of(CHAIN, seen)
    monkeypatch.setattr(supported_dimension, "MOST_UNKNOWNS", most)
    assert found.windows(2) == windows


def test_windows_that_are_not_enough_become_one_of_all_values() -> None:
    """Without its cuts nothing says which values are missing."""
    seen = sets(4, ("12", 5, 9), ("23", 5, 9), ("34", 5, 9))
    assert replace(SupportedDimension.of(CHAIN, seen), cuts=()).windows(2) == ((0, 1, 2, 3),)

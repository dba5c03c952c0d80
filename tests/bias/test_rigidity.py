from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultr.arrays import Integers, Mask
from ultr.bias.rigidity import LARGEST, crossing, cut_dimensions, identified, largest_dimension


@st.composite
def seen_documents(draw: st.DrawFn) -> tuple[Mask, Integers]:
    """A few sets of up to six values, with one to three documents each."""
    values = draw(st.integers(2, 6))
    rows = st.lists(st.booleans(), min_size=values, max_size=values)
    seen = draw(st.lists(rows, min_size=1, max_size=6))
    documents = draw(st.lists(st.integers(1, 3), min_size=len(seen), max_size=len(seen)))
    return np.array(seen, dtype=np.bool_), np.array(documents)


def free_directions(seen: Mask, documents: Integers, dimension: int, *, affine: bool = False) -> int:
    """The movements of observation vectors that keep all rates, from the Jacobian of every rate by every r and o."""
    random = np.random.default_rng(0)
    values, unknown = seen.shape[1], dimension - affine
    observation = random.normal(size=(values, dimension))
    rows = np.repeat(np.arange(len(seen)), documents)
    jacobian = np.zeros((len(rows), values, values * dimension + len(rows) * unknown))
    for number, under in enumerate(seen[rows]):
        relevance = random.normal(size=dimension)
        own = values * dimension + number * unknown
        for value in np.flatnonzero(under):
            jacobian[number, value, value * dimension : (value + 1) * dimension] = relevance
            jacobian[number, value, own : own + unknown] = observation[value, :unknown]
    _, singular, right = np.linalg.svd(jacobian.reshape(-1, jacobian.shape[-1]))
    kept = right[np.count_nonzero(singular > 1e-9 * max(singular.max(), 1)) :, : values * dimension]
    return int(np.count_nonzero(np.linalg.svd(kept, compute_uv=False) > 1e-6))


def connected(seen: Mask) -> bool:
    reached = np.arange(seen.shape[1]) == 0
    for _ in range(seen.shape[1]):
        reached = reached | seen[(seen & reached).any(axis=1)].any(axis=0)
    return bool(reached.all())


@given(seen_documents())
def test_dimension_one_is_identified_if_and_only_if_the_values_are_connected(given: tuple[Mask, Integers]) -> None:
    assert identified(*given, 1) == connected(given[0])


@given(seen_documents(), st.integers(1, 5))
def test_a_dimension_is_identified_if_only_changes_of_coordinates_keep_all_rates(
    given: tuple[Mask, Integers], dimension: int
) -> None:
    """A change of coordinates is a matrix [dimension, dimension]; with as many values every rate is kept by one."""
    expected = free_directions(*given, dimension) == dimension**2 and given[0].shape[1] > dimension
    assert identified(*given, dimension) == expected


@given(seen_documents(), st.integers(2, 4))
def test_an_affine_model_is_identified_if_only_affine_changes_of_relevance_keep_all_rates(
    given: tuple[Mask, Integers], dimension: int
) -> None:
    free = free_directions(*given, dimension, affine=True)
    expected = free == dimension * (dimension - 1) and given[0].shape[1] > dimension - 1
    assert identified(*given, dimension, affine=True) == expected


@given(seen_documents())
def test_what_identifies_a_dimension_identifies_the_smaller_ones(given: tuple[Mask, Integers]) -> None:
    found = [identified(*given, dimension) for dimension in range(1, 6)]
    assert found == sorted(found, reverse=True)
    assert largest_dimension(*given) == sum(found)


@given(seen_documents(), st.data())
def test_no_cut_supports_less_than_what_is_identified(given: tuple[Mask, Integers], data: st.DataObject) -> None:
    values = given[0].shape[1]
    side = np.array(data.draw(st.lists(st.booleans(), min_size=values, max_size=values)))
    assert cut_dimensions(*given, side[:, None])[0] >= largest_dimension(*given)


def _joined(*crossing_sets: list[int]) -> tuple[Mask, Integers]:
    """Two parts of five values, known within, and some documents seen under values of both."""
    parts = [list(range(5)), list(range(5, 10))]
    seen = np.zeros((2 + len(crossing_sets), 10), dtype=np.bool_)
    for row, values in enumerate([*parts, *crossing_sets]):
        seen[row, values] = True
    return seen, np.array([9, 9, *(1 for _ in crossing_sets)])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_each_document_seen_all_over_both_parts_lets_one_more_dimension_through(count: int) -> None:
    seen, documents = _joined(*[list(range(10))] * count)
    assert largest_dimension(seen, documents) == count
    assert cut_dimensions(seen, documents, (np.arange(10) < 5)[:, None])[0] == count


def test_documents_seen_once_on_either_side_link_one_dimension_however_many_they_are() -> None:
    seen, documents = _joined(*([value, value + 5] for value in range(5)))
    assert largest_dimension(seen, documents * 100) == 1
    assert cut_dimensions(seen, documents * 100, (np.arange(10) < 5)[:, None])[0] == 1


def test_three_values_of_a_document_give_two_dimensions_one_condition() -> None:
    """Four are needed between two parts, so three such documents are too few and four are enough."""
    sets = [[0, 1, 5], [1, 2, 6], [3, 7, 8], [4, 8, 9]]
    assert largest_dimension(*_joined(*sets[:3])) == 1
    assert largest_dimension(*_joined(*sets)) == 2
    assert crossing(np.ones((1, 3), dtype=np.bool_), np.array([[True], [True], [False]]), 2).tolist() == [[1]]


def test_swaps_of_adjacent_values_identify_one_dimension_and_the_affine_model() -> None:
    seen = np.array([[value in pair for value in range(6)] for pair in pairwise(range(6))])
    assert largest_dimension(seen, np.full(5, 1_000)) == 1
    assert identified(seen, np.full(5, 2), 2, affine=True)
    assert not identified(seen, np.array([2, 2, 1, 2, 2]), 2, affine=True)


def test_one_document_too_few_in_a_long_chain_of_windows_is_noticed() -> None:
    """Three documents in each window of four values join 60 values in three dimensions, window by window."""
    windows = np.array([[first <= value < first + 4 for value in range(60)] for first in range(57)])
    assert largest_dimension(windows, np.full(57, 3)) == 3
    short = np.full(57, 3)
    short[30] = 2
    assert largest_dimension(windows, short) == 2


def test_no_more_than_the_largest_dimension_and_fewer_than_the_values() -> None:
    everywhere = np.ones((1, 20), dtype=np.bool_)
    assert largest_dimension(everywhere, np.array([1_000])) == LARGEST
    assert largest_dimension(everywhere[:, :3], np.array([1_000])) == 2
    assert largest_dimension(everywhere[:, :1], np.array([1_000])) == 0
    assert largest_dimension(np.zeros((0, 4), dtype=np.bool_), np.zeros(0, dtype=np.int64)) == 0

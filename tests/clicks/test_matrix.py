from __future__ import annotations

import numpy as np
import pytest

from ultr.clicks import ClickMatrix
from ultr.errors import OptionError


def test_the_real_matrix_has_its_published_singular_values() -> None:
    singular = np.linalg.svd(np.array(ClickMatrix().matrix), compute_uv=False)
    np.testing.assert_allclose(singular, [1.3989, 0.1509, 0.0686, 0.0570, 0.0332], atol=5e-5)


def test_the_real_matrix_has_a_row_for_each_grade_and_a_column_for_each_position() -> None:
    matrix = np.array(ClickMatrix().matrix)
    assert matrix.shape == (5, 10)
    np.testing.assert_allclose(matrix[:, 0], [0.5905, 0.4962, 0.5416, 0.6114, 0.7421], atol=5e-5)
    np.testing.assert_allclose(matrix[4, [2, 9]], [0.2420, 0.0039], atol=5e-5)


def test_grade_zero_is_clicked_more_than_grades_one_and_two() -> None:
    assert np.array(ClickMatrix().matrix).mean(axis=1).argsort().tolist() == [1, 2, 0, 3, 4]


@pytest.mark.parametrize(("max_label", "rows"), [(1, [0, 4]), (2, [0, 2, 4]), (3, [0, 1, 3, 4]), (4, [0, 1, 2, 3, 4])])
def test_fewer_grades_are_spread_over_the_rows(max_label: int, rows: list[int]) -> None:
    model = ClickMatrix()
    np.testing.assert_array_equal(model.rates(max_label), np.array(model.matrix)[rows])


@pytest.mark.parametrize("max_label", [0, 5, 30])
def test_grades_that_would_share_a_row_are_refused(max_label: int) -> None:
    with pytest.raises(OptionError, match=rf"highest grade of 1\.\.4, got {max_label}"):
        ClickMatrix().rates(max_label)


def test_a_matrix_of_two_grades_and_three_positions_is_enough() -> None:
    model = ClickMatrix(matrix=((0.1, 0.2, 0.3), (0.9, 0.8, 0.7)))
    assert model.positions == 3
    assert model.probabilities(np.array([[1, 0, 1]]), max_label=1).tolist() == [[0.9, 0.2, 0.7]]


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[0.1, 0.2], [0.3]], "rows of one length"),
        ([], "at least one row"),
        ([[]], "row 0 of matrix must have at least one probability"),
        ([[0.1, 1.2]], r"row 0 of matrix at position 2 must be a probability in \[0, 1\], got 1.2"),
        (0.5, "must be a table"),
        ([0.5], "row 0 of matrix must be a list"),
        ("table", "must be a table"),
    ],
)
def test_a_broken_matrix_is_refused(matrix: object, sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        ClickMatrix(matrix=matrix)  # type: ignore[arg-type]

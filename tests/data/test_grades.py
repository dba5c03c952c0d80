from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.data.test_click_log import random_log

from ultr.data.click_log import ClickLog
from ultr.data.grades import Grades
from ultr.errors import DataError

ARRAYS = {"features": np.eye(3), "documents": [2, 0, 1, 2], "offsets": [0, 2, 4], "clicks": [0, 1, 0, 0]}


def graded_log() -> ClickLog:
    return replace(random_log(), grades=Grades(np.arange(30, dtype=np.int32) % 4 - 1, ("bad", "fair", "good")))


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ([10, 9, 2, 10], ["10", "9", "2", "10"]),
        ([1.0, float("nan"), 2.5, -1.0], ["1", "", "2.5", "-1"]),
        (["10", "9", "", None], ["10", "9", "", ""]),
        (["1.0", "01", " 1", "1.50"], ["1", "01", "1", "1.50"]),
        (["good", " ", "bad", "good "], ["good", "", "bad", "good"]),
        ([True, False], ["True", "False"]),
    ],
)
def test_grades_of_plain_values_name_each_value(given: list[object], texts: list[str]) -> None:
    grades = Grades.of(given)
    assert [grades.levels[value] if value >= 0 else "" for value in grades.values] == texts
    assert set(grades.levels) == {text for text in texts if text}


def test_numbers_are_ordered_by_number_and_texts_by_text() -> None:
    assert Grades.of(["10", "-2", "1.33333", "9"]).levels == ("-2", "1.33333", "9", "10")
    assert Grades.of(["10", "9", "good"]).levels == ("10", "9", "good")
    assert Grades.of(np.array([3, 0, 12])).levels == ("0", "3", "12")


def test_a_log_of_plain_arrays_takes_a_grade_for_each_row_of_the_features() -> None:
    log = ClickLog.of(**ARRAYS, grades=[0, None, 4])  # type: ignore[arg-type]
    assert log.grades is not None
    assert log.grades.levels == ("0", "4")
    assert log.grades.values[log.documents].tolist() == [1, 0, -1, 1]
    assert [factor.name for factor in log.factors] == ["position"]


@pytest.mark.parametrize(
    ("values", "levels", "sentence"),
    [
        (np.array([0.0]), ("a",), "flat array of integers"),
        (np.array([[0]]), ("a",), "flat array of integers"),
        (np.array([-2]), ("a",), "must be -1 or index their 1 levels"),
        (np.array([1]), ("a",), "must be -1 or index their 1 levels"),
        (np.array([0]), ("a", "a"), "two levels of the grades are the same: a, a"),
    ],
)
def test_grades_that_cannot_be_are_one_data_error(values: np.ndarray, levels: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Grades(values, levels)


def test_a_log_needs_as_many_grades_as_documents() -> None:
    with pytest.raises(DataError, match="3 documents, but 2 grades"):
        ClickLog.of(**ARRAYS, grades=[0, 1])  # type: ignore[arg-type]


def test_grades_stay_with_the_log_wherever_it_goes(tmp_path: Path) -> None:
    log = graded_log()
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    for part in (loaded, log.collapse(), log.select(np.array([3, 1])), *log.split(0.5), *log.split(0.5, by="page")):
        assert part.grades is not None
        assert log.grades is not None
        assert part.grades.levels == ("bad", "fair", "good")
        assert part.grades.values.tolist() == log.grades.values.tolist()
    assert loaded.fingerprint() == log.fingerprint()
    (tmp_path / "log" / "grades.npy").unlink()
    with pytest.raises(DataError, match=r"grades\.npy is missing or damaged"):
        ClickLog.load(tmp_path / "log")


def test_saved_grades_that_do_not_fit_name_the_folder(tmp_path: Path) -> None:
    graded_log().save(tmp_path / "log")
    np.save(tmp_path / "log" / "grades.npy", np.full(30, 7))
    with pytest.raises(DataError, match=r"log: grades must be -1 or index their 3 levels"):
        ClickLog.load(tmp_path / "log")


def test_the_fingerprint_knows_the_grades_and_their_levels() -> None:
    log = graded_log()
    assert log.grades is not None
    others = [
        None,
        replace(log.grades, values=log.grades.values[::-1]),
        replace(log.grades, levels=("bad", "fair", "great")),
    ]
    assert len({log.fingerprint(), *(replace(log, grades=other).fingerprint() for other in others)}) == 4
    assert replace(log, grades=None).fingerprint() == random_log().fingerprint()

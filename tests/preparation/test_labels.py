from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.preparation.test_log import GOOD, frame, read_with_warning, spoiled

from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.preparation.log import prepare, read_log


def labelled(labels: Any, rows: Any = GOOD) -> pyarrow.Table:
    """The good log, whose rows are x, y, z of query a twice and then y, x of query b."""
    return frame(rows).append_column("grade", [labels] if isinstance(labels, list) else labels)


def said(log: ClickLog) -> list[str | None]:
    """The label of the documents ax, ay, az, bx, by."""
    assert log.grades is not None
    return [log.grades.levels[value] if value >= 0 else None for value in log.grades.values]


@pytest.mark.parametrize(
    ("labels", "expected", "levels"),
    [
        ([3, 10, 3, 3, 10, 3, 9, None], ["3", "10", "3", None, "9"], ("3", "9", "10")),
        ([3.0, 1.5, None, 3.0, 1.5, float("nan"), 0.0, None], ["3", "1.5", None, None, "0"], ("0", "1.5", "3")),
        (["3", "10", "", "3.0", "10", " ", "9 ", None], ["3", "10", None, None, "9"], ("3", "9", "10")),
        (["good", "bad", "", "good", "bad", "nan", "fair", None], ["good", "bad", None, None, "fair"], None),
        ([True, False, None, True, False, None, False, None], ["true", "false", None, None, "false"], None),
    ],
)
def test_labels_may_be_numbers_or_texts(
    labels: list[Any], expected: list[str | None], levels: tuple[str, ...] | None
) -> None:
    log = read_log(labelled(labels), label="grade")
    assert said(log) == expected
    assert log.grades is not None
    assert log.grades.levels == (levels or tuple(sorted({text for text in expected if text})))


def test_a_label_on_one_row_of_a_document_is_enough() -> None:
    assert said(read_log(labelled([4, *[None] * 6, 1]), label="grade")) == ["4", None, None, "1", None]


def test_two_labels_of_one_document_count_as_none_and_are_counted(tmp_path: Path) -> None:
    prepared = prepare(labelled([4, 2, 0, 3, 2, 1, 2, 4]), tmp_path / "log", label="grade")
    assert said(prepared.log) == [None, "2", None, "4", "2"]
    assert prepared.summary.conflicting_labels == 2
    assert prepared.summary.judged == 3
    assert prepared.summary.grades == ("2", "4")
    assert ClickLog.load(tmp_path / "log").fingerprint() == prepared.log.fingerprint()


@pytest.mark.parametrize("unjudged", [["-1", "?"], [-1, "?"], [-1.0, "?"]])
def test_some_labels_say_that_there_is_none(unjudged: list[object]) -> None:
    table = labelled(["-1", "2", "?", "-1.0", "2", "?", "0", "2"])
    assert said(read_log(table, label="grade", unjudged=unjudged)) == [None, "2", None, "2", "0"]
    # Without it they are labels like others.
    assert said(read_log(table, label="grade")) == ["-1", "2", "?", "2", "0"]


def test_a_mapping_may_name_the_label(tmp_path: Path) -> None:
    (tmp_path / "mapping.toml").write_text('label = "grade"\nunjudged = [-1]')
    log = read_log(labelled([1, 2, -1, -1, 2, 3, 0, 4]), columns=tmp_path / "mapping.toml")
    assert said(log) == ["1", "2", "3", "4", "0"]


def test_labels_of_rows_that_are_put_aside_count_for_documents_that_are_kept() -> None:
    log, _ = read_with_warning(labelled([4, 1, 1, None, 1, 1, 2, 2], spoiled(0, click=-1)), label="grade")
    assert said(log) == ["4", "1", "1", "2", "2"]


def test_a_log_without_a_judged_document_has_no_grades(tmp_path: Path) -> None:
    prepared = prepare(labelled(["-1"] * 8), tmp_path / "log", label="grade", unjudged=["-1"])
    assert prepared.log.grades is None
    assert (prepared.summary.grades, prepared.summary.judged) == ((), 0)
    assert prepared.log.fingerprint() == read_log(frame(GOOD)).fingerprint()


def test_pages_have_lists_of_labels(tmp_path: Path) -> None:
    pages = {"query": ["a", "a", "b"], "docs": ["x,y,z", "x, y,z", "y,x"], "clicks": ["100", "010", "01"]}
    forms: list[Any] = [
        ["3,,0", "3,1,0", ""],
        ["3, 1,0", None, " "],
        [[3, None, 0], [3, 1, 0], []],
        [["3", "1", ""], ["", "1.0", "0"], None],
    ]
    for labels in forms:
        log = read_log(pyarrow.table(pages | {"labels": labels}), label="labels")
        assert said(log) == ["3", "1", "0", None, None], labels


def test_lists_of_another_length_than_the_documents_put_the_page_aside(tmp_path: Path) -> None:
    pages = {"query": ["a", "a", "b"], "docs": ["x,y,z", "x,y,z", "y,x"], "clicks": ["100", "010", "01"]}
    for name, options in {"labels": {"label": "labels"}, "kinds": {"factors": ["kinds"], "rare": 0}}.items():
        table = pyarrow.table(pages | {name: [["1", "1"], ["1", "2", "3"], []]})
        summary = prepare(table, tmp_path / name, **options).summary  # type: ignore[arg-type]
        assert [(each.reason, each.rows) for each in summary.reasons] == [("lists of different lengths", 3)]
    assert len(parquet.read_table(tmp_path / "kinds" / "rejected.parquet")) == 3


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        (21, {}, r"column 'grade' of .* has 21 different labels, more than 20; give a column of grades such as 0 to 4"),
        (2, {"label": "grad"}, "has no column 'grad', did you mean 'grade'"),
        (2, {"unjudged": "-1"}, "unjudged must be a list of labels, got '-1'"),
    ],
)
def test_what_is_no_label_is_one_sentence(count: int, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    rows = [row | {"document": f"{row['document']}{n}", "impression": n} for n in range(count) for row in GOOD[:2]]
    rows += [row | {"impression": count} for row in GOOD[6:]]
    labels = [*(str(number // 2) for number in range(2 * count)), "0", "0"]
    with pytest.raises((DataError, OptionError), match=message):
        prepare(labelled(labels, rows), tmp_path / "log", **{"label": "grade"} | options)
    assert list(tmp_path.iterdir()) == []


def test_twenty_grades_are_not_too_many() -> None:
    rows = [row | {"document": f"{row['document']}{n}", "impression": n} for n in range(20) for row in GOOD[:2]]
    rows += [row | {"impression": 20} for row in GOOD[6:]]
    log = read_log(labelled([*(number // 2 for number in range(40)), 0, 0], rows), label="grade")
    assert log.grades is not None
    assert log.grades.levels == tuple(str(number) for number in range(20))

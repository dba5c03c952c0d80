"""Is one number for each position enough? Every sentence of the answer, by tests made up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ultr.bias import RankTest, ScalarTest, rank_test
from ultr.bias.dispersion import Dispersion
from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict, bias_dimension
from ultr.diagnosis.bias_dimension import BiasDimension

GOOD, CAREFUL, UNKNOWN = Verdict.GOOD, Verdict.CAREFUL, Verdict.UNKNOWN
KEEP = "Train without naming a method, which keeps of vectors what the log bears"


def found(dimension: int = 1, power: float | None = 0.9, *, caveats: tuple[str, ...] = ()) -> BiasDimension:
    rates = np.diag([0.5, 0.2, 0.1])
    test = RankTest(rates, (9.0, 1.0), (0.0124, 0.4), dimension, 0.05, power)
    return BiasDimension(ScalarTest(test, "labels", 1_234, 56_789, 4_321, None, None, caveats))


NOT_TESTED = BiasDimension(ScalarTest(None, None, 0, 0, 0, None, "no document moved; log some swaps", ()))
ONE_MORE = (
    "one more than the rank, since it adds where relevance and observation multiply; methods with one number for each "
    "position err."
)
AGAINST = "Nothing speaks against one number for each position (p = 0.012)"
NOT_ENOUGH = (
    "One number for each position is not enough (p = 0.012): groups of documents lose clicks by position in different "
    "ways; the matrix of click rates has rank"
)
UNTESTED = "Whether one number for each position is enough cannot be tested"
POWER = "trust bias as it was published would have been found with a chance of"


@pytest.mark.parametrize(
    ("dimension", "identified", "differing", "verdict", "answer", "advice"),
    [
        (found(), None, (), GOOD, f"{AGAINST}, and {POWER} 90%.", ""),
        (found(), 2, (), GOOD, f"{AGAINST}, and {POWER} 90%.", ""),
        (
            found(caveats=("one; and more", "two")),
            1,
            ("device", "layout"),
            CAREFUL,
            f"{AGAINST}, and {POWER} 90%. One. Two. Dimension 3 is for click rates of rank 2, and the links between "
            "bias values identify rank 1 only: documents with similar features must tell the rest. That is about all "
            "pages together, and position bias is not the same for every device.",
            "",
        ),
        (
            found(power=0.5),
            0,
            (),
            UNKNOWN,
            f"{AGAINST}, but {POWER} 50% only, so that says little. Dimension 3 is for click rates of rank 2, and the "
            "links between bias values identify none: documents with similar features must tell the rest.",
            f"{KEEP}, or log more.",
        ),
        (
            found(power=None),
            None,
            (),
            UNKNOWN,
            f"{AGAINST}, but {POWER} 0% only, so that says little.",
            f"{KEEP}, or log more.",
        ),
        (
            found(2),
            2,
            ("device",),
            CAREFUL,
            f"{NOT_ENOUGH} 2 beyond noise, and its second singular value is 0.400 of the first.",
            f"Take Vectorization, or the default, which corrects by it, with dimension 3, {ONE_MORE}",
        ),
        (
            found(4),
            3,
            (),
            CAREFUL,
            f"{NOT_ENOUGH} 4 beyond noise, and its second singular value is 0.400 of the first. "
            "Dimension 5 is for click rates of rank 4, and the links between bias values identify rank 3 only: "
            "documents with similar features must tell the rest.",
            f"Take Vectorization, or the default, which corrects by it, with dimension 5, {ONE_MORE}",
        ),
        (NOT_TESTED, None, (), UNKNOWN, f"{UNTESTED}: no document moved.", f"{KEEP}, or log some swaps."),
        (
            NOT_TESTED,
            1,
            (),
            UNKNOWN,
            f"{UNTESTED}: no document moved. Dimension 3 is for click rates of rank 2, and the links between "
            "bias values identify rank 1 only: documents with similar features must tell the rest.",
            f"{KEEP}, or log some swaps.",
        ),
    ],
)
def test_the_answer_follows_the_test(
    dimension: BiasDimension,
    identified: int | None,
    differing: tuple[str, ...],
    verdict: Verdict,
    answer: str,
    advice: str,
) -> None:
    section = dimension.section(identified, differing=differing)
    assert (section.verdict, section.answer, section.advice) == (verdict, answer, advice)


def test_without_a_test_there_are_no_tables_and_no_rank() -> None:
    section = NOT_TESTED.section()
    assert (section.tables, dict(section.figures), NOT_TESTED.suggested, NOT_TESTED.rank) == ((), {}, 3, 1)
    assert "p_values" not in section.numbers
    assert section.numbers["dispersion"] is None
    assert section.numbers["reason"] == "no document moved; log some swaps"


def test_tables_are_folded_and_have_what_the_test_rests_on() -> None:
    what, rates = found(2).section().tables
    assert what.folded
    assert rates.folded
    assert [list(row.values()) for row in what.rows] == [
        ["groups", "documents by label"],
        ["documents", "1,234"],
        ["impressions of them", "56,789"],
        ["clicks on them", "4,321"],
        ["chance to find trust bias", "90%"],
        ["rank 1 against 2", "p = 0.012"],
        ["rank 2 against 3", "p = 0.400"],
    ]
    assert rates.rows[1] == {"group": "2", "1": "0.000", "2": "0.200", "3": "0.000"}
    assert [row["group"] for row in rates.rows] == ["1", "2", "3"]
    drawn = found(2).section().drawings()
    singular = drawn["singular values over the first"].description
    assert singular == "Singular values of the click rates: 1.000, 0.400, 0.200"
    groups = drawn["click rates by relevance group and position"].description
    assert groups == "Click rates by relevance group and position, from 0.000 to 0.500"


def test_rates_are_called_by_their_positions_where_some_are_left_out() -> None:
    counts = np.array([[40, 0, 20, 10], [20, 0, 10, 5]])
    test = rank_test(counts, np.where(counts, 100, 0), samples=9)
    assert test.positions == (1, 3, 4)
    section = BiasDimension(ScalarTest(test, "labels", 1, 1, 1, None, None, ())).section()
    assert section.tables[1].rows[0] == {"group": "1", "1": "0.400", "3": "0.200", "4": "0.100"}
    assert section.numbers["positions"] == [1, 3, 4]
    (drawn,) = section.drawings()["click rates by relevance group and position"].figure.axes
    assert [label.get_text() for label in drawn.get_xticklabels()] == ["1", "3", "4"]


def test_the_dispersion_is_named_if_it_was_measured() -> None:
    test = ScalarTest(found().scalar.test, None, 1, 1, 1, Dispersion(1.25, 0.1, 0.05, 0.2, 40, 20), None, ())
    section = BiasDimension(test).section()
    assert section.numbers["dispersion"]["phi"] == 1.25
    assert {"": "variance of clicks over that of independent ones", "value": "1.25"} in section.tables[0].rows
    assert section.tables[0].rows[0]["value"] == "documents by label"


@pytest.mark.parametrize("graded", [True, False])
def test_grades_group_documents_where_there_are_some(graded: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    asked: dict[str, Any] = {}

    def fake(log: ClickLog, **options: Any) -> ScalarTest:
        asked.update(options)
        return NOT_TESTED.scalar

    monkeypatch.setattr(bias_dimension, "scalar_test", fake)
    log = ClickLog.of(
        features=np.eye(2), documents=[0, 1], offsets=[0, 2], clicks=[1, 0], grades=["0", "1"] if graded else None
    )
    scores = np.array([0.5, 0.1])
    assert BiasDimension.of(log, scores=scores) == NOT_TESTED
    assert (asked["samples"], asked["scores"] is scores) == (199, True)
    assert (asked["labels"] is not None) is graded

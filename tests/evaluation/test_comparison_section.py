"""A comparison in words, as a section of any page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.diagnosis.logs import thorough
from tests.evaluation.test_assumption import found_by

from ultr.evaluation.assumption import Assumption
from ultr.evaluation.comparison import Comparison, ranked
from ultr.evaluation.counterfactual import CounterfactualValue
from ultr.evaluation.trial import CANNOT_TELL, Answer, Certainty
from ultr.evaluation.unseen_part import UnseenPart
from ultr.metrics.intervals import Interval
from ultr.pages import Verdict

UNSEEN = UnseenPart(thorough(pages=40), "the 3 queries", ("they are few",), ())


def compared(name: str, low: float, high: float, *, known: bool = True, looks: int = 1) -> Comparison:
    """Raw against another, whose lead has these ends."""
    judge = Certainty(looks=looks)
    lead = Interval((low + high) / 2, low, high)
    told = judge.answer(lead, name, "raw", what="the difference")
    value = told if known else Answer(CANNOT_TELL, "the propensities are not identified")
    values = {
        each: CounterfactualValue(np.array([3.0, 1.0]), np.array([2.0, 2.0]), 4, 3, 0, 0) for each in ("raw", name)
    }
    return Comparison(
        value,
        value,
        value,
        told,
        told,
        values=values if known else {},
        propensities=np.array([1.0, 0.5]) if known else None,
        assumption=Assumption(None, None, "It cannot be tested."),
        unseen=UNSEEN,
        names=("raw", name),
        interval_name=judge.interval_name,
    )


@pytest.mark.parametrize(
    ("ends", "word", "verdict"),
    [
        ((0.01, 0.2), "yes", Verdict.GOOD),
        ((-0.2, -0.01), "no", Verdict.BAD),
        ((0.0, 0.2), "cannot tell", Verdict.UNKNOWN),
        ((-0.2, 0.0), "cannot tell", Verdict.UNKNOWN),
    ],
)
def test_the_badge_is_the_answer_for_the_second_ranker(ends: tuple[float, float], word: str, verdict: Verdict) -> None:
    section = compared("new", *ends).section()
    assert section.title == "Does new rank better than raw?"
    assert (section.badge, section.verdict) == (word, verdict)
    assert section.answer.endswith("\n\nCompared on the 3 queries.")
    assert section.advice == "Warning: they are few.\n\nIt cannot be tested."
    values, answers = section.tables
    assert [row["ranker"] for row in values.rows] == ["raw", "new"]
    assert answers.title == "answers, 95 % intervals"
    assert answers.rows[0] == {
        "new ...": "ranks better than raw",
        "answer": word,
        "by": f"{sum(ends) / 2:+.4f}",
        "low": f"{ends[0]:+.4f}",
        "high": f"{ends[1]:+.4f}",
    }
    assert section.numbers["answers"]["value"]["winner"] == {"yes": "new", "no": "raw"}.get(word)


def test_without_propensities_the_section_says_what_to_give() -> None:
    section = compared("new", 0.01, 0.2, known=False).section()
    assert section.badge == "cannot tell"
    assert section.advice.endswith("Give --propensities, or a log with swaps, to compare the rankings themselves.")
    assert [table.title for table in section.tables] == ["answers, 95 % intervals"]
    assert [section.tables[0].rows[0][column] for column in ("by", "low", "high")] == ["", "", ""]


@pytest.mark.parametrize("adjusted", [0, 1, 3])
def test_values_and_answers_never_contradict_each_other(adjusted: int) -> None:
    """A value by one number for each position is shown beside no answer that allows for other bias."""
    plain = compared("new", 0.01, 0.2)
    plain = replace(plain, assumption=Assumption.of_test(found_by(2, 0.9, 0.02)))
    by_value = [replace(plain.value, adjusted=number < adjusted) for number in range(3)]
    found = replace(plain, value=by_value[0], value_against_shown=by_value[1], value_against_raw_clicks=by_value[2])
    section = found.section()
    assert ("value" in section.tables[0].rows[0]) is (adjusted == 0)
    assert ("mean" in section.numbers["values"]["raw"]) is (adjusted == 0)
    assert section.numbers["values"]["raw"]["effective_clicks"] == 3
    assert section.tables[0].title == (
        "evidence of each value" if adjusted else "value, 95 % intervals with the propensities taken for known"
    )
    for made in (section, ranked([found, plain] if adjusted < 3 else [found, found])):
        assert ("may name the worse ranker" in made.advice) is (adjusted < 3)
        assert ("The answers by value allow for that" in made.advice) is (adjusted == 3)
        assert "One number for each position is not enough (p = 0.020): groups of documents lose clicks" in made.advice


def test_of_many_what_cannot_be_told_comes_with_its_reason_once() -> None:
    found = [compared(name, 0, 1, known=False) for name in ("one", "two")] + [compared("better", 0.1, 0.3)]
    advice = ranked(found).advice
    assert advice.count("cannot tell: the propensities are not identified") == 1
    assert "one, two and raw: cannot tell: the propensities are not identified." in advice
    assert "better and raw" not in advice


def test_answers_with_one_reason_stand_together() -> None:
    parts = compared("new", 0.01, 0.2, known=False).parts()
    assert [part.badge for part in parts] == ["cannot tell", "yes"]
    assert parts[0].title.count("ranks better than") == 3
    assert parts[0].answer == "The propensities are not identified."


def test_of_many_the_best_comes_first_and_the_unknown_last() -> None:
    found = [compared("worse", -0.3, -0.1), compared("unknown", 0, 1, known=False), compared("better", 0.1, 0.3)]
    section = ranked(found)
    assert section.title == "Which ranks better than raw?"
    (table,) = section.tables
    assert [(row["ranker"], row["better than raw"]) for row in table.rows] == [
        ("better", "yes"),
        ("worse", "no"),
        ("unknown", "cannot tell"),
    ]
    assert "with 3 rankers" in section.advice
    assert list(section.numbers) == ["better", "worse", "unknown"]


def test_intervals_for_many_looks_say_so_and_a_notebook_shows_all_of_it() -> None:
    found = compared("new", 0.01, 0.2, looks=20)
    assert found.section().tables[1].title == "answers, 95 % intervals for 20 looks"
    shown = found._repr_html_()
    assert shown is not None
    assert "Does new rank better than raw?" in shown
    assert "ranks better than the lists as shown" in shown


def test_it_is_said_why_an_interval_without_0_is_nothing_to_go_by() -> None:
    weak = Answer(CANNOT_TELL, "too little support: 5 clicks", difference=Interval(0.2, 0.1, 0.3), supported=False)
    found = replace(compared("new", 0.01, 0.2), value_against_raw_clicks=weak)
    said = "Whether new ranks better than raw clicks (rates on other pages): cannot tell, too little support: 5 clicks."
    assert found.section().advice.endswith(said)
    assert "Whether" not in replace(found, value=weak).section().advice, "it is said at the top"

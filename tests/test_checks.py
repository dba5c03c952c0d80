from __future__ import annotations

import pytest

from ultr import checks
from ultr.errors import OptionError


def test_an_unknown_choice_lists_the_choices_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"^measure must be one of nDCG, MRR, got 'ndgc'; did you mean 'nDCG'\?$"):
        checks.one_of("measure", "ndgc", ["nDCG", "MRR"])


def test_of_very_many_choices_some_are_listed() -> None:
    names = [f"q{number:03}" for number in range(300)]
    with pytest.raises(OptionError, match=r"q038, q039 and 260 more, got 'q3000'; did you mean 'q"):
        checks.one_of("query", "q3000", names)


def test_a_choice_like_no_other_gets_no_hint() -> None:
    with pytest.raises(OptionError, match=r"got 'xyz'$"):
        checks.one_of("measure", "xyz", ["nDCG", "MRR"])


@pytest.mark.parametrize("value", [0, -3, 1.0, True, "2", None])
def test_what_is_no_integer_of_at_least_one_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match="steps must be an integer of at least 1"):
        checks.integer("steps", value, at_least=1)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", True])
def test_what_is_no_positive_number_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match="rate must be a number above 0"):
        checks.positive("rate", value)


@pytest.mark.parametrize("value", [0, 1.01, float("nan"), "1"])
def test_what_is_no_share_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match=r"part must be a share in \(0, 1\]"):
        checks.share("part", value)


def test_good_values_come_back() -> None:
    assert checks.integer("steps", 3, at_least=1) == 3
    assert checks.positive("rate", 0.5) == 0.5
    assert checks.share("part", 1) == 1.0

"""Checks of arguments: each gives the value back or raises one clear sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Real

from ultr.errors import OptionError

LONGEST = 100


MOST_CHOICES = 40
"""Of more choices, the first are listed."""


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """`value` if it is one of `choices`; else an error that lists them and names the closest.

    >>> one_of("recipe", "paper", ["collapsed", "paper"])
    'paper'
    """
    known = list(choices)
    if value in known:
        return value
    folded = {choice.casefold(): choice for choice in known}
    near = get_close_matches(str(value).casefold(), folded, n=1)
    hint = f"; did you mean {folded[near[0]]!r}?" if near else ""
    more = f" and {len(known) - MOST_CHOICES:,} more" if len(known) > MOST_CHOICES else ""
    listed = ", ".join(known[:MOST_CHOICES])
    raise OptionError(f"{name} must be one of {listed}{more}, got {shown(value)}{hint}")


def integer(name: str, value: object, *, at_least: int) -> int:
    """`value` as an int that is not smaller than `at_least` and fits into 63 bits."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not at_least <= int(value) < 2**63:
        raise OptionError(f"{name} must be an integer of at least {at_least}, got {shown(value)}")
    return int(value)


def boolean(name: str, value: object) -> bool:
    """`value` if it is True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be True or False, got {shown(value)}")
    return value


def sizes(name: str, value: object) -> tuple[int, ...]:
    """`value` as a tuple of at least one positive integer."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise OptionError(f"{name} must be a tuple of layer sizes such as (128, 64), got {shown(value)}")
    return tuple(integer(f"each size in {name}", size, at_least=1) for size in value)


def positive(name: str, value: object) -> float:
    """`value` as a finite float above zero."""
    if not 0 < (number := _number(value)) < math.inf:
        raise OptionError(f"{name} must be a number above 0, got {shown(value)}")
    return number


def not_negative(name: str, value: object) -> float:
    """`value` as a finite float of at least zero."""
    if not 0 <= (number := _number(value)) < math.inf:
        raise OptionError(f"{name} must be a number of at least 0, got {shown(value)}")
    return number


def share(name: str, value: object) -> float:
    """`value` as a float in (0, 1]."""
    if not 0 < (number := _number(value)) <= 1:
        raise OptionError(f"{name} must be a share in (0, 1], got {shown(value)}")
    return number


def shown(value: object) -> str:
    """A value as Python writes it, in a length that fits into a sentence."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _number(value: object) -> float:
    """`value` as a float; NaN for what is no number, and infinity for what is too large."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf

"""Numbers and names of things in words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, one: str, several: str = "") -> str:
    """A number with its noun, and with what agrees with it.

    >>> counted(1, "page"), counted(1_200, "page"), counted(1, "row was", "rows were")
    ('1 page', '1,200 pages', '1 row was')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def and_list(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> and_list(["a"]), and_list(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

"""Numbers of things in words."""

from __future__ import annotations

_PLURALS = {"query": "queries"}


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "page"), counted(1_234, "page"), counted(0, "query")
    ('1 page', '1,234 pages', '0 queries')
    """
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"

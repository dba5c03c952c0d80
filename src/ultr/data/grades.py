"""What a judge said of the documents of a click log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Integers
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class Grades:
    """What a judge said of each document. It is there to examine a log; nothing is ever trained on it."""

    values: Integers
    """int32 [documents], an index into `levels`; -1 = not judged."""
    levels: tuple[str, ...]
    """From the worst to the best."""

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.dtype.kind != "i":
            raise DataError("the grades of a click log must be a flat array of integers")
        if len(set(self.levels)) < len(self.levels):
            raise DataError(f"two levels of the grades are the same: {', '.join(self.levels)}")
        if len(self.values) and not -1 <= self.values.min() <= self.values.max() < len(self.levels):
            raise DataError(f"grades must be -1 or index their {len(self.levels)} levels")

    @classmethod
    def of(cls, values: Iterable[object]) -> Grades:
        """Grades from numbers or texts; None, NaN and empty text are not judged.

        >>> Grades.of([2, 10, None, 2.5]).levels
        ('2', '2.5', '10')
        """
        texts = [written(value) for value in values]
        levels = ordered_levels({text for text in texts if text})
        place = {text: number for number, text in enumerate(levels)}
        return cls(np.array([place.get(text, -1) for text in texts], dtype=np.int32), levels)


def ordered_levels(texts: Iterable[str]) -> tuple[str, ...]:
    """Grades from the worst to the best: by number if all are numbers, else by text.

    >>> ordered_levels(["10", "-2", "1.5"]), ordered_levels(["good", "bad"])
    (('-2', '1.5', '10'), ('bad', 'good'))
    """
    known = sorted(texts)
    try:
        return tuple(sorted(known, key=float))
    except ValueError:
        return tuple(known)


def written(value: object) -> str:
    """A grade as text, whole numbers without a point; empty where there is none.

    >>> written(2.0), written(" 2.0"), written("2.5"), written(None)
    ('2', '2', '2.5', '')
    """
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    text = str(value).strip()
    whole = re.fullmatch(r"([-+]?[0-9]+)[.]0*", text)
    return whole[1] if whole else text

"""The sizes of a network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The sizes that a log gives a network."""

    features: int
    levels: tuple[int, ...]
    """The number of levels of each bias factor; empty where there are none."""

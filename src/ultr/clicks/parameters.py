"""Checks of click model parameters: each gives them back in plain Python or raises one clear sentence."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real

from ultr.errors import OptionError


def probability(name: str, value: object) -> float:
    """`value` as a float in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise OptionError(f"{name} must be a probability in [0, 1], got {value!r}")
    return float(value)


def vector(name: str, values: object, *, length: int | None = None) -> tuple[float, ...]:
    """`values` as a tuple of probabilities, one for each position."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise OptionError(f"{name} must be a list of probabilities, one for each position, got {values!r}")
    checked = tuple(probability(f"{name} at position {i + 1}", value) for i, value in enumerate(values))
    if not checked or (length is not None and len(checked) != length):
        wanted = "at least one probability" if length is None else f"{length} probabilities"
        raise OptionError(f"{name} must have {wanted}, got {len(checked)}")
    return checked


def table(name: str, rows: object, *, square: bool = False) -> tuple[tuple[float, ...], ...]:
    """`rows` as a tuple of rows of probabilities, each with one column for each position."""
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise OptionError(f"{name} must be a table of probabilities, got {rows!r}")
    checked = tuple(vector(f"row {i} of {name}", row) for i, row in enumerate(rows))
    if len({len(row) for row in checked}) != 1:
        raise OptionError(f"{name} must have at least one row, and rows of one length")
    if square and len(checked) != len(checked[0]):
        raise OptionError(f"{name} must be square, got {len(checked)} rows of {len(checked[0])} columns")
    return checked

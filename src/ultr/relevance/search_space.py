"""The values that a hyper-parameter search tries, declared beside the options that they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ultr import checks
from ultr.errors import OptionError


@dataclass(frozen=True)
class Between:
    """Numbers between two ends, both included, drawn evenly on a logarithmic scale."""

    low: float
    high: float
    whole: bool = False
    """True: integers only."""

    def check(self, name: str) -> None:
        """Raise an `OptionError` for ends that nothing lies between."""
        if not checks.positive(f"the lower end of {name}", self.low) < checks.positive(
            f"the upper end of {name}", self.high
        ):
            raise OptionError(f"the search space of {name} must go from a lower to a higher number, got {self}")

    def including(self, value: Any) -> Between:
        """The same, wide enough for this value.

        >>> Between(0.01, 0.1).including(0.5)
        Between(low=0.01, high=0.5, whole=False)
        """
        return replace(self, low=min(self.low, value), high=max(self.high, value))


@dataclass(frozen=True)
class OneOf:
    """A few values without an order."""

    values: tuple[Any, ...]

    def check(self, name: str) -> None:
        """Raise an `OptionError` for fewer than two values."""
        if not isinstance(self.values, tuple) or len(set(self.values)) < 2:
            raise OptionError(f"the search space of {name} must be a tuple of at least two values, got {self.values!r}")

    def including(self, value: Any) -> OneOf:
        """The same with this value among them.

        >>> OneOf((1, 2)).including(3)
        OneOf(values=(1, 2, 3))
        """
        return self if value in self.values else OneOf((*self.values, value))


SearchSpace: TypeAlias = Mapping[str, Between | OneOf]
"""The values to try by the name of the option."""

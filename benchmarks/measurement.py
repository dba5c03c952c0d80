"""One number that a benchmark found, and the file in which a benchmark leaves its numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev


@dataclass(frozen=True)
class Measurement:
    """One number with its unit."""

    name: str
    """What was measured, in words that say it without the table around it."""
    value: float
    unit: str
    """Such as `s`, `MB` or `lists/s`; a ratio is in `times`, a part of a whole in `share`."""
    low: float | None = None
    """With `high`, how far the value spreads over rounds or seeds, where that is known."""
    high: float | None = None
    headline: bool = False
    """Whether it is shown in the summary of all benchmarks: ratios, above all, which hold on other machines too."""

    @property
    def shown(self) -> str:
        """The value in few digits."""
        return _short(self.value)

    def __str__(self) -> str:
        spread = "" if self.low is None or self.high is None else f" ({_short(self.low)} to {_short(self.high)})"
        return f"{self.name:<70} {self.shown:>12} {self.unit}{spread}"


def write(measurements: Iterable[Measurement], path: Path | None) -> None:
    """Leave the numbers of a benchmark in a JSON file; without a path, nowhere."""
    if path is not None:
        path.write_text(json.dumps([asdict(each) for each in measurements], indent=2) + "\n")


def read(path: Path) -> list[Measurement]:
    """What `write` left."""
    return [Measurement(**each) for each in json.loads(path.read_text())]


def with_error(values: Sequence[float], *, sign: str = "+") -> str:
    """The mean over seeds and its standard error, such as `+0.0163 +- 0.0021`."""
    spread = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{mean(values):{sign}.4f} +- {spread:.4f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"

"""Measures of rankings: a name and a cutoff, written `nDCG@10`, or a function of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, signature

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.metrics import ranking
from ultr.metrics.ranked_lists import Scores

METRICS: dict[str, Callable[..., Doubles]] = {
    "nDCG": ranking.ndcg,
    "MRR": ranking.reciprocal_rank,
    "MAP": ranking.average_precision,
    "ERR": ranking.expected_reciprocal_rank,
    "ARP": ranking.average_relevance_position,
    "P": ranking.precision,
}
"""The functions behind the names; their parameters say whether they have a cutoff and whether they need one."""
_BY_FOLDED_NAME = {name.casefold(): name for name in METRICS}


@dataclass(frozen=True)
class Measure:
    """A measure of rankings, such as nDCG@10.

    >>> Measure.parse("ndcg@10")
    Measure(name='nDCG', cutoff=10)
    >>> print(Measure("MRR"))
    MRR
    """

    name: str
    """One of nDCG, MRR, MAP, ERR, ARP, P, or what a function of one's own is called."""
    cutoff: int | None = None
    """Only the ranks up to this one count; None for the whole list."""
    metric: Callable[..., Doubles] | None = field(default=None, repr=False)
    """A function of one's own, `f(scores, labels, offsets)` -> a value for each list; see `Measure.of`."""

    def __post_init__(self) -> None:
        if self.metric is None:
            checks.one_of("measure", self.name, METRICS)
        if self.cutoff is not None:
            checks.integer(f"the cutoff of {self.name}", self.cutoff, at_least=1)
        asked = self._parameters().get("cutoff")
        if asked is None and self.cutoff is not None:
            raise OptionError(f"{self.name} is about the whole list; write {self.name} without a cutoff")
        if asked is not None and asked.default is Parameter.empty and self.cutoff is None:
            way_out = f"Measure({self.name!r}, 5, {self.name})" if self.metric else f"{self.name}@5"
            raise OptionError(f"{self.name} needs a cutoff; write for example {way_out}")

    @classmethod
    def of(cls, measure: str | Measure | Callable[..., Doubles]) -> Measure:
        """A measure by its name or by a function `f(scores, labels, offsets)` that gives a value for each list.

        The function is called by its `__name__`. If a lower value is better, it has `higher_is_better = False`. A
        keyword `max_label`, if it has one, gets the highest grade of the data set.

        >>> def longest(scores, labels, offsets):
        ...     return np.diff(offsets).astype(float)
        >>> print(Measure.of(longest))
        longest
        """
        if isinstance(measure, Measure):
            return measure
        if isinstance(measure, str):
            return cls.parse(measure)
        name = getattr(measure, "__name__", None)
        if not callable(measure) or not name:
            raise OptionError(
                f"a measure must be a name such as 'nDCG@10' or a function with a __name__, got {measure!r}"
            )
        return cls(name, metric=measure)

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure that prints as `text`; upper and lower case are alike."""
        name, at, cutoff = text.strip().partition("@")
        name = _BY_FOLDED_NAME.get(name.casefold(), name)
        checks.one_of("measure", name, METRICS)
        if not at:
            return cls(name)
        if not re.fullmatch("[1-9][0-9]{0,8}", cutoff):
            raise OptionError(f"the cutoff of {name} must be an integer of at least 1, got {cutoff!r} in {text!r}")
        return cls(name, int(cutoff))

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    @property
    def higher_is_better(self) -> bool:
        """True if a better ranker has a higher value."""
        return bool(getattr(self._function(), "higher_is_better", True))

    def compute(self, scores: Scores, judged: JudgedLists) -> Doubles:
        """The value of each query, NaN for queries without a relevant document.

        >>> judged = JudgedLists.of(features=np.eye(3), labels=[0, 1, 0], offsets=[0, 2, 3])
        >>> Measure("MRR").compute(np.array([0.9, 0.1, 0.5]), judged).tolist()
        [0.5, nan]
        """
        return self.values(scores, judged.labels, judged.offsets, max_label=judged.max_label)

    def values(self, scores: Scores, labels: Integers, offsets: Integers, *, max_label: int) -> Doubles:
        """The value of each list, from plain arrays."""
        given = {"cutoff": self.cutoff, "max_label": max_label}
        known = {name: value for name, value in given.items() if name in self._parameters()}
        values = self._function()(scores, labels, offsets, **known)
        found = np.asarray(values)
        if found.shape != (len(offsets) - 1,) or found.dtype.kind not in "fiub":
            raise DataError(
                f"measure {self} must give one number for each of {len(offsets) - 1} lists, "
                f"got {type(values).__name__} of shape {list(found.shape)}"
            )
        return found.astype(np.float64, copy=False)

    def _function(self) -> Callable[..., Doubles]:
        return METRICS[self.name] if self.metric is None else self.metric

    def _parameters(self) -> dict[str, Parameter]:
        try:
            return dict(signature(self._function()).parameters)
        except (TypeError, ValueError):  # a builtin without a signature
            return {}


def value_range(measure: str) -> tuple[float, float]:
    """The least and the largest value that a measure of this name can have: a share, unless it is ARP or one's own.

    >>> value_range("nDCG@10"), value_range("ARP")
    ((0.0, 1.0), (-inf, inf))
    """
    name = measure.partition("@")[0]
    return (0.0, 1.0) if name in METRICS and name != "ARP" else (-np.inf, np.inf)


def mean(values: Doubles) -> float:
    """The mean over the queries that have a value, that is, at least one relevant document.

    >>> mean(np.array([0.5, np.nan, 1.0]))
    0.75
    """
    known = values[~np.isnan(values)]
    if not len(known):
        raise DataError(f"none of {len(values)} queries has a relevant document to measure; check the labels")
    return float(known.mean())

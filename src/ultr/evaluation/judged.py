"""A ranker against judged lists: measures with intervals, and comparison of two rankers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.judged import JudgedLists
from ultr.errors import OptionError
from ultr.metrics import Interval, Measure, PairedTest, bootstrap_interval, mean, paired_test, value_range
from ultr.notebook import as_html

DEFAULT_MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")
Measures: TypeAlias = Sequence[str | Measure | Callable[..., Doubles]]
"""Names, `Measure` values, or functions `f(scores, labels, offsets)` that give a value for each query."""


class RankerLike(Protocol):
    """Anything that scores candidates."""

    def score(self, features: Floats, offsets: Integers) -> Floats:
        """Scores, higher is better."""
        ...


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of each measure for each query."""

    values: dict[str, Doubles]
    """By measure, such as nDCG@10; NaN for queries without a relevant document."""

    def _repr_html_(self) -> str:
        rows = []
        for measure, values in self.values.items():
            found = self.interval(measure)
            ends = {"low": f"{found.low:.4f}", "high": f"{found.high:.4f}"}
            queries = {"queries": f"{int((~np.isnan(values)).sum()):,}"}
            rows.append({"measure": measure, "mean": f"{found.mean:.4f}"} | ends | queries)
        return as_html("means over queries with 95 % intervals", rows)

    def mean(self, measure: str) -> float:
        """The mean over the queries that have a relevant document."""
        return mean(self.values[measure])

    def interval(self, measure: str, *, level: float = 0.95) -> Interval:
        """The mean with its bootstrap interval over queries, cut off where the measure ends."""
        found, (least, most) = bootstrap_interval(self.values[measure], level=level), value_range(measure)
        return replace(found, low=max(found.low, least), high=min(found.high, most))

    def against(self, other: Evaluation, measure: str) -> PairedTest:
        """The lead of this ranker's value over the other's on the same queries, tested against chance."""
        return paired_test(self.values[measure], other.values[measure])


def evaluate(ranker: RankerLike, judged: JudgedLists, measures: Measures = DEFAULT_MEASURES) -> Evaluation:
    """Measure a ranker on judged lists, by names such as `nDCG@10` and by functions of one's own (`Measure.of`).

    Features are matched by name: in another order they are the same, missing and unknown ones are refused.
    """
    if not isinstance(judged, JudgedLists):
        raise OptionError(
            f"a ranker is measured on JudgedLists, got {type(judged).__name__}; "
            "make them with JudgedLists.of, ultr.read_table or ultr.read_svmlight"
        )
    known = judged.with_features(getattr(getattr(ranker, "ranker_", ranker), "feature_names", judged.feature_names))
    scores = ranker.score(known.features, known.offsets)
    return of_scores(scores, judged, measures)


def of_scores(scores: Floats | Doubles, judged: JudgedLists, measures: Measures = DEFAULT_MEASURES) -> Evaluation:
    """Measure scores of judged lists."""
    asked = [Measure.of(measure) for measure in ([measures] if isinstance(measures, str) else measures)]
    named = {str(measure): measure for measure in asked}
    for measure in asked:
        if named[str(measure)] != measure:
            raise OptionError(f"there are two measures called {measure}; give one of the functions another name")
    return Evaluation({name: measure.compute(scores, judged) for name, measure in named.items()})


def gap_closed(value: float, *, lower: float, upper: float) -> float:
    """The share of the way from the lower to the upper bound: 0 is no better than raw clicks, 1 is as good as labels.

    >>> gap_closed(0.75, lower=0.7, upper=0.8)
    0.5
    """
    return float("nan") if upper == lower else round((value - lower) / (upper - lower), 12)

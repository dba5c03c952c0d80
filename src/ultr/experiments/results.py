"""Results of the runs of an experiment: means, deviations, gaps and significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ultr.arrays import Doubles
from ultr.evaluation import gap_closed
from ultr.experiments.spec import REFERENCES, Choice, Contender
from ultr.experiments.store import Outcome
from ultr.metrics import Measure, PairedTest, paired_test
from ultr.relevance.kinds import KINDS

OURS, LOWER, UPPER = "vectorization", "click", "label"


@dataclass(frozen=True, eq=False)
class Line:
    """One ranker over all seeds and folds."""

    contender: Contender
    outcomes: tuple[Outcome, ...]

    @property
    def label(self) -> str:
        """Name of the ranker."""
        return self.contender.label

    def by_seed(self, measure: int) -> Doubles:
        """The mean over the queries of all folds, for each seed."""
        return np.array([float(np.nanmean(values[measure])) for values in self._values.values()])

    def mean(self, measure: int) -> float:
        """The mean over seeds."""
        return float(self.by_seed(measure).mean())

    def deviation(self, measure: int) -> float:
        """The standard deviation over seeds; NaN for a single one."""
        values = self.by_seed(measure)
        return float(values.std(ddof=1)) if len(values) > 1 else float("nan")

    def per_query(self, measure: int) -> Doubles:
        """The mean over seeds for each query of all folds."""
        averaged: Doubles = np.mean([values[measure] for values in self._values.values()], axis=0)
        return averaged

    @property
    def seconds(self) -> float:
        """Mean time of training."""
        return float(np.mean([outcome.seconds for outcome in self.outcomes]))

    @property
    def validation(self) -> float:
        """Mean value of validation over seeds and folds; -inf where a run was not validated."""
        values = [-np.inf if outcome.validation is None else outcome.validation for outcome in self.outcomes]
        return float(np.mean(values))

    def called(self, label: str) -> Line:
        """The same line under another label."""
        return Line(self.contender.model_copy(update={"label": label}), self.outcomes)

    @cached_property
    def _values(self) -> dict[int, Doubles]:
        """[measures, queries of all folds] by seed."""
        seeds = dict.fromkeys(outcome.run.seed for outcome in self.outcomes)
        return {seed: np.concatenate([o.values for o in self.outcomes if o.run.seed == seed], axis=1) for seed in seeds}


@dataclass(frozen=True, eq=False)
class Results:
    """The lines of one click setting, their weights chosen in one way."""

    clicks: str
    validation: Choice
    measures: tuple[str, ...]
    lines: tuple[Line, ...]
    selected: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """For each line that validation selected from a grid, the values of validation by label of the ranker."""

    def only(self, method: str, kind: str) -> Line | None:
        """The line of a method with this kind of relevance model that learns from all it can see, if there is one."""
        found = [
            line
            for line in self.lines
            if (line.contender.method, line.contender.kind, line.contender.shown_only) == (method, kind, False)
        ]
        return found[0] if len(found) == 1 else None

    @property
    def main(self) -> int:
        """The number of the measure that decides: nDCG@10 or else the last one."""
        return self.measures.index("nDCG@10") if "nDCG@10" in self.measures else len(self.measures) - 1

    @cached_property
    def best_baseline(self) -> Line | None:
        """The best of those that are not ours and do not know more than the clicks."""
        return self.best([line for line in self.lines if line.contender.method not in (OURS, UPPER, *REFERENCES)])

    def best(self, lines: Sequence[Line], measure: int | None = None) -> Line | None:
        """The best of some lines by a measure, by default the one that decides."""
        number = self.main if measure is None else measure
        sign = 1 if Measure.parse(self.measures[number]).higher_is_better else -1
        return max(lines, key=lambda line: sign * line.mean(number), default=None)

    def gap_closed(self, line: Line) -> dict[str, float]:
        """By kind of relevance model, the share of the way from raw clicks to labels, both learned with that kind."""
        value = line.mean(self.main)
        return {kind: gap_closed(value, lower=low, upper=high) for kind, (low, high) in self.bounds.items()}

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """By kind of relevance model, what raw clicks and labels arrive at, where there is one ranker of each."""
        pairs = {kind: (self.only(LOWER, kind), self.only(UPPER, kind)) for kind in KINDS}
        means = {
            kind: (lower.mean(self.main), upper.mean(self.main))
            for kind, (lower, upper) in pairs.items()
            if lower is not None and upper is not None
        }
        return {kind: (lower, upper) for kind, (lower, upper) in means.items() if lower != upper}

    @cached_property
    def against_best(self) -> dict[str, PairedTest]:
        """By label, each line against the best baseline, query by query; without that line itself and references."""
        best = self.best_baseline
        return {
            line.label: paired_test(line.per_query(self.main), best.per_query(self.main))
            for line in self.lines
            if best is not None and line is not best and line.contender.method not in REFERENCES
        }

    def as_json(self) -> dict[str, Any]:
        """Every figure."""
        return {
            "clicks": self.clicks,
            "validation": self.validation,
            "best_baseline": None if self.best_baseline is None else self.best_baseline.label,
            "rankers": [self._line_as_json(line) for line in self.lines],
            "selected": dict(self.selected),
        }

    def _line_as_json(self, line: Line) -> dict[str, Any]:
        test = self.against_best.get(line.label)
        return {
            "label": line.label,
            **line.contender.model_dump(exclude={"label", "grid", "select"}),
            "measures": {
                measure: {
                    "mean": line.mean(number),
                    "deviation": line.deviation(number),
                    "by_seed": line.by_seed(number).tolist(),
                }
                for number, measure in enumerate(self.measures)
            },
            "gap_closed": self.gap_closed(line),
            "against_best_baseline": None if test is None else vars(test),
            "seconds": line.seconds,
        }

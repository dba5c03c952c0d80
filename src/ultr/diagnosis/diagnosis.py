"""Everything an engineer must know about a click log before training on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from shlex import quote
from typing import Any

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.exploration_plan import ExplorationPlan
from ultr.diagnosis.bias_dimension import BiasDimension
from ultr.diagnosis.drift import Drift, no_time
from ultr.diagnosis.factor_rates import ClickRates
from ultr.diagnosis.finding import Finding, Verdict
from ultr.diagnosis.gain import Gain
from ultr.diagnosis.linkage import Linkage
from ultr.diagnosis.plan import exploration_plan
from ultr.diagnosis.position_bias import PositionBias
from ultr.diagnosis.position_predictability import PositionPredictability
from ultr.diagnosis.volume import Volume
from ultr.errors import DataError
from ultr.preparation.summary import Summary

FORMAT = "ultr diagnosis 1"


@dataclass(frozen=True)
class Diagnosis:
    """All that was measured; `findings` says what it means."""

    source: str
    volume: Volume
    gain: Gain
    click_rates: ClickRates
    drift: Drift | None
    dimension: BiasDimension
    linkage: Linkage
    position_predictability: PositionPredictability
    position_bias: PositionBias

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """An answer to each question."""
        return (
            self.volume.finding(),
            self.click_rates.finding(),
            no_time() if self.drift is None else self.drift.finding(),
            self.dimension.finding(self.linkage.supported.dimension),
            self.linkage.finding(self.dimension.rank),
            self.position_predictability.finding(),
            self.position_bias.finding(),
            self.gain.finding(),
        )

    @property
    def headline(self) -> str:
        """A verdict in two sentences: can the log be debiased and how, and will it pay."""
        found = {finding.name: finding.verdict for finding in self.findings}
        if found["volume"] is Verdict.BAD:
            return "This log cannot be learned from as it is."
        if Verdict.BAD in (found["identifiability"], found["features and position"]):
            return "The bias of this log cannot be told from relevance as it is."
        return f"{self._how} {self.gain.headline}".rstrip()

    @property
    def plan(self) -> ExplorationPlan:
        """The smallest exploration that would link all positions."""
        return exploration_plan(self.linkage, pages=self.volume.pages, wanted=self.dimension.rank)

    @property
    def _how(self) -> str:
        """One sentence on how the log can be debiased."""
        if self.linkage.supported.dimension < self.dimension.rank or self.linkage.alike:
            return "This log can be debiased only as far as documents with similar features are alike."
        answer = self.dimension.scalar.answer
        if answer == "yes":
            return "This log can be debiased, and nothing speaks against one number for each position."
        if answer == "no":
            return (
                "This log can be debiased, but one number for each position is not enough: take Vectorization with "
                f"dimension {self.dimension.suggested}."
            )
        return "This log can be debiased; whether one number for each position is enough, it does not tell."

    @property
    def steps(self) -> tuple[str, ...]:
        """Things to do, the gravest first, and the commands to train."""
        order = (Verdict.BAD, Verdict.CAREFUL, Verdict.UNKNOWN)
        urgent = [f for verdict in order for f in self.findings if f.verdict is verdict and f.advice]
        steps = [f"{finding.name}: {finding.advice}" for finding in urgent]
        return tuple(steps + self._commands() if self.volume.features else steps)

    def _commands(self) -> list[str]:
        """What to train, with a network or with trees, and what to compare it with."""
        log = quote(self.source)
        train = f"ultr train --dimension {self.dimension.suggested}"
        trees = f"{train} --relevance trees --log {log} --out"
        if gaps := self.volume.features_with_gaps:
            features = "a feature" if gaps == 1 else f"{gaps} features"
            commands = [f"train: {trees} model (trees take the missing values of {features} as they are)"]
        else:
            commands = [
                f"train: {train} --log {log} --out model",
                f"trees: {trees} forest, if the engine takes trees or a feature is a category; "
                f"ultr compare model forest --log {log}",
            ]
        if not self.position_bias.by_swaps:
            kind = " --relevance trees" if gaps else ""
            commands.append(
                f"keep: ultr train click{kind} --log {log} --out raw; nothing in this log says whether "
                "debiasing helps or harms, so let users decide between the two"
            )
        elif self.dimension.scalar.answer != "no":
            commands.append(
                f"compare: ultr train inverse-propensity --log {log} --out other; ultr compare other model --log {log}"
            )
        return commands

    def as_json(self) -> dict[str, Any]:
        """Every answer and every number."""
        return {
            "format": FORMAT,
            "log": self.source,
            "headline": self.headline,
            "steps": list(self.steps),
            "findings": [finding.as_json() for finding in self.findings],
        }


def diagnose(
    log: ClickLog,
    *,
    summary: Summary | None = None,
    scores: Doubles | None = None,
    samples: int = 200,
    draws: int = 199,
    source: str = "log",
    seed: int = 0,
) -> Diagnosis:
    """Examine a click log: how much there is, how biased it is, and whether it can be debiased.

    `summary` is what `prepare` said about the raw rows; `scores`, one for each row of the log's features, are those of
    any model, to group documents by relevance where nobody judged them. `samples` resamples give the intervals,
    `draws` the p-values of the rank test.

    >>> from ultr import click_model, letor_like, simulate
    >>> judged = letor_like(train_queries=50, validation_queries=1, test_queries=1).train
    >>> found = diagnose(simulate(judged, click_model("trust"), impressions=20_000), samples=20)
    >>> [f"{finding.name}: {finding.verdict}" for finding in found.findings][:2]
    ['volume: careful', 'click rates: good']
    """
    if not log.lists or not len(log.documents):
        raise DataError("the click log shows no document; there is nothing to examine")
    if not log.clicks.any():
        raise DataError("the click log has no click; there is nothing to examine")
    return Diagnosis(
        source=source,
        volume=Volume.of(log, summary),
        gain=Gain.of(log, seed=seed),
        click_rates=ClickRates.of(log),
        drift=Drift.of(log, seed=seed),
        dimension=BiasDimension.of(log, scores=scores, draws=draws, seed=seed),
        linkage=Linkage.of(log),
        position_predictability=PositionPredictability.of(log, seed=seed),
        position_bias=PositionBias.of(log, samples=samples, seed=seed),
    )

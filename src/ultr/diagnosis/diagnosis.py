"""Everything an engineer must know about a click log before training on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from shlex import quote
from typing import Any

from ultr.arrays import Doubles
from ultr.bias.scalar_test import CLAIMS
from ultr.bias.stopping import Stopping
from ultr.data.click_log import ClickLog
from ultr.data.exploration_plan import ExplorationPlan
from ultr.diagnosis.bias_dimension import BiasDimension
from ultr.diagnosis.curves_by_page import CurvesByPage
from ultr.diagnosis.drift import Drift, no_time
from ultr.diagnosis.factor_rates import ClickRates
from ultr.diagnosis.gain import Gain
from ultr.diagnosis.linkage import Linkage
from ultr.diagnosis.plan import exploration_plan
from ultr.diagnosis.position_bias import PositionBias
from ultr.diagnosis.position_predictability import PositionPredictability
from ultr.diagnosis.stopping_users import stopping_users
from ultr.diagnosis.volume import Volume
from ultr.errors import DataError
from ultr.pages import Page, Section, Verdict, notebook
from ultr.preparation.summary import Summary

FORMAT = "ultr diagnosis 1"
SMALL = "64,32"
"""The hidden layers of a network for few clicks."""


@dataclass(frozen=True)
class Diagnosis:
    """All that was measured; `findings` says what it means."""

    source: str
    volume: Volume
    gain: Gain
    click_rates: ClickRates
    drift: Drift | None
    dimension: BiasDimension
    stopping: Stopping | None
    """None where the log does not tell."""
    linkage: Linkage
    position_predictability: PositionPredictability
    position_bias: PositionBias
    curves_by_page: CurvesByPage | None

    @cached_property
    def findings(self) -> tuple[Section, ...]:
        """An answer to each question."""
        rejected = self.dimension.scalar.rejected
        scalar = None if rejected is None else not rejected
        by_page = () if self.curves_by_page is None else (self.curves_by_page.section(scalar=not rejected),)
        return (
            self.volume.section(),
            self.click_rates.section(),
            no_time() if self.drift is None else self.drift.section(),
            self.dimension.section(self.linkage.supported.dimension, differing=self._differing),
            stopping_users(self.stopping),
            self.linkage.section(self.dimension.rank),
            self.position_predictability.section(),
            self.position_bias.section(scalar=scalar),
            *by_page,
            self.gain.section(told=self.position_bias.told),
        )

    @property
    def headline(self) -> str:
        """A verdict in two sentences: can the log be debiased and how, and will it pay."""
        if "volume" in self._bad:
            return "This log cannot be learned from as it is."
        if self._bad:
            return "The bias of this log cannot be told from relevance as it is."
        return f"{self._how} {self.gain.headline(told=self.position_bias.told)}".rstrip()

    @property
    def _bad(self) -> list[str]:
        """The names of the findings that forbid to train on the log as it is."""
        return [finding.name for finding in self.findings if finding.verdict is Verdict.BAD]

    @cached_property
    def _differing(self) -> list[str]:
        """Factors that are the same for a whole page and whose values have position curves of their own."""
        return [] if self.curves_by_page is None else self.curves_by_page.differing

    @property
    def plan(self) -> ExplorationPlan:
        """The smallest exploration that would link all positions."""
        return exploration_plan(self.linkage, pages=self.volume.pages, wanted=self.dimension.rank)

    @property
    def _how(self) -> str:
        """One sentence on how the log can be debiased."""
        linked = self.linkage.supported.dimension >= self.dimension.rank and not self.linkage.alike
        if not linked or not self.position_bias.told:
            return "This log can be debiased only as far as documents with similar features are alike."
        rejected = self.dimension.scalar.rejected
        if self._differing and not rejected:
            return f"This log can be debiased, but position bias is not the same for every {self._differing[0]}."
        then = f": take Vectorization with dimension {self.dimension.suggested}" if rejected else ""
        joint = {False: ", and", True: ", but", None: ";"}[rejected]
        return f"This log can be debiased{joint} {CLAIMS[rejected]}{then}."

    @property
    def steps(self) -> tuple[str, ...]:
        """Things to do, the gravest first, and the commands to train."""
        order = (Verdict.BAD, Verdict.CAREFUL, Verdict.UNKNOWN)
        urgent = [f for verdict in order for f in self.findings if f.verdict is verdict and f.advice]
        steps = list(dict.fromkeys(finding.advice for finding in urgent))
        if "volume" in self._bad or not self.volume.features:
            return tuple(steps)
        if self._bad:
            why = "until the above is mended, no debiased ranker can be trusted more than one by raw clicks"
            return (*steps, f"{self._keep}; {why}")
        return (*steps, *self._commands())

    @property
    def _keep(self) -> str:
        """The command for a ranker by raw clicks."""
        kind = " --relevance trees" if self.volume.features_with_gaps else self._small
        return f"keep: ultr train click{kind} --log {quote(self.source)} --out raw"

    @property
    def _small(self) -> str:
        """The option for a small network where clicks are few."""
        return f" --set hidden={SMALL}" if self.volume.few_clicks else ""

    def _commands(self) -> list[str]:
        """Commands to train with a network and with trees, and to compare what they give."""
        log = quote(self.source)
        train = f"ultr train --dimension {self.dimension.suggested}"
        trees = f"{train} --relevance trees --log {log} --out"
        if gaps := self.volume.features_with_gaps:
            features = "a feature" if gaps == 1 else f"{gaps} features"
            commands = [
                f"train: {trees} model (trees take the missing values of {features} as they are)",
                f"network: {train}{self._small} --log {log} --out network, which takes the median there and may rank "
                f"better all the same; ultr compare model network --log {log}",
            ]
        else:
            commands = [
                f"train: {train}{self._small} --log {log} --out model",
                f"trees: {trees} forest, if the engine takes trees or a feature is a category; "
                f"ultr compare model forest --log {log}",
            ]
        if not self.position_bias.told:
            why = (
                "expect no more of the other, and if they differ, let users decide"
                if self.gain.hardly
                else "nothing in this log says whether debiasing helps or harms, so let users decide between the two"
            )
            commands.append(f"{self._keep}; {why}")
        elif not self.dimension.scalar.rejected and not self._differing:
            commands.append(
                f"compare: ultr train inverse-propensity{self._small} --log {log} --out other; "
                f"ultr compare other model --log {log}"
            )
        return commands

    def page(self) -> Page:
        """A page with a section for each question."""
        return Page(
            title=f"Examination of {self.source}",
            summary=self.headline,
            steps=self.steps,
            sections=self.findings,
            command=f"ultr doctor {quote(self.source)}",
        )

    def __repr__(self) -> str:
        return f"Diagnosis of {self.source}: {self.headline}"

    def _repr_html_(self) -> str | None:
        return notebook(self.page())

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
    stopping = Stopping.of(log, seed=seed)
    return Diagnosis(
        source=source,
        volume=Volume.of(log, summary),
        gain=Gain.of(log, stopping=0.0 if stopping is None else stopping.known, seed=seed),
        click_rates=ClickRates.of(log),
        drift=Drift.of(log, seed=seed),
        dimension=BiasDimension.of(log, scores=scores, draws=draws, seed=seed),
        stopping=stopping,
        linkage=Linkage.of(log),
        position_predictability=PositionPredictability.of(log, seed=seed),
        position_bias=PositionBias.of(log, samples=samples, seed=seed),
        curves_by_page=CurvesByPage.of(log, samples=samples, seed=seed),
    )

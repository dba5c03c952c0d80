"""One run of an experiment: clicks are simulated, a ranker is trained on them and judged by labels."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ultr.arrays import Doubles
from ultr.bias import click_rate_propensities
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.model import ClickModel
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.source import Source
from ultr.datasets.splits import Splits
from ultr.errors import UltrWarning
from ultr.evaluation import Evaluation, evaluate
from ultr.evaluation.judged import of_scores
from ultr.experiments.spec import Choice, Contender, Simulation
from ultr.methods import METHODS
from ultr.methods.flat_options import estimator
from ultr.methods.pair_debias import INDEPENDENT
from ultr.methods.ranker import Ranker
from ultr.seeding import generator
from ultr.simulation.log import ceiling_scores, shown_documents, simulate
from ultr.simulation.ranking_svm import RankingSVM


@dataclass(frozen=True)
class Run:
    """All that decides what a run gives."""

    source: Source
    clicks: str
    simulation: Simulation
    contender: Contender
    validation: Choice
    measures: tuple[str, ...]
    seed: int

    @property
    def sees_clicks(self) -> bool:
        """True if clicks decide anything; labels of all candidates are the same whatever was clicked."""
        return self.contender.method != "label" or self.contender.shown_only

    def content(self) -> dict[str, Any]:
        """Everything that decides the run, defaults included, without names that change nothing."""
        ranker = self.contender.model_dump(exclude={"label", "grid", "select"})
        if self.contender.method in METHODS:
            options = estimator(METHODS[self.contender.method], self.contender.options).content()
            ranker["options"] = {name: value for name, value in options.items() if name != "seed"}
        return {
            "clicks": self.clicks if self.sees_clicks else None,
            "simulation": self.simulation.model_dump() if self.sees_clicks else None,
            "ranker": ranker,
            "validation": self.validation,
            "measures": list(self.measures),
            "seed": self.seed,
        }

    def __str__(self) -> str:
        clicks = f"{self.clicks} clicks" if self.sees_clicks else "no clicks"
        fold = f" · fold {self.source.fold}" if self.source.folder is not None or self.source.fold > 1 else ""
        return f"{self.contender.label} · {clicks} · by {self.validation}{fold} · seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Found:
    """Result of a run."""

    evaluation: Evaluation
    seconds: float
    """Seconds of training alone."""
    ranker: Ranker | None
    """None where nothing was trained."""

    @property
    def validation(self) -> float | None:
        """The value of validation that chose the weights of the last stage, if any did."""
        history = [] if self.ranker is None else self.ranker.history
        values = [each.value for each in history if each.stage == history[-1].stage and each.value is not None]
        return max(values, default=None)


def execute(run: Run, *, checkpoint: Path | None = None) -> Found:
    """Simulate, train and judge; with a `checkpoint`, a run that was stopped goes on where it was."""
    shared = data_of(run)
    test = shared.splits.test
    method = run.contender.method
    if method == "ranking-svm":
        return Found(of_scores(shared.svm.score(test.features), test, run.measures), shared.svm_seconds, None)
    if method == "click-model":
        scores = ceiling_scores(test, shared.model, readout=run.contender.readout)
        return Found(of_scores(scores, test, run.measures), 0.0, None)
    log: ClickLog = shared.log
    validation: ClickLog | JudgedLists = shared.splits.validation
    if run.validation == "clicks":
        log, validation = shared.split()
    data: ClickLog | JudgedLists = log
    if method == "label":
        data = shown_documents(shared.splits.train, log) if run.contender.shown_only else shared.splits.train
    options: dict[str, Any] = run.contender.options | {"seed": run.seed}
    if run.contender.randomised:
        options["propensities"] = tuple(shared.randomised_propensities().tolist())
    fitted = estimator(METHODS[method], options)
    started = time.perf_counter()
    with warnings.catch_warnings():
        if isinstance(shared.model, IndependentClicks):
            warnings.filterwarnings("ignore", INDEPENDENT, UltrWarning)
        ranker = fitted.fit(data, validation=validation, checkpoint=checkpoint).ranker_
    seconds = time.perf_counter() - started
    return Found(evaluate(ranker, test, run.measures), seconds, ranker)


@dataclass(frozen=True, eq=False)
class SimulatedData:
    """Data and clicks that the runs of one seed and click setting share."""

    splits: Splits
    model: ClickModel
    simulation: Simulation
    seed: int
    svm: RankingSVM
    svm_seconds: float
    log: ClickLog

    def split(self) -> tuple[ClickLog, ClickLog]:
        """Training part and held-out part of the log, where clicks choose the weights."""
        return self.log.split(seed=self.seed)

    def randomised_propensities(self) -> Doubles:
        """Propensities from a second log whose rankings are random."""
        train = self.splits.train
        log = simulate(
            train,
            self.model,
            scores=generator(self.seed, "randomised rankings").random(train.documents),
            impressions=max(train.queries, round(self.simulation.randomised * self.simulation.impressions)),
            seed=self.seed,
        )
        return click_rate_propensities(log)


def data_of(run: Run) -> SimulatedData:
    """The data and clicks of a run."""
    return simulated_data(run.source, run.clicks, run.simulation, run.seed)


@lru_cache(maxsize=1)
def simulated_data(source: Source, clicks: str, simulation: Simulation, seed: int) -> SimulatedData:
    """The data shared by the runs of a seed and click setting; the last that was asked for is kept."""
    splits, model = source.read(), click_model(clicks)
    started = time.perf_counter()
    svm = RankingSVM.fit(splits.train, share=simulation.svm_share, seed=seed)
    svm_seconds = time.perf_counter() - started
    log = simulate(
        splits.train,
        model,
        scores=svm.score(splits.train.features),
        impressions=simulation.impressions,
        rankings=simulation.rankings,
        noise=simulation.noise,
        pairs=simulation.pairs,
        seed=seed,
    )
    return SimulatedData(splits, model, simulation, seed, svm, svm_seconds, log)

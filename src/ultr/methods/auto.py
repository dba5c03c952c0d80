"""The default: raw clicks, corrected by debiased ones as far as these prove themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Mask
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.methods.click_baseline import ClickBaseline
from ultr.methods.click_weights import stopping_in
from ultr.methods.combined import CombinedObjective, mean_products
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.shrinkage import NOTHING_KEPT, Shrinkage
from ultr.methods.vector_objective import VectorObjective
from ultr.methods.vector_offset import OffsetObjective
from ultr.methods.vectorization import Vectorization
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.relevance_model import RelevanceModel
from ultr.seeding import generator as random_numbers
from ultr.train.checkpoint import Checkpoint, Record
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import Objective
from ultr.train.progress import Observer
from ultr.train.ranking_model import RankingModel
from ultr.train.stage import Models, Stage
from ultr.train.value import VALUE, Valued, value_stage

FITS = {"raw_": "raw", "": "debiased", "first_": "first half", "second_": "second half"}
"""The fits by the prefix of their relevance models, and what their stages are called.

Raw clicks come first, with the random numbers that `ClickBaseline` would draw: where nothing is kept of the correction,
the ranker is the one of that method.
"""
FEWEST = 4
"""With fewer queries (or lists, of a single query), two halves cannot agree by more than luck, and nothing is kept."""


class AutoObjective(CombinedObjective):
    """Objectives of the four fits; clicks are those of the debiased one, scores a weighted sum of all."""

    shrinkage: Shrinkage

    def __init__(self, fits: Sequence[Objective]) -> None:
        super().__init__(dict(zip(FITS, fits, strict=True)), [0.0, 1.0, 0.0, 0.0])
        self.clicks_with = self._debiased.clicks_with

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """The click logits of the debiased fit, [lists, width]."""
        return self._debiased.click_logits(r, batch)

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """The neutral logits of the debiased fit, [lists, width]."""
        return self._debiased.neutral_logits(r, batch)

    @property
    def ranks_by_click_model(self) -> bool:
        """True if the debiased fit does."""
        return self._debiased.ranks_by_click_model

    def split(self, r: Tensor) -> Sequence[Tensor]:
        """The outputs of each fit; raw clicks have one, debiased fits have equally many."""
        width = (r.shape[-1] - 1) // (len(FITS) - 1)
        return torch.split(r, [1] + [width] * (len(FITS) - 1), dim=-1)

    @property
    def clicks_by_prefix(self) -> dict[str, Objective]:
        """The objectives of the clicks by the prefixes of their fits."""
        return {prefix: fit.clicks if isinstance(fit, Valued) else fit for prefix, fit in self.by_prefix.items()}

    @property
    def stopping(self) -> float:
        """The share of users who stop after a click that the debiased fits reckon with."""
        clicks = self.clicks_by_prefix[""]
        assert isinstance(clicks, VectorObjective | OffsetObjective)
        return clicks.click_weights.stopping

    @property
    def _debiased(self) -> Objective:
        return self.by_prefix[""]


@dataclass(kw_only=True, eq=False)
class Auto(Estimator[AutoObjective]):
    """Raw clicks with a correction by debiased ones, of which as much is kept as two halves of the queries agree on.

    Debiasing trades bias for noise: on small logs, or where the old ranker was good, a debiased ranker may be worse
    than one on raw clicks. So four rankers are fitted: `Vectorization` on all queries and on each half of them, and raw
    clicks. With a the score by raw clicks and v the mean of the debiased ones, each in units of its spread,

        score = beta a + kept (v - beta a),    kept = (2 rho / (1 + rho))^2,

    where beta is the slope of v on a, and rho that of the two halves in what raw clicks do not say (a partial
    correlation). Noise differs between the halves and truth does not, so this shrinks the correction by the evidence
    for it: to raw clicks where there is none, and to debiased clicks where there is plenty. It is squared because
    halves also agree on errors that they share. Raw clicks are those of
    both halves, whose noise is thus taken off them: rho is too small rather than too large.
    """

    name: ClassVar[str] = "auto"
    by_loss: ClassVar[tuple[str, ...]] = Vectorization.by_loss

    dimension: int = 3
    """Length d of relevance and observation embeddings of the debiased fits."""
    weight_power: float = 0.5
    """In the debiased fits a click counts (click rate of its position)^-weight_power, with the weight of all kept."""
    stopping: float | Literal["auto"] = "auto"
    """In the debiased fits, the share of users who look at nothing further after a click; `auto`: as many as clicks
    below clicked documents say, if they leave no doubt."""
    vector_hidden: tuple[int, ...] = Vectorization.vector_hidden
    """With trees, sizes of the hidden layers of the networks that learn the vectors."""
    vector_steps: int | None = None
    """With trees, steps of the networks that learn the vectors; by default their recipe's."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.integer("dimension", self.dimension, at_least=1)
        self._debiased().check()

    def objective(self, factors: Sequence[Factor]) -> AutoObjective:
        """The objectives of the fits, each with a ranking by its own value if there is one."""
        fits = [method.objective(factors) for method in self._methods().values()]
        return AutoObjective(fits if self.value is None else [Valued(fit) for fit in fits])

    def models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """The relevance models of the fits, each with the prefix of its fit."""
        return {
            prefix + name: model
            for prefix, method in self._methods().items()
            for name, model in method.models(features, generator).items()
        }

    def value_models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """A model of the value for each fit."""
        return {prefix + VALUE: self.relevance.build(features, 1, generator=generator) for prefix in FITS}

    def starts_warm(self, weight: str) -> bool:
        """All but the halves: other queries make other halves, and what one has seen the other may not have seen."""
        halves = [prefix for prefix in FITS if FITS[prefix].endswith("half")]
        numbers = [list(FITS).index(prefix) for prefix in halves]
        cold = [f"models.{prefix}" for prefix in halves] + [f"objective.fits.{number}." for number in numbers]
        return not weight.startswith(tuple(cold))

    def stages(self, objective: AutoObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The stages of the fits, one after the other, each on its part of the lists."""
        estimated = replace(self, stopping=stopping_in(lists, self.stopping))
        parts, methods = self._parts(lists), estimated._methods()
        return [
            _of_fit(stage, prefix, parts.get(prefix))
            for prefix, fit in objective.clicks_by_prefix.items()
            for stage in methods[prefix].stages(fit, lists, steps)
        ]

    def value_stages(self, objective: AutoObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """For each fit a stage that learns the value on its part of the lists."""
        parts = self._parts(lists)
        return [
            _of_fit(value_stage(fit, steps), prefix, parts.get(prefix))
            for prefix, fit in objective.clicks_by_prefix.items()
        ]

    def train_model(
        self,
        model: RankingModel[AutoObjective],
        lists: TrainingLists,
        data: ClickLog | JudgedLists,
        validation: JudgedLists | ClickLog | None,
        *,
        checkpoint: Checkpoint | None,
        observer: Observer | None,
    ) -> Sequence[Record]:
        """Train the fits, and weigh them by what the halves agree on."""
        history = super().train_model(model, lists, data, validation, checkpoint=checkpoint, observer=observer)
        halved = half_of_queries(lists, seed=self.seed) is not None
        found = Shrinkage.of(mean_products(model, lists)) if halved else NOTHING_KEPT
        model.objective.shrinkage = found
        model.objective.weights.copy_(torch.tensor(found.weights))
        return history

    def chosen(self, objective: AutoObjective) -> dict[str, Any]:
        """How much of the correction is kept, and the share of users who stop."""
        found = objective.shrinkage
        return {"agreement": found.agreement, "kept": found.kept, "stopping": objective.stopping}

    def _parts(self, lists: TrainingLists) -> dict[str, Mask]:
        """The lists of the fits that do not learn from all, by prefix."""
        first = half_of_queries(lists, seed=self.seed)
        return {} if first is None else {"first_": first, "second_": ~first}

    def _methods(self) -> dict[str, Estimator]:
        """The method of each fit by its prefix."""
        debiased = self._debiased()
        raw = ClickBaseline(relevance=self.relevance, seed=self.seed)
        return dict(zip(FITS, [raw, debiased, debiased, debiased], strict=True))

    def _debiased(self) -> Vectorization:
        return Vectorization(
            relevance=self.relevance,
            dimension=self.dimension,
            weight_power=self.weight_power,
            stopping=self.stopping,
            vector_hidden=self.vector_hidden,
            vector_steps=self.vector_steps,
            seed=self.seed,
        )


def half_of_queries(lists: TrainingLists, *, seed: int) -> Mask | None:
    """The lists of a random half of the queries, [lists], or of the lists themselves where there is only one query.

    None where there are too few of them.
    """
    known, numbers = np.unique(lists.log.queries, return_inverse=True)
    if len(known) < 2:
        known, numbers = np.arange(lists.lists), np.arange(lists.lists)
    if len(known) < FEWEST:
        return None
    shuffled = random_numbers(seed, "halves").permutation(len(known))
    return shuffled[numbers] < len(known) / 2


def _of_fit(stage: Stage, prefix: str, part: Mask | None) -> Stage:
    """A stage of a method as one of a fit, with its names of relevance models and its part of the lists."""

    def named(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(prefix + name for name in names)

    def own(models: Models) -> Mapping[str, RelevanceModel]:
        return {name.removeprefix(prefix): model for name, model in models.items() if name.startswith(prefix)}

    begin, penalty = stage.begin, stage.penalty
    return replace(
        stage,
        name=f"{FITS[prefix]}, {stage.name}",
        uses=named(stage.uses),
        ranks_with=named(stage.ranks_with),
        moves=named(stage.moves),
        part=part,
        begin=None if begin is None else lambda models: begin(own(models)),
        penalty=None if penalty is None else lambda models: penalty(own(models)),
    )

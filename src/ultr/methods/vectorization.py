"""Vectorization: clicks as the dot product of a relevance and an observation vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Lineage
from ultr.errors import OptionError, WarmStartError
from ultr.methods.click_weights import AUTO, check_stopping, stopping_in
from ultr.methods.dimension import DIMENSIONS, TriedDimension, choose_dimension, hold_out
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.observation import COMBINATIONS
from ultr.methods.ranker import Ranker
from ultr.methods.vector_objective import BASE, Embeddings, VectorObjective
from ultr.methods.vector_offset import VECTORS, OffsetObjective
from ultr.relevance.mlp import MLP, Layers, Network
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.relevance_model import RelevanceModel
from ultr.relevance.trees import Trees
from ultr.train.lists import TrainingLists
from ultr.train.process_group import ProcessGroup
from ultr.train.progress import Observer
from ultr.train.stage import Models, Stage

SCHEDULES = ("sequential", "joint")
LOSSES = ("softmax", "lambdarank")
WARM_UP = 500
"""The first steps of the joint schedule, in which observation and base network keep still, as in the released code."""


@dataclass(kw_only=True, eq=False)
class Vectorization(Estimator[VectorObjective | OffsetObjective]):
    """Clicks as r(x) . o(t), ranking by projection on a base vector found for each query.

    Stage 1 trains relevance network r and observation embeddings o on clicks, list by list:

        L = - sum_i c_i log softmax_i( r(x_i) . o(t_i) )

    Stage 2 fixes o and trains a base network that predicts, with its uncertainty, under which observation
    embedding a document is likely to be seen:

        L = 1/2 sum_i sum_k [ (mu_k(x_i) - o_k(t_i))^2 / sigma_k^2(x_i) + log sigma_k^2(x_i) ] + lambda |theta_v|^2

    A query's candidates are ranked by r(x_i) . b with the base vector

        b = ( sum_i mu(x_i) / sigma^2(x_i) ) / ( sum_i 1 / sigma^2(x_i) ).

    Chen, Liu, Liu, Sun: Scalar is Not Enough: Vectorization-based Unbiased Learning to Rank, KDD 2022.
    """

    name: ClassVar[str] = "vectorization"
    by_loss: ClassVar[tuple[str, ...]] = ("base", "trees")

    dimension: int | Literal["auto"] = 3
    """Length d of relevance and observation embeddings; `auto`: the smallest of 1 to 5 that no larger one beats on
    held-out clicks beyond noise."""
    schedule: str = "sequential"
    """`sequential`: stage 2 after stage 1 (the paper). `joint`: both at once after a warm-up (its released code)."""
    combine: str = "product"
    """How the embeddings of several bias factors become one: `product` or `sum`."""
    smooth: bool = True
    """A smooth curve over the bins of a numeric bias factor; else a vector for each bin."""
    weight_power: float = 0.0
    """A click counts (click rate of its position)^-weight_power, with the weight of all clicks kept: 0, all alike; 0.5,
    one over the square root; 1, one over the rate."""
    stopping: float | Literal["auto"] = 0.0
    """Share of users who look at nothing further after a click; a click counts 1 / (share of users still there).
    `auto`: as many as clicks below clicked documents say, if they leave no doubt."""
    base_hidden: tuple[int, ...] = (32,)
    """Sizes of the base network's hidden layers; the paper's (256, 64) ranks no better and takes longer to score."""
    base_steps: int | None = None
    """Steps of stage 2; by default a third of stage 1's."""
    base_penalty: float = 0.001
    """lambda, the weight of |theta_v|^2."""
    vector_hidden: tuple[int, ...] = (64, 32)
    """With trees, sizes of the hidden layers of the network that learns the vectors; larger ones rank no better."""
    vector_steps: int | None = None
    """With trees, steps of the network that learns the vectors; by default its recipe's."""
    soft_targets: float = 0.5
    """With trees, share of the clicks that are as the network predicts them: 0, as they were; 1, only predicted."""
    loss: str = "lambdarank"
    """With trees, the loss of the forest: `lambdarank`, nDCG of debiased clicks, so that the network alone predicts
    clicks; or `softmax`, the likelihood of clicks, which both then predict together."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        if isinstance(self.dimension, str) and self.dimension != AUTO:
            raise OptionError(f"dimension must be an integer of at least 1 or {AUTO!r}, got {self.dimension!r}")
        if self.dimension != AUTO:
            checks.integer("dimension", self.dimension, at_least=1)
        checks.one_of("schedule", self.schedule, SCHEDULES)
        checks.one_of("combine", self.combine, COMBINATIONS)
        checks.boolean("smooth", self.smooth)
        checks.sizes("base_hidden", self.base_hidden)
        if self.base_steps is not None:
            checks.integer("base_steps", self.base_steps, at_least=1)
            if self.schedule == "joint":
                raise OptionError(
                    "base_steps does not go with schedule 'joint', which trains the base network all along"
                )
        checks.not_negative("base_penalty", self.base_penalty)
        checks.not_negative("weight_power", self.weight_power)
        check_stopping(self.stopping)
        self._vectors().check()
        checks.one_of("loss", self.loss, LOSSES)
        if checks.not_negative("soft_targets", self.soft_targets) > 1:
            raise OptionError(f"soft_targets must be from 0 to 1, got {self.soft_targets!r}")
        if isinstance(self.relevance, Trees):
            for name in ("schedule", "base_hidden", "base_steps", "base_penalty"):
                if getattr(self, name) != getattr(type(self), name):
                    raise OptionError(f"{name} is about a base network, which trees do without; leave it out")

    def learn(
        self,
        data: ClickLog | JudgedLists,
        validation: JudgedLists | ClickLog | None,
        *,
        init_model: Ranker | None,
        checkpoint: Path | None,
        progress: bool | Observer,
    ) -> Ranker[VectorObjective | OffsetObjective]:
        """The ranker of the given dimension, or of the one that held-out clicks choose.

        With the dimension `auto`, every candidate is trained and the validation log chooses. Where weights are
        validated by labels or not at all, a tenth of the queries (or pages, where queries are few) is put aside to
        choose and not trained on.
        """
        if self.dimension != AUTO:
            return super().learn(data, validation, init_model=init_model, checkpoint=checkpoint, progress=progress)
        if init_model is not None:
            raise WarmStartError("an earlier model has one dimension, and dimension 'auto' tries several; name one")
        assert isinstance(data, ClickLog)
        part, held_out = (data, validation) if isinstance(validation, ClickLog) else hold_out(data, seed=self.seed)
        paths = {each: Path(f"{checkpoint}-{each}") if checkpoint else None for each in DIMENSIONS}
        tried = {
            each: replace(self, dimension=each).learn(
                part, validation, init_model=None, checkpoint=path, progress=progress
            )
            for each, path in paths.items()
        }
        chosen, candidates = choose_dimension({each: ranker.click_shares for each, ranker in tried.items()}, held_out)
        for path in paths.values():
            if path is not None and ProcessGroup.of_environment().leads:
                path.unlink(missing_ok=True)
        ranker = tried[chosen]
        choices = {
            **ranker.choices,
            "dimension": chosen,
            "candidates": [vars(candidate) for candidate in candidates],
        }
        if held_out is validation or ranker.provenance is None:
            return replace(ranker, choices=choices)
        chosen_by = (*ranker.provenance.validation, Lineage.of(held_out))
        return replace(ranker, choices=choices, provenance=replace(ranker.provenance, validation=chosen_by))

    def chosen(self, objective: VectorObjective | OffsetObjective) -> dict[str, Any]:
        """The share of users who stop, where the log says it."""
        return {"stopping": objective.click_weights.stopping} if self.stopping == AUTO else {}

    def title(self) -> str:
        """Class and dimension, for the progress bar."""
        return f"{type(self).__name__} d={self.dimension}"

    @property
    def dimension_(self) -> int:
        """The dimension of the fitted ranker."""
        return self.ranker_.objective.dimension

    @property
    def candidates_(self) -> tuple[TriedDimension, ...]:
        """The dimensions that were tried, if held-out clicks chose one."""
        return tuple(TriedDimension(**candidate) for candidate in self.ranker_.choices.get("candidates", ()))

    def observation_embeddings(self) -> dict[str, Floats]:
        """The learned observation embeddings of each bias factor by its name, [levels, dimension]."""
        return Embeddings(self.ranker_).observation()

    def relevance_embeddings(self, features: Floats) -> Floats:
        """r(x) of each candidate, [candidates, dimension]."""
        return Embeddings(self.ranker_).relevance(features)

    def base_vectors(self, features: Floats, offsets: Integers) -> Floats:
        """The base vector of each query, [queries, dimension]."""
        return Embeddings(self.ranker_).base_vectors(features, offsets)

    def objective(self, factors: Sequence[Factor]) -> VectorObjective | OffsetObjective:
        """The observation embeddings."""
        dimension = int(self.dimension)
        shared: dict[str, Any] = {
            "combine": self.combine,
            "weight_power": self.weight_power,
            "stopping": self.stopping,
            "smooth": self.smooth,
        }
        if isinstance(self.relevance, Trees):
            by_network: dict[str, Any] = {"soft_targets": self.soft_targets, "predicts_clicks": self.loss == "softmax"}
            return OffsetObjective(factors, dimension, **shared, **by_network)
        return VectorObjective(factors, dimension, **shared)

    def models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """The relevance model and the base network; with trees, the forest and the network of the vectors."""
        dimension = int(self.dimension)
        if isinstance(self.relevance, Trees):
            forest = self.relevance.build(features, 1, generator=generator)
            return {"relevance": forest, "vectors": self._vectors().build(features, dimension, generator=generator)}
        relevance = self.relevance.build(features, dimension, generator=generator)
        base = Layers(features, self.base_hidden, 2 * dimension, normalise=False, generator=generator)
        return {"relevance": relevance, "base": Network(base)}

    def stages(self, objective: VectorObjective | OffsetObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """Clicks, then base (`sequential`); warm-up, then both (`joint`); vectors, then the forest (trees)."""
        objective.click_weights.set(lists, stopping=stopping_in(lists, self.stopping))
        levels, impressions, _ = lists.factor_totals()
        seen = torch.from_numpy(levels)
        shares = torch.from_numpy(impressions / impressions.sum()).float()
        if isinstance(objective, OffsetObjective):
            return self._stages_of_trees(objective, seen, shares, steps)
        objective.shown = seen, shares

        def penalty(models: Models) -> Tensor:
            squares = [parameter.square().sum() for parameter in models["base"].parameters()]
            return self.base_penalty * torch.stack(squares).sum()

        def score_on_mean(r: Tensor, _: Tensor) -> Tensor:
            # The base network starts from the mean observation: all that stage 1 can rank with.
            return objective.score_on(r, objective.mean_observation())

        def begin(models: Models) -> None:
            objective.set_units()
            base = models["base"]
            assert isinstance(base, Network)
            base.reset_outputs()

        both, readers = objective.ranks_with, objective.click_weights.readers
        observation = (objective.observation,)
        clicks = Stage("clicks", steps, objective.click_loss, score_on_mean, readers=readers, clicked_only=True)
        if self.schedule == "joint":
            warm_up = min(WARM_UP, steps // 2)
            return (
                replace(clicks, name="warm-up", steps=warm_up, select=False),
                Stage(
                    "clicks and base",
                    steps - warm_up,
                    objective.joint_loss,
                    objective.score,
                    uses=both,
                    ranks_with=both,
                    moves=both,
                    bias=observation,
                    readers=readers,
                    penalty=penalty,
                    held_out=objective.click_loss,
                ),
            )
        base_steps = self.base_steps or -(-steps // 3)
        return (
            replace(clicks, bias=observation),
            Stage(
                "base",
                base_steps,
                objective.base_loss,
                objective.score,
                uses=BASE,
                ranks_with=both,
                moves=BASE,
                penalty=penalty,
                begin=begin,
            ),
        )

    def _vectors(self) -> MLP:
        return MLP(hidden=self.vector_hidden, steps=self.vector_steps)

    def _stages_of_trees(self, objective: OffsetObjective, seen: Tensor, shares: Tensor, steps: int) -> Sequence[Stage]:
        training, readers = self._vectors().training(), objective.click_weights.readers

        def score_on_mean(r: Tensor, _: Tensor) -> Tensor:
            return objective.score_on(r, shares @ objective.observation(seen))

        return (
            Stage(
                "vectors",
                training.steps,
                objective.vector_loss,
                score_on_mean,
                uses=VECTORS,
                ranks_with=VECTORS,
                moves=VECTORS,
                bias=(objective.observation,),
                readers=readers,
                clicked_only=True,
                training=training,
            ),
            Stage(
                "trees",
                steps,
                objective.soft_loss if objective.predicts_clicks else objective.lambdarank_loss,
                objective.score,
                uses=objective.clicks_with,
                readers=readers,
                clicked_only=True,
                held_out=objective.click_loss if objective.predicts_clicks else None,
                begin=lambda _: objective.set_centre(seen, shares),
            ),
        )

"""Vectorization: clicks as the dot product of a relevance and an observation vector."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Lineage
from ultr.errors import OptionError
from ultr.losses import gaussian_loss, softmax_cross_entropy
from ultr.methods.dimension import DIMENSIONS, Candidate, choose_dimension, hold_out
from ultr.methods.estimator import Estimator
from ultr.methods.network import ClickNetwork, Shape
from ultr.nn import MLP, Observation
from ultr.nn.observation import COMBINATIONS
from ultr.train.lists import Batch, TrainingLists, pad
from ultr.train.progress import Observer
from ultr.train.stage import Stage
from ultr.train.team import Team

AUTO = "auto"
SCHEDULES = ("sequential", "joint")
WARM_UP = 500
"""The first steps of the joint schedule, in which observation and base network keep still, as in the released code."""


class VectorNetwork(ClickNetwork):
    """Relevance r(x), observation o(t) and base network (mu(x), log sigma^2(x)), all in R^d."""

    centre: Tensor
    spread: Tensor

    def __init__(self, relevance: MLP, observation: Observation, base: MLP, dimension: int) -> None:
        super().__init__()
        self.relevance = relevance
        self.observation = observation
        self.base = base
        self.register_buffer("centre", torch.zeros(dimension))
        self.register_buffer("spread", torch.ones(dimension))

    def click_logits(self, batch: Batch) -> Tensor:
        """r(x) . o(t) of each document, [lists, width]."""
        return batch.pad((self.relevance(batch.features) * self.observation(batch.factors)).sum(dim=-1))

    def click_loss(self, batch: Batch) -> Tensor:
        """List-wise softmax cross-entropy of the clicks, [lists]."""
        return softmax_cross_entropy(self.click_logits(batch), batch.clicks, mask=batch.mask)

    def base_loss(self, batch: Batch) -> Tensor:
        """How badly the base network predicts the observation embeddings, which it does not change, [lists]."""
        mean, log_variance = self.base_distribution(batch.features)
        target = self.observation(batch.factors).detach()
        return batch.pad(gaussian_loss(mean, log_variance, target)).sum(dim=-1)

    def base_distribution(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """mu(x) and log sigma^2(x) of the observation embedding under which x is seen, each [documents, dimension]."""
        mean, log_variance = self.base(inputs).chunk(2, dim=-1)
        return self.centre + self.spread * mean, 2 * self.spread.log() + log_variance

    def start_base(self, factors: Tensor, shares: Tensor) -> None:
        """Let the base network work in units of the log's observation embeddings and start at their distribution.

        Without this, their small differences are lost in the noise of the first thousands of steps.
        """
        with torch.no_grad():
            embeddings = self.observation(factors)
            self.centre.copy_(shares @ embeddings)
            self.spread.copy_((shares @ (embeddings - self.centre).square()).sqrt().clamp(min=1e-3))
            last = self.base.layers[-1]
            assert isinstance(last, nn.Linear)
            last.weight.zero_()
            last.bias.zero_()

    def base_penalty(self) -> Tensor:
        """|theta_v|^2."""
        return torch.stack([parameter.square().sum() for parameter in self.base.parameters()]).sum()

    def embed(self, inputs: Tensor) -> Tensor:
        """r(x) beside what the base network says, in its own units, [documents, 3 dimension]."""
        return torch.cat([self.relevance(inputs), self.base(inputs)], dim=-1)

    def combine(self, values: Tensor, mask: Tensor) -> Tensor:
        """r(x) projected on the base vector of its list, [lists, width]."""
        relevance, mean, log_variance = values.chunk(3, dim=-1)
        return (relevance * self._most_probable(mean, log_variance, mask)).sum(dim=-1)

    def base_vectors(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """The most probable observation embedding of each list's candidates, [lists, dimension]."""
        mean, log_variance = pad(self.base(inputs), mask).chunk(2, dim=-1)
        return self._most_probable(mean, log_variance, mask).squeeze(1)

    def _most_probable(self, mean: Tensor, log_variance: Tensor, mask: Tensor) -> Tensor:
        """Where the product of the candidates' normal densities is highest, [lists, 1, dimension]."""
        # sum_i mu_i / sigma_i^2 over sum_i 1 / sigma_i^2 is a softmax over the candidates of -log sigma^2. A weighted
        # mean in the units of the base network is one in those of the observations.
        weights = torch.where(mask.unsqueeze(-1), -log_variance, float("-inf")).softmax(dim=1)
        return self.centre + self.spread * (weights * mean).sum(dim=1, keepdim=True)

    def project(self, inputs: Tensor, mask: Tensor, vectors: Tensor) -> Tensor:
        """r(x) projected on one vector for each list, [documents]."""
        return (pad(self.relevance(inputs), mask) * vectors.unsqueeze(1)).sum(dim=-1)[mask]

    def pointwise(self, inputs: Tensor, mask: Tensor) -> MLP:
        """The relevance network with its outputs projected on the mean base vector of these lists."""
        vector = self.base_vectors(inputs, mask).mean(dim=0)
        projected = deepcopy(self.relevance)
        last = projected.layers[-1]
        assert isinstance(last, nn.Linear)
        projected.layers[-1] = replaced = nn.Linear(last.in_features, 1)
        replaced.weight.data, replaced.bias.data = vector[None] @ last.weight.data, vector[None] @ last.bias.data
        return projected


@dataclass(kw_only=True, eq=False)
class Vectorization(Estimator):
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

    dimension: int | Literal["auto"] = 3
    """Length d of relevance and observation embeddings; `auto`: the smallest of 1 to 5 that no larger one beats on
    held-out clicks beyond noise."""
    schedule: str = "sequential"
    """`sequential`: stage 2 after stage 1 (the paper). `joint`: both at once after a warm-up (its released code)."""
    combine: str = "product"
    """How the embeddings of several bias factors become one: `product` or `sum`."""
    base_hidden: tuple[int, ...] = (32,)
    """Sizes of the base network's hidden layers; the paper's (256, 64) ranks no better and takes longer to score."""
    base_steps: int | None = None
    """Steps of stage 2; by default a third of stage 1's."""
    base_penalty: float = 0.001
    """lambda, the weight of |theta_v|^2."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        if isinstance(self.dimension, str) and self.dimension != AUTO:
            raise OptionError(f"dimension must be an integer of at least 1 or {AUTO!r}, got {self.dimension!r}")
        if self.dimension != AUTO:
            checks.integer("dimension", self.dimension, at_least=1)
        checks.one_of("schedule", self.schedule, SCHEDULES)
        checks.one_of("combine", self.combine, COMBINATIONS)
        checks.sizes("base_hidden", self.base_hidden)
        if self.base_steps is not None:
            checks.integer("base_steps", self.base_steps, at_least=1)
            if self.schedule == "joint":
                raise OptionError(
                    "base_steps does not go with schedule 'joint', which trains the base network all along"
                )
        checks.not_negative("base_penalty", self.base_penalty)

    def fit(
        self,
        data: ClickLog | JudgedLists,
        *,
        validation: JudgedLists | ClickLog | None = None,
        checkpoint: str | Path | None = None,
        progress: bool | Observer = False,
    ) -> Self:
        """Learn from `data`; see `Estimator.fit`.

        `dimension_` is the length of the embeddings. With the dimension `auto`, every candidate is trained, the
        validation log chooses, and `candidates_` tells how each did. Where weights are validated by labels or not at
        all, a tenth of the queries (or pages, where queries are few) is put aside to choose and not trained on.
        """
        if self.dimension != AUTO:
            super().fit(data, validation=validation, checkpoint=checkpoint, progress=progress)
            self.take_choices({})
            return self
        self.check()
        self.check_data(data, validation)
        assert isinstance(data, ClickLog)
        part, held_out = (data, validation) if isinstance(validation, ClickLog) else hold_out(data, seed=self.seed)
        paths = {each: Path(f"{checkpoint}-{each}") if checkpoint else None for each in DIMENSIONS}
        tried = {
            each: type(self)(**self.get_params() | {"dimension": each}).fit(
                part, validation=validation, checkpoint=path, progress=progress
            )
            for each, path in paths.items()
        }
        chosen, candidates = choose_dimension({each: ranker.click_shares for each, ranker in tried.items()}, held_out)
        learned = {name: value for name, value in vars(tried[chosen]).items() if name.endswith("_")}
        vars(self).update(learned | {"candidates_": candidates})
        if held_out is not validation and self.provenance_ is not None:
            chosen_by = (*self.provenance_.validation, Lineage.of(held_out))
            self.provenance_ = replace(self.provenance_, validation=chosen_by)
        for path in paths.values():
            if path is not None and Team.of_environment().leads:
                path.unlink(missing_ok=True)
        return self

    def title(self) -> str:
        """What is being trained, dimension included."""
        return f"{type(self).__name__} d={self.dimension}"

    def choices(self) -> dict[str, Any]:
        """The dimension and what it was chosen from."""
        return {"dimension": self.dimension_, "candidates": [vars(candidate) for candidate in self.candidates_]}

    def take_choices(self, choices: dict[str, Any]) -> None:
        """Restore what `choices` gave; where nothing was left open, the dimension is that of the options."""
        chosen = choices.get("dimension") if self.dimension == AUTO else self.dimension
        self.dimension_ = checks.integer("the chosen dimension", chosen, at_least=1)
        self.candidates_ = tuple(Candidate(**candidate) for candidate in choices.get("candidates", ()))

    def observation_embeddings(self) -> dict[str, Floats]:
        """The learned observation embeddings of each bias factor by its name, [levels, dimension]."""
        self.check_fitted()
        assert isinstance(self.network_, VectorNetwork)
        tables = self.network_.observation.tables
        return {name: table.detach().numpy() for (name, _), table in zip(self.factors_, tables, strict=True)}

    @torch.no_grad()
    def relevance_embeddings(self, features: Floats) -> Floats:
        """r(x) of each candidate, [candidates, dimension]."""
        self.check_fitted()
        assert isinstance(self.network_, VectorNetwork)
        embeddings: Floats = self.network_.relevance(self.inputs(features).gather(torch.arange(len(features)))).numpy()
        return embeddings

    @torch.no_grad()
    def base_vectors(self, features: Floats, offsets: Integers) -> Floats:
        """The base vector of each query, [queries, dimension]."""
        self.check_fitted()
        assert isinstance(self.network_, VectorNetwork)
        ragged.check_offsets(offsets, len(features), what="candidates")
        mask = torch.from_numpy(ragged.mask(offsets, width=int(np.diff(offsets).max(initial=1))))
        inputs = self.inputs(features).gather(torch.arange(len(features)))
        return self.network_.base_vectors(inputs, mask).numpy()

    def build(self, shape: Shape, generator: torch.Generator) -> VectorNetwork:
        """The three networks."""
        dimension = self.dimension_ if self.dimension == AUTO else int(self.dimension)
        return VectorNetwork(
            MLP(shape.features, self.hidden, dimension, normalise=True, generator=generator),
            Observation(shape.levels, dimension, combine=self.combine),
            MLP(shape.features, self.base_hidden, 2 * dimension, normalise=False, generator=generator),
            dimension,
        )

    def stages(self, network: VectorNetwork, lists: TrainingLists) -> Sequence[Stage]:
        """Clicks, then base (`sequential`); warm-up, then both (`joint`)."""
        steps = self.first_stage_steps()
        base_steps = self.base_steps or -(-steps // 3)
        relevance, observation, base = network.relevance, network.observation, network.base

        def penalty() -> Tensor:
            return self.base_penalty * network.base_penalty()

        def both(batch: Batch) -> Tensor:
            # As released: the mean over documents and dimensions, so that it does not drown the clicks in the clipping.
            scale = 2 / (batch.mask.sum(dim=-1) * len(network.centre))
            return network.click_loss(batch) + scale * network.base_loss(batch)

        factors, shares = _distinct_factors(lists)

        def score_on_mean(inputs: Tensor, mask: Tensor) -> Tensor:
            # What the base network starts from: all that stage 1 can rank with.
            mean = shares @ network.observation(factors)
            return network.project(inputs, mask, mean.expand(len(mask), -1))

        def begin() -> None:
            network.start_base(factors, shares)

        if self.schedule == "joint":
            warm_up = min(WARM_UP, steps // 2)
            everything = (relevance, observation, base)
            return (
                Stage("warm-up", warm_up, network.click_loss, (relevance,), score_on_mean, select=False),
                Stage(
                    "clicks and base",
                    steps - warm_up,
                    both,
                    everything,
                    network.score,
                    penalty,
                    held_out=network.click_loss,
                ),
            )
        return (
            Stage("clicks", steps, network.click_loss, (relevance, observation), score_on_mean),
            Stage("base", base_steps, network.base_loss, (base,), network.score, penalty, begin=begin),
        )


def _distinct_factors(lists: TrainingLists) -> tuple[Tensor, Tensor]:
    """The combinations of bias-factor levels in the log, [combinations, factors], and the share of each."""
    levels, impressions, _ = lists.factor_totals()
    return torch.from_numpy(levels), torch.from_numpy(impressions / impressions.sum()).float()

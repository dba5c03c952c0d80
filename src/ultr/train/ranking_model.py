"""All that training moves: the relevance models of a method and its objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, cast

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from ultr.relevance.inputs import Documents
from ultr.relevance.relevance_model import RelevanceModel
from ultr.train.bounded import LOGGED, Bounded
from ultr.train.lists import Batch
from ultr.train.objective import Objective
from ultr.train.stage import Models, Stage
from ultr.train.value import VALUE, ByValue

ObjectiveT = TypeVar("ObjectiveT", bound=Objective, default=Any)


class RankingModel(nn.Module, Generic[ObjectiveT]):
    """Relevance models by name, and the objective that makes clicks and scores of their outputs."""

    factor: Tensor
    """The factor by which exposure may move, where one of the models knows the logged order."""

    def __init__(self, models: Mapping[str, RelevanceModel], objective: ObjectiveT) -> None:
        super().__init__()
        self.models = nn.ModuleDict(models)
        self.objective = objective
        if LOGGED in models:
            self.register_buffer("factor", torch.tensor(1.0))

    @property
    def by_name(self) -> Models:
        """The relevance models by name."""
        return cast("Models", self.models)

    def outputs(self, documents: Documents, names: Sequence[str]) -> Tensor:
        """The outputs of these relevance models side by side, [documents, outputs]."""
        found = [self.models[name](documents) for name in names]
        return found[0] if len(found) == 1 else torch.cat(found, dim=-1)

    def losses(self, stage: Stage, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The loss of each list of a batch by a stage, and the sums for its `update` if there are any."""
        if stage.slopes:
            batch.documents.preprocessed.requires_grad_()
        return stage.losses(self.outputs(batch.documents, stage.uses), batch)

    @property
    def ranking(self) -> Objective:
        """The objective that makes the scores: the method's own, or that of the value where one is learned beside it.

        Where a model knows the logged order, the scores are bounded by it.
        """
        beside = VALUE in self.models and VALUE not in self.objective.ranks_with
        free = ByValue() if beside else self.objective
        return Bounded(free, self.factor) if LOGGED in self.models else free

    @property
    def scoring(self) -> Models:
        """The relevance models that scores are made of, by name."""
        return {name: self.by_name[name] for name in self.ranking.ranks_with}

    @property
    def takes_missing(self) -> bool:
        """Whether scores know a missing value for what it is, as trees do."""
        return all(model.takes_missing for model in self.scoring.values())

    def score(self, documents: Documents, mask: Tensor) -> Tensor:
        """The score of each document of some lists, [documents]."""
        ranking = self.ranking
        return ranking.score(self.outputs(documents, ranking.ranks_with), mask)

    def train_only(self, stage: Stage | None) -> None:
        """Let the parameters move that a stage trains, and no others; None fixes all."""
        self.objective.requires_grad_(False)
        for model in self.by_name.values():
            model.requires_grad_(False)
        for parameter in self.parameters():
            parameter.grad = None
        if stage is not None:
            for module in (*(self.models[name] for name in stage.moves), *stage.bias):
                module.requires_grad_(True)

    def copy_state(self) -> dict[str, Tensor]:
        """A copy of all that was learned."""
        return {name: value.detach().clone() for name, value in self.state_dict().items()}

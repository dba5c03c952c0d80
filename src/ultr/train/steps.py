"""The steps of a stage: what the loop calls, whether a step sees a few lists or all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch

from ultr.arrays import Integers
from ultr.relevance.recipe import Training
from ultr.seeding import generator
from ultr.train.lists import TrainingLists
from ultr.train.process_group import ProcessGroup
from ultr.train.ranking_model import RankingModel
from ultr.train.stage import Stage


@dataclass
class Steps(ABC):
    """The steps of a stage; each depends on its number alone, so that a resumed run takes the same ones."""

    model: RankingModel
    stage: Stage
    number: int
    """The number of the stage."""
    lists: TrainingLists
    optimizer: torch.optim.Optimizer
    training: Training
    group: ProcessGroup
    seed: int

    @abstractmethod
    def __call__(self, step: int) -> float:
        """Take this step and give its mean loss; a `FloatingPointError` leaves the weights where they were."""

    @property
    def weights(self) -> Integers:
        """The impressions of each list, 0 for those that the stage does not train on, [lists]."""
        impressions, part = self.lists.impressions, self.stage.part
        return impressions if part is None else np.where(part, impressions, 0)

    def random(self, purpose: str, step: int) -> np.random.Generator:
        """The random numbers of one purpose in one step."""
        return generator(self.seed, f"{purpose} {self.number}", step)

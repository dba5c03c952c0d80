"""Several fits that rank together, by a weighted sum of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ultr.arrays import Doubles
from ultr.train.lists import TrainingLists, pad
from ultr.train.objective import Objective
from ultr.train.ranking_model import RankingModel
from ultr.train.selection import chunks

MOST_LISTS = 20_000
"""Most lists that scores of fits are compared on."""


class CombinedObjective(Objective):
    """Objectives of several fits, each with relevance models under a prefix of its own; scores are a weighted sum."""

    weights: Tensor

    def __init__(self, fits: Mapping[str, Objective], weights: Sequence[float]) -> None:
        super().__init__()
        self.prefixes = tuple(fits)
        self.fits = nn.ModuleList(fits.values())
        self.ranks_with = tuple(prefix + name for prefix, fit in fits.items() for name in fit.ranks_with)
        self.register_buffer("weights", torch.tensor(weights))

    @property
    def by_prefix(self) -> dict[str, Objective]:
        """The objectives of the fits by their prefixes."""
        fits = [fit for fit in self.fits if isinstance(fit, Objective)]
        return dict(zip(self.prefixes, fits, strict=True))

    @property
    def by_list(self) -> bool:
        """True if the list adds to the scores of any fit."""
        return any(fit.by_list for fit in self.by_prefix.values())

    def combine(self, r: Tensor, mask: Tensor) -> Tensor:
        """The weighted sum of the scores of the fits, [lists, width]."""
        return (self.scores(r, mask) * self.weights).sum(dim=-1)

    def scores(self, r: Tensor, mask: Tensor) -> Tensor:
        """The score by each fit, [lists, width, fits]."""
        fits = zip(self.by_prefix.values(), self.split(r), strict=True)
        return torch.stack([fit.combine(own, mask) for fit, own in fits], dim=-1)

    def direction(self, r: Tensor, mask: Tensor) -> Tensor:
        """That of the first fit."""
        return self.directions(r, mask)[self.ranks_with[0]]

    def directions(self, r: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """For each fit its own directions, times its weight."""
        fits = zip(self.by_prefix.items(), self.split(r), self.weights.cpu(), strict=True)
        return {
            prefix + name: weight * vector
            for (prefix, fit), own, weight in fits
            for name, vector in fit.directions(own, mask).items()
        }

    def split(self, r: Tensor) -> Sequence[Tensor]:
        """The outputs of each fit; by default they have equally many."""
        return torch.split(r, r.shape[-1] // len(self.fits), dim=-1)


Combined = TypeVar("Combined", bound=CombinedObjective)


@torch.no_grad()
def mean_products(model: RankingModel[Combined], lists: TrainingLists) -> Doubles:
    """Mean products of the scores by all fits, less their means in each list, [fits, fits]."""
    chosen = np.arange(0, lists.lists, -(-lists.lists // MOST_LISTS))
    lengths = (lists.offsets[1:] - lists.offsets[:-1])[chosen]
    objective = model.objective
    sums, documents = np.zeros((len(objective.fits), len(objective.fits))), 0
    for chunk in chunks(np.concatenate([[0], np.cumsum(lengths)])):
        batch = lists.batch(chosen[chunk])
        r = model.outputs(batch.documents, objective.ranks_with)
        mask = batch.mask.to(r.device)
        scores = objective.scores(pad(r, mask), mask).double().masked_fill(~mask.unsqueeze(-1), 0.0)
        centred = scores - scores.sum(dim=1, keepdim=True) / mask.sum(dim=1)[:, None, None]
        flat = centred[mask].cpu().numpy()
        sums += flat.T @ flat
        documents += len(flat)
    return sums / max(documents, 1)

"""One ranker out of several that differ by their seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.methods.click_weights import AUTO
from ultr.methods.combined import CombinedObjective, mean_products
from ultr.methods.ranker import Ranker
from ultr.metrics.reliability import inverse_spreads
from ultr.relevance.inputs import Inputs
from ultr.train.lists import Batch
from ultr.train.objective import Objective
from ultr.train.process_group import ProcessGroup
from ultr.train.progress import Observer
from ultr.train.ranking_model import RankingModel
from ultr.train.value import ByValue, Valued

if TYPE_CHECKING:
    from ultr.methods.estimator import Estimator


class AveragedObjective(CombinedObjective):
    """Objectives of fits with several seeds: the mean of their scores, each in units of its spread within lists.

    Clicks are predicted by the mean of their logits.
    """

    def __init__(self, fits: Sequence[Objective]) -> None:
        super().__init__({_prefix(number): fit for number, fit in enumerate(fits)}, [1 / len(fits)] * len(fits))
        self.clicks_with = tuple(prefix + name for prefix, fit in self.by_prefix.items() for name in fit.clicks_with)

    def __getattr__(self, name: str) -> Any:
        """A part of it; what each fit has learned for itself, such as propensities, is refused in a sentence."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            message = f"{name} is learned with each seed apart; train with seeds=1 to look at it"
            raise AttributeError(message) from None

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """The mean of the click logits of the fits, [lists, width]."""
        return torch.stack([fit.click_logits(own, batch) for fit, own in self._with_outputs(r)]).mean(dim=0)

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """The mean of the neutral logits of the fits, [lists, width]."""
        return torch.stack([fit.neutral_logits(own, batch) for fit, own in self._with_outputs(r)]).mean(dim=0)

    def click_probabilities(self, r: Tensor, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """Their product with the number of clicks of a list that the fits predict on the mean, [lists, width]."""
        found = [
            fit.click_probabilities(own, batch, clicks_per_impression=clicks_per_impression)
            for fit, own in self._with_outputs(r)
        ]
        clicks = torch.stack(found).mean(dim=0).sum(dim=-1, keepdim=True)
        return (self.click_shares(r, batch) * clicks).clamp(max=1.0)

    def _with_outputs(self, r: Tensor) -> list[tuple[Objective, Tensor]]:
        return list(zip(self.by_prefix.values(), self.split(r), strict=True))


def averaged_model(models: Sequence[RankingModel]) -> RankingModel[Any]:
    """One model out of several, with equal weights."""
    named = {
        _prefix(number) + name: model for number, each in enumerate(models) for name, model in each.by_name.items()
    }
    fits = [Valued(model.objective) if isinstance(model.ranking, ByValue) else model.objective for model in models]
    return RankingModel(named, AveragedObjective(fits))


def learn_averaged(
    estimator: Estimator,
    data: ClickLog | JudgedLists,
    validation: JudgedLists | ClickLog | None,
    *,
    checkpoint: Path | None,
    progress: bool | Observer,
) -> Ranker[Any]:
    """Train a ranker with each seed, one after the other, and put them together."""
    rankers: list[Ranker] = []
    alone = replace(estimator, seeds=1)
    paths = [None if checkpoint is None else Path(f"{checkpoint}-seed-{n}") for n in range(estimator.seeds)]
    for number, path in enumerate(paths):
        one = replace(alone, seed=int(estimator.seed) + number)
        rankers.append(one.learn(data, validation, init_model=None, checkpoint=path, progress=progress))
        # What is left to training, the first seed settles for all.
        settled = {name: value for name, value in rankers[0].options.items() if getattr(alone, name) == AUTO}
        alone = replace(alone, **settled)
    model, first = averaged_model([ranker.model for ranker in rankers]), rankers[0]
    lists = alone.lists_of(data, Inputs(data.features, first.preprocessing, names=data.feature_names))
    spreads = inverse_spreads(mean_products(model, lists))
    model.objective.weights.copy_(torch.from_numpy(spreads / len(rankers)))
    for path in paths:
        if path is not None and ProcessGroup.of_environment().leads:
            path.unlink(missing_ok=True)
    assert first.provenance is not None, "what is trained has a record"
    return replace(
        first,
        # Seeds after the first know what it has settled, and need not hold out anything for that.
        provenance=first.provenance.beside(*(each.provenance for each in rankers if each.provenance is not None)),
        options={**first.options, "seeds": estimator.seeds},
        model=model.requires_grad_(False),
        history=tuple(
            replace(record, stage=f"seed {int(estimator.seed) + number}, {record.stage}")
            for number, ranker in enumerate(rankers)
            for record in ranker.history
        ),
        choices={"seeds": [dict(ranker.choices) for ranker in rankers]} if first.choices else {},
    )


def _prefix(number: int) -> str:
    return f"seed{number}_"

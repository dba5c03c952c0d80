"""UPE: propensities freed of what the logging ranker knew, by the back door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.column_names import check_column
from ultr.data.judged import JudgedLists
from ultr.errors import DataError
from ultr.losses import first_over_each, order_loss, softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation
from ultr.relevance.inputs import Documents
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.relevance_model import RelevanceModel
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import RELEVANCE, Models, Stage

LOGGING = ("logging",)
STRATA = 16
"""Logging scores, at even quantiles of the log, that propensities are averaged over."""
_MOST = 1_000
"""Lists that the quantiles are taken of."""


class UnconfoundedObjective(ScalarObjective):
    """o(x, t) = b(t) + a(t) s(x), the logit of observation given the logging score s(x), beside f(x)."""

    scale: Tensor
    strata: Tensor

    def __init__(self, factors: Sequence[Factor], *, smooth: bool = True) -> None:
        super().__init__()
        self.observation = Observation(factors, 2, combine="sum", start=0.0, smooth=smooth)
        self.register_buffer("scale", torch.tensor([0.0, 1.0]))
        self.register_buffer("strata", torch.zeros(STRATA))

    def set_strata(self, scores: Tensor) -> None:
        """Take the unit and the strata of the logging scores of some shown documents, [documents]."""
        unit = torch.stack([scores.mean(), scores.std(correction=0).clamp(min=1e-6)])
        self.scale.copy_(unit)
        places = (torch.arange(STRATA, dtype=scores.dtype) + 0.5) / STRATA
        self.strata.copy_((torch.quantile(scores, places) - unit[0]) / unit[1])

    def confounded(self, scores: Tensor, levels: Tensor) -> Tensor:
        """o(x, t) by logging scores, [documents], and levels of all factors, [documents, factors]."""
        level, slope = self.observation(levels).unbind(-1)
        combined: Tensor = level + slope * (scores - self.scale[0]) / self.scale[1]
        return combined

    def log_propensities(self, vectors: Tensor) -> Tensor:
        """The logarithm of theta(t), the mean of exp(o) over the strata, by [b(t), a(t)], [levels, 2] -> [levels]."""
        # The back door: sum_s P(observed | t, s) P(s), with P(s) as in the whole log and not as at t.
        each = vectors[:, :1] + vectors[:, 1:] * self.strata
        return each.logsumexp(dim=-1) - float(np.log(STRATA))

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + log theta(t), [lists, width]."""
        return batch.pad(r[:, 0] + self.log_propensities(self.observation(batch.factors)))

    def loss(self, r: Tensor, batch: Batch, scores: Tensor) -> Tensor:
        """The loss of the ranker by theta(t), and that of o(x, t) by the ranker, [lists]."""
        relevance, theta = batch.pad(r[:, 0]), batch.pad(self.log_propensities(self.observation(batch.factors)))
        observation = batch.pad(self.confounded(scores, batch.factors))
        of_ranker = softmax_cross_entropy(relevance, batch.clicks * first_over_each(theta), mask=batch.mask)
        weighted = batch.clicks * first_over_each(relevance)
        return of_ranker + softmax_cross_entropy(observation, weighted, mask=batch.mask)

    def propensities(self) -> dict[str, Doubles]:
        """Theta of each bias factor by its name, the others left out, relative to its first level, [levels]."""
        tables = self.observation.embeddings()
        logits = {name: self.log_propensities(torch.from_numpy(table)).double() for name, table in tables.items()}
        return {name: (values - values[0]).exp().numpy() for name, values in logits.items()}


@dataclass(kw_only=True, eq=False)
class UPE(Estimator[UnconfoundedObjective]):
    """Unconfounded propensity estimation: DLA whose propensities do not take in what the logging ranker knew.

    A good logging ranker puts relevant documents first, so that propensities learned from clicks grow too steep. Here
    the logit of observation depends on the logging score s(x), too, and is averaged over all of them:

        o(x, t) = b(t) + a(t) s(x),   theta(t) = mean over s of exp( b(t) + a(t) s )
        L = - sum_i c_i theta_1 / theta_i log softmax_i( f(x_i) ) - sum_i c_i g_1 / g_i log softmax_i( o(x_i, t_i) )

    with g = softmax(f) within the list, 1 its first document. The score is a feature of the log, or stage 1 fits one to
    the order of the shown lists, by a relevance model of its own. A bias factor that is the same for a whole list is
    left out, as in DLA.

    Luo, Zou, Ai, Chen, Li, Yin, Davison: Unbiased Learning-to-Rank Needs Unconfounded Propensity Estimation, SIGIR
    2024.
    """

    name: ClassVar[str] = "upe"
    within_lists: ClassVar[bool] = True
    by_loss: ClassVar[tuple[str, ...]] = ("logging score",)

    logging_score: str | None = None
    """The feature that holds the score of the logging ranker; by default one is fitted to the order of shown lists."""
    smooth: bool = True
    """A smooth curve over the bins of a numeric bias factor; else a value for each bin."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.boolean("smooth", self.smooth)

    def check_data(self, data: ClickLog | JudgedLists, validation: ClickLog | JudgedLists | None) -> None:
        """Raise an error for data that the method cannot learn from, such as a log without the logging score."""
        super().check_data(data, validation)
        if self.logging_score is not None:
            check_column(self.logging_score, data.feature_names, what="logging_score: the log")
            if np.isnan(data.features[:, data.feature_names.index(self.logging_score)]).any():
                raise DataError(
                    f"the logging score {self.logging_score!r} is missing for some documents; leave logging_score out, "
                    "and one is fitted to the shown order"
                )

    def objective(self, factors: Sequence[Factor]) -> UnconfoundedObjective:
        """Level and slope of each level of each bias factor."""
        return UnconfoundedObjective(factors, smooth=self.smooth)

    def models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """The ranker and, if the log does not have it, a model of the logging score."""
        names = RELEVANCE if self.logging_score is not None else (*RELEVANCE, *LOGGING)
        return {name: self.relevance.build(features, 1, generator=generator) for name in names}

    def stages(self, objective: UnconfoundedObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The logging score if it is not given, then ranker and propensities."""

        def begin(models: Models) -> None:
            documents = Documents(lists.inputs, torch.from_numpy(shown_documents(lists)))
            with torch.no_grad():
                scores = models[LOGGING[0]](documents)[:, 0] if given is None else given(documents)
            objective.set_strata(scores.double())

        def loss(r: Tensor, batch: Batch) -> Tensor:
            return objective.loss(r, batch, r[:, 1] if given is None else given(batch.documents).to(r))

        given = self._given(lists)
        dual = Stage(
            "dual",
            steps,
            loss,
            objective.score,
            uses=RELEVANCE if given is not None else (*RELEVANCE, *LOGGING),
            bias=(objective.observation,),
            held_out=objective.click_loss,
            begin=begin,
        )
        return [dual] if given is not None else [_logging_stage(objective, steps), dual]

    def _given(self, lists: TrainingLists) -> Callable[[Documents], Tensor] | None:
        if self.logging_score is None:
            return None
        column = lists.inputs.names.index(self.logging_score)
        return lambda documents: torch.from_numpy(np.array(documents.inputs.features[documents.rows.numpy(), column]))

    def propensities(self) -> dict[str, Doubles]:
        """Theta of each bias factor by its name, relative to its first level, [levels]."""
        return self.ranker_.objective.propensities()


def _logging_stage(objective: UnconfoundedObjective, steps: int) -> Stage:
    """The stage that fits a score to the order of the shown lists; labels do not choose its weights."""

    def loss(r: Tensor, batch: Batch) -> Tensor:
        return order_loss(batch.pad(r.squeeze(-1)), mask=batch.mask)

    return Stage(
        "logging score", steps, loss, objective.score, uses=LOGGING, ranks_with=LOGGING, moves=LOGGING, select=False
    )


def shown_documents(lists: TrainingLists) -> Integers:
    """The documents of lists at even distances through the impressions of a log, as often as they are shown."""
    ends = np.cumsum(lists.impressions, dtype=np.float64)
    ticks = (np.arange(_MOST) + 0.5) / _MOST * ends[-1]
    chosen = np.searchsorted(ends, ticks, side="right")
    return lists.documents[ragged.rows_of(chosen, lists.offsets)].astype(np.int64)

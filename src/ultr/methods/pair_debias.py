"""PairDebias: the pair-wise loss on clicks, weighted for the positions of both documents."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ultr import checks
from ultr.arrays import Doubles
from ultr.errors import DataError, UltrWarning
from ultr.methods.em_rate import em_rate
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.relevance.inputs import Inputs
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.selection import chunks
from ultr.train.stage import Stage

INDEPENDENT = (
    "the log does not count which documents were clicked together, so PairDebias draws sessions in which the clicks on "
    "a list do not depend on each other"
)
_SMALLEST = 1e-3
"""No t+ or t- moves below this, so that a position without a click in many batches still has a finite weight."""


class PairObjective(ScalarObjective):
    """The bias of clicks, t+, and of skips, t-, by position."""

    t_plus: Tensor
    t_minus: Tensor

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.register_buffer("t_plus", torch.ones(positions))
        self.register_buffer("t_minus", torch.ones(positions))

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + log t+, [lists, width]."""
        return batch.pad(r.squeeze(-1)) + batch.pad(self.t_plus[batch.positions].log())

    def debiased_loss(self, r: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The debiased loss of each list's pairs, [lists]; S+, S- and documents at each position, [3, positions]."""
        assert batch.pairs is not None
        losses, (of_clicked, of_skipped) = pair_losses(batch.pad(r.squeeze(-1)), batch.pairs), self._weights(batch)
        debiased = (losses * of_clicked * of_skipped).sum(dim=(1, 2))
        losses = losses.detach()
        by_document = (losses * of_skipped).sum(dim=2)[batch.mask], (losses * of_clicked).sum(dim=1)[batch.mask]
        return debiased, batch.sum_by_position(len(self.t_plus), *by_document, torch.ones_like(by_document[0]))

    def update_bias(self, sums: Tensor, rate: float, norm: float) -> None:
        """Move t+ and t- towards what minimises the batch's regularised loss, each with the other as it was."""
        *totals, documents = sums
        for bias, total in zip((self.t_plus, self.t_minus), totals, strict=True):
            if total[0] > 0:
                best = (total / total[0]).pow(1 / (norm + 1)).clamp(min=_SMALLEST)
                bias.lerp_(best.to(bias.dtype).where(documents > 0, bias), rate)

    def _weights(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """1 / t+ of the clicked document, [lists, width, 1], and 1 / t- of the skipped one, [lists, 1, width]."""
        of_clicked, of_skipped = 1 / self.t_plus[batch.positions], 1 / self.t_minus[batch.positions]
        return batch.pad(of_clicked)[:, :, None], batch.pad(of_skipped)[:, None, :]

    def propensities(self) -> tuple[Doubles, Doubles]:
        """The learned t+ and t- by position, those of the first position being 1."""
        return self.t_plus.double().numpy(), self.t_minus.double().numpy()


def pair_losses(scores: Tensor, pairs: Tensor) -> Tensor:
    """How often i was clicked and not j, times log(1 + exp(f_j - f_i)), [lists, width, width]."""
    return pairs * functional.softplus(scores[:, None, :] - scores[:, :, None])


@dataclass(kw_only=True, eq=False)
class PairDebias(Estimator[PairObjective]):
    """Pair-wise debiasing: clicked documents against skipped ones, with a bias of clicks and one of skips.

        L = sum_{i clicked, j not} L_ij / (t+_p(i) t-_p(j)),   L_ij = log(1 + exp(f(x_j) - f(x_i)))

    With each step, t+ and t- move towards what minimises the loss under a regularisation of norm p:

        t+_i = [ S+_i / S+_1 ]^(1/(p+1)),   S+_i = sum of L_ij / t-_j over the pairs clicked at position i
        t-_j = [ S-_j / S-_1 ]^(1/(p+1)),   S-_j = sum of L_ij / t+_i over the pairs skipped at position j

    It assumes P(click) = t+ P(relevant) and P(no click) = t- P(not relevant). No model of examination has the second,
    so t+ and t- are weights that help, and there is nothing true for them to recover. Position is the only bias factor
    it knows. The log must count which documents were clicked together, since only then it is known who was skipped; or
    else the recipe draws sessions, whose clicks are then independent.

    Hu, Wang, Peng, Li: Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm, WWW 2019; with any
    relevance model in the place of the trees.
    """

    name: ClassVar[str] = "pair-debias"
    position_only: ClassVar[bool] = True
    counts_pairs: ClassVar[bool] = True
    without: ClassVar[tuple[str, ...]] = ("value",)

    em_rate: float | None = None
    """Share of the way to an estimate that t+ and t- move; by default 0.05, or 1 where a step sees all lists."""
    norm: float = 1.0
    """The p of the regularisation; the larger, the closer t+ and t- stay to 1."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        if self.em_rate is not None:
            checks.share("em_rate", self.em_rate)
        checks.not_negative("norm", self.norm)

    def training_lists(self, data: Any, inputs: Inputs) -> TrainingLists:
        """The lists of the log with their pairs, or those of sampled sessions where the log does not count any."""
        lists = TrainingLists.of_log(data, inputs, pairs=True)
        sampled = self.relevance.training().sessions and lists.pair_clicks is None
        if sampled:
            warnings.warn(INDEPENDENT, UltrWarning, stacklevel=2)
        return replace(lists, session_pairs=sampled)

    def objective(self, factors: Sequence[Factor]) -> PairObjective:
        """t+ and t- for each position."""
        return PairObjective(len(factors[0].levels))

    def stages(self, objective: PairObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage: the gradient for f, the closed form for t+ and t-."""
        rate = em_rate(self.em_rate, self.relevance)
        if lists.pair_clicks is None and not lists.session_pairs:
            raise DataError(
                "PairDebias needs a log that counts which documents were clicked together; give --pairs to "
                "`ultr prepare` or `ultr simulate`, or pairs=True to ultr.read_log or ClickLog.of"
            )
        if not lists.session_pairs and not any(lists.pair_shares(chunk).any() for chunk in chunks(lists.offsets)):
            raise DataError("no impression clicks one document and not another, so there is nothing to learn from")
        return [
            Stage(
                "pairs",
                steps,
                objective.debiased_loss,
                objective.score,
                held_out=objective.click_loss,
                update=lambda sums: objective.update_bias(sums, rate, self.norm),
            )
        ]

    def propensities(self) -> tuple[Doubles, Doubles]:
        """The learned t+ and t- by position, those of the first position being 1."""
        return self.ranker_.objective.propensities()

"""Orders that stay near another one: no document gains or loses more than a factor of its exposure."""

from __future__ import annotations

import torch
from torch import Tensor

from ultr.errors import OptionError
from ultr.train.lists import Batch
from ultr.train.objective import Objective

LOGGED = "logged"
"""The name of the relevance model of the order that the log was shown in."""


def ranks(scores: Tensor, mask: Tensor) -> Tensor:
    """The rank of each document from 1, higher scores first, [lists, width]; ties keep their order in the list."""
    return _places(_ascending(-scores.masked_fill(~mask, float("-inf"))))


def bounded_ranks(wanted: Tensor, logged: Tensor, factor: Tensor) -> Tensor:
    """An order like the wanted one that keeps each rank within a factor of the logged one, [lists, width].

        t_i = clip( w_i, l_i / sqrt(F), l_i sqrt(F) ),   the order of t, ties as in w

    with w and l the wanted and the logged ranks. The new rank of a document then lies from l / F to l F: documents up
    to it in the order of t have l_j <= sqrt(F) t_j <= sqrt(F) t_i <= F l_i, so there are at most F l_i of them; and all
    with l_j < t_i / sqrt(F) stand before it, at least l_i / F - 1. F = 1 is the logged order, F = infinity the wanted.
    The bound is sure, not sharp: an order may stay farther inside than it must.
    """
    root = factor.sqrt()
    target = torch.minimum(torch.maximum(wanted, logged / root), logged * root)
    by_wanted = _ascending(wanted)
    return _places(by_wanted.gather(-1, _ascending(target.gather(-1, by_wanted))))


def _ascending(values: Tensor) -> Tensor:
    """The places of values from the smallest to the largest, [lists, width]; ties keep their order."""
    if torch.compiler.is_exporting():
        # ONNX knows no stable sort, but its TopK puts the first of equal values first.
        return values.topk(values.shape[-1], dim=-1, largest=False).indices
    return values.argsort(dim=-1, stable=True)


def _places(order: Tensor) -> Tensor:
    """The place from 1 of each document in an order, float [lists, width]."""
    places = torch.arange(1, order.shape[-1] + 1, device=order.device, dtype=torch.float32)
    return torch.zeros(order.shape, device=order.device).scatter(-1, order, places.expand(order.shape))


class Bounded(Objective):
    """Another objective whose order stays within a factor of the logged order, which a model of its own gives."""

    factor: Tensor

    def __init__(self, inner: Objective, factor: Tensor) -> None:
        super().__init__()
        self.inner = inner
        self.ranks_with = (*inner.ranks_with, LOGGED)
        self.register_buffer("factor", factor)

    def wanted_and_logged(self, r: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The ranks without a bound and those of the logged order, [lists, width] each."""
        return ranks(self.inner.combine(r[..., :-1], mask), mask), ranks(r[..., -1], mask)

    def combine(self, r: Tensor, mask: Tensor) -> Tensor:
        """Minus the rank of each document."""
        return -bounded_ranks(*self.wanted_and_logged(r, mask), self.factor)

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Those of the inner objective: a bound on the order changes nothing that is known of clicks."""
        return self.inner.click_logits(r, batch)

    def direction(self, r: Tensor, mask: Tensor) -> Tensor:
        """There is none: a rank is nothing that a document has by itself."""
        raise OptionError(
            "a safe ranker orders whole lists, and a document by itself has no place to be bounded; export it without "
            "--pointwise, or train one without --safe"
        )

"""What the network of every method can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from ultr.train.lists import Batch


@dataclass(frozen=True)
class Shape:
    """The sizes that the data sets for a network."""

    features: int
    levels: tuple[int, ...]
    """The number of levels of each bias factor; empty where there are none."""


@runtime_checkable
class PredictsClicks(Protocol):
    """A network that says which documents of a shown list get its clicks."""

    def click_logits(self, batch: Batch) -> Tensor:
        """[lists, width]; their softmax over a list is the share of its clicks."""
        ...


class Scores(Protocol):
    """A network that ranks."""

    def score(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Network inputs [documents, features] and the mask of their lists -> scores [documents]."""
        ...

"""Documents on their way into a relevance model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ultr.arrays import Floats
from ultr.relevance.preprocessing import Preprocessing

IN_MEMORY = 2**27
"""Features up to this many bytes are preprocessed once; larger ones batch by batch, so that they may stay on disk."""


class Inputs:
    """A feature matrix, raw and preprocessed."""

    def __init__(
        self,
        features: Floats,
        preprocessing: Preprocessing,
        *,
        in_memory: int | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.features = features
        """float32 [documents, features], as they are in the log; may be memory-mapped."""
        self.names = tuple(names)
        """Names of the features, where a model learns from them."""
        self.preprocessing = preprocessing
        self._most = IN_MEMORY if in_memory is None else in_memory

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.features)

    def gather(self, rows: Tensor) -> Tensor:
        """The preprocessed features of these rows, [rows, features], on the device of the preprocessing."""
        if self._ready is not None:
            return self._ready.index_select(0, rows.to(self._ready.device))
        return self.preprocessing.prepare(self.features[rows.numpy()])

    @cached_property
    def _ready(self) -> Tensor | None:
        return self.preprocessing.prepare(self.features) if self.features.nbytes <= self._most else None


@dataclass(frozen=True, eq=False)
class Documents:
    """Some rows of a feature matrix."""

    inputs: Inputs
    rows: Tensor
    """int64 [documents], on the CPU."""

    @cached_property
    def preprocessed(self) -> Tensor:
        """Their preprocessed features, [documents, features]; made once, however many models ask."""
        return self.inputs.gather(self.rows)


def all_documents(inputs: Inputs) -> Documents:
    """Every row of a feature matrix."""
    return Documents(inputs, torch.arange(len(inputs)))

"""A categorical feature as inputs of a network."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

MOST_ONE_HOT = 32
"""A feature with more values than this has a learned vector for each value."""
DIMENSION = 8
"""The length of these vectors."""


class Lookup(nn.Module):
    """A table with a row of inputs for each value: one-hot if there are few values, else learned.

    Row 0 is for a missing value; it is 0 and stays so. Learned rows begin at 0: a value that training does not show
    counts like a missing one. The weights behind them differ, so that they learn all the same.
    """

    rows: Tensor

    def __init__(self, values: int) -> None:
        super().__init__()
        self.learned = values > MOST_ONE_HOT
        self.width = DIMENSION if self.learned else values
        """Inputs that a value becomes."""
        if self.learned:
            self.rows = nn.Parameter(torch.zeros(values + 1, DIMENSION))
        else:
            one_hot = torch.cat([torch.zeros(1, values), torch.eye(values)])
            self.register_buffer("rows", one_hot, persistent=False)

    def forward(self, places: Tensor) -> Tensor:
        """[documents] -> [documents, width]."""
        return functional.embedding(places, self.rows, padding_idx=0)

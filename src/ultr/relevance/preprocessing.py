"""Raw features as inputs of a network: the same in training, scoring and exported files."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr.arrays import Floats
from ultr.data.scaling import FeatureScaling

FEWEST_TO_NORMALISE = 16
"""Layer normalisation takes mean and deviation out of a document; with fewer features, that is most there is."""


class Preprocessing(nn.Module):
    """Scaling to [-1, 1] over the training data, then layer normalisation if there are enough features.

    Neither has parameters, so it is done once for all documents where memory allows, not at every step.
    """

    centre: Tensor
    factor: Tensor
    typical: Tensor

    def __init__(self, scaling: FeatureScaling) -> None:
        super().__init__()
        self.register_buffer("centre", torch.from_numpy(scaling.centre))
        self.register_buffer("factor", torch.from_numpy(scaling.factor))
        self.register_buffer("typical", torch.from_numpy(scaling.apply(scaling.typical)))

    def forward(self, features: Tensor) -> Tensor:
        """Preprocess features in which values may be missing; they count as typical. [documents, features]."""
        scaled = (features - self.centre) * self.factor
        # NaN and infinity minus themselves are NaN: two operations in the graph, where `isfinite` takes five.
        return _normalised(torch.where(scaled - scaled == 0, scaled, self.typical))

    def prepare(self, features: Floats) -> Tensor:
        """Preprocess features, [documents, features], as `forward` does."""
        values = torch.from_numpy(np.array(features, dtype=np.float32)).to(self.centre.device)
        scaled = values.sub_(self.centre).mul_(self.factor)
        if scaled.sum().isnan():
            scaled = scaled.where(scaled == scaled, self.typical)
        return _normalised(scaled)


def _normalised(scaled: Tensor) -> Tensor:
    enough = scaled.shape[-1] >= FEWEST_TO_NORMALISE
    return functional.layer_norm(scaled, scaled.shape[-1:]) if enough else scaled

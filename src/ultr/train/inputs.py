"""Features on their way into a network: scaled, normalised, ready to gather."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ultr.arrays import Floats
from ultr.data.scaling import FeatureScaling

FEWEST_TO_NORMALISE = 16
"""Normalising takes the mean and the deviation from a document; of a few features that would be most there is."""

IN_MEMORY = 2**27
"""Features up to this many bytes are prepared once; larger ones, batch by batch, so that they may stay on disk."""


class Inputs:
    """Rows of a feature matrix as network inputs.

    Every document is scaled with the training data's minimum and maximum and then, if it has enough features,
    layer-normalised. Neither has parameters, so it is done once for all documents where memory allows, and not again
    at every step.
    """

    def __init__(self, features: Floats, scaling: FeatureScaling, *, in_memory: int | None = None) -> None:
        self._features = features
        self._scaling = scaling
        most = IN_MEMORY if in_memory is None else in_memory
        self._ready = prepare(features, scaling) if features.nbytes <= most else None

    def __len__(self) -> int:
        """The number of documents."""
        return len(self._features)

    def gather(self, rows: Tensor) -> Tensor:
        """The inputs of these rows, [rows, features]."""
        if self._ready is not None:
            return self._ready.index_select(0, rows)
        return prepare(self._features[rows.numpy()], self._scaling)


def prepare(features: Floats, scaling: FeatureScaling) -> Tensor:
    """Scaled and, if they are enough, layer-normalised features."""
    scaled = torch.from_numpy(np.ascontiguousarray(scaling.apply(features), dtype=np.float32))
    if scaled.shape[-1] < FEWEST_TO_NORMALISE:
        return scaled
    return functional.layer_norm(scaled, scaled.shape[-1:])

"""Raw features as inputs of a network: the same in training, scoring and exported files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr.arrays import Doubles, Floats
from ultr.data.categories import OTHER, unseen_code
from ultr.data.scaling import FeatureScaling

FEWEST_TO_NORMALISE = 16
"""Layer normalisation takes mean and deviation out of a document; with fewer features, that is most there is."""
FEWEST_TO_INDICATE = 0.01
"""A feature that at least this share of the training documents miss, and at least this share have, has an indicator."""


@dataclass(frozen=True)
class InputLayout:
    """The inputs of a network: numbers first, then one place per categorical feature."""

    numbers: int
    """Scaled features, and the indicators of those that are missing at times."""
    categories: tuple[int, ...] = ()
    """Values of each categorical feature; place 0 is a missing value, place i the code i - 1."""

    @property
    def width(self) -> int:
        """Columns of the preprocessed features."""
        return self.numbers + len(self.categories)

    @classmethod
    def of(cls, features: int | InputLayout) -> InputLayout:
        """A layout as it is, or that of so many numbers."""
        return cls(features) if isinstance(features, int) else features


def indicated(shares: Doubles) -> list[int]:
    """The features with an indicator, by the share of training documents in which each is missing.

    >>> indicated(np.array([0.0, 0.009, 0.01, 0.99, 0.991, 1.0]))
    [2, 3]
    """
    return np.flatnonzero((shares >= FEWEST_TO_INDICATE) & (shares <= 1 - FEWEST_TO_INDICATE)).tolist()


class Preprocessing(nn.Module):
    """Scaling to [-1, 1] over the training data, then layer normalisation if there are enough features.

    A missing value counts as typical; behind the features stands, for each that was missing often enough in training,
    a 1 where it is missing. Codes of categories are no numbers: they are left out of all that, and stand at the end as
    the places that a network looks up. None of it has parameters, so it is done once for all documents where memory
    allows, not at every step.
    """

    centre: Tensor
    factor: Tensor
    typical: Tensor
    indicated: Tensor
    numbers: Tensor
    codes: Tensor
    sizes: Tensor
    unseen: Tensor
    begins: Tensor
    ends: Tensor
    others: Tensor

    def __init__(self, scaling: FeatureScaling, categories: Mapping[int, Sequence[str]] | None = None) -> None:
        """`categories` has the values of each categorical feature by its column."""
        super().__init__()
        self.categories = dict(categories or {})
        numbers = np.array([column for column in range(len(scaling.typical)) if column not in self.categories], int)
        unseen = np.nan_to_num(np.array([unseen_code(values) for values in self.categories.values()]) + 1, nan=0)
        sizes = [len(values) for values in self.categories.values()]
        begins, ends = (np.full(len(scaling.typical), end, np.float32) for end in (-np.inf, np.inf))
        others = np.zeros(len(scaling.typical), np.float32)
        self._with_other = {column: values for column, values in self.categories.items() if OTHER in values}
        for column, values in self._with_other.items():
            begins[column], ends[column], others[column] = 0, len(values), unseen_code(values)
        buffers = {
            "centre": scaling.centre[numbers],
            "factor": scaling.factor[numbers],
            "typical": scaling.apply(scaling.typical)[numbers],
            "indicated": np.array(indicated(scaling.missing[numbers]), int),
            "numbers": numbers,
            "codes": np.array(list(self.categories), int),
            "sizes": np.array(sizes, np.float32),
            "unseen": unseen.astype(np.float32),
            "begins": begins,
            "ends": ends,
            "others": others,
        }
        for name, values in buffers.items():
            self.register_buffer(name, torch.from_numpy(values))
        self.layout = InputLayout(len(numbers) + len(self.indicated), tuple(sizes))
        """What comes out."""

    def forward(self, features: Tensor) -> Tensor:
        """Preprocess features in which values may be missing, [documents, features] -> [documents, inputs]."""
        numbers, *others = self.parts(features)
        return torch.cat([normalised(numbers), *others], dim=-1) if others else normalised(numbers)

    def parts(self, features: Tensor) -> list[Tensor]:
        """Scaled numbers, then the indicators and the places of categories, where there are any."""
        numbers = features.index_select(-1, self.numbers) if self.categories else features
        scaled = (numbers - self.centre) * self.factor
        # NaN and infinity minus themselves are NaN: two operations in the graph, where `isfinite` takes five.
        known = scaled - scaled == 0
        parts = [torch.where(known, scaled, self.typical)]
        if len(self.indicated):
            parts.append((~known.index_select(-1, self.indicated)).to(scaled.dtype))
        if self.categories:
            codes = features.index_select(-1, self.codes)
            places = torch.where((codes >= 0) & (codes < self.sizes), codes + 1, self.unseen)
            parts.append(torch.where(codes == codes, places, 0.0))
        return parts

    def with_known_codes(self, features: Tensor) -> Tensor:
        """Features with the code of `other` in the place of codes that no value has, as networks take them."""
        if not self._with_other:
            return features
        # No number is below the least of all or at the end of all.
        is_unknown = (features < self.begins) | (features >= self.ends)
        return torch.where(is_unknown, self.others, features)

    def prepare(self, features: Floats) -> Tensor:
        """Preprocess features, [documents, features], as `forward` does."""
        values = torch.from_numpy(np.array(features, dtype=np.float32)).to(self.centre.device)
        if self.categories or len(self.indicated):
            prepared: Tensor = self(values)
            return prepared
        scaled = values.sub_(self.centre).mul_(self.factor)
        if scaled.sum().isnan():
            scaled = scaled.where(scaled == scaled, self.typical)
        return normalised(scaled)


def normalised(scaled: Tensor) -> Tensor:
    """Scaled numbers after layer normalisation, if there are enough of them, [documents, numbers]."""
    enough = scaled.shape[-1] >= FEWEST_TO_NORMALISE
    return functional.layer_norm(scaled, scaled.shape[-1:]) if enough else scaled

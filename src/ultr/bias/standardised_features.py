"""Features as linear models take them."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.scaling import FeatureScaling

WIDEST = 3.0
"""Features are cut off at so many standard deviations."""


def standardised(features: Floats, documents: Integers) -> Doubles:
    """Features with mean 0 and deviation 1, missing ones typical, far ones cut off, [documents, features]."""
    shown = features[documents]
    values = FeatureScaling.fit(shown).fill(shown).astype(np.float64)
    deviation = values.std(axis=0)
    values -= values.mean(axis=0)
    values /= np.where(deviation > 0, deviation, 1.0)
    return np.clip(values, -WIDEST, WIDEST, out=values)

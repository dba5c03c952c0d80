"""Features on their way into relevance models."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Floats
from ultr.data.scaling import FeatureScaling
from ultr.relevance.inputs import Documents, Inputs, all_documents
from ultr.relevance.preprocessing import Preprocessing


def inputs_of(features: Floats) -> Inputs:
    """These features, scaled by themselves."""
    return Inputs(features, Preprocessing(FeatureScaling.fit(features)))


def blank_documents(count: int) -> Documents:
    """Documents for functions that look at r(x) alone."""
    return all_documents(inputs_of(np.zeros((count, 1), dtype=np.float32)))

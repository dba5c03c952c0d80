"""How far a closed form moves bias parameters in one step."""

from __future__ import annotations

from ultr.relevance.relevance_model import Relevance

OF_BATCHES = 0.05


def em_rate(given: float | None, relevance: Relevance) -> float:
    """The rate that was given; else 1, a full M step, where every step sees all lists, and 0.05 where it sees few."""
    if given is not None:
        return given
    return 1.0 if relevance.training().batch_size is None else OF_BATCHES

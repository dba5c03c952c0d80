"""A ranker's click model against held-out clicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.metrics import list_log_likelihood, log_likelihood, perplexity, perplexity_by_position


class ClickPredictor(Protocol):
    """A ranker that also says how likely each shown document is to be clicked."""

    def click_shares(self, log: ClickLog) -> Doubles:
        """The share of its list's clicks that each shown document gets."""
        ...

    def click_probabilities(self, log: ClickLog) -> Doubles:
        """The probability of a click on each shown document."""
        ...


@dataclass(frozen=True, eq=False)
class ClickFit:
    """How well predicted clicks fit held-out ones."""

    list_log_likelihood: float
    """Mean log-probability of a click among the documents of its list."""
    log_likelihood: float
    """Mean log-likelihood of a shown document being clicked or not."""
    perplexity: float
    """1 is perfect, 2 is a coin."""
    perplexity_by_position: Doubles


def click_fit(ranker: ClickPredictor, log: ClickLog) -> ClickFit:
    """How well a ranker foretells the clicks of a log it was not trained on."""
    probabilities = ranker.click_probabilities(log)
    impressions = np.repeat(log.impressions, log.lengths)
    with np.errstate(divide="ignore"):
        log_shares = np.log(ranker.click_shares(log))
    return ClickFit(
        list_log_likelihood=list_log_likelihood(log_shares, log.clicks),
        log_likelihood=log_likelihood(probabilities, log.clicks, impressions),
        perplexity=perplexity(probabilities, log.clicks, impressions),
        perplexity_by_position=perplexity_by_position(probabilities, log.clicks, impressions, positions=log.positions),
    )

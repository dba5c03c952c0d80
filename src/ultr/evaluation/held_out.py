"""A ranker's click model against held-out clicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.metrics import (
    Interval,
    bootstrap_ratio,
    list_log_likelihood,
    list_log_likelihoods,
    log_likelihood,
    log_likelihoods,
    perplexity,
    perplexity_by_position,
)


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


@dataclass(frozen=True, eq=False)
class QueryLikelihoods:
    """How well predicted clicks fit held-out ones, query by query, so that two rankers can be compared."""

    totals: Doubles
    """[queries], the log-likelihood of all clicks and skips on shown documents."""
    shown: Doubles
    """[queries], shown documents times impressions."""
    list_totals: Doubles
    """[queries], the log-probability of all clicks among the documents of their lists."""
    clicks: Doubles
    """[queries]."""

    @classmethod
    def of(cls, ranker: ClickPredictor, log: ClickLog) -> QueryLikelihoods:
        """The likelihoods of a log's clicks, for each query that has a list."""
        _, queries = np.unique(log.queries, return_inverse=True)
        rows = queries[ragged.list_numbers(log.offsets)]
        impressions = np.repeat(log.impressions, log.lengths)
        among_list = list_log_likelihoods(ranker.click_shares(log), log.clicks)
        by_row = log_likelihoods(ranker.click_probabilities(log), log.clicks, impressions), impressions, among_list
        return cls(*(np.bincount(rows, values).astype(np.float64) for values in (*by_row, log.clicks)))

    def against(self, other: QueryLikelihoods, *, level: float = 0.95, seed: int = 0) -> Interval:
        """How much likelier clicks and skips are by this ranker than by the other, a shown document."""
        return bootstrap_ratio(self.totals - other.totals, self.shown, level=level, seed=seed)

    def against_in_lists(self, other: QueryLikelihoods, *, level: float = 0.95, seed: int = 0) -> Interval:
        """How much likelier a click is among its list by this ranker than by the other."""
        return bootstrap_ratio(self.list_totals - other.list_totals, self.clicks, level=level, seed=seed)

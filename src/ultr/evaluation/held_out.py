"""A ranker's click model against held-out clicks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ultr.arrays import Doubles, Integers, ratio
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation.unseen_part import UnseenPart, unseen_part
from ultr.metrics import Interval, bootstrap_ratio, list_log_likelihoods, log_likelihoods
from ultr.metrics.query_bootstrap import query_numbers


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
    """The fit of predicted clicks to held-out ones."""

    list_log_likelihood: float
    """Mean log-probability of a click among the documents of its list."""
    log_likelihood: float
    """Mean log-likelihood of a shown document being clicked or not."""
    perplexity: float
    """2 ** (- mean log2-likelihood): 1 is perfect, 2 is a fair coin (Dupret and Piwowarski 2008)."""
    perplexity_by_position: Doubles
    """[positions up to the last that was shown]; NaN where nothing was."""


def click_fit(ranker: ClickPredictor, log: ClickLog, *, unseen: UnseenPart | None = None) -> ClickFit:
    """Measure how well a ranker predicts the clicks of the part of a log that it was not trained on.

    Where no such part is known, the whole log is taken, and a `SeenDataWarning` says why. `unseen` is for those who
    have looked for that part already.
    """
    log = (unseen_part({"the ranker": ranker}, log).warn() if unseen is None else unseen).log
    if not log.clicks.any():
        raise DataError("the log has no click to predict; evaluate on one that has")
    shown = log.totals(log.position).impressions[: int(log.position.values.max()) + 1]
    surprise = np.zeros(len(shown))
    in_lists, clicked = 0.0, 0
    for span, clicks, shares, likelihoods in _predictions(ranker, log):
        surprise -= np.bincount(log.position.values[span.rows], likelihoods, minlength=len(shown))
        in_lists += float(list_log_likelihoods(shares, clicks).sum())
        clicked += int(clicks.sum())
    mean = surprise.sum() / shown.sum()
    by_position = ratio(surprise, shown, otherwise=np.nan)
    return ClickFit(
        in_lists / clicked, float(-mean), float(np.exp2(mean / np.log(2))), np.exp2(by_position / np.log(2))
    )


def _predictions(ranker: ClickPredictor, log: ClickLog) -> Iterator[tuple[ragged.Span, Integers, Doubles, Doubles]]:
    """The spans of a log that show a document: clicks, predicted shares, and the likelihood of each click or skip."""
    # Shares and probabilities at once if the ranker has a way to do so.
    both: Callable[[ClickLog], tuple[Doubles, Doubles]] | None = getattr(ranker, "predict_clicks", None)
    found = (ranker.click_shares(log), ranker.click_probabilities(log)) if both is None else both(log)
    for span in ragged.spans(log.offsets):
        if span.lengths.any():
            clicks, (shares, probabilities) = log.clicks[span.rows], (each[span.rows] for each in found)
            yield span, clicks, shares, log_likelihoods(probabilities, clicks, span.spread(log.impressions))


@dataclass(frozen=True, eq=False)
class QueryLikelihoods:
    """The fit of predicted clicks to held-out ones, query by query, so that two rankers can be compared."""

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
        queries = query_numbers(log)
        shown, clicked = log.totals(groups=queries)
        totals, in_lists = np.zeros(len(shown)), np.zeros(len(shown))
        for span, clicks, shares, likelihoods in _predictions(ranker, log):
            np.add.at(totals, span.spread(queries), likelihoods)
            np.add.at(in_lists, span.spread(queries), list_log_likelihoods(shares, clicks))
        return cls(totals, shown, in_lists, clicked)

    def against(self, other: QueryLikelihoods, *, level: float = 0.95, seed: int = 0) -> Interval:
        """The lead of this ranker over the other in log-likelihood of clicks and skips, a shown document."""
        return bootstrap_ratio(self.totals - other.totals, self.shown, level=level, seed=seed)

    def against_in_lists(self, other: QueryLikelihoods, *, level: float = 0.95, seed: int = 0) -> Interval:
        """The lead of this ranker over the other in log-likelihood of a click among its list."""
        return bootstrap_ratio(self.list_totals - other.list_totals, self.clicks, level=level, seed=seed)

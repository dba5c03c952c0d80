"""The value of a ranker by placements that exploration made, without any model of what positions do.

Let c_i be the click on document d of page i, which exploration put at position k with the logged probability e_i, and
let the ranker put d at the place k(d) of the page. If a click on a document depends on its own position alone,

    V = 1/N sum over pages i and documents d with k = k(d) of c_i / e_i

is unbiased for the clicks on an impression that those placements of the ranker would have that exploration might have
made (Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay, Wen: Offline Evaluation of Ranking Policies with Click Models,
KDD 2018). Neither propensities by position nor one relevance for all pages of a query are needed. The same sum with 1
in the place of c_i estimates how many placements these are: `possible` is their share. With adjacent swaps a document
that the ranker moves by two ranks or more is none of them, and then there is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Counts, Doubles
from ultr.data import ragged
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.placement import in_order
from ultr.evaluation.trial import CANNOT_TELL, Answer, Certainty
from ultr.metrics import bootstrap_ratio

FEWEST_POSSIBLE = 0.9
"""The share of a ranker's placements that exploration must have been able to make."""
_SMALLEST = 1e-100
"""The inverse of much smaller probabilities is no finite number."""


@dataclass(frozen=True, eq=False)
class PlacementValue:
    """The estimated clicks of a ranker, query by query."""

    totals: Doubles
    """[queries], on all impressions of the query."""
    bases: Doubles
    """[queries], the impressions of the query."""
    possible: float
    """The share of the ranker's placements that exploration might have made."""

    @property
    def value(self) -> float:
        """The mean over impressions."""
        return float(self.totals.sum() / self.bases.sum())


def placement_value(scores: Doubles, evidence: Evidence, amounts: Counts | None = None) -> PlacementValue:
    """The value of each page in the order of its candidates' scores; documents that tie share their places.

    `amounts` are what each shown document was worth to users, by default its clicks.
    """
    log = evidence.pages
    assert log is not None, "there must be pages"
    assert log.placements is not None, "the log must have placement propensities"
    places = np.searchsorted(evidence.query_numbers, log.queries)
    totals, possible, counted = np.zeros(len(evidence.impressions)), 0.0, 0.0
    for span in ragged.spans(log.offsets):
        chances, row = log.placements.propensities[span.rows], np.arange(span.rows.stop - span.rows.start)
        order, *tie = in_order(scores[evidence.numbers(span)], span.lengths)
        first, ties = (each[np.argsort(order)] for each in tie)
        there = (row >= first) & (row < first + ties) & np.isfinite(chances)
        weights = np.where(there, 1 / (ties * np.fmax(chances, _SMALLEST)), 0.0)
        totals += np.bincount(
            span.spread(places),
            (log.clicks if amounts is None else amounts)[span.rows] * weights,
            minlength=len(totals),
        )
        impressions = span.spread(log.impressions)
        possible, counted = possible + float(impressions @ weights), counted + float(impressions.sum())
    return PlacementValue(totals, evidence.impressions, possible / counted)


def answer_by_placement(
    first: tuple[str, PlacementValue],
    second: tuple[str, PlacementValue],
    judge: Certainty,
    *,
    seed: int = 0,
    counted: str = "clicks",
) -> Answer:
    """The answer on whether the first ranker is better than the second, by their values on one log."""
    (name, value), (other_name, other) = first, second
    for each, found in (first, second):
        if found.possible < FEWEST_POSSIBLE:
            return Answer(CANNOT_TELL, f"exploration could have made {found.possible:.0%} of the placements of {each}")
    lead = bootstrap_ratio(value.totals - other.totals, value.bases, level=judge.level, seed=seed)
    return judge.answer(judge.widened(lead), name, other_name, what=f"the difference in {counted} on an impression")

"""The value of a ranker by placements that exploration made, without any model of what positions do.

Let c_i be the click on document d of page i, which exploration put at position k with the logged probability e_i, and
let the ranker put d at the place k(d) of the page. If a click on a document depends on its own position alone,

    V = 1/N sum over pages i and documents d with k = k(d) of c_i / e_i

is unbiased for the clicks on an impression that those placements of the ranker would have that exploration might have
made (Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay, Wen: Offline Evaluation of Ranking Policies with Click Models,
KDD 2018). Neither propensities by position nor one relevance for all pages of a query are needed. The same sum with 1
in the place of c_i estimates how many placements these are: `possible` is their share. With adjacent swaps a document
that the ranker moves by two ranks or more is none of them, and if these are many, there is no answer. If they are few,
they count as the mean of the others, V / possible, and where they are more than chance makes of none, the interval has
room for all that they can be: from no click to the highest click rate of a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Counts, Doubles, ratio
from ultr.data import ragged
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.placement import in_order
from ultr.evaluation.trial import CANNOT_TELL, Answer, Certainty
from ultr.metrics import Interval, bootstrap_ratio

FEWEST_POSSIBLE = 0.9
"""The share of a ranker's placements that exploration must have been able to make."""
_SMALLEST = 1e-100
"""The inverse of much smaller probabilities is no finite number."""


@dataclass(frozen=True, eq=False)
class PlacementValue:
    """The estimated clicks of a ranker, query by query."""

    totals: Doubles
    """[queries], of placements that exploration might have made, on all impressions of the query."""
    bases: Doubles
    """[queries], the impressions of the query."""
    placed: Doubles
    """[queries], the estimated number of these placements."""
    documents: Doubles
    """[queries], the number of all placements of the ranker."""
    highest: float
    """The highest click rate of a position."""

    @property
    def possible(self) -> float:
        """The share of the ranker's placements that exploration might have made."""
        return float(self.placed.sum() / self.documents.sum())

    @property
    def rate(self) -> float:
        """Clicks per placement that exploration might have made."""
        return float(self.totals.sum() / self.placed.sum())

    @property
    def completed(self) -> Doubles:
        """[queries], the totals of all placements: those that could not be made count as the mean of the others."""
        return self.totals - self.rate * (self.placed - self.documents)

    def doubt(self, *, level: float, seed: int = 0) -> tuple[float, float]:
        """Clicks on an impression that placements which could not be made may bring less, or more, than that mean."""
        share = bootstrap_ratio(self.placed, self.documents, level=level, seed=seed)
        if share.high >= 1:
            return 0.0, 0.0
        missing = float((self.documents - self.placed).sum() / self.bases.sum())
        return missing * self.rate, missing * max(self.highest - self.rate, 0.0)


def placement_value(scores: Doubles, evidence: Evidence, amounts: Counts | None = None) -> PlacementValue:
    """The value of each page in the order of its candidates' scores; documents that tie share their places.

    `amounts` are what each shown document was worth to users, by default its clicks.
    """
    log = evidence.pages
    assert log is not None, "there must be pages"
    assert log.placements is not None, "the log must have placement propensities"
    places = np.searchsorted(evidence.query_numbers, log.queries)
    totals, placed, documents = np.zeros((3, len(evidence.impressions)))
    by_position = np.zeros((2, len(log.position.levels)))
    for span in ragged.spans(log.offsets):
        chances, row = log.placements.propensities[span.rows], np.arange(span.rows.stop - span.rows.start)
        order, *tie = in_order(scores[evidence.numbers(span)], span.lengths)
        first, ties = (each[np.argsort(order)] for each in tie)
        there = (row >= first) & (row < first + ties) & np.isfinite(chances)
        weights = np.where(there, 1 / (ties * np.fmax(chances, _SMALLEST)), 0.0)
        worth, shown = (log.clicks if amounts is None else amounts)[span.rows], span.spread(log.impressions)
        of_query, position = span.spread(places), log.position.values[span.rows]
        for sums, numbers, values in (
            (totals, of_query, worth * weights),
            (placed, of_query, shown * weights),
            (documents, of_query, shown),
            (by_position[0], position, worth),
            (by_position[1], position, shown),
        ):
            sums += np.bincount(numbers, values, minlength=len(sums))
    return PlacementValue(totals, evidence.impressions, placed, documents, float(ratio(*by_position).max()))


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
    lead = judge.widened(bootstrap_ratio(value.completed - other.completed, value.bases, level=judge.level, seed=seed))
    (less, more), (other_less, other_more) = (each.doubt(level=judge.level, seed=seed) for each in (value, other))
    how = (
        ", with room for placements that exploration could not make" if less or more or other_less or other_more else ""
    )
    wide = Interval(lead.mean, lead.low - less - other_more, lead.high + more + other_less)
    return judge.answer(wide, name, other_name, what=f"the difference in {counted} on an impression", how=how)

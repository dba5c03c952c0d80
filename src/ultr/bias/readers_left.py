"""The share of users who are still there to see a document, where users stop after a click."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Counts, Doubles, Integers, ratio
from ultr.bias.below_clicks import FEWEST_LEFT
from ultr.data import ragged


@dataclass(frozen=True, eq=False)
class ReadersLeft:
    """The share of users who are still there at a shown document, by the clicks above it.

    If a share s of the users stops at each click, 1 - s A of them are left below A clicks per impression. In a list
    with n impressions chance decides which of the n A clicks made their user stop, so that the share truly left varies
    around this by s (1 - s) A / n; nothing is left to chance where all stop. With m the mean and v the variance of
    1 - s A over the lists of a position, less the mean of what chance adds,

        left = m + v / (v + s (1 - s) mean(A) / n) (1 - s A - m).

    So many clicks in few impressions do not make one click further down count a hundred times.
    """

    share: float
    """The share s of users who stop at a click."""
    means: Doubles
    """[positions], m."""
    variances: Doubles
    """[positions], v."""
    chances: Doubles
    """[positions], s (1 - s) mean(A)."""

    @classmethod
    def fit(
        cls,
        share: float,
        positions: Integers,
        offsets: Integers,
        clicks: Counts,
        impressions: Integers,
        *,
        position_count: int,
    ) -> ReadersLeft:
        """Means and variances over lists, whose arrays are read a span at a time.

        >>> lists, clicks = np.array([0, 2, 4]), np.array([9, 1, 1, 1])
        >>> readers = ReadersLeft.fit(1.0, np.array([0, 1, 0, 1]), lists, clicks, np.array([10, 10]), position_count=2)
        >>> readers.at(np.array([0, 1, 0, 1]), lists, clicks, np.array([10, 10])).round(2).tolist()
        [1.0, 0.1, 1.0, 0.9]
        """
        lists, above, squares, inverse = (np.zeros(position_count) for _ in range(4))
        for span in ragged.spans(offsets):
            places, often = positions[span.rows], span.spread(impressions)
            found = _above(clicks[span.rows], ragged.from_lengths(span.lengths), often)
            lists += np.bincount(places, minlength=position_count)
            above += np.bincount(places, found, minlength=position_count)
            squares += np.bincount(places, found**2, minlength=position_count)
            inverse += np.bincount(places, 1 / often, minlength=position_count)
        mean = ratio(above, lists, otherwise=0.0)
        chances = share * (1 - share) * mean
        spread = share**2 * (ratio(squares, lists, otherwise=0.0) - mean**2)
        by_chance = chances * ratio(inverse, lists, otherwise=0.0)
        return cls(share, 1 - share * mean, np.maximum(spread - by_chance, 0.0), chances)

    def at(self, positions: Integers, offsets: Integers, clicks: Counts, impressions: Integers) -> Doubles:
        """The share left at each shown document of these lists; positions and clicks are those of the documents."""
        often = np.repeat(impressions, np.diff(offsets))
        plain = 1 - self.share * _above(clicks, offsets, often)
        mean, variance = self.means[positions], self.variances[positions]
        trust = ratio(variance, variance + self.chances[positions] / often, otherwise=1.0)
        left: Doubles = np.maximum(mean + trust * (plain - mean), FEWEST_LEFT)
        return left


def _above(clicks: Counts, offsets: Integers, impressions: Integers) -> Doubles:
    """Clicks per impression above each document in its list."""
    above: Doubles = ragged.sums_before(clicks / impressions, offsets)
    return above

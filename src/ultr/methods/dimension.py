"""How many dimensions a log asks for: the smallest number that no larger one beats on held-out clicks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.gathering import spread
from ultr.data.log_checks import trusted
from ultr.data.split import HELD_OUT
from ultr.errors import DataError
from ultr.metrics import list_log_likelihoods, paired_lead, smallest_not_beaten
from ultr.metrics.query_bootstrap import units_of

DIMENSIONS = (1, 2, 3, 4, 5)
"""What is tried, as in the paper."""
FEWEST_QUERIES = 20
"""With fewer held-out queries, pages are held out, or lists compared, since noise cannot be told from so few."""
LEAST = 1e-4
"""A lead in log-likelihood a click up to this is luck of training: in a large log, even that is beyond noise."""


@dataclass(frozen=True)
class TriedDimension:
    """A dimension that was tried."""

    dimension: int
    log_likelihood: float
    """Mean log-probability of a held-out click among the documents of its list."""
    lead: float
    """How much higher that is than the chosen dimension's."""
    error: float
    """The standard error of the lead, over queries."""


def hold_out(log: ClickLog, *, seed: int) -> tuple[ClickLog, ClickLog]:
    """What is trained on and what chooses: other queries, or other pages where there are few queries."""
    if HELD_OUT * len(np.unique(log.queries)) >= FEWEST_QUERIES:
        return log.split(seed=seed)
    return trusted(log, pair_clicks=None).split(by="page", seed=seed)


def choose_dimension(
    shares: Mapping[int, Callable[[ClickLog], Doubles]], held_out: ClickLog
) -> tuple[int, tuple[TriedDimension, ...]]:
    """The smallest dimension that no larger one beats beyond noise, and how all of them did.

    `shares` gives, for each dimension, how its model shares out the clicks of each shown list.
    """
    groups = units_of(held_out, fewest=FEWEST_QUERIES)
    clicks, units = held_out.totals(groups=groups).clicks, spread(groups, held_out.offsets)
    if np.count_nonzero(clicks) < 2:
        raise DataError(
            "dimension 'auto' needs held-out clicks on at least two queries or lists, to tell a better dimension from "
            "chance; give more data, or a number"
        )
    totals = {
        dimension: np.bincount(
            units, list_log_likelihoods(predict(held_out), held_out.clicks), minlength=len(clicks)
        ).astype(np.float64)
        for dimension, predict in sorted(shares.items())
    }
    chosen = list(totals)[smallest_not_beaten(list(totals.values()), clicks, least=LEAST)]
    table = []
    for dimension, total in totals.items():
        lead = paired_lead(total, totals[chosen], clicks)
        table.append(TriedDimension(dimension, float(total.sum() / clicks.sum()), lead.mean, lead.error))
    return chosen, tuple(table)

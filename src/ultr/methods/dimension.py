"""How many dimensions a log asks for: the smallest number that no larger one beats on held-out clicks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.data.split import HELD_OUT
from ultr.errors import DataError
from ultr.methods.held_out_clicks import FEWEST_QUERIES, HeldOutClicks
from ultr.metrics import paired_lead, smallest_not_beaten

DIMENSIONS = (1, 2, 3, 4, 5)
"""What is tried, as in the paper."""
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
    compared = HeldOutClicks.of(held_out)
    if not compared.enough:
        raise DataError(
            "dimension 'auto' needs held-out clicks on at least two queries or lists, to tell a better dimension from "
            "chance; give more data, or a number"
        )
    totals = {dimension: compared.log_likelihoods(predict) for dimension, predict in sorted(shares.items())}
    chosen = list(totals)[smallest_not_beaten(list(totals.values()), compared.clicks, least=LEAST)]
    table = []
    for dimension, total in totals.items():
        lead = paired_lead(total, totals[chosen], compared.clicks)
        table.append(TriedDimension(dimension, compared.mean(total), lead.mean, lead.error))
    return chosen, tuple(table)

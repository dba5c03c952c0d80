"""Users who stop after a click, and how many they are."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ultr.bias.below_clicks import RARE, TWICE, BelowClicks
from ultr.bias.linear_inputs import sampled_lists, sampled_queries
from ultr.bias.stopping_by_document import stopping_by_document
from ultr.bias.stopping_by_features import stopping_by_features
from ultr.data.click_log import ClickLog

SURE = 0.1
"""Documents that moved tell by themselves if their standard error is at most this, or features contradict them."""
CLEAR = 0.1
"""Users stop if the lower end of the interval of their share is above this."""
MOST = 0.5
"""Where the lower end is above this, and nobody clicks twice, all of them stop."""
WITHOUT_CLICK = 0.002
"""If fewer lists than this have less than a click per impression, pages without a click may have been left out."""
TOP = 0.99
"""Users must be left for this share of the clicks."""


@dataclass(frozen=True)
class Stopping:
    """The share of users who look at nothing further after a click."""

    share: float
    """The estimate; below 0 where more is clicked below documents that are clicked much. It leaves users to make the
    clicks that there are."""
    error: float
    """Standard error over queries."""
    once: bool
    """True if nobody clicks twice: lists come up to one click per impression, and hardly one has more."""
    beyond: bool = False
    """True if lists have more clicks than users could make of whom so many stop."""

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> Stopping | None:
        """The users of a log who stop, by what is clicked below many clicks and below few.

        If a share s of the users stops after each click and A is the clicks above a document per impression of its
        list, 1 - s A of them are still there, exactly: s = 1 in the cascade model, 1 - lambda in the dependent click
        model, 0 where only the position matters. Where enough documents were shown below different clicks, each is
        compared with itself (`stopping_by_document`). If not, and if this does not contradict it, clicks are regressed
        on features and position (`stopping_by_features`), the latter apart for frequent values of other bias factors:
        users of phones who hardly look further down do not stop there.

        Relevance that these do not know is alike within a query as a rule, which makes s too small; queries with
        one good document that stands at the top make it too large, which shows where other lists have more than 1 / s
        clicks per impression: no users make them of whom a share s stops at each. Users who look at all documents and
        choose one of them look like users who stop: clicks do not tell the two apart.

        None where lists cannot tell: if there are fewer queries than features and positions; if all were shown once,
        since a click leaves nobody there; or if hardly one has less than a click per impression: where pages without a
        click were left out, a click above is a reason for none below.
        """
        kinds = prod(len(factor.levels) for factor in log.factors[1:])
        places = len(log.position.levels) * min(kinds, round(1 / RARE))
        columns = log.features.shape[1] + places
        rows = BelowClicks.of(log, sampled_lists(log.offsets, columns, purpose="stopping", seed=seed))
        if not rows.seen().above.any() or (rows.per_impression < 1).mean() < WITHOUT_CLICK:
            return None
        whole = BelowClicks.of(log, sampled_queries(log.queries, log.offsets, places, purpose="stopping", seed=seed))
        found = stopping_by_document(whole.seen())
        if found is None or found[1] > SURE:
            by_features = stopping_by_features(log.features, rows.seen())
            if found is None or (by_features is not None and _agree(found, by_features)):
                found = by_features
        if found is None:
            return None
        share, error = found
        beyond = share - 2 * error > CLEAR and rows.beyond(1 / (share - 2 * error)) > TWICE
        # Where A > 1 / s nobody is left, so that there are no clicks.
        order = np.argsort(rows.above)
        largest = rows.above[order[np.searchsorted(np.cumsum(rows.clicked[order]), TOP * rows.clicked.sum())]]
        return cls(min(share, 1 / max(float(largest), 1.0)), error, rows.once, beyond)

    @property
    def lower(self) -> float:
        """The lower end of the 95 % interval."""
        return self.share - 2 * self.error

    @property
    def upper(self) -> float:
        """The upper end of the 95 % interval."""
        return self.share + 2 * self.error

    @property
    def known(self) -> float:
        """The share to reckon with: 0 unless it is beyond doubt that users stop, 1 if nobody clicks twice."""
        if self.beyond:
            return 0.0
        if self.lower > MOST and self.once:
            return 1.0
        return self.share if self.lower > CLEAR else 0.0


def _agree(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """True if two estimates with their errors differ by no more than chance."""
    return bool(abs(one[0] - other[0]) <= 2 * np.hypot(one[1], other[1]))

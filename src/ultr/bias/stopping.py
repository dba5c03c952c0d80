"""Users who stop after a click: how many they are, and how many are left to see what stands below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.bias.sampled_lists import sampled_lists
from ultr.bias.standardised_features import standardised
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations

CLEAR = 0.1
"""Users stop if the lower end of the interval of their share is above this."""
MOST = 0.5
"""Where the lower end is above this, and nobody clicks twice, all of them stop."""
FULL, FULL_LISTS, TWICE = 0.9, 0.01, 0.001
"""Nobody clicks twice where a share FULL_LISTS of the lists has FULL clicks per impression or more, and at most a share
TWICE of all clicks are more than one per impression of their list."""
WITHOUT_CLICK = 0.002
"""If fewer lists than this have less than a click per impression, pages without a click may have been left out."""
TOP = 0.99
"""Users must be left for this share of the clicks."""
MOST_FEATURES = 64
"""Of more features, as many principal components stand for them."""
RARE = 0.05
"""Positions under other bias factors have click rates of their own if these have this share of the shown documents."""
FEWEST_LEFT = 0.01
"""Where fewer users than this may be left, clicks tell nothing, and those that there are count no more than so."""
STEPS, NEAR = 30, 1e-4
"""Most steps of Fisher scoring, and how small the last one must be."""
RIDGE = 0.01
"""Keeps what no click tells from making a step endless."""


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

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> Stopping | None:
        """The users of a log; see `stopping`."""
        return stopping(
            log.features,
            log.documents,
            log.position.values,
            log.offsets,
            log.impressions,
            log.clicks,
            log.queries,
            others=[factor.values for factor in log.factors[1:]],
            seed=seed,
        )

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
        if self.lower > MOST and self.once:
            return 1.0
        return self.share if self.lower > CLEAR else 0.0


def readers_left(above: Doubles, share: float) -> Doubles:
    """The share of users who are still there, with so many clicks per impression above and so many who stop at one.

    >>> readers_left(np.array([0.0, 0.5, 1.0]), 0.4)
    array([1. , 0.8, 0.6])
    """
    left: Doubles = np.maximum(1 - share * above, FEWEST_LEFT)
    return left


def stopping(
    features: Floats,
    documents: Integers,
    positions: Integers,
    offsets: Integers,
    impressions: Integers,
    clicks: Integers | Floats | Doubles,
    queries: Integers,
    *,
    others: Sequence[Integers] = (),
    seed: int = 0,
) -> Stopping | None:
    """How many users stop, by a regression of clicks on what was clicked above, position and features.

    With A the clicks above a document per impression of its list, n impressions, x its features and p its position,
    with the `others` of its bias factors: users of phones who hardly look further down do not stop there,

        E[clicks] = n exp(h_p + x w) (1 - s A).

    If a share s of the users stops after each click, 1 - s A of them are still there, exactly: s = 1 in the cascade
    model, 1 - lambda in the dependent click model, 0 where only the position matters. The relevance that h and w do
    not know is alike within a query, which makes s too small rather than too large. Users who look at all documents
    and choose one of them look like users who stop: clicks do not tell the two apart.

    None where lists cannot tell: if there are fewer queries than features and positions; if all were shown once, since
    a click leaves nobody there; or if hardly one has less than a click per impression: where pages without a click
    were left out, a click above is a reason for none below.
    """
    columns = features.shape[1] + int(positions.max(initial=0)) + 1
    chosen = sampled_lists(offsets, columns, purpose="stopping", seed=seed)
    lengths = np.diff(offsets)[chosen]
    rows = ragged.rows_of(chosen, offsets)
    shown = np.repeat(impressions[chosen], lengths).astype(np.float64)
    clicked = clicks[rows].astype(np.float64)
    above = ragged.sums_before(clicked, ragged.from_lengths(lengths)) / shown
    told = above <= 1 - FEWEST_LEFT
    known, query = np.unique(np.repeat(queries[chosen], lengths)[told], return_inverse=True)
    used, levels = np.unique(_places(positions, others, rows, shown)[told], return_inverse=True)
    width = len(used) + min(features.shape[1], MOST_FEATURES)
    if len(known) <= width + 1 or not above[told].any():
        return None
    per_list = np.add.reduceat(clicked, ragged.from_lengths(lengths)[:-1]) / impressions[chosen]
    if (per_list < 1).mean() < WITHOUT_CLICK:
        return None
    at = np.eye(len(used))[levels]
    causes = np.hstack([at, _components(standardised(features, documents[rows[told]]))])
    rates = (at.T @ clicked[told] + 0.5) / (at.T @ shown[told] + 1)
    coefficients = np.append(np.log(rates), np.zeros(width - len(used)))
    # Features have a normal prior, so that many of them do not explain few clicks.
    prior = np.append(np.where(np.arange(width) < len(used), 0.0, width), 0.0)
    share, influence = _fit(causes, coefficients, prior, shown[told], clicked[told], above[told])
    # What the coefficients fit of the queries is not seen in the rest: as in the variance of a linear regression.
    error = float(np.sqrt((np.bincount(query, influence) ** 2).sum() * len(known) / (len(known) - width - 1)))
    # Where A > 1 / s nobody is left, so that there are no clicks.
    order = np.argsort(above)
    largest = above[order[np.searchsorted(np.cumsum(clicked[order]), TOP * clicked.sum())]]
    twice = np.maximum(per_list - 1, 0) @ impressions[chosen] / clicked.sum()
    once = bool((per_list >= FULL).mean() >= FULL_LISTS and twice <= TWICE)
    return Stopping(min(share, 1 / max(float(largest), 1.0)), error, once)


def _places(positions: Integers, others: Sequence[Integers], rows: Integers, shown: Doubles) -> Integers:
    """The position of each of these rows, numbered apart under each frequent combination of other bias factors."""
    places: Integers = positions[rows].astype(np.int64)
    if not others:
        return places
    found, kinds = combinations([each[rows] for each in others])
    frequent = np.bincount(kinds, shown, minlength=len(found)) >= RARE * shown.sum()
    apart: Integers = (
        places + (int(places.max(initial=0)) + 1) * np.where(frequent, 1 + np.arange(len(found)), 0)[kinds]
    )
    return apart


def _components(features: Doubles) -> Doubles:
    """The features, or the principal components of many."""
    if features.shape[1] <= MOST_FEATURES:
        return features
    _, directions = np.linalg.eigh(features.T @ features)
    components = features @ directions[:, -MOST_FEATURES:]
    unit: Doubles = components / np.maximum(components.std(axis=0), 1e-12)
    return unit


def _fit(
    columns: Doubles, coefficients: Doubles, prior: Doubles, shown: Doubles, clicked: Doubles, above: Doubles
) -> tuple[float, Doubles]:
    """The share s by Fisher scoring, and the influence of each row on it."""
    share = 0.0
    for _ in range(STEPS):
        left = 1 - share * above
        expected = shown * np.exp(np.clip(columns @ coefficients, -15, 1)) * left
        # The derivative of log(1 - s A) in s is that of one more column.
        slopes = np.column_stack([columns, -above / left])
        inverse = np.linalg.inv(slopes.T @ (slopes * expected[:, None]) + np.diag(prior + RIDGE))
        step = inverse @ (slopes.T @ (clicked - expected) - prior * np.append(coefficients, share))
        step = np.clip(step, -1, 1)
        coefficients = coefficients + step[:-1]
        share = float(np.clip(share + step[-1], -1, 1))
        if np.abs(step).max() < NEAR:
            break
    influence: Doubles = slopes @ inverse[-1] * (clicked - expected)
    return share, influence

"""Users who stop after a click: how many they are, and how many are left to see what stands below."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.bias.linear_inputs import sampled_lists, sampled_queries, standardised
from ultr.bias.stopping_by_document import stopping_by_document
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations

SURE = 0.1
"""Documents that moved tell by themselves if their standard error is at most this, or features contradict them."""
CLEAR = 0.1
"""Users stop if the lower end of the interval of their share is above this."""
MOST = 0.5
"""Where the lower end is above this, and nobody clicks twice, all of them stop."""
FULL, FULL_LISTS, TWICE = 0.9, 0.01, 0.001
"""Nobody clicks twice where a share FULL_LISTS of the lists has FULL clicks per impression or more, and at most a share
TWICE of all clicks are more than one per impression of their list. With a share s who stop, there may be 1 / s."""
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
    beyond: bool = False
    """True if lists have more clicks than users could make of whom so many stop."""

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> Stopping | None:
        """The users of a log who stop, by what is clicked below many clicks and below few.

        If a share s of the users stops after each click and A is the clicks above a document per impression of its
        list, 1 - s A of them are still there, exactly: s = 1 in the cascade model, 1 - lambda in the dependent click
        model, 0 where only the position matters. Where enough documents were shown below different clicks, each is
        compared with itself (`stopping_by_document`). If not, and if this does not contradict it, clicks are regressed
        on features x and position p, with its other bias factors: users of phones who hardly look further down do not
        stop there,

            E[clicks] = n exp(h_p + x w) (1 - s A).

        The relevance that h and w do not know is alike within a query as a rule, which makes s too small; queries with
        one good document that stands at the top make it too large, which shows where other lists have more than 1 / s
        clicks per impression: no users make them of whom a share s stops at each. Users who look at all documents and
        choose one of them look like users who stop: clicks do not tell the two apart.

        None where lists cannot tell: if there are fewer queries than features and positions; if all were shown once,
        since a click leaves nobody there; or if hardly one has less than a click per impression: where pages without a
        click were left out, a click above is a reason for none below.
        """
        places = len(log.position.levels) * min(
            int(np.prod([len(each.levels) for each in log.factors[1:]])), int(1 / RARE)
        )
        columns = log.features.shape[1] + places
        rows = _Rows.of(log, sampled_lists(log.offsets, columns, purpose="stopping", seed=seed))
        if not rows.seen().above.any() or (rows.per_impression < 1).mean() < WITHOUT_CLICK:
            return None
        whole = _Rows.of(log, sampled_queries(log.queries, log.offsets, places, purpose="stopping", seed=seed)).seen()
        found = stopping_by_document(whole.document, whole.query, whole.place, whole.shown, whole.clicked, whole.above)
        if found is None or found[1] > SURE:
            by_features = _by_features(log.features, rows.seen())
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


def readers_left(above: Doubles, share: float) -> Doubles:
    """The share of users who are still there, with so many clicks per impression above and so many who stop at one.

    >>> readers_left(np.array([0.0, 0.5, 1.0]), 0.4)
    array([1. , 0.8, 0.6])
    """
    left: Doubles = np.maximum(1 - share * above, FEWEST_LEFT)
    return left


@dataclass(frozen=True, eq=False)
class _Rows:
    """Shown documents of some lists, and how many clicks an impression of each list has."""

    document: Integers
    query: Integers
    place: Integers
    shown: Doubles
    clicked: Doubles
    above: Doubles
    """Clicks above, per impression."""
    per_impression: Doubles
    """[lists]."""
    impressions: Integers
    """[lists]."""

    @classmethod
    def of(cls, log: ClickLog, lists: Integers) -> _Rows:
        lengths, rows = log.lengths[lists], ragged.rows_of(lists, log.offsets)
        starts = ragged.from_lengths(lengths)
        shown = np.repeat(log.impressions[lists], lengths).astype(np.float64)
        clicked = log.clicks[rows].astype(np.float64)
        return cls(
            document=log.documents[rows],
            query=np.repeat(log.queries[lists], lengths),
            place=_places(log, rows, shown),
            shown=shown,
            clicked=clicked,
            above=ragged.sums_before(clicked, starts) / shown,
            per_impression=np.add.reduceat(clicked, starts[:-1]) / log.impressions[lists],
            impressions=log.impressions[lists],
        )

    def seen(self) -> _Rows:
        """Only the documents that somebody may have seen."""
        kept = self.above <= 1 - FEWEST_LEFT
        names = ("document", "query", "place", "shown", "clicked", "above")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    @property
    def once(self) -> bool:
        """True if nobody clicks twice."""
        twice = np.maximum(self.per_impression - 1, 0) @ self.impressions / self.clicked.sum()
        return bool((self.per_impression >= FULL).mean() >= FULL_LISTS and twice <= TWICE)

    def beyond(self, most: float) -> float:
        """The share of the clicks that are more than so many per impression of their list, by more than chance."""
        # Users who stop at a click with the same chance each time make a geometric number of them, or fewer.
        chance = 2 * np.sqrt(most * most / self.impressions)
        return float(np.maximum(self.per_impression - most - chance, 0) @ self.impressions / self.clicked.sum())


def _agree(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """True if two estimates with their errors differ by no more than chance."""
    return bool(abs(one[0] - other[0]) <= 2 * np.hypot(one[1], other[1]))


def _by_features(features: Floats, rows: _Rows) -> tuple[float, float] | None:
    """The share and its error by what position and features explain; None if there are fewer queries than these."""
    known, query = np.unique(rows.query, return_inverse=True)
    used, levels = np.unique(rows.place, return_inverse=True)
    width = len(used) + min(features.shape[1], MOST_FEATURES)
    if len(known) <= width + 1:
        return None
    at = np.eye(len(used))[levels]
    causes = np.hstack([at, _components(standardised(features, rows.document))])
    rates = (at.T @ rows.clicked + 0.5) / (at.T @ rows.shown + 1)
    coefficients = np.append(np.log(rates), np.zeros(width - len(used)))
    # Features have a normal prior, so that many of them do not explain few clicks.
    prior = np.append(np.where(np.arange(width) < len(used), 0.0, width), 0.0)
    share, influence = _fit(causes, coefficients, prior, rows.shown, rows.clicked, rows.above)
    # What the coefficients fit of the queries is not seen in the rest: as in the variance of a linear regression.
    return share, float(np.sqrt((np.bincount(query, influence) ** 2).sum() * len(known) / (len(known) - width - 1)))


def _places(log: ClickLog, rows: Integers, shown: Doubles) -> Integers:
    """The position of each of these rows, numbered apart under each frequent combination of other bias factors."""
    places: Integers = log.position.values[rows].astype(np.int64)
    if len(log.factors) == 1:
        return places
    found, kinds = combinations([factor.values[rows] for factor in log.factors[1:]])
    frequent = np.bincount(kinds, shown, minlength=len(found)) >= RARE * shown.sum()
    apart: Integers = places + len(log.position.levels) * np.where(frequent, 1 + np.arange(len(found)), 0)[kinds]
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

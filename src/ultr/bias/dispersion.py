"""Over-dispersion: clicks vary more than independent ones, because two impressions of one context share their luck.

A document at one position is not clicked at the same rate in every list: the other documents, the kind of user or the
week differ. A context is what such impressions share, here a row of the log: one list under its bias factors. If the
rate of a context is drawn with variance rho p (1 - p) around the mean p, then of n impressions in it

    Var(clicks) = n p (1 - p) (1 + rho (n - 1))

which is the beta-binomial distribution, with rho the correlation of two clicks of one context. The factor grows with
n, so a single factor for a log, as in quasi-likelihood, is too small for the contexts that are shown often, which
decide a test, and too large for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, ratio
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed, spread

_LARGEST = 0.999
_ROUNDS = 20
_FEWEST_BLOCKS = 10


@dataclass(frozen=True)
class Dispersion:
    """Over-dispersion of clicks, measured on cells that were seen in several contexts."""

    phi: float
    """The variance of the clicks of a context over that of independent clicks; 1 if they are independent.

    Contexts count by their impressions, as they do wherever clicks are summed.
    """
    correlation: float
    """rho; 0 if they are independent, and below 0 by chance or where clicks repel each other."""
    low: float
    """The 95 % interval of rho, over queries or cells; NaN if there are fewer than ten of them."""
    high: float
    contexts: int
    """The number of contexts that it rests on, and of the `cells` that they belong to."""
    cells: int

    def factors(self, together: Doubles) -> Doubles:
        """The variance of the clicks of cells over that of independent clicks; never below 1.

        `together` has the number of other impressions that share the context of an impression, see `Cells.together`.
        """
        return 1 + max(self.correlation, 0.0) * together


def document_dispersion(log: ClickLog) -> Dispersion:
    """The over-dispersion of the clicks on one document at one position, in one list and another."""
    positions = len(log.position.levels)
    cell = computed(lambda document, place: document * positions + place, log.documents, log.position.values)
    often, query = (spread(values, log.offsets) for values in (log.impressions, log.queries))
    return dispersion(cell, often, log.clicks, blocks=query)


def group_dispersion(log: ClickLog, groups: Integers) -> tuple[Dispersion, Doubles]:
    """The over-dispersion between queries of one group at one position, and factors [groups, positions].

    `groups` is as for `group_table`. Here the context is the query: within a group documents differ in relevance, so
    that a table of few queries is less sure than it seems.
    """
    queries, count = len(log.query_ids), int(groups.max(initial=0)) + 1
    # Groups of queries in the place of documents: those that are left out come last and are dropped.
    key = computed(
        lambda group, query: np.where(group < 0, count, group) * queries + query,
        groups,
        spread(log.queries, log.offsets),
    )
    cells = log.cells(documents=key)
    cells = cells.choose(np.flatnonzero(cells.ids[cells.documents] < count * queries))
    group, query = np.divmod(cells.ids[cells.documents], queries)
    cell, size = group * cells.count + cells.positions, count * cells.count
    found = dispersion(cell, cells.impressions, cells.clicks, blocks=query)
    shown = np.bincount(cell, cells.impressions, minlength=size).astype(np.float64)
    pairs = np.bincount(cell, cells.impressions * (cells.impressions - 1), minlength=size).astype(np.float64)
    return found, found.factors(ratio(pairs, shown)).reshape(count, cells.count)


def dispersion(
    cells: Integers, impressions: Integers | Doubles, clicks: Integers | Doubles, *, blocks: Integers | None = None
) -> Dispersion:
    """The over-dispersion of contexts: the cell that each belongs to, how often it was shown, and its clicks.

    Contexts of one cell have the same expected rate. The squared deviations from it, summed over all contexts, are set
    against what they would be for rho = 0, and rho is what explains the rest:

        sum (c - n p)^2 = sum p (1 - p) (A + rho B)

    with A and B known from the impressions and free of the bias of estimated rates. Sums are compared, not a ratio for
    each context as in Pearson's chi-squared, so contexts with next to no expected clicks do no harm. The interval takes
    `blocks` of contexts, such as queries, for independent of each other; by default the cells.
    """
    number = np.unique(cells, return_inverse=True)[1]
    n, c = np.asarray(impressions, dtype=np.float64), np.asarray(clicks, dtype=np.float64)
    shown, clicked, count = np.bincount(number, n), np.bincount(number, c), np.bincount(number)
    # Contexts with one impression each say nothing: whatever rho is, their clicks vary as independent ones do.
    used = (count > 1) & (shown > count) & (clicked > 0) & (clicked < shown)
    if not used.any():
        return Dispersion(1.0, 0.0, np.nan, np.nan, 0, 0)
    rows = np.flatnonzero(used[number])
    number, n, c = np.unique(number[rows], return_inverse=True)[1], n[rows], c[rows]
    block = number if blocks is None else np.unique(blocks[rows], return_inverse=True)[1]
    shown, clicked = shown[used], clicked[used]
    rate, squares, pairs = clicked / shown, np.bincount(number, n * n), np.bincount(number, n * (n - 1))
    share = n / shown[number]
    squared = (c - n * rate[number]) ** 2
    plain = n * (1 - share)
    extra = n * (n - 1) * (1 - 2 * share) + share**2 * pairs[number]
    rho = 0.0
    for _ in range(_ROUNDS):
        # The mean of rate (1 - rate) is this much below p (1 - p).
        lost = 1 / shown + rho * (squares / shown**2 - 1 / shown)
        variance = (rate * (1 - rate) / np.maximum(1 - lost, 1e-3))[number]
        before, rho = rho, float((squared - variance * plain).sum() / max((variance * extra).sum(), 1e-12))
        rho = min(max(rho, -1.0), _LARGEST)
        if abs(rho - before) < 1e-9:
            break
    weight = (variance * extra).sum()
    left = np.bincount(block, squared - variance * (plain + rho * extra))
    error = np.sqrt((left**2).sum() * len(left) / max(len(left) - 1, 1)) / max(weight, 1e-12)
    known = len(left) >= _FEWEST_BLOCKS
    return Dispersion(
        phi=float(1 + rho * weight / (variance * plain).sum()),
        correlation=rho,
        low=rho - 1.96 * float(error) if known else np.nan,
        high=rho + 1.96 * float(error) if known else np.nan,
        contexts=len(rows),
        cells=int(used.sum()),
    )


def draw_clicks(
    impressions: Integers | Doubles,
    rates: Doubles,
    factors: Doubles | float,
    random: np.random.Generator,
    *,
    samples: int = 1,
) -> Doubles:
    """Click counts [samples, ...] with these rates and variances of `factors` times the binomial one.

    They are beta-binomial. No count out of n can vary more than n times as much as a binomial one.
    """
    shown = np.rint(impressions).astype(np.int64)
    chances = np.clip(rates, 0, 1)
    size = (samples, *shown.shape)
    rho = np.clip((np.broadcast_to(factors, shown.shape) - 1) / np.maximum(shown - 1, 1), 0, _LARGEST)
    if not rho.any():
        return random.binomial(shown, chances, size=size).astype(np.float64)
    varied = (rho > 1e-9) & (chances > 1e-9) & (chances < 1 - 1e-9)
    strength = 1 / rho[varied] - 1
    drawn = np.broadcast_to(chances, size).copy()
    drawn[:, varied] = random.beta(
        chances[varied] * strength, (1 - chances[varied]) * strength, size=(samples, int(varied.sum()))
    )
    return random.binomial(shown, drawn).astype(np.float64)

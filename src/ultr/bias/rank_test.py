"""A test of the rank of click rates by group and position, which answers whether one number for each is enough.

If clicks are relevance times observation, the matrix of click probabilities has rank 1; rank d asks for relevance and
observation vectors of that dimension (Chen et al., Scalar is Not Enough, KDD 2022). Measured rates always have full
rank, because they are noisy. So the likelihood ratio of rank d against d + 1 is compared with what it is on counts
drawn from the fit of rank d (parametric bootstrap), for d = 1, 2, ... until it is not larger than chance makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, ratio
from ultr.bias.dispersion import draw_clicks
from ultr.bias.factorization import Factorization, fit_one_more, fit_rank_one, log_likelihood
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.counted import counted
from ultr.errors import DataError
from ultr.seeding import generator

_Draw = Callable[[Doubles, np.random.Generator], tuple[Doubles, Doubles]]
"""A function of fitted rates [groups, positions] that draws clicks and impressions [samples, groups, positions]."""


@dataclass(frozen=True, eq=False)
class RankTest:
    """The result of a test of the rank of click probabilities."""

    rates: Doubles
    """[groups, positions], the measured click rates; by the fit where nothing was shown."""
    deviances: tuple[float, ...]
    """Twice the log-likelihood that rank 1, 2, ... lose against the measured rates, as far as they were needed."""
    p_values: tuple[float, ...]
    """The p-values of rank 1 against 2, 2 against 3, ...; all but the last are at most `level`."""
    dimension: int
    """The smallest rank that is not rejected, or the largest that was asked for."""
    level: float
    power: float | None = None
    """The share of such counts in which rank 1 would be rejected if users trusted high positions; None = not asked.

    Everything is as in these counts (impressions, dispersion, the relevance of each group), but clicks follow the
    published trust bias, see `ultr.clicks.trust_bias`. A rank that is not rejected says little if this is low.
    """
    positions: tuple[int, ...] = ()
    """The positions of the rates, from 1; empty = all from the first."""

    @property
    def scalar(self) -> bool:
        """True if relevance times observation is enough, as far as these counts can tell."""
        return self.dimension == 1

    @property
    def singular_values(self) -> Doubles:
        """The singular values of the rates, the largest first."""
        return np.linalg.svd(self.rates, compute_uv=False).astype(np.float64)


def rank_test(
    clicks: Integers | Doubles,
    impressions: Integers | Doubles,
    *,
    dispersion: Doubles | float = 1.0,
    level: float = 0.05,
    samples: int = 199,
    largest: int | None = None,
    power: bool = False,
    seed: int = 0,
) -> RankTest:
    """Test the rank of click probabilities from counts [groups, positions].

    It takes all documents of a group for equally relevant. Where they are not, and the better ones of a group stand
    higher, position and relevance are mixed up and rank 1 is rejected although it is enough; `document_rank_test`
    is safe from that. Groups and positions that were never shown are left out. Clicks count as independent unless
    `dispersion` says how much more those of each cell vary (see `group_dispersion`). `largest` ends the climb early: 2
    asks only whether one number for each position is enough. `power` asks for the power too.

    >>> impressions = np.full((3, 4), 1_000)
    >>> test = rank_test(impressions * np.outer([0.2, 0.5, 0.9], [0.8, 0.4, 0.2, 0.1]), impressions)
    >>> test.dimension, test.p_values, test.singular_values.round(3).tolist()
    (1, (1.0,), [0.967, 0.0, 0.0])
    """
    counts, shown, seen = _checked(clicks, impressions)
    factors = np.broadcast_to(dispersion, np.shape(impressions))[seen]
    checks.integer("samples", samples, at_least=1)

    def draw(rates: Doubles, random: np.random.Generator) -> tuple[Doubles, Doubles]:
        drawn = draw_clicks(shown, rates, factors, random, samples=samples)
        return drawn, np.broadcast_to(np.rint(shown), drawn.shape)

    climb = _Climb(counts, shown, seen[1][0], draw, generator(seed, "rank test"))
    return climb.test(level=level, largest=largest, power=power)


def document_rank_test(
    counted: GroupedDocuments,
    *,
    level: float = 0.05,
    samples: int = 199,
    largest: int | None = None,
    power: bool = False,
    seed: int = 0,
) -> RankTest:
    """Test whether the documents of all groups lose clicks by position in the same way.

    Each document has a relevance of its own, so only documents shown at several positions count, and it does no harm if
    the better ones of a group stand higher:

        P = r_d M_gp, with M of rank d; rank 1 is the position-based model P = r_d theta_p

    The clicks of a group at a position are set against the impressions there, each weighted by the relevance of its
    document by the position-based model; counts are drawn, and relevances fitted anew, document by document.

    Where the position-based model fails, these weights are a little wrong, and documents of one group may differ in
    more than r_d: with very many impressions the dimension can then come out too large by one or two. Rank 1 is not
    affected.
    """
    checks.integer("samples", samples, at_least=1)
    whole = counted.table(counted.cells.clicks, counted.relevance)
    clicks, shown, seen = _checked(*whole)

    def draw(rates: Doubles, random: np.random.Generator) -> tuple[Doubles, Doubles]:
        """Tables of whole documents, of which the draws leave out what the counts leave out."""
        by_all = np.zeros_like(whole[0])
        by_all[seen] = rates
        tables = counted.draw(by_all, random, samples=samples)
        drawn, exposed = (np.stack([table[seen] for table in each]) for each in zip(*tables, strict=True))
        return drawn, exposed

    climb = _Climb(clicks, shown, seen[1][0], draw, generator(seed, "rank test"))
    return climb.test(level=level, largest=largest, power=power)


def _checked(
    clicks: Integers | Doubles, impressions: Integers | Doubles
) -> tuple[Doubles, Doubles, tuple[Integers, ...]]:
    """Clicks and impressions without the groups and positions that were never shown, and the index of those kept."""
    counts, shown = np.asarray(clicks, dtype=np.float64), np.asarray(impressions, dtype=np.float64)
    if counts.ndim != 2 or counts.shape != shown.shape:
        raise DataError(
            f"a rank test needs clicks and impressions [groups, positions], got {counts.shape} and {shown.shape}"
        )
    if not ((counts >= 0) & (counts <= shown)).all():
        raise DataError("a cell cannot have fewer than no clicks or more clicks than impressions")
    seen = np.ix_(np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0)))
    counts, shown = counts[seen], shown[seen]
    if min(counts.shape) < 2:
        groups, positions = (
            counted(count, noun) for count, noun in zip(counts.shape, ("group", "position"), strict=True)
        )
        raise DataError(
            "documents of two groups or more must have been shown at two positions or more, and there "
            f"{'is' if counts.shape[0] == 1 else 'are'} {groups} at {positions}; make more groups, or log more swaps"
        )
    if not counts.any():
        raise DataError("a rank test needs clicks, and there are none")
    return counts, shown, seen


@dataclass(frozen=True, eq=False)
class _Climb:
    """The state of the climb from rank to rank: the counts, and how to draw others like them."""

    clicks: Doubles
    impressions: Doubles
    positions: Integers
    """[positions of the counts], from 0."""
    draw: _Draw
    random: np.random.Generator

    def test(self, *, level: float, largest: int | None, power: bool) -> RankTest:
        checks.share("level", level)
        size = self.clicks.shape
        last = min(size) if largest is None else min(checks.integer("largest", largest, at_least=2), *size)
        counts, shown = self.clicks[None], self.impressions[None]
        measured = ratio(counts, shown)
        best = log_likelihood(counts, shown, measured)
        fits = [fit_rank_one(counts, shown)]
        p_values: list[float] = []
        found = None
        while len(fits) < last:
            more, by_chance = self._one_more_and_by_chance(fits[-1])
            p_values.append(float(_p_values(more.log_likelihood - fits[-1].log_likelihood, by_chance)[0]))
            if power and found is None:
                trusting = _trusting(fits[0].rates[0], self.impressions, self.positions)
                drawn, exposed, fit = self._drawn(trusting, rank=1)
                gains = _one_more(drawn, exposed, fit, self.random).log_likelihood - fit.log_likelihood
                found = float(np.mean(_p_values(gains, by_chance) <= level))
            if p_values[-1] > level:
                break
            fits.append(more)
        return RankTest(
            rates=np.where(self.impressions > 0, measured[0], fits[-1].rates[0]),
            deviances=tuple(float(2 * (best[0] - fit.log_likelihood[0])) for fit in fits),
            p_values=tuple(p_values),
            dimension=len(fits),
            level=level,
            power=found,
            positions=tuple(int(position) + 1 for position in self.positions),
        )

    def _one_more_and_by_chance(self, fit: Factorization) -> tuple[Factorization, Doubles]:
        """The fit with one term more, and what such a term gains in log-likelihood on counts drawn from `fit`."""
        drawn, exposed, by_chance = self._drawn(fit.rates[0], rank=fit.rows.shape[2])
        # All at once, since the time goes by rounds rather than tables.
        before = Factorization(*(np.concatenate(pair) for pair in zip(fit, by_chance, strict=True)))
        clicks, shown = np.concatenate([self.clicks[None], drawn]), np.concatenate([self.impressions[None], exposed])
        more = _one_more(clicks, shown, before, self.random)
        gains: Doubles = more.log_likelihood - before.log_likelihood
        return Factorization(*(part[:1] for part in more)), gains[1:]

    def _drawn(self, rates: Doubles, *, rank: int) -> tuple[Doubles, Doubles, Factorization]:
        """Clicks and impressions drawn from these rates, with their fit of this rank."""
        drawn, exposed = self.draw(rates, self.random)
        fit = fit_rank_one(drawn, exposed)
        for _ in range(1, rank):
            fit = _one_more(drawn, exposed, fit, self.random)
        return drawn, exposed, fit


def _p_values(gains: Doubles, by_chance: Doubles) -> Doubles:
    above = (by_chance >= gains[:, None] - 1e-9).sum(axis=1)
    values: Doubles = (1 + above) / (1 + len(by_chance))
    return values


def _trusting(rates: Doubles, impressions: Doubles, positions: Integers) -> Doubles:
    """Rates of rank 1 turned into those of users with trust bias, with about as many clicks in each group and position.

    An irrelevant document is taken for relevant t_p as often as a relevant one. The best group is relevant, and the
    others as much as their clicks ask for.
    """
    place = positions + 1.0
    taken = np.clip(0.65 / place / np.maximum(1 - (place + 1) / 100, 0.01), 0, 1)
    clicks = impressions * rates
    level = rates.sum(axis=1) / max(rates.sum(axis=1).max(), 1e-300)
    mean = (clicks @ taken) / np.maximum(clicks.sum(axis=1), 1e-300)
    relevance = np.clip((level - mean) / np.maximum(1 - mean, 1e-9), 0, 1)[:, None]
    shape = relevance + taken * (1 - relevance)
    trusting: Doubles = np.clip(
        shape * clicks.sum(axis=0) / np.maximum((impressions * shape).sum(axis=0), 1e-300), 0, 1
    )
    return trusting


def _one_more(clicks: Doubles, impressions: Doubles, fit: Factorization, random: np.random.Generator) -> Factorization:
    """One term more than `fit`; the last possible one makes every rate its own, so there is nothing to search."""
    if fit.rows.shape[2] + 1 < min(clicks.shape[1:]):
        return fit_one_more(clicks, impressions, fit, random)
    rates = ratio(clicks, impressions)
    whole = log_likelihood(clicks, impressions, rates)
    groups, positions = clicks.shape[1:]
    one = np.broadcast_to(np.eye(min(groups, positions)), (len(clicks), *[min(groups, positions)] * 2))
    return Factorization(one, rates, whole) if groups <= positions else Factorization(rates, one, whole)

"""Is a scalar enough? A test of the rank of click probabilities by relevance group and position.

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
from ultr.arrays import Doubles, Integers
from ultr.bias.factorization import Factorization, fit_one_more, fit_rank_one, log_likelihood, raw_rates
from ultr.bias.position_based_fit import Cells, poisson_relevance
from ultr.errors import DataError
from ultr.seeding import generator

_Draw = Callable[[Doubles, np.random.Generator], tuple[Doubles, Doubles]]
"""From fitted rates [groups, positions]: clicks and impressions [samples, groups, positions] drawn by them."""


@dataclass(frozen=True, eq=False)
class RankTest:
    """What the counts say about the rank of the click probabilities."""

    rates: Doubles
    """[groups, positions], the measured click rates; by the fit where nothing was shown."""
    deviances: tuple[float, ...]
    """Twice the log-likelihood that rank 1, 2, ... lose against the measured rates, as far as they were needed."""
    p_values: tuple[float, ...]
    """Of rank 1 against 2, 2 against 3, ...; all but the last are at most `level`."""
    dimension: int
    """The smallest rank that is not rejected, or the largest that was asked for."""
    level: float

    @property
    def scalar(self) -> bool:
        """Whether relevance times observation is enough for what these counts can tell."""
        return self.dimension == 1

    @property
    def singular_values(self) -> Doubles:
        """Of the rates, the largest first."""
        return np.linalg.svd(self.rates, compute_uv=False).astype(np.float64)


def rank_test(
    clicks: Integers | Doubles,
    impressions: Integers | Doubles,
    *,
    level: float = 0.05,
    samples: int = 199,
    largest: int | None = None,
    seed: int = 0,
) -> RankTest:
    """Test the rank of click probabilities from counts [groups, positions].

    It takes all documents of a group for equally relevant. Where they are not, and the better ones of a group stand
    higher, position and relevance are mixed up and rank 1 is rejected although a scalar is enough; `document_rank_test`
    is safe from that. Groups and positions that were never shown are left out. Clicks on one page count as independent.
    `largest` ends the climb early: 2 asks only whether a scalar is enough.

    >>> impressions = np.full((3, 4), 1_000)
    >>> test = rank_test(impressions * np.outer([0.2, 0.5, 0.9], [0.8, 0.4, 0.2, 0.1]), impressions)
    >>> test.dimension, test.p_values, test.singular_values.round(3).tolist()
    (1, (1.0,), [0.967, 0.0, 0.0])
    """
    counts, shown = _checked(clicks, impressions)
    checks.integer("samples", samples, at_least=1)

    def draw(rates: Doubles, random: np.random.Generator) -> tuple[Doubles, Doubles]:
        size = (samples, *rates.shape)
        drawn = random.binomial(np.rint(shown).astype(np.int64), np.clip(rates, 0, 1), size=size)
        return drawn.astype(np.float64), np.broadcast_to(np.rint(shown), size)

    return _climb_ranks(counts, shown, draw, level=level, largest=largest, random=generator(seed, "rank test"))


def document_rank_test(
    cells: Cells,
    groups: Integers,
    *,
    level: float = 0.05,
    samples: int = 199,
    largest: int | None = None,
    most_cells: int = 50_000,
    seed: int = 0,
) -> RankTest:
    """Test whether the documents of all groups lose clicks by position in the same way.

    `groups` has the group of each document of the cells, -1 for none. Each document has a relevance of its own, so only
    documents shown at several positions count, and it does no harm if the better ones of a group stand higher:

        P = r_d M_gp, with M of rank d; rank 1 is the position-based model P = r_d theta_p

    The clicks of a group at a position are set against the impressions there, each weighted by the relevance of its
    document by the position-based model; counts are drawn, and relevances fitted anew, document by document. Where the
    position-based model fails, these weights are a little wrong, and documents of one group may differ in more than
    r_d: with very many impressions the dimension can then come out too large by one or two. Rank 1 is not affected. If
    there are more cells than `most_cells`, the documents with the most impressions are used.
    """
    checks.integer("samples", samples, at_least=1)
    counted = _GroupedDocuments.of(cells, groups, most_cells=most_cells)
    clicks, shown = counted.table(counted.cells.clicks, counted.relevance)
    # A position or group at which nothing was seen would be left out, and the draws must leave out the same.
    groups_seen, positions_seen = shown.sum(axis=1) > 0, shown.sum(axis=0) > 0
    clicks, shown = _checked(clicks, shown)

    def draw(rates: Doubles, random: np.random.Generator) -> tuple[Doubles, Doubles]:
        whole = np.zeros((len(groups_seen), len(positions_seen)))
        whole[np.ix_(groups_seen, positions_seen)] = rates
        tables = [counted.draw(whole, random) for _ in range(samples)]
        drawn, exposed = (
            np.stack(arrays)[:, groups_seen][:, :, positions_seen] for arrays in zip(*tables, strict=True)
        )
        return drawn, exposed

    return _climb_ranks(clicks, shown, draw, level=level, largest=largest, random=generator(seed, "rank test"))


@dataclass(frozen=True, eq=False)
class _GroupedDocuments:
    """Documents shown at several positions, each in a group, with their relevances by the position-based model."""

    cells: Cells
    groups: Integers
    """[cells], the group of the document of each."""
    relevance: Doubles
    """[documents]."""
    examination: Doubles
    """[positions]."""

    @classmethod
    def of(cls, cells: Cells, groups: Integers, *, most_cells: int) -> _GroupedDocuments:
        used = cells.moved()
        used = used[groups[cells.documents[used]] >= 0]
        if not len(used):
            raise DataError(
                "no clicked document of a group was shown at two positions; log some swaps, or test by labels"
            )
        if len(used) > most_cells:
            shown = np.bincount(cells.documents[used], cells.impressions[used])
            by_rank = np.argsort(-shown, kind="stable")
            sizes = np.bincount(cells.documents[used], minlength=len(shown))
            taken = np.zeros(len(shown), dtype=np.bool_)
            taken[by_rank[np.cumsum(sizes[by_rank]) <= most_cells]] = True
            used = used[taken[cells.documents[used]]]
        group = np.unique(groups[cells.documents[used]], return_inverse=True)[1]
        chosen = cells.choose(used)
        return cls(chosen, group, *poisson_relevance(chosen, chosen.clicks))

    def table(self, clicks: Doubles, relevance: Doubles) -> tuple[Doubles, Doubles]:
        """Clicks and impressions by group and position, impressions by relevance over that of the group."""
        size = int(self.groups.max()) + 1, self.cells.count
        cell = self.groups * self.cells.count + self.cells.positions
        exposed = self.cells.impressions * self._relative(relevance)
        shown = np.bincount(cell, exposed, minlength=size[0] * size[1]).reshape(size).astype(np.float64)
        clicked = np.bincount(cell, clicks, minlength=size[0] * size[1]).reshape(size).astype(np.float64) * (shown > 0)
        # A rate above 1 cannot be fitted; it takes a cell with hardly any impressions.
        return clicked, np.maximum(shown, clicked)

    def draw(self, rates: Doubles, random: np.random.Generator) -> tuple[Doubles, Doubles]:
        """The table of clicks drawn document by document, from the rates of each group at each position."""
        chances = np.clip(self._relative(self.relevance) * rates[self.groups, self.cells.positions], 0, 1)
        clicks = random.binomial(self.cells.impressions.astype(np.int64), chances).astype(np.float64)
        return self.table(clicks, poisson_relevance(self.cells, clicks, start=self.examination)[0])

    def _relative(self, relevance: Doubles) -> Doubles:
        """[cells], relevance over the mean of the group; 0 where the group has no click."""
        of_cell = relevance[self.cells.documents]
        mean = np.bincount(self.groups, self.cells.impressions * of_cell) / np.bincount(
            self.groups, self.cells.impressions
        )
        return np.divide(of_cell, mean[self.groups], out=np.zeros(len(of_cell)), where=mean[self.groups] > 0)


def _checked(clicks: Integers | Doubles, impressions: Integers | Doubles) -> tuple[Doubles, Doubles]:
    counts, shown = np.asarray(clicks, dtype=np.float64), np.asarray(impressions, dtype=np.float64)
    if counts.ndim != 2 or counts.shape != shown.shape:
        raise DataError(
            f"a rank test needs clicks and impressions [groups, positions], got {counts.shape} and {shown.shape}"
        )
    if not ((counts >= 0) & (counts <= shown)).all():
        raise DataError("a cell cannot have fewer than no clicks or more clicks than impressions")
    counts, shown = (array[shown.any(axis=1)][:, shown.any(axis=0)] for array in (counts, shown))
    if min(counts.shape) < 2:
        raise DataError(
            f"a rank test needs at least two groups and two positions with impressions, got {counts.shape[0]} and "
            f"{counts.shape[1]}; make more groups"
        )
    if not counts.any():
        raise DataError("a rank test needs clicks, and there are none")
    return counts, shown


def _climb_ranks(
    clicks: Doubles,
    impressions: Doubles,
    draw: _Draw,
    *,
    level: float,
    largest: int | None,
    random: np.random.Generator,
) -> RankTest:
    checks.share("level", level)
    last = min(clicks.shape) if largest is None else min(checks.integer("largest", largest, at_least=2), *clicks.shape)
    counts, shown = clicks[None], impressions[None]
    measured = raw_rates(counts, shown)
    best = log_likelihood(counts, shown, measured)
    fits = [fit_rank_one(counts, shown)]
    p_values: list[float] = []
    while len(fits) < last:
        rank = len(fits)
        more = _one_more(counts, shown, fits[-1], random)
        observed = more.log_likelihood[0] - fits[-1].log_likelihood[0]
        drawn, exposed = draw(fits[-1].rates[0], random)
        by_chance = fit_rank_one(drawn, exposed)
        for _ in range(1, rank):
            by_chance = _one_more(drawn, exposed, by_chance, random)
        gain = _one_more(drawn, exposed, by_chance, random).log_likelihood - by_chance.log_likelihood
        p_values.append((1 + int(np.count_nonzero(gain >= observed - 1e-9))) / (1 + len(gain)))
        if p_values[-1] > level:
            break
        fits.append(more)
    return RankTest(
        rates=np.where(impressions > 0, measured[0], fits[-1].rates[0]),
        deviances=tuple(float(2 * (best[0] - fit.log_likelihood[0])) for fit in fits),
        p_values=tuple(p_values),
        dimension=len(fits),
        level=level,
    )


def _one_more(clicks: Doubles, impressions: Doubles, fit: Factorization, random: np.random.Generator) -> Factorization:
    """One term more than `fit`; the last possible one makes every rate its own, so there is nothing to search."""
    if fit.rows.shape[2] + 1 < min(clicks.shape[1:]):
        return fit_one_more(clicks, impressions, fit, random)
    rates = raw_rates(clicks, impressions)
    whole = log_likelihood(clicks, impressions, rates)
    groups, positions = clicks.shape[1:]
    one = np.broadcast_to(np.eye(min(groups, positions)), (len(clicks), *[min(groups, positions)] * 2))
    return Factorization(one, rates, whole) if groups <= positions else Factorization(rates, one, whole)

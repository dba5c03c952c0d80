"""A position-based model with one relevance for each document, fitted to the counts of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data import ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.data.gathering import new_array, take
from ultr.errors import DataError

_ROUNDS = 2_000
_TOLERANCE = 1e-6
_DENSE = 2**20
_FULL = 16
"""A table of documents and positions is kept with its zeros if it has at most so many entries, and so many a cell."""


@dataclass(frozen=True, eq=False)
class Cells:
    """How often each document was shown at each of its positions, and clicked: one cell for each of the two."""

    documents: Integers
    """int64 [cells], never falling: the documents numbered from 0."""
    positions: Integers
    """int64 [cells], from 0."""
    impressions: Doubles
    """[cells]."""
    clicks: Doubles
    """[cells]."""
    count: int
    """The number of positions."""
    together: Doubles | None = None
    """[cells], how many other impressions share the list of an impression, on average; None = not known.

    Clicks of one list may share their luck (see `ultr.bias.dispersion`), and then a cell of few lists is less sure.
    """

    @classmethod
    def of_log(cls, log: ClickLog) -> Cells:
        """The cells of a click log."""
        often = np.repeat(log.impressions, log.lengths)
        return cls.of(log.documents, log.positions, often, log.clicks, positions_shown=len(log.factors[0].levels))

    @classmethod
    def of(
        cls,
        documents: Integers,
        positions: Integers,
        impressions: Integers | Doubles,
        clicks: Integers | Doubles,
        *,
        positions_shown: int,
    ) -> Cells:
        """The cells of shown documents: which, where (from 1), how often, with how many clicks; each from one list."""
        keys, inverse = np.unique(documents.astype(np.int64) * positions_shown + positions - 1, return_inverse=True)
        numbers = np.unique(keys // positions_shown, return_inverse=True)[1]
        often = np.asarray(impressions, dtype=np.float64)
        shown = np.bincount(inverse, often, minlength=len(keys)).astype(np.float64)
        return cls(
            numbers,
            keys % positions_shown,
            shown,
            np.bincount(inverse, clicks, minlength=len(keys)).astype(np.float64),
            positions_shown,
            cls.shared(np.bincount(inverse, often * (often - 1), minlength=len(keys)).astype(np.float64), shown),
        )

    @staticmethod
    def shared(pairs: Doubles, shown: Doubles) -> Doubles:
        """`together`, from the ordered pairs of impressions of one list, summed over lists."""
        return np.divide(pairs, shown, out=np.zeros(len(shown)), where=shown > 0)

    @property
    def starts(self) -> Integers:
        """The first cell of each document."""
        return np.flatnonzero(np.diff(self.documents, prepend=-1))

    def clicked(self) -> Integers:
        """The cells of documents with a click; those without have no part in any fit, their relevance is 0."""
        return np.flatnonzero((np.bincount(self.documents, self.clicks) > 0)[self.documents])

    def moved(self) -> Integers:
        """The cells of documents with a click that were shown at several positions."""
        several = np.bincount(self.documents) > 1
        return np.flatnonzero((several & (np.bincount(self.documents, self.clicks) > 0))[self.documents])

    def choose(self, cells: Integers, *, renumber: bool = True) -> Cells:
        """Only these cells, in order; the documents are numbered anew, or keep their numbers."""
        numbers = take(self.documents, cells)
        if renumber:
            numbers = renumbered(numbers)
        together = None if self.together is None else take(self.together, cells)
        positions, shown, clicks = (take(each, cells) for each in (self.positions, self.impressions, self.clicks))
        return Cells(numbers, positions, shown, clicks, self.count, together)

    def parts(self, *, most: int) -> Iterator[slice]:
        """The cells of some documents after those of others, about so many at a time."""
        start, end = 0, len(self.documents)
        while start < end:
            last = self.documents[min(start + most, end) - 1]
            stop = int(np.searchsorted(self.documents, last, side="right"))
            yield slice(start, stop)
            start = stop


def renumbered(documents: Integers) -> Integers:
    """Documents that never fall, numbered from 0.

    >>> renumbered(np.array([2, 2, 5, 9])).tolist()
    [0, 0, 1, 2]
    """
    numbers = new_array(len(documents), np.int64)
    numbers[:1] = 0
    np.cumsum(documents[1:] != documents[:-1], out=numbers[1:])
    return numbers


@dataclass(frozen=True, eq=False)
class PositionBasedFit:
    """P(click) = relevance of the document times examination of the position; only the product has a unit."""

    relevance: Doubles
    """[documents of the cells]."""
    examination: Doubles
    """[positions], 1 at the first."""


def fit_poisson(cells: Cells, *, start: Doubles | None = None, tolerance: float = _TOLERANCE) -> PositionBasedFit:
    """The fit of P = r_d theta_p as if the clicks were Poisson, which asks only that their means are right.

    r_d = sum_p c_dp / sum_p n_dp theta_p
    theta_p = sum_d c_dp / sum_d n_dp r_d

    The curve is that of the likelihood given the clicks of each document, in which no r is left: however few
    impressions a document has, it is not biased by them. The EM algorithm of the position-based model (Wang et al.,
    Position Bias Estimation for Unbiased Learning to Rank in Personal Search, WSDM 2018), with a relevance for each
    document, is: one click on one impression makes a document perfectly relevant and its position perfectly seen. A
    fitted probability may be above 1. Documents shown at one position say nothing and only slow it down.
    """
    if not len(cells.documents):
        raise DataError(
            "no clicked document was shown at two positions, so position bias cannot be estimated; log some swaps"
        )
    _check_linked(cells)
    relevance, theta = poisson_relevance(cells, cells.clicks, start=start, tolerance=tolerance)
    return PositionBasedFit(relevance * theta[0], theta / theta[0])


def poisson_relevance(
    cells: Cells, clicks: Doubles, *, start: Doubles | None = None, tolerance: float = _TOLERANCE
) -> tuple[Doubles, Doubles]:
    """The relevances and the examination curve of `fit_poisson` for other clicks on the same cells; in any unit.

    Positions that nothing links can have units of their own; each r_d theta_p is right all the same.
    """
    clicked = np.add.reduceat(clicks, cells.starts)
    at_position = np.bincount(cells.positions, clicks, minlength=cells.count)
    exposure, audience = _sums(cells)
    theta = np.ones(cells.count) if start is None else start / start.max()
    for _ in range(_ROUNDS):
        exposed = exposure(theta)
        relevance = np.divide(clicked, exposed, out=np.zeros_like(clicked), where=exposed > 0)
        reach = audience(relevance)
        before, theta = theta, np.divide(at_position, reach, out=np.zeros(cells.count), where=reach > 0)
        theta = theta / max(theta.max(), 1e-300)
        if np.abs(theta - before).max() < tolerance:
            break
    return relevance, theta


def _sums(cells: Cells) -> tuple[Callable[[Doubles], Doubles], Callable[[Doubles], Doubles]]:
    """Impressions of each document weighted by position, and of each position weighted by document.

    A small table is multiplied as a matrix, which takes a fraction of the time of sums over its cells.
    """
    starts, documents, positions, shown = cells.starts, cells.documents, cells.positions, cells.impressions
    if len(starts) * cells.count <= min(_DENSE, _FULL * len(documents)):
        table = np.zeros((len(starts), cells.count))
        table[documents, positions] = shown
        return (lambda theta: table @ theta), (lambda relevance: relevance @ table)
    bounds = np.append(starts, len(documents))
    spans = [(slice(first, last), slice(bounds[first], bounds[last])) for first, last in ragged.spans(bounds)]

    def exposure(theta: Doubles) -> Doubles:
        sums = np.empty(len(starts))
        for those, part in spans:
            sums[those] = np.add.reduceat(shown[part] * theta[positions[part]], starts[those] - part.start)
        return sums

    def audience(relevance: Doubles) -> Doubles:
        sums = np.zeros(cells.count)
        for _, part in spans:
            sums += np.bincount(positions[part], shown[part] * relevance[documents[part]], minlength=cells.count)
        return sums

    return exposure, audience


def poisson_resamples(cells: Cells, curve: Doubles, groups: Integers, times: Doubles) -> Doubles:
    """The curves of `fit_poisson` when groups of documents are drawn anew, [those that can be told, positions].

    `groups` has the group of each cell, `times` [samples, groups] how often each was drawn, and `curve` is the fit to
    all of them once. One step of Newton's method from there, in log theta, on the likelihood of where the clicks c_d of
    each document fell, pi_dp in proportion to n_dp theta_p:

        score = sum_d c_dp - c_d pi_dp, information = sum_d c_d (diag(pi_d) - pi_d pi_d^T)

    Both are sums over documents, so that a resample needs the sums of the groups only. The step is exact up to the
    square of the difference it makes.
    """
    count, groups_drawn = cells.count, times.shape[1]
    score = np.zeros((groups_drawn, count))
    information = np.zeros((groups_drawn, count, count))
    for part in cells.parts(most=row_blocks.BLOCK):
        numbers = cells.documents[part] - cells.documents[part.start]
        some = Cells(numbers, cells.positions[part], cells.impressions[part], cells.clicks[part], count)
        _add_likelihood(score, information, some, curve, groups[part])
    # The first position is the unit.
    steps = np.tensordot(times, score, axes=1)[:, 1:]
    curvature = np.tensordot(times, information, axes=1)[:, 1:, 1:]
    told = np.linalg.cond(curvature) < 1 / np.finfo(np.float64).eps
    change = np.linalg.solve(curvature[told], steps[told][..., None])[..., 0]
    curves: Doubles = np.exp(np.log(np.maximum(curve, 1e-300)) + np.pad(change, ((0, 0), (1, 0))))
    return curves


def _add_likelihood(score: Doubles, information: Doubles, cells: Cells, curve: Doubles, groups: Integers) -> None:
    """Add what the documents of some cells say to the sums of their groups."""
    groups_drawn, count = score.shape
    expected = cells.impressions * curve[cells.positions]
    documents = int(cells.documents[-1]) + 1
    share = expected / np.maximum(np.bincount(cells.documents, expected), 1e-300)[cells.documents]
    clicked = np.bincount(cells.documents, cells.clicks)
    np.add.at(score, (groups, cells.positions), cells.clicks - clicked[cells.documents] * share)
    group_of = np.zeros(documents, dtype=np.int64)
    group_of[cells.documents] = groups
    order = np.argsort(group_of, kind="stable")
    bounds = np.searchsorted(group_of[order], np.arange(groups_drawn + 1))
    first = np.searchsorted(cells.documents, np.arange(documents + 1))
    for group in range(groups_drawn):
        chosen = order[bounds[group] : bounds[group + 1]]
        lengths = first[chosen + 1] - first[chosen]
        rows = np.repeat(first[chosen] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        shares = np.zeros((len(chosen), count))
        shares[np.repeat(np.arange(len(chosen)), lengths), cells.positions[rows]] = share[rows]
        weighted = shares * clicked[chosen][:, None]
        information[group] += np.diag(weighted.sum(axis=0)) - weighted.T @ shares


def _check_linked(cells: Cells) -> None:
    """Raise unless clicked documents link every position with the first."""
    clicked = np.bincount(cells.positions, cells.clicks, minlength=cells.count) > 0
    reached = np.zeros(cells.count, dtype=np.bool_)
    reached[0] = clicked[0]
    met = np.zeros(int(cells.documents[-1]) + 1, dtype=np.bool_)
    for _ in range(cells.count):
        before = int(reached.sum())
        met[cells.documents[reached[cells.positions]]] = True
        reached[cells.positions[met[cells.documents]]] = True
        reached &= clicked
        if reached.sum() == before:
            break
    if not reached.all():
        alone = ", ".join(str(number + 1) for number in np.flatnonzero(~reached))
        raise DataError(
            f"no chain of clicked documents shown at two positions links position 1 with {alone}, so their bias cannot "
            "be compared; log some swaps between them, or give propensities"
        )

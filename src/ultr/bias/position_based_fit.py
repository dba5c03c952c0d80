"""A position-based model with one relevance for each document, fitted to the counts of a log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ultr.arrays import Doubles, Integers, Mask, ratio
from ultr.bias.swaps import check_linked
from ultr.data import ragged, row_blocks
from ultr.data.cells import Cells
from ultr.data.gathering import new_array
from ultr.errors import DataError

_ROUNDS = 2_000
_TOLERANCE = 1e-6
_DENSE = 2**20
_FULL = 16
"""A table of documents and positions is kept with its zeros if it has at most so many entries, and so many a cell."""


def fit_poisson(cells: Cells, *, start: Doubles | None = None, tolerance: float = _TOLERANCE) -> Doubles:
    """The curve theta of P = r_d theta_p, 1 at the first position, fitted as if the clicks were Poisson.

    That asks only that their means are right:

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
    check_linked(_linked(cells))
    _, theta = poisson_relevance(cells, cells.clicks, start=start, tolerance=tolerance)
    curve: Doubles = theta / theta[0]
    return curve


def poisson_relevance(
    cells: Cells, clicks: Doubles, *, start: Doubles | None = None, tolerance: float = _TOLERANCE
) -> tuple[Doubles, Doubles]:
    """The relevances and the examination curve of `fit_poisson` for other clicks on the same cells; in any unit.

    Positions that nothing links can have units of their own; each r_d theta_p is right all the same.
    """
    at_position = np.bincount(cells.positions, clicks, minlength=cells.count)
    step = _steps(cells, clicks)
    theta = np.ones(cells.count) if start is None else start / start.max()
    for _ in range(_ROUNDS):
        relevance, reach = step(theta)
        before, theta = theta, ratio(at_position, reach)
        theta = theta / max(theta.max(), 1e-300)
        if np.abs(theta - before).max() < tolerance:
            break
    return relevance, theta


def poisson_relevances(cells: Cells, clicks: Doubles, *, start: Doubles) -> Doubles:
    """[samples, documents], the relevances of `poisson_relevance` for each row of `clicks` [samples, cells].

    Rows are fitted together, which takes a fraction of the time of one after the other; those that have converged rest.
    """
    if not _is_small(cells):
        return np.stack([poisson_relevance(cells, each, start=start)[0] for each in clicks])
    table = _table(cells)
    clicked: Doubles = np.stack([np.bincount(cells.documents, each) for each in clicks]).astype(np.float64)
    at_position = np.stack([np.bincount(cells.positions, each, minlength=cells.count) for each in clicks])
    theta = np.tile(start / start.max(), (len(clicks), 1))
    relevances = np.empty_like(clicked)
    moving = np.arange(len(clicks))
    for _ in range(_ROUNDS):
        exposed = theta @ table.T
        relevance = ratio(clicked, exposed)
        relevances[moving] = relevance
        reach = relevance @ table
        before, theta = theta, ratio(at_position, reach)
        theta = theta / np.maximum(theta.max(axis=1, keepdims=True), 1e-300)
        left = np.abs(theta - before).max(axis=1) >= _TOLERANCE
        if not left.any():
            break
        if not left.all():
            moving, theta, clicked, at_position = (each[left] for each in (moving, theta, clicked, at_position))
    return relevances


def _is_small(cells: Cells) -> bool:
    """True if the impressions are kept as a table with its zeros."""
    return len(cells.ids) * cells.count <= min(_DENSE, _FULL * len(cells.documents))


def _table(cells: Cells) -> Doubles:
    """[documents, positions], the impressions."""
    table = np.zeros((len(cells.ids), cells.count))
    table[cells.documents, cells.positions] = cells.impressions
    return table


def _steps(cells: Cells, clicks: Doubles) -> Callable[[Doubles], tuple[Doubles, Doubles]]:
    """A function of theta that gives r_d = c_d / sum_p n_dp theta_p and, of each position, sum_d n_dp r_d.

    A small table is multiplied as a matrix, which takes a fraction of the time of sums over its cells.
    """
    documents = len(cells.ids)
    clicked = new_array(documents, np.float64)
    parts = [(part, cells.documents_of(part)) for part in cells.parts()]
    for part, those in parts:
        clicked[those] = np.bincount(cells.documents[part] - those.start, clicks[part])
    if _is_small(cells):
        table = _table(cells)

        def whole(theta: Doubles) -> tuple[Doubles, Doubles]:
            exposed = table @ theta
            relevance = ratio(clicked, exposed)
            return relevance, relevance @ table

        return whole

    relevance = new_array(documents, np.float64)

    def by_parts(theta: Doubles) -> tuple[Doubles, Doubles]:
        reach = np.zeros(cells.count)
        for part, those in parts:
            number, place, shown = cells.documents[part] - those.start, cells.positions[part], cells.impressions[part]
            exposed = np.bincount(number, shown * theta[place])
            some = ratio(clicked[those], exposed)
            reach += np.bincount(place, shown * some[number], minlength=cells.count)
            relevance[those] = some
        return relevance, reach

    return by_parts


def poisson_resamples(cells: Cells, curve: Doubles, groups: Integers, times: Doubles) -> tuple[Doubles, Mask]:
    """The curves of `fit_poisson` when groups of documents are drawn anew, and which of the samples have one.

    `groups` has the group of each document, `times` [samples, groups] how often each was drawn, and `curve` is the fit
    to all of them once. One step of Newton's method from there, in log theta, on the likelihood of where the clicks
    c_d of each document fell, pi_dp in proportion to n_dp theta_p:

        score = sum_d c_dp - c_d pi_dp, information = sum_d c_d (diag(pi_d) - pi_d pi_d^T)

    Both are sums over documents, so that a resample needs the sums of the groups only. The step is exact up to the
    square of the difference it makes.
    """
    count, groups_drawn = cells.count, times.shape[1]
    score = np.zeros((groups_drawn, count))
    information = np.zeros((groups_drawn, count, count))
    for part in cells.parts(most=row_blocks.BLOCK):
        _add_likelihood(score, information, cells.part(part), curve, groups[cells.documents_of(part)])
    # The first position is the unit.
    steps = np.tensordot(times, score, axes=1)[:, 1:]
    curvature = np.tensordot(times, information, axes=1)[:, 1:, 1:]
    told = np.linalg.cond(curvature) < 1 / np.finfo(np.float64).eps
    change = np.linalg.solve(curvature[told], steps[told][..., None])[..., 0]
    curves: Doubles = np.exp(np.log(np.maximum(curve, 1e-300)) + np.pad(change, ((0, 0), (1, 0))))
    return curves, told


def _add_likelihood(score: Doubles, information: Doubles, cells: Cells, curve: Doubles, groups: Integers) -> None:
    """Add what the documents of some cells say to the sums of their groups."""
    groups_drawn, count = score.shape
    # pi_dp = n_dp theta_p / sum_q n_dq theta_q: where a click on d falls.
    expected = cells.impressions * curve[cells.positions]
    share = expected / np.maximum(np.bincount(cells.documents, expected), 1e-300)[cells.documents]
    # score_gp += sum over d in g of c_dp - c_d pi_dp
    clicked = np.bincount(cells.documents, cells.clicks)
    np.add.at(score, (groups[cells.documents], cells.positions), cells.clicks - clicked[cells.documents] * share)
    # information_g += diag(sum_d c_d pi_d) - sum_d c_d pi_d pi_d^T, with the pi of a group as rows of a matrix.
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(groups_drawn + 1))
    first = np.searchsorted(cells.documents, np.arange(len(groups) + 1))
    for group in range(groups_drawn):
        chosen = order[bounds[group] : bounds[group + 1]]
        rows = ragged.rows_of(chosen, first)
        shares = np.zeros((len(chosen), count))
        shares[np.repeat(np.arange(len(chosen)), np.diff(first)[chosen]), cells.positions[rows]] = share[rows]
        weighted = shares * clicked[chosen][:, None]
        information[group] += np.diag(weighted.sum(axis=0)) - weighted.T @ shares


def _linked(cells: Cells) -> Mask:
    """[positions, positions], which have clicks and documents in common; of three only neighbours, which link all."""
    clicked = np.bincount(cells.positions, cells.clicks, minlength=cells.count) > 0
    linked = np.zeros((cells.count, cells.count), dtype=np.bool_)
    for part in cells.parts():
        counted = clicked[cells.positions[part]]
        documents, positions = cells.documents[part][counted], cells.positions[part][counted]
        same = documents[1:] == documents[:-1]
        linked[positions[:-1][same], positions[1:][same]] = True
    return linked | linked.T

"""A test of whether one number for each position is enough for a log, made in the way that it can answer best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.bias.dispersion import Dispersion, document_dispersion, group_dispersion
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.bias.rank_test import RankTest, document_rank_test, rank_test
from ultr.bias.relevance_groups import click_groups, group_table, list_click_groups, merge_small, score_groups
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

BY_LABEL, BY_SCORE, BY_CLICKS, LABELS = GROUPINGS = (
    "documents by label",
    "documents by score",
    "documents by clicks",
    "labels",
)
"""The ways to make groups, the most trustworthy first."""
ENOUGH_POWER = 0.8
"""With less, a test that finds nothing says nothing."""
FEWEST_CLICKS = 50
"""Neighbouring labels with fewer are made one: a curve over ten positions cannot be told from them."""
SPLITS = 9
"""Halves of the lists are drawn so many times, since one draw can say anything. Odd, so that there is a middle one."""
MOST_CELLS = 20_000
MOST_ROWS = 1_000_000
"""The most rows that are tested: those of the queries with the most impressions, as the rest adds little power."""

CLAIMS: Mapping[bool | None, str] = {
    False: "nothing speaks against one number for each position",
    True: "one number for each position is not enough",
    None: "whether one number for each position is enough, the clicks do not tell",
}
"""The answer in short, by `ScalarTest.rejected`."""
_SAME_RELEVANCE = (
    "documents of one label count as equally relevant: if the better ones of a label stand higher, one number for each "
    "position can be rejected although it is enough; log some swaps"
)
_DIMENSION = "beyond 2 the dimension is an upper bound: with very many impressions it comes out too large by one or two"
_CONTEXT = (
    "clicks on a document at a position differ between lists more than chance makes them; the test allows for it, but "
    "where the other documents of a list are the cause, as in a cascade, no bias by position alone is the whole story"
)


@dataclass(frozen=True, eq=False)
class ScalarTest:
    """The answer on whether one number for each position is enough, and what it rests on."""

    test: RankTest | None
    """None if it could not be run, and `reason` says why."""
    grouping: str | None
    """One of `GROUPINGS`. All but `labels` compare documents with themselves at other positions."""
    documents: int
    """The number of documents that the test rests on, then those of their impressions and clicks."""
    impressions: int
    clicks: int
    dispersion: Dispersion | None
    """The over-dispersion of clicks, which the test allows for."""
    reason: str | None
    caveats: tuple[str, ...]

    @property
    def answer(self) -> str:
        """`yes`, `no` or `cannot tell`: whether relevance times observation is enough.

        `yes` asks that trust bias of the published strength would have been found with a chance of `ENOUGH_POWER`.
        """
        if self.test is None:
            return "cannot tell"
        if not self.test.scalar:
            return "no"
        return "yes" if (self.test.power or 0.0) >= ENOUGH_POWER else "cannot tell"

    @property
    def rejected(self) -> bool | None:
        """True if one number for each position is not enough; None where the clicks do not tell."""
        return {"no": True, "yes": False}.get(self.answer)

    @property
    def words(self) -> str:
        """The answer with what it rests on, to begin a sentence with."""
        if self.test is None:
            problem = (self.reason or "").partition(";")[0]
            return f"whether one number for each position is enough cannot be tested: {problem}"
        p = f"(p = {self.test.p_values[0]:.3f})"
        if self.rejected:
            return f"{CLAIMS[True]} {p}: groups of documents lose clicks by position in different ways"
        power = f"trust bias as it was published would have been found with a chance of {self.test.power or 0:.0%}"
        so = f"but {power} only, so that says little" if self.rejected is None else f"and {power}"
        return f"{CLAIMS[False]} {p}, {so}"


def scalar_test(
    log: ClickLog,
    *,
    labels: Integers | None = None,
    scores: Doubles | None = None,
    level: float = 0.05,
    samples: int = 199,
    seed: int = 0,
) -> ScalarTest:
    """Test whether one number for each position is enough, by labels, a model's scores, or clicks alone.

    `labels` (-1 = none) and `scores` have one number for each row of `log.features`. Documents that were at several
    positions are compared with themselves, in groups by label, by score, or by the clicks on half of the lists (drawn
    `SPLITS` times); only if they do not move (or not enough to find trust bias in most cases) is the plain table of
    labels and positions tested.
    Of these, the first with `ENOUGH_POWER` is taken, or else that with the most. Power is known without looking at the
    result, so the choice does not raise the chance of a false alarm. A log that cannot be tested gives a reason.
    """
    for name, values in (("labels", labels), ("scores", scores)):
        if values is not None and np.shape(values) != (len(log.features),):
            raise DataError(f"{name} must have one number for each of {len(log.features)} documents of the log")
    log = _largest_queries(log)
    best: ScalarTest | None = None
    reasons = []
    for candidate in _candidates(log, labels, scores, seed=seed):
        try:
            found = candidate(level=level, samples=samples, seed=seed)
        except DataError as error:
            reasons.append(str(error))
            continue
        if best is None or _power(found) > _power(best):
            best = found
        if _power(best) >= ENOUGH_POWER:
            break
    if best is None:
        return ScalarTest(None, None, 0, 0, 0, None, reasons[0] if reasons else "the log has no clicks", ())
    return best


def _candidates(
    log: ClickLog, labels: Integers | None, scores: Doubles | None, *, seed: int
) -> Iterator[Callable[..., ScalarTest]]:
    """The tests that a log can be put to, the most trustworthy first: functions of level, samples and seed."""
    if not log.clicks.any():
        return
    cells = log.cells()
    dispersion = document_dispersion(log)
    grades: Integers | None = None if labels is None else labels[cells.ids].astype(np.int64)
    if grades is not None and not (grades >= 0).any():
        grades = None
    if grades is not None:
        labelled = grades[cells.documents]
        clicks = np.bincount(np.maximum(labelled, 0), cells.clicks * (labelled >= 0)).astype(np.int64)
        grades = merge_small(grades, clicks, fewest=FEWEST_CLICKS)
        yield partial(_by_documents, BY_LABEL, grades, cells, dispersion)
    if scores is not None:
        weights = np.bincount(cells.documents, cells.impressions)
        yield partial(_by_documents, BY_SCORE, score_groups(scores[cells.ids], weights), cells, dispersion)
    splits = [_moved(*list_click_groups(log, seed=seed + number)) for number in range(SPLITS)]
    if not all((groups[half.documents] >= 0).any() for groups, half in splits):
        # Too few lists a query to share out; impressions of one list can be, if clicks are independent.
        splits = [_moved(*click_groups(cells, seed=seed + number)) for number in range(SPLITS)]
    yield partial(_by_halves, [partial(_by_documents, BY_CLICKS, *split, dispersion) for split in splits])
    if grades is not None:
        yield partial(_by_labels, log, grades[np.searchsorted(cells.ids, log.documents)])


def _moved(groups: Integers, half: Cells) -> tuple[Integers, Cells]:
    """Only the documents that a test can use, since several halves are kept at once."""
    return groups, half.choose(half.moved(), renumber=False)


def _by_documents(
    grouping: str, groups: Integers, cells: Cells, dispersion: Dispersion, *, power: bool = True, **options: Any
) -> ScalarTest:
    """Compare the documents of each group with themselves at other positions."""
    factors = dispersion.factors(cells.together)
    counted = GroupedDocuments.of(cells, groups, dispersion=factors, most_cells=MOST_CELLS)
    test = document_rank_test(counted, power=power, **options)
    return ScalarTest(
        test=test,
        grouping=grouping,
        documents=len(counted.relevance),
        impressions=int(counted.cells.impressions.sum()),
        clicks=int(counted.cells.clicks.sum()),
        dispersion=dispersion,
        reason=None,
        caveats=((_CONTEXT,) if dispersion.low > 0 else ()) + ((_DIMENSION,) if test.dimension > 2 else ()),
    )


def _by_halves(halves: Sequence[Callable[..., ScalarTest]], *, level: float, **options: Any) -> ScalarTest:
    """Run tests of documents in groups by the clicks on one half of the lists, each made on the other half.

    Twice the median of the p-values is a p-value, however they depend on each other (Meinshausen, Meier and Bühlmann,
    p-Values for High-Dimensional Regression, JASA 2009): so each half is tested at half the level, and the middle one
    of them speaks for all. The order is that of scalars, so that only the middle one is asked for its dimension.
    """
    tests = [half(level=level / 2, power=False, largest=2, **options).test for half in halves]
    order = np.argsort([test.p_values[0] for test in tests if test is not None], kind="stable")
    middle = halves[int(order[len(order) // 2])](level=level / 2, **options)
    assert middle.test is not None, "a test that was run once can be run again"
    doubled = tuple(min(2 * p, 1.0) for p in middle.test.p_values)
    return replace(middle, test=replace(middle.test, p_values=doubled, level=level))


def _by_labels(log: ClickLog, labels: Integers, **options: Any) -> ScalarTest:
    """Test the plain table of labels, one for each shown document, and positions."""
    clicks, shown = group_table(log, labels)
    dispersion, factors = group_dispersion(log, labels)
    return ScalarTest(
        test=rank_test(clicks, shown, dispersion=factors, power=True, **options),
        grouping=LABELS,
        documents=len(np.unique(log.documents[labels >= 0])),
        impressions=int(shown.sum()),
        clicks=int(clicks.sum()),
        dispersion=dispersion,
        reason=None,
        caveats=(_SAME_RELEVANCE,),
    )


def _power(found: ScalarTest) -> float:
    assert found.test is not None, "who cannot test raises"
    return found.test.power or 0.0


def _largest_queries(log: ClickLog) -> ClickLog:
    if len(log.documents) <= MOST_ROWS:
        return log
    shown = np.bincount(log.queries, log.impressions, minlength=len(log.query_ids))
    rows = np.bincount(log.queries, log.lengths, minlength=len(log.query_ids))
    order = np.argsort(-shown, kind="stable")
    taken = np.zeros(len(log.query_ids), dtype=np.bool_)
    taken[order[: max(int(np.searchsorted(np.cumsum(rows[order]), MOST_ROWS, side="right")), 1)]] = True
    return log.select(ragged.chosen(taken[log.queries]))

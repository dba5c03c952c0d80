"""Click logs sampled from judged lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.model import ClickModel
from ultr.clicks.position_based import PositionBased
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor, position_factor
from ultr.data.click_log import ClickLog
from ultr.data.grades import Grades
from ultr.data.judged import JudgedLists
from ultr.data.log_checks import trusted
from ultr.data.signal import Signal
from ultr.errors import DataError, OptionError
from ultr.seeding import generator
from ultr.simulation.causes import Cause
from ultr.simulation.pages import lay_out
from ultr.simulation.ranking_svm import RankingSVM
from ultr.simulation.shown import ShownLists, shown_lists

MOST_IMPRESSIONS = 10**15
"""More would not fit into the counts once they are summed."""
READOUTS = ("rate", "relative-rate", "log-rate")
"""Orders by a click model that is known exactly, each the best that some methods can learn from its clicks."""
LEAST_RATE = 1e-12
"""A rate of 0 has no logarithm."""
SESSIONS_AT_ONCE = 100_000
"""Sessions held in memory when they are drawn one by one."""


def simulate(
    judged: JudgedLists,
    model: ClickModel,
    *,
    impressions: int,
    scores: Doubles | None = None,
    svm_share: float = 0.01,
    rankings: int = 1,
    noise: float = 0.0,
    pairs: bool = False,
    factors: Sequence[Cause] = (),
    signals: Mapping[str, Sequence[float] | Doubles] | None = None,
    seed: int = 0,
) -> ClickLog:
    """The collapsed log of `impressions` sessions of users who click by `model`.

    They see lists in the order of `scores`, by default those of a Ranking SVM fitted on a share of the queries. Each
    query has `rankings` lists, which differ if there is `noise` (see `shown_lists`), and all lists have the same
    number of impressions, give or take one. With `pairs`, it is also counted which documents were clicked together.
    Then sessions are drawn one by one, so the time grows with the impressions, and the clicks are others than without.
    `factors` are causes of bias beside the position, such as `Device()`. `signals` follow clicks, wherever these were:
    by the name of each the probability that a click has it, one for each grade from 0 or one for each judged document.
    The labels are the grades of the log, to examine it by; no method trains on them.
    """
    if scores is None:
        scores = RankingSVM.fit(judged, share=svm_share, seed=seed).score(judged.features)
    if len(scores) != judged.documents:
        raise DataError(f"{judged.documents} judged documents, but {len(scores)} scores")
    shown = shown_lists(scores, judged.offsets, positions=model.positions, rankings=rankings, noise=noise, seed=seed)
    each = _spread(impressions, lists=len(shown.queries), seed=seed)
    clicks: Integers
    others: tuple[BiasFactor, ...] = ()
    pair_clicks = None
    labels = ragged.pad(judged.labels[shown.documents], shown.offsets, width=model.positions, fill=-1)
    if factors:
        examining = _examining(model, pairs=pairs)
        pages = lay_out(shown, each, examining, factors, seed=seed)
        shown, each, others = pages.shown, pages.impressions, pages.factors
        grades = judged.labels[shown.documents]
        clicks = pages.counts(examining, grades, generator(seed, "clicks"), max_label=judged.max_label)
    elif pairs:
        clicks, pair_clicks = _draw_sessions(model, labels, shown, each, max_label=judged.max_label, seed=seed)
    else:
        counts = model.counts(labels, each, generator(seed, "clicks"), max_label=judged.max_label)
        clicks = counts[ragged.mask(shown.offsets, width=model.positions)]
    rates = {name: _rates(name, judged, chances)[shown.documents] for name, chances in (signals or {}).items()}
    drawn = {name: generator(seed, "signals", name).binomial(clicks, rate) for name, rate in rates.items()}
    log = ClickLog(
        features=judged.features,
        documents=shown.documents,
        offsets=shown.offsets,
        factors=(position_factor(shown.positions, count=model.positions), *others),
        impressions=each,
        clicks=clicks,
        queries=shown.queries,
        query_ids=judged.query_ids,
        feature_names=judged.feature_names,
        pair_clicks=pair_clicks,
        signals=tuple(Signal(name, totals) for name, totals in drawn.items()),
        grades=Grades(judged.labels.astype(np.int32), tuple(str(grade) for grade in range(judged.max_label + 1))),
    )
    return log.collapse()


def simulate_more(log: ClickLog, judged: JudgedLists, model: ClickModel, *, share: float, seed: int = 0) -> ClickLog:
    """New impressions of the lists of a log simulated from `judged`, `share` as many and at least one of each.

    Held-out pages, which a summed log that counts pairs cannot be split into.
    """
    if len(log.factors) > 1:
        raise DataError("more impressions are simulated by the position alone, but the log has other bias factors")
    each = np.maximum(np.rint(log.impressions * share).astype(np.int64), 1)
    labels = ragged.pad(judged.labels[log.documents], log.offsets, width=model.positions, fill=-1)
    counts = model.counts(labels, each, generator(seed, "more clicks"), max_label=judged.max_label)
    clicks = counts[ragged.mask(log.offsets, width=model.positions)]
    return trusted(log, impressions=each, clicks=clicks, pair_clicks=None, signals=(), splits=())


def _examining(model: ClickModel, *, pairs: bool) -> PositionBased:
    """`model` if it can be told what is examined."""
    if not isinstance(model, PositionBased):
        raise OptionError(
            f"bias factors beside the position change what is examined, which the click model {model.name} has no "
            "number for; use trust or position-based"
        )
    if pairs:
        raise OptionError("pairs are not counted under bias factors beside the position; leave out one of them")
    return model


def _draw_sessions(
    model: ClickModel, labels: Integers, shown: ShownLists, each: Integers, *, max_label: int, seed: int
) -> tuple[Integers, Integers]:
    """The clicks on each shown document and on each pair of them, from sessions drawn one by one."""
    random = generator(seed, "sessions")
    # The pairs that a shown document is the upper one of lie together, in the order of the lower ones.
    pair_starts = ragged.from_lengths(ragged.following(shown.offsets))
    clicks, pair_clicks = np.zeros(len(shown.documents), dtype=np.int64), np.zeros(pair_starts[-1], dtype=np.int64)
    ends = np.cumsum(each)
    for start in range(0, int(ends[-1]), SESSIONS_AT_ONCE):
        lists = np.searchsorted(ends, np.arange(start, min(start + SESSIONS_AT_ONCE, ends[-1])), side="right")
        clicked = model.sessions(labels[lists], random, max_label=max_label)
        session, column = np.nonzero(clicked)
        rows = shown.offsets[lists[session]] + column
        together = ragged.pair_members(ragged.from_lengths(np.count_nonzero(clicked, axis=1)))
        first, second = (rows[members] for members in together)
        np.add.at(clicks, rows, 1)
        np.add.at(pair_clicks, pair_starts[first] + second - first - 1, 1)
    return clicks, pair_clicks


def shown_documents(judged: JudgedLists, log: ClickLog) -> JudgedLists:
    """The judged lists with only the documents that a log simulated from them shows.

    What labels teach about these is the most that clicks on them can teach: users never see the other candidates.
    """
    return JudgedLists(
        features=judged.features[log.documents],
        labels=judged.labels[log.documents],
        offsets=log.offsets,
        query_ids=log.query_ids[log.queries],
        feature_names=judged.feature_names,
        max_label=judged.max_label,
    )


def ceiling_scores(judged: JudgedLists, model: ClickModel, *, readout: str = "rate") -> Doubles:
    """The scores of a ranker that has learned the click model exactly, by what a method makes of it.

    With A[y, p] the click rate of grade y at position p, each grade being shown everywhere alike:

    - `rate`: mean over p of A[y, p], where raw clicks and one scalar a position by maximum likelihood arrive
      (Click, TwoTower, RegressionEM);
    - `relative-rate`: mean over p of A[y, p] over the rate of all documents at p, where inverse weights by position do
      (InversePropensity, DLA);
    - `log-rate`: mean over p of log A[y, p], where a list-wise vector model on the mean observation does
      (Vectorization).

    All of them put better grades first if these are clicked more at every position. Where the clicks on one document
    depend on the others, the rate is that of a list with only that document.
    """
    checks.one_of("readout", readout, READOUTS)
    grades = np.arange(judged.max_label + 1)
    if isinstance(model, IndependentClicks):
        rates = model.rates(judged.max_label)
    else:
        rates = model.probabilities(grades[:, None], max_label=judged.max_label)
    if readout == "relative-rate":
        rates = rates / np.average(rates, axis=0, weights=np.bincount(judged.labels, minlength=len(grades)))
    by_grade: Doubles = (np.log(np.maximum(rates, LEAST_RATE)) if readout == "log-rate" else rates).mean(axis=1)
    return by_grade[judged.labels]


def _rates(name: str, judged: JudgedLists, chances: Sequence[float] | Doubles) -> Doubles:
    """The probability that a click on each judged document has a signal, from those of the grades or as they are."""
    given: Doubles = np.asarray(chances, dtype=np.float64)
    grades = judged.max_label + 1
    if given.shape not in ((grades,), (judged.documents,)):
        raise OptionError(
            f"signal {name!r} needs a probability for each of {grades} grades, or for each of {judged.documents} "
            f"documents, got {given.size}"
        )
    if not ((given >= 0) & (given <= 1)).all():
        raise OptionError(f"the probabilities of signal {name!r} must be from 0 to 1")
    return given[judged.labels] if given.shape == (grades,) else given


def _spread(impressions: int, *, lists: int, seed: int) -> Integers:
    """`impressions` shared out evenly; a random choice of the lists gets what remains."""
    if checks.integer("impressions", impressions, at_least=1) > MOST_IMPRESSIONS:
        raise OptionError(f"impressions must be at most {MOST_IMPRESSIONS:,}, got {impressions:,}")
    if not lists:
        raise DataError("cannot simulate clicks: no query has a document to show")
    if impressions < lists:
        raise OptionError(
            f"impressions must be at least {lists}, one for each shown list, got {impressions}; "
            "ask for more impressions, fewer rankings or fewer queries"
        )
    each = np.full(lists, impressions // lists, dtype=np.int64)
    extra = generator(seed, "impressions").choice(lists, impressions % lists, replace=False)
    each[extra] += 1
    return each

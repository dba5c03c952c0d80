"""Click logs sampled from judged lists."""

from __future__ import annotations

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.model import ClickModel
from ultr.data import ragged
from ultr.data.click_log import ClickLog, position_factor
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.seeding import generator
from ultr.simulation.ranking_svm import RankingSVM
from ultr.simulation.shown import shown_lists

MOST_IMPRESSIONS = 10**15
"""More would not fit into the counts once they are summed."""


def simulate(
    judged: JudgedLists,
    model: ClickModel,
    *,
    impressions: int,
    svm_share: float = 0.01,
    rankings: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> ClickLog:
    """The log of users who click by `model` on lists of a Ranking SVM fitted on a share of the queries."""
    svm = RankingSVM.fit(judged, share=svm_share, seed=seed)
    scores = svm.score(judged.features)
    return simulate_log(
        judged, model, scores=scores, impressions=impressions, rankings=rankings, noise=noise, seed=seed
    )


def simulate_log(
    judged: JudgedLists,
    model: ClickModel,
    *,
    scores: Doubles,
    impressions: int,
    rankings: int = 1,
    noise: float = 0.0,
    seed: int = 0,
) -> ClickLog:
    """The collapsed log of `impressions` sessions on the lists that `scores` put in order.

    Each query has `rankings` lists, which differ if there is `noise` (see `shown_lists`), and all lists have
    the same number of impressions, give or take one.
    """
    if len(scores) != judged.documents:
        raise DataError(f"{judged.documents} judged documents, but {len(scores)} scores")
    shown = shown_lists(scores, judged.offsets, positions=model.positions, rankings=rankings, noise=noise, seed=seed)
    each = _spread(impressions, lists=len(shown.queries), seed=seed)
    labels = ragged.pad(judged.labels[shown.documents], shown.offsets, width=model.positions, fill=-1)
    counts = model.counts(labels, each, generator(seed, "clicks"), max_label=judged.max_label)
    log = ClickLog(
        features=judged.features,
        documents=shown.documents,
        offsets=shown.offsets,
        factors=(position_factor(shown.positions, count=model.positions),),
        impressions=each,
        clicks=counts[ragged.mask(shown.offsets, width=model.positions)],
        queries=shown.queries,
        query_ids=judged.query_ids,
        feature_names=judged.feature_names,
    )
    return log.collapse()


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


def ceiling_scores(judged: JudgedLists, model: ClickModel) -> Doubles:
    """The scores of a ranker that knows the click model exactly and orders by what is clicked.

    A document's score is the click probability of its grade, averaged over the positions. Where the clicks on
    one document depend on the others, it is the click probability of a list with only that document.

    The nDCG of these scores is what perfect unbiased learning from such clicks arrives at: 1 for every model
    that clicks better grades more. It is no upper bound where a model does not: by the `real` clicks grade 0
    is better than grades 1 and 2, and a ranker that learns this imperfectly may have the higher nDCG.
    """
    grades = np.arange(judged.max_label + 1)
    if isinstance(model, IndependentClicks):
        by_grade: Doubles = model.rates(judged.max_label).mean(axis=1)
    else:
        by_grade = model.probabilities(grades[:, None], max_label=judged.max_label)[:, 0]
    return by_grade[judged.labels]


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

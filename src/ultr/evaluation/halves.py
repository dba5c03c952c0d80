"""The documents that rankers agree to rank high, and those that they agree to rank low."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ultr.arrays import Mask
from ultr.bias import score_groups
from ultr.data.click_log import ClickLog
from ultr.evaluation.evidence import Evidence
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import Ranking

HIGH, LOW = "documents ranked high", "documents ranked low"


def ranked_halves(rankers: Iterable[RankerLike], log: ClickLog) -> dict[str, Mask]:
    """[rows of the features], those with the better ranks on the whole and the rest, with about as many clicks each.

    The ranks of all rankers are added up, so that the halves favour none of them.
    """
    evidence = Evidence.of(log)
    rows = len(log.features)
    ranks = np.zeros(rows)
    for ranker in rankers:
        ranking = Ranking.by(ranker, evidence)
        # Candidates that tie share the middle of their ranks.
        ranks += np.bincount(evidence.documents, ranking.first + (ranking.ties - 1) / 2, minlength=rows)
    clicks = np.bincount(evidence.documents[evidence.cells.documents], evidence.cells.clicks, minlength=rows)
    queries = np.bincount(evidence.documents, minlength=rows)
    shown = np.flatnonzero(queries)
    high = np.zeros(rows, dtype=np.bool_)
    high[shown] = score_groups(-ranks[shown] / queries[shown], clicks[shown], count=2) == 1
    return {HIGH: high, LOW: ~high}

"""The shift of exposure from the lists of a log, or from another ranker, to a ranker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.gathering import new_array
from ultr.evaluation.evidence import Evidence, check_codes
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import AsShown, Placement, Ranking
from ultr.metrics.exposure import ExposureShift, exposure_shift


def shift_from_log(ranker: RankerLike, log: ClickLog, *, base: RankerLike | None = None) -> ExposureShift:
    """The shift of exposure if a ranker ordered the documents that a log showed for each query.

    The exposure of a document is 1 / rank; by the log, its mean over the impressions of the query, 0 where it was not
    shown. Documents that tie share their ranks. With a `base`, that ranker's order is taken in the place of the log's.
    Documents count by the impressions of their query.
    """
    check_codes(ranker, log)
    evidence = Evidence.of(log)
    before: Placement = AsShown() if base is None else Ranking.by(base, evidence)
    return exposure_shift(
        exposures(before, evidence),
        exposures(Ranking.by(ranker, evidence), evidence),
        np.repeat(evidence.impressions, np.diff(evidence.offsets)),
    )


def exposures(placement: Placement, evidence: Evidence) -> Doubles:
    """The exposure that a placement gives to each candidate, [candidates]."""
    longest = max(int(np.diff(evidence.offsets).max(initial=0)), evidence.positions)
    by_rank = 1 / (1 + np.arange(longest))
    found = new_array(len(evidence.documents), np.float64)
    for part in evidence.parts():
        everywhere = np.ones((part.queries.stop - part.queries.start, longest))
        found[part.candidates] = placement.weights(replace(part, places=everywhere))(by_rank)
    return found

"""The shift of exposure from the lists of a log, or from another ranker, to a ranker."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.data.gathering import new_array
from ultr.evaluation.evidence import Evidence, check_codes
from ultr.evaluation.judged import RankerLike
from ultr.evaluation.placement import Placement, placement_by
from ultr.metrics.exposure import ExposureShift, exposure_shift


def shift_from_log(ranker: RankerLike, log: ClickLog, *, base: RankerLike | None = None) -> ExposureShift:
    """The shift of exposure if a ranker ordered the documents of each page of a log.

    The exposure of a document is 1 / position, averaged over the impressions of the query, 0 where it was not shown.
    Documents that tie share their places. With a `base`, that ranker's order is taken in the place of the log's.
    Documents count by the impressions of their query.
    """
    check_codes(ranker, log)
    evidence = Evidence.of(log)
    before = Placement.as_shown(evidence) if base is None else placement_by(base, evidence)
    return exposure_shift(
        exposures(before, evidence),
        exposures(placement_by(ranker, evidence), evidence),
        np.repeat(evidence.impressions, np.diff(evidence.offsets)),
    )


def exposures(placement: Placement, evidence: Evidence) -> Doubles:
    """The exposure that a placement gives to each candidate, [candidates]."""
    by_rank = 1 / (1 + np.arange(evidence.positions))
    found = new_array(len(evidence.documents), np.float64)
    for part in evidence.parts():
        found[part.candidates] = placement.weights(part)(by_rank)
    return found

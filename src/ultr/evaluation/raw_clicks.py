"""Rates of clicks as they are, which a ranker must be better than."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.gathering import gather, new_array
from ultr.data.log_checks import trusted
from ultr.data.log_splits import split_pages, with_counts
from ultr.errors import DataError
from ultr.evaluation.evidence import Candidates, Evidence
from ultr.evaluation.placement import Placement, placement_of
from ultr.evaluation.trial import Valued


def beside_raw_clicks(
    scores: Doubles,
    evidence: Evidence,
    log: ClickLog,
    candidates: Candidates | None,
    value: Mapping[str, float] | None,
    *,
    seed: int,
) -> tuple[Valued, Valued]:
    """Some scores and raw rates of clicks, or of value, on both halves of the pages, the rates those of the other half.

    On the pages that they come from, click rates would win by the chance in the very clicks that they are judged by.
    """
    shown = Candidates.shown(log) if candidates is None else candidates
    plain = trusted(log, pair_clicks=None)
    halves = split_pages(plain, 0.5, seed=seed)
    parts = []
    for half in (with_counts(plain, each, ()) for each in halves):
        part = Evidence.of(half, shown, value=value)
        parts.append(replace(part, pages=half if candidates is None else None))
    ours: list[tuple[Placement, Evidence]] = []
    raw: list[tuple[Placement, Evidence]] = []
    clicked = False
    for part, other in zip(parts, reversed(parts), strict=True):
        rates = new_array(len(shown.documents), np.float64)
        rates[:] = 0
        for piece in other.parts():
            rows = ragged.rows_of(other.query_numbers[piece.queries], shown.offsets)
            times = np.bincount(piece.shown, piece.times, minlength=len(rows))
            rates[rows] = piece.amounts / np.maximum(times, 1)
        places = np.searchsorted(evidence.query_numbers, part.query_numbers)
        ours.append((placement_of(gather([scores], places, evidence.offsets)[1][0], part), part))
        known = gather([rates], part.query_numbers, shown.offsets)[1][0]
        clicked |= bool(known.any())
        raw.append((placement_of(known, part), part))
    if not clicked:
        raise DataError("no clicked document was shown in both halves")
    return ours, raw

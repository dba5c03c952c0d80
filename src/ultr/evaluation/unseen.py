"""The part of a log that rankers were not trained on, as far as what they know of their data tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ultr.data.click_log import SPLITS, ClickLog
from ultr.data.log_splits import HELD_OUT
from ultr.errors import DataError


class Trained(Protocol):
    """A ranker that knows what it was trained on."""

    seed: int
    data_fingerprint_: str


def unseen(rankers: Sequence[Trained], log: ClickLog) -> tuple[ClickLog, str]:
    """The part of the log that no ranker was trained on, and a phrase that names it."""
    seen = "all queries, on which a model was trained: values and likelihoods are too good, use another log"
    everything = log.fingerprint()
    if any(ranker.data_fingerprint_ == everything for ranker in rankers):
        return log, seen
    held = [found for ranker in rankers if (found := held_out(ranker, log)) is not None]
    if not held:
        return log, f"all {len(np.unique(log.queries)):,} queries of the log"
    who = {1: "the model was not", 2: "neither model was"}.get(len(rankers), "no model was")
    if all(by == "query" for by, _ in held):
        kept = np.logical_and.reduce([np.isin(log.queries, part.queries) for _, part in held])
        count = len(np.unique(log.queries[kept]))
        return (log.select(kept), f"the {count:,} queries of the log that {who} trained on") if count else (log, seen)
    (by, part), *others = held
    if any(other.fingerprint() != part.fingerprint() for _, other in others):
        return log, seen
    return part, f"the {'pages' if by == 'page' else 'end'} of the log that {who} trained on"


def held_out(ranker: Trained, log: ClickLog) -> tuple[str, ClickLog] | None:
    """What `ultr train` held out of the log when it trained the ranker, and by what, if it did."""
    for by in SPLITS:
        for seed in {0, ranker.seed}:
            try:
                trained, held = log.split(HELD_OUT, by=by, seed=seed)
            except DataError:
                continue
            if trained.fingerprint() == ranker.data_fingerprint_:
                return by, held
    return None

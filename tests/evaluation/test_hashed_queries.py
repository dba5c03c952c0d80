"""Splits by a digest of the query's id, which hold for every log with these queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.test_unseen_part import timed, trained

from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation import unseen_part


def _of_queries(log: ClickLog, first: int, last: int) -> ClickLog:
    """The lists of some queries, as a log of its own."""
    return replace(log.part((log.queries >= first) & (log.queries < last), ()))


def _queries(log: ClickLog) -> set[str]:
    return set(log.query_ids[np.unique(log.queries)])


def test_a_query_is_on_the_same_side_in_every_log() -> None:
    log = timed(200)
    kept, held = log.split(0.3, by="hash", seed=4)
    assert not _queries(kept) & _queries(held)
    assert _queries(kept) | _queries(held) == _queries(log)
    assert 0.2 < len(_queries(held)) / 200 < 0.4
    for part in (_of_queries(log, 0, 120), _of_queries(log, 60, 200)):
        assert _queries(part.split(0.3, by="hash", seed=4)[1]) == _queries(held) & _queries(part)
    assert _queries(log.split(0.3, by="hash", seed=5)[1]) != _queries(held)
    assert _queries(log.split(0.1, by="hash", seed=4)[1]) < _queries(held)


def test_a_share_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="none or all"):
        timed(3).split(1e-9, by="hash")


def test_rankers_of_two_logs_are_compared_on_what_both_held_out_by_hash() -> None:
    log = timed(200)
    yesterday, today = _of_queries(log, 0, 150), _of_queries(log, 50, 200)
    served = trained(yesterday.split(0.3, by="hash")[0].split(0.1)[0])
    new = trained(today.split(0.3, by="hash")[0].split(0.1)[0])
    found = unseen_part({"served": served, "new": new}, today)
    assert not found.warnings
    assert not found.notes
    assert _queries(found.log) == _queries(today.split(0.3, by="hash")[1])
    assert "that neither model was trained on" in found.name
    assert unseen_part({"served": served}, found.log).log is found.log


def test_another_share_or_seed_leaves_what_both_held_out() -> None:
    log = timed(300)
    parts = {"a": (0.5, 1), "b": (0.5, 2)}
    rankers = {
        name: trained(_of_queries(log, 0, 290).split(share, by="hash", seed=seed)[0])
        for name, (share, seed) in parts.items()
    }
    found = unseen_part(rankers, log)
    held = [_queries(log.split(share, by="hash", seed=seed)[1]) for share, seed in parts.values()]
    assert _queries(found.log) == held[0] & held[1]


def test_who_was_trained_on_the_held_out_side_has_seen_that_side() -> None:
    log = timed(200)
    held = trained(_of_queries(log, 0, 150).split(0.3, by="hash")[1])
    found = unseen_part({"held": held}, log)
    assert _queries(found.log) == _queries(log.split(0.3, by="hash")[0])

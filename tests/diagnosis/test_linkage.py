from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.diagnosis.logs import thorough

from ultr.diagnosis import Verdict
from ultr.diagnosis.linkage import Linkage

NO_FEATURES = np.zeros((800, 0))


def test_documents_at_all_positions_link_them() -> None:
    finding = Linkage.of(thorough()).finding()
    assert finding.verdict is Verdict.GOOD
    assert "link all 4 positions" in finding.answer
    assert finding.numbers["connected"]
    assert finding.numbers["swaps"] == []


def test_a_weak_link_is_named() -> None:
    finding = Linkage.of(thorough(pages=400)).finding()
    assert finding.verdict is Verdict.CAREFUL
    assert "weakest link" in finding.answer
    assert "merge them" in finding.advice


def test_fixed_rankings_leave_only_the_features_to_tell() -> None:
    finding = Linkage.of(thorough(swaps=False)).finding()
    assert finding.verdict is Verdict.CAREFUL
    assert "similar features" in finding.answer
    assert "the other way round" in finding.advice


def test_without_features_fixed_rankings_tell_nothing() -> None:
    log = thorough(swaps=False, features=NO_FEATURES)
    assert Linkage.of(log).finding().verdict is Verdict.BAD


def test_parts_are_told_with_what_would_join_them() -> None:
    """Queries with even numbers swap positions 1 and 2 only, the others 3 and 4 only."""
    random = np.random.default_rng(0)
    pages = 4_000
    swapped = random.random(pages) < 0.5
    order = np.tile(np.arange(4), (pages, 1))
    even = np.arange(pages) % 2 == 0
    order[even & swapped] = [1, 0, 2, 3]
    order[~even & swapped] = [0, 1, 3, 2]
    documents = 4 * (np.arange(pages) % 200)[:, None] + order
    log = thorough(pages=pages, swaps=False, features=NO_FEATURES)
    log = type(log).of(
        features=log.features,
        documents=documents.reshape(-1),
        offsets=np.arange(0, 4 * pages + 1, 4),
        clicks=random.random(4 * pages) < 0.4,
        queries=np.arange(pages) % 200,
    )
    finding = Linkage.of(log).finding()
    assert finding.verdict is Verdict.BAD
    assert "fall into 2 parts" in finding.answer
    assert finding.numbers["parts"] in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert finding.numbers["swaps"] == ["position 2 and position 3"]
    assert "at both position 2 and position 3" in finding.advice


def test_links_without_clicks_do_not_count() -> None:
    log = thorough(pages=4_000, features=NO_FEATURES)
    last = log.positions == 4
    without = replace(log, clicks=np.where(last, 0, log.clicks))
    assert Linkage.of(without).finding().verdict is Verdict.GOOD  # the documents were clicked elsewhere
    none = replace(log, clicks=np.zeros_like(log.clicks))
    assert Linkage.of(none).finding().verdict is Verdict.BAD


def test_a_factor_that_splits_the_log_is_told_from_positions() -> None:
    """The device depends on the query, so no document was seen on two."""
    pages = 40_000
    device = np.where(np.arange(pages) % 2 == 0, "phone", "desk")
    finding = Linkage.of(thorough(device=np.repeat(device, 4), features=NO_FEATURES)).finding()
    assert finding.verdict is Verdict.BAD
    assert "by position alone all are linked" in finding.answer.lower()
    assert "leave the other factors out" in finding.advice.lower()
    assert not finding.numbers["connected"]
    assert finding.numbers["positions_connected"]

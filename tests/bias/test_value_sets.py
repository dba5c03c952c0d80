from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.test_click_log import random_log

from ultr.bias import bias_graph, value_sets
from ultr.bias.value_sets import ValueSets
from ultr.data import ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError


def _counted(sets: ValueSets) -> dict[frozenset[int], tuple[int, int]]:
    rows = zip(sets.seen, sets.documents, sets.clicks, strict=True)
    return {frozenset(np.flatnonzero(seen).tolist()): (int(documents), int(clicks)) for seen, documents, clicks in rows}


def _by_hand(log: ClickLog) -> dict[frozenset[int], tuple[int, int]]:
    seen: dict[int, set[int]] = {}
    clicks: Counter[int] = Counter()
    for document, position, clicked in zip(log.documents, log.positions, log.clicks, strict=True):
        seen.setdefault(int(document), set()).add(int(position) - 1)
        clicks[int(document)] += int(clicked)
    documents: Counter[frozenset[int]] = Counter()
    total: Counter[frozenset[int]] = Counter()
    for document, values in seen.items():
        if len(values) > 1 and clicks[document]:
            documents[frozenset(values)] += 1
            total[frozenset(values)] += clicks[document]
    return {values: (documents[values], total[values]) for values in documents}


def test_sets_are_what_a_loop_over_documents_counts(monkeypatch: pytest.MonkeyPatch, small_log: ClickLog) -> None:
    expected = _by_hand(small_log)
    assert len(expected) > 10
    assert _counted(value_sets(small_log)) == expected
    monkeypatch.setattr(ragged, "SPAN", 101)
    monkeypatch.setattr(row_blocks, "BLOCK", 60)
    assert _counted(value_sets(small_log)) == expected
    assert value_sets(small_log).complete


@given(st.integers(0, 10_000), st.integers(2, 12))
def test_one_dimension_is_identified_if_and_only_if_the_graph_of_clicked_links_is_connected(
    seed: int, lists: int
) -> None:
    log = random_log(seed, lists=lists)
    assert (value_sets(log).dimension > 0) == (
        bias_graph(log).with_clicks().connected and len(bias_graph(log).names) > 1
    )


def test_documents_with_the_same_features_count_as_one() -> None:
    log = ClickLog.of(features=np.zeros((2, 1)), documents=[0, 1], offsets=[0, 2], clicks=[1, 1], queries=["a"])
    assert value_sets(log).dimension == 0
    assert value_sets(log, identities=np.array([0, 0])).dimension == 1


def test_of_too_many_sets_those_on_the_rarest_links_are_kept() -> None:
    """Two parts of many sets each, and a single one that joins them."""
    random = np.random.default_rng(0)
    seen = np.zeros((401, 16), dtype=np.bool_)
    seen[:200, :8] = random.random((200, 8)) < 0.6
    seen[200:400, 8:] = random.random((200, 8)) < 0.6
    seen[400, [3, 11]] = True
    every = ValueSets(seen, np.ones(401, dtype=np.int64), np.ones(401, dtype=np.int64)).merged()
    few = every.merged(60)
    assert every.complete
    assert not few.complete
    assert len(few.seen) == 60
    assert frozenset({3, 11}) in _counted(few)
    assert every.dimension == few.dimension == 1


def test_an_unknown_factor_is_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="bias factor"):
        value_sets(small_log, factors=["devise"])

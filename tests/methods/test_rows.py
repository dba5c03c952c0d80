from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ultr import DLA, MLP, ClickBaseline, ClickLog, LabelBaseline, PairDebias, Vectorization, evaluate, log_of_rows
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.methods import METHODS
from ultr.methods.estimator import Estimator

RELEVANCE = MLP(hidden=(4,), steps=3)
PAGES, SHOWN = 40, 5


def rows() -> tuple[pd.DataFrame, Any, Any]:
    """Features by name, clicks, and the page of each row."""
    random = np.random.default_rng(5)
    features = random.random((PAGES * SHOWN, 3))
    frame = pd.DataFrame(features, columns=["bm25", "age", "price"])
    return frame, (random.random(PAGES * SHOWN) < features[:, 0]).astype(int), np.repeat(np.arange(PAGES), SHOWN)


@pytest.mark.parametrize("method", [DLA, Vectorization])
def test_rows_are_learned_from_as_the_same_log_is(method: Any) -> None:
    frame, clicks, pages = rows()
    by_rows = method(relevance=RELEVANCE).fit(frame, clicks, qid=pages)
    log = ClickLog.of(
        features=frame.to_numpy(),
        documents=np.arange(len(frame)),
        offsets=np.arange(0, len(frame) + 1, SHOWN),
        clicks=clicks,
        queries=pages[::SHOWN],
        feature_names=list(frame.columns),
    )
    by_log = method(relevance=RELEVANCE).fit(log)
    assert by_rows.ranker_.provenance == by_log.ranker_.provenance
    offsets = np.arange(0, len(frame) + 1, SHOWN)
    np.testing.assert_array_equal(by_rows.score(frame, offsets), by_log.score(frame, offsets))


def test_every_method_learns_from_rows_by_the_one_fit() -> None:
    assert all(kind.fit is Estimator.fit for kind in METHODS.values())


def test_pairs_are_counted_for_the_method_that_needs_them() -> None:
    frame, clicks, pages = rows()
    PairDebias(relevance=RELEVANCE).fit(frame, clicks, qid=pages)


def test_labels_are_learned_from_as_rows() -> None:
    frame, labels, queries = rows()
    fitted = LabelBaseline(relevance=RELEVANCE).fit(frame, labels, qid=queries)
    judged = JudgedLists.of(
        features=frame.to_numpy(),
        labels=labels,
        offsets=np.arange(0, len(frame) + 1, SHOWN),
        query_ids=[str(query) for query in range(PAGES)],
        feature_names=list(frame.columns),
    )
    assert fitted.ranker_.data_fingerprint == judged.fingerprint()
    assert evaluate(fitted, judged).mean("nDCG@10") > 0


def test_a_score_per_row_whatever_the_order_of_the_columns() -> None:
    frame, clicks, pages = rows()
    fitted = Vectorization(relevance=RELEVANCE).fit(frame, clicks, qid=pages)
    turned, sizes = frame[["price", "bm25", "age"]], np.full(PAGES, SHOWN)
    scores = fitted.score(frame, np.arange(0, len(frame) + 1, SHOWN))
    np.testing.assert_array_equal(fitted.predict(turned, qid=pages), scores)
    np.testing.assert_array_equal(fitted.ranker_.predict(frame.to_numpy(), group=sizes), scores)


def test_lists_are_asked_for_where_they_make_a_difference() -> None:
    frame, clicks, pages = rows()
    alone = ClickBaseline(relevance=RELEVANCE).fit(frame, clicks, qid=pages)
    np.testing.assert_array_equal(alone.predict(frame), alone.predict(frame, qid=pages))
    in_lists = Vectorization(relevance=RELEVANCE).fit(frame, clicks, qid=pages)
    with pytest.raises(OptionError, match=r"depends on the other candidates of its query; give predict qid= or group="):
        in_lists.predict(frame)
    with pytest.raises(DataError, match="add up to 200"):
        in_lists.predict(frame, group=[1, 2])


def test_a_frame_without_clicks_is_told_how_to_be_read() -> None:
    with pytest.raises(
        OptionError, match=r"DLA learns from ClickLog, got DataFrame; make one with ultr.read_log\(df\)"
    ):
        DLA().fit(rows()[0])


def test_sizes_of_lists_are_not_taken_for_offsets() -> None:
    frame, clicks, pages = rows()
    fitted = ClickBaseline(relevance=RELEVANCE).fit(log_of_rows(frame, clicks, qid=pages))
    with pytest.raises(DataError, match=r"these look like the sizes of lists, whose offsets are numpy.cumsum"):
        fitted.score(frame, np.full(PAGES, SHOWN))

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ultr import MLP, ClickLog, JudgedLists, LabelBaseline, log_of_rows
from ultr.data.shown_rows import data_of, judged_of_rows, row_offsets
from ultr.errors import DataError, OptionError, UltrError

FEATURES = [[0.1, 5.0], [0.7, 6.0], [0.4, 7.0], [0.9, 8.0], [0.2, 9.0]]
CLICKS = [0, 1, 0, 1, 0]


def expected(**changes: Any) -> ClickLog:
    """The same by the door of plain arrays."""
    given = {
        "features": FEATURES,
        "documents": range(5),
        "offsets": [0, 2, 5],
        "clicks": CLICKS,
        "queries": ["shoes", "bags"],
    }
    return ClickLog.of(**given | changes)


def test_rows_of_a_query_are_one_page() -> None:
    log = log_of_rows(FEATURES, CLICKS, qid=["shoes"] * 2 + ["bags"] * 3)
    assert log.fingerprint() == expected().fingerprint()


def test_sizes_of_pages_stand_for_queries() -> None:
    log = log_of_rows(np.array(FEATURES), np.array(CLICKS), group=np.array([2, 3]))
    assert log.fingerprint() == expected(queries=None).fingerprint()


def test_with_sizes_a_query_has_several_pages() -> None:
    log = log_of_rows(FEATURES, CLICKS, group=[2, 3], qid=[7, 7, 7, 7, 7])
    assert log.fingerprint() == expected(queries=["7", "7"]).fingerprint()
    as_floats = log_of_rows(FEATURES, CLICKS, group=[2, 3], qid=pd.Series([7.0] * 5))
    assert as_floats.fingerprint() == log.fingerprint()


def test_positions_and_impressions_and_factors_are_those_of_the_rows() -> None:
    device = ["phone", "phone", "desk", "desk", "desk"]
    log = log_of_rows(
        FEATURES,
        CLICKS,
        qid=["shoes"] * 2 + ["bags"] * 3,
        position=pl.Series([2, 1, 3, 4, 5]),
        impressions=[4, 4, 9, 9, 9],
        factors={"device": device},
    )
    wanted = expected(positions=[2, 1, 3, 4, 5], impressions=[4, 9], device=device)
    assert log.fingerprint() == wanted.fingerprint()


@pytest.mark.parametrize("make", [dict, pa.table, pd.DataFrame, pl.DataFrame])
def test_a_frame_names_the_features(make: Any) -> None:
    columns = {"bm25": [row[0] for row in FEATURES], "age": [int(row[1]) for row in FEATURES]}
    log = log_of_rows(make(columns), CLICKS, qid=["shoes"] * 2 + ["bags"] * 3)
    assert log.fingerprint() == expected(feature_names=["bm25", "age"]).fingerprint()


@pytest.mark.parametrize("make", [pa.array, pd.Series, pd.Categorical, pl.Series])
def test_texts_of_a_frame_are_categories(make: Any) -> None:
    frame = {"bm25": [0.1, 0.7, 0.4], "brand": make(["puma", None, "nike"])}
    made = pd.DataFrame(frame) if isinstance(frame["brand"], pd.Categorical) else frame
    log = log_of_rows(made, [0, 1, 1], group=[3])
    assert log.categories == {"brand": ("nike", "puma")}
    np.testing.assert_array_equal(log.features[:, 1], [1, np.nan, 0])


def test_numbers_that_pandas_calls_categories_are_written_as_a_ranker_reads_them() -> None:
    frame = pd.DataFrame({"bm25": [0.1, 0.7], "shop": pd.Categorical([12.0, 7.0])})
    assert log_of_rows(frame, [0, 1], group=[2]).categories == {"shop": ("12", "7")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qid": None}, "nothing says which rows are one page; give qid="),
        ({"qid": ["a", "b", "a", "a", "a"]}, r"qid 'a' is back in row 2 .* group="),
        ({"qid": ["a", "b"]}, "qid must have one value for each of 5 rows"),
        ({"qid": [1, 1, np.nan, 2, 2]}, "qid has no value in row 2"),
        ({"qid": ["a", "a", None, "b", "b"]}, "qid has no value in row 2"),
        ({"qid": None, "group": [2, 2]}, "add up to 5, got 2 that add up to 4"),
        ({"qid": None, "group": [5, 0]}, "integers from 1"),
        ({"qid": None, "group": 5}, "group must be the rows of each page"),
        ({"group": [3, 2]}, "qid changes within page 1, in row 2"),
        ({"clicks": [0, 1]}, r"clicks must have one value for each of 5 rows, got the shape \(2,\)"),
        ({"clicks": [0, 1, 0, 2, 0]}, "more clicks than impressions"),
        (
            {"position": [1, 2, 1, 1, 2]},
            "rows 2 and 3 are both at position 1 of page 2; if one is a copy of the other, drop it; if qid was",
        ),
        ({"position": [0, 1, 0, 1, 2]}, "positions start at 1, got 0"),
        ({"impressions": [1, 2, 3]}, "impressions must have one value for each of 2 pages or of 5 rows"),
        ({"impressions": [2, 3, 4, 4, 4]}, "impressions changes within page 1, in row 1"),
        ({"factors": {"device": ["phone"]}}, "device must have one value for each of 5"),
        ({"factors": {"queries": [1] * 5}}, "a bias factor cannot be called 'queries'"),
        ({"features": [1.0, 2.0]}, "features must be an array of rows and features"),
        ({"features": pd.DataFrame({"when": pd.to_datetime(["2026-01-01"] * 5)})}, "'when' of the frame holds"),
    ],
)
def test_a_mistake_is_one_sentence(changes: dict[str, Any], message: str) -> None:
    usual: dict[str, Any] = {"features": FEATURES, "clicks": CLICKS, "qid": ["a", "a", "b", "b", "b"]}
    given = usual | changes
    with pytest.raises(UltrError, match=message) as caught:
        log_of_rows(given.pop("features"), given.pop("clicks"), **given)
    assert "\n" not in str(caught.value)


def test_a_text_with_very_many_values_is_no_category(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ultr.data.shown_rows.MOST_CATEGORIES", 2)
    frame = {"bm25": [0.1, 0.2, 0.3], "title": ["one", "two", "three"]}
    with pytest.raises(DataError, match="'title' of the frame has 3 different texts"):
        log_of_rows(frame, [0, 1, 0], group=[3])


def test_labels_become_judged_lists() -> None:
    judged = judged_of_rows({"bm25": [0.1, 0.7, 0.4]}, [2, 0, 1], qid=["a", "a", "b"])
    wanted = JudgedLists.of(
        features=[[0.1], [0.7], [0.4]],
        labels=[2, 0, 1],
        offsets=[0, 2, 3],
        query_ids=["a", "b"],
        feature_names=["bm25"],
    )
    assert judged.fingerprint() == wanted.fingerprint()
    with pytest.raises(DataError, match="labels of judged lists must be whole numbers"):
        judged_of_rows([[0.1]], [0.5], group=[1])


def test_lists_without_rows_have_offsets_too() -> None:
    assert row_offsets(0, qid=[]).tolist() == [0]
    assert row_offsets(3, group=[1, 2]).tolist() == [0, 1, 3]


def test_a_log_needs_no_further_arguments() -> None:
    log = expected()
    assert data_of(log, None, {"qid": None}, wanted=ClickLog, what="DLA") is log
    with pytest.raises(OptionError, match="a ClickLog has all that DLA learns from; leave out qid"):
        data_of(log, None, {"qid": [1]}, wanted=ClickLog, what="DLA")


def test_a_frame_alone_gets_the_hint_how_to_read_it() -> None:
    with pytest.raises(
        OptionError, match=r"DLA learns from ClickLog, got DataFrame; make one with ultr.read_log\(df\)"
    ):
        data_of(pd.DataFrame({"a": [1]}), None, {}, wanted=ClickLog, what="DLA")
    with pytest.raises(OptionError, match=r"learns from JudgedLists, got ndarray; .*fit\(X, labels, qid=...\)"):
        data_of(np.eye(2), None, {}, wanted=JudgedLists, what="LabelBaseline")
    with pytest.raises(OptionError, match="learns from labels, which have no position; leave it out"):
        data_of(np.eye(2), [0, 1], {"group": [2], "position": [1, 2]}, wanted=JudgedLists, what="LabelBaseline")


def test_rows_of_pandas_in_another_order_are_refused() -> None:
    frame, clicks = pd.DataFrame(FEATURES, columns=["a", "b"]), pd.Series(CLICKS)
    turned = frame.iloc[::-1]
    with pytest.raises(OptionError, match=r"clicks has the index of the features in another order.*clicks\.loc"):
        log_of_rows(turned, clicks, group=[2, 3])
    same = log_of_rows(turned, clicks.loc[turned.index], group=[2, 3])
    # Another index altogether says nothing of the order, and an array has none.
    other = log_of_rows(turned.set_index("a"), clicks.loc[turned.index], group=[2, 3])
    assert log_of_rows(turned, clicks.to_numpy(), group=[2, 3]).clicks.tolist() == CLICKS
    assert same.clicks.tolist() == other.clicks.tolist() == CLICKS[::-1]


def test_labels_queries_and_impressions_in_another_order_than_the_features_are_refused_too() -> None:
    features = pd.DataFrame({"a": [0.1, 0.7, 0.4, 0.2]})
    turned = pd.Series([2, 0, 1, 0], index=[3, 2, 1, 0])
    right = pd.Series([0, 0, 1, 1])
    for made in (
        lambda: judged_of_rows(features, turned, qid=right),
        lambda: judged_of_rows(features, right, qid=turned.sort_values()),
        lambda: log_of_rows(features, right, qid=right, impressions=turned),
    ):
        with pytest.raises(OptionError, match="has the index of the features in another order"):
            made()
    assert judged_of_rows(features, turned.to_numpy(), qid=right).queries == 2
    ranker = LabelBaseline(relevance=MLP(hidden=(4,), steps=1)).fit(features, right, qid=right).ranker_
    with pytest.raises(OptionError, match="qid has the index of the features in another order"):
        ranker.predict(features, qid=right.iloc[::-1])


def test_lists_of_a_frame_are_embeddings() -> None:
    frame = pl.DataFrame({"image": [[0.1, 0.2], [0.3, 0.4]], "age": [1.0, 2.0]})
    log = log_of_rows(frame, [0, 1], group=[2])
    assert list(log.feature_names) == ["image[0]", "image[1]", "age"]
    np.testing.assert_array_equal(log.features, np.array([[0.1, 0.2, 1.0], [0.3, 0.4, 2.0]], dtype=np.float32))

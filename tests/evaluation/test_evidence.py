"""The counts behind every value, against loops over the rows of a log."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation import Candidates, Evidence, Valuation
from ultr.evaluation.evidence import _ascending, check_codes
from ultr.evaluation.placement import Placement, placement_of, ranks_of


def log_of_four_queries() -> ClickLog:
    """Documents 0 to 6, some of them in several queries and at several positions; row 7 is never shown."""
    return ClickLog.of(
        features=np.arange(8.0)[:, None],
        documents=[3, 1, 0, 1, 3, 0, 1, 2, 5, 4, 6, 6, 2],
        offsets=[0, 3, 6, 8, 9, 11, 13],
        clicks=[2, 0, 1, 1, 1, 0, 3, 0, 1, 0, 4, 2, 0],
        impressions=[7, 2, 5, 3, 6, 4],
        queries=["a", "a", "b", "c", "d", "d"],
    )


def counted(log: ClickLog) -> tuple[Counter[tuple[int, int, int]], Counter[tuple[int, int]]]:
    """Impressions by query, document and position, and clicks by query and document."""
    shown: Counter[tuple[int, int, int]] = Counter()
    clicks: Counter[tuple[int, int]] = Counter()
    for number, query in enumerate(log.queries.tolist()):
        for row in range(log.offsets[number], log.offsets[number + 1]):
            document = int(log.documents[row])
            shown[query, document, int(log.position.values[row])] += int(log.impressions[number])
            clicks[query, document] += int(log.clicks[row])
    return shown, clicks


def told(evidence: Evidence, *, clicked: bool) -> tuple[Counter[tuple[int, int, int]], dict[tuple[int, int], float]]:
    """The same as the parts of the evidence tell it, which must number queries and candidates alike."""
    shown: Counter[tuple[int, int, int]] = Counter()
    clicks: dict[tuple[int, int], float] = {}
    for part in evidence.parts(clicked=clicked):
        numbers = evidence.query_numbers[part.queries][part.of_query]
        assert evidence.documents[part.candidates].tolist() == part.documents.tolist()
        assert part.impressions.tolist() == evidence.impressions[part.queries][part.of_query].tolist()
        assert part.total(np.ones(len(part.documents))).shape == evidence.impressions[part.queries].shape
        for query, document, count in zip(numbers, part.documents, part.clicks, strict=True):
            clicks[int(query), int(document)] = float(count)
        for place, position, times in zip(part.shown, part.positions, part.times, strict=True):
            shown[int(numbers[place]), int(part.documents[place]), int(position)] += int(times)
    return shown, clicks


@pytest.mark.parametrize("span", [2**18, 3, 1])
@pytest.mark.parametrize("clicked", [False, True])
def test_parts_of_any_size_tell_what_a_loop_counts(
    span: int,
    clicked: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = log_of_four_queries()
    shown, clicks = counted(log)
    monkeypatch.setattr(ragged, "SPAN", span)
    evidence = Evidence.of(log)
    kept = {key for key, count in clicks.items() if count or not clicked}
    found_shown, found_clicks = told(evidence, clicked=clicked)
    assert found_clicks == {key: clicks[key] for key in kept}
    assert found_shown == Counter({key: times for key, times in shown.items() if key[:2] in kept})
    assert evidence.impressions.tolist() == [9, 5, 3, 10]
    assert evidence.positions == 3
    assert len(list(evidence.parts())) > (span < 10)


@pytest.mark.parametrize("span", [2**18, 3])
def test_a_value_is_the_same_in_one_part_and_in_many(span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relevance clicks / (impressions x examination) of each document, at the rank of its score."""
    log, theta = log_of_four_queries(), np.array([1.0, 0.5, 0.25])
    shown, clicks = counted(log)
    monkeypatch.setattr(ragged, "SPAN", span)
    evidence = Evidence.of(log, Candidates.shown(log))
    scores = np.array([4.0, 2.0, 9.0, 1.0, 5.0, 8.0, 6.0, 7.0])
    value = Valuation(theta).of_scores(scores[evidence.documents], evidence)
    expected = []
    for query in range(4):
        documents = sorted({document for number, document, _ in shown if number == query}, key=lambda d: -scores[d])
        total = 0.0
        for rank, document in enumerate(documents):
            exposed = sum(times * theta[p] for (q, d, p), times in shown.items() if (q, d) == (query, document))
            total += theta[rank] * clicks[query, document] / exposed * evidence.impressions[query]
        expected.append(total)
    np.testing.assert_allclose(value.totals, expected)


ODD = [
    # In another order than the documents, with some that were never shown, and without some that were.
    Candidates(np.array([3, 0, 7, 2, 1, 5, 6, 2]), np.array([0, 3, 5, 6, 8])),
    # The first that was shown is no candidate, and the rest are in order.
    Candidates(np.array([1, 3, 1, 2, 5, 2, 4, 6]), np.array([0, 2, 4, 5, 8])),
    # One in the middle is none.
    Candidates(np.array([0, 3, 1, 2, 5, 2, 4, 6]), np.array([0, 2, 4, 5, 8])),
    # A single one, below most that were shown.
    Candidates(np.array([0]), np.array([0, 1, 1, 1, 1])),
    # Only the last one is out of place.
    Candidates(np.array([0, 1, 3, 1, 2, 5, 2, 6, 4]), np.array([0, 3, 5, 6, 9])),
    # None at all.
    Candidates(np.array([], dtype=np.int64), np.zeros(5, dtype=np.int64)),
]


@pytest.mark.parametrize("candidates", ODD)
@pytest.mark.parametrize("span", [2**18, 2])
def test_candidates_of_any_order_keep_their_own_counts(
    candidates: Candidates, span: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_four_queries()
    shown, clicks = counted(log)
    monkeypatch.setattr(ragged, "SPAN", span)
    evidence = Evidence.of(log, candidates)
    assert evidence.documents.tolist() == candidates.documents.tolist()
    assert evidence.offsets.tolist() == candidates.offsets.tolist()
    asked = {
        (query, int(document))
        for query in range(4)
        for document in candidates.documents[candidates.offsets[query] : candidates.offsets[query + 1]]
    }
    found_shown, found_clicks = told(evidence, clicked=False)
    assert found_clicks == {key: clicks[key] for key in asked}
    assert found_shown == Counter({key: times for key, times in shown.items() if key[:2] in asked})


def test_the_candidates_of_a_log_are_what_it_showed_for_each_query() -> None:
    log = log_of_four_queries()
    found = Candidates.shown(replace(log, query_ids=np.array(["a", "b", "c", "d", "never asked"])))
    assert found.documents.tolist() == [0, 1, 3, 1, 2, 5, 2, 4, 6]
    assert found.offsets.tolist() == [0, 3, 5, 6, 9, 9]


@pytest.mark.parametrize(
    ("documents", "offsets", "sentence"),
    [
        ([0, 8], [0, 1, 1, 1, 2], "candidates must be rows of the 8 feature vectors"),
        ([-1, 3], [0, 1, 1, 1, 2], "candidates must be rows of the 8 feature vectors"),
        ([0, 3], [0, 1, 1, 2], "candidates need one list for each of the log's 4 query ids, got 3"),
        ([0, 3], [0, 1, 1, 1, 1, 2], "candidates need one list for each of the log's 4 query ids, got 5"),
        ([0, 3], [0, 1, 1, 1, 3], "the offsets of candidates must start with 0 and end with 2"),
        ([3, 5, 3], [0, 3, 3, 3, 3], "a document stands twice among the candidates of a query; keep it once"),
    ],
)
def test_candidates_that_do_not_fit_the_log_are_refused(
    documents: list[int], offsets: list[int], sentence: str
) -> None:
    with pytest.raises(DataError) as caught:
        Evidence.of(log_of_four_queries(), Candidates(np.array(documents), np.array(offsets)))
    assert str(caught.value).startswith(sentence)


def test_rows_at_both_ends_of_the_features_may_be_candidates() -> None:
    found = Evidence.of(log_of_four_queries(), Candidates(np.array([0, 7]), np.array([0, 2, 2, 2, 2])))
    assert found.documents.tolist() == [0, 7]


@pytest.mark.parametrize(
    ("numbers", "ascending"),
    [([], True), ([4], True), ([1, 2, 5], True), ([1, 1], False), ([0, 2, 1], False), ([3, 1, 2], False)],
)
@pytest.mark.parametrize("span", [2**18, 1])
def test_ascending_means_above_the_one_before(
    numbers: list[int],
    ascending: bool,  # noqa: FBT001
    span: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ragged, "SPAN", span)
    assert _ascending(np.array(numbers, dtype=np.int64)) is ascending


def test_codes_of_categories_must_be_those_of_the_log() -> None:
    log = ClickLog.of(
        features=[[0.0], [1.0]],
        documents=[0, 1],
        offsets=[0, 2],
        clicks=[1, 0],
        feature_names=["brand"],
        categories={"brand": ["x", "y"]},
    )
    same, other = SimpleNamespace(categories={"brand": ("x", "y")}), SimpleNamespace(categories={"brand": ("y", "x")})
    for fits in (same, SimpleNamespace(ranker_=same), SimpleNamespace()):
        check_codes(fits, log)
    for wrong in (other, SimpleNamespace(ranker_=other)):
        with pytest.raises(DataError) as caught:
            check_codes(wrong, log)
        assert str(caught.value) == (
            "the ranker has other codes for its categories than the log; give log.with_categories(ranker.categories)"
        )


@pytest.mark.parametrize("span", [2**18, 3])
def test_ranks_are_counted_within_each_query(span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of a query may have the score of the first of the next one and not tie with it."""
    monkeypatch.setattr(ragged, "SPAN", span)
    evidence = Evidence.of(log_of_four_queries())
    first, ties = ranks_of(np.array([3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]), evidence)
    assert first.tolist() == [0, 1, 1, 0, 0, 0, 1, 0, 1]
    assert ties.tolist() == [1, 2, 2, 2, 2, 1, 2, 1, 2]


@pytest.mark.parametrize("scores", [np.ones(8), np.where(np.arange(9) == 4, np.nan, 1.0)])
def test_every_candidate_needs_a_score(scores: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"^scores must be a number for each of 9 candidates$"):
        placement_of(scores, Evidence.of(log_of_four_queries()))


@pytest.mark.parametrize("by_rank", [[1.0], [1.0, 0.5], [1.0, 0.5, 0.25, 0.2, 0.1]])
def test_lists_as_shown_weigh_what_their_positions_do(by_rank: list[float]) -> None:
    log = log_of_four_queries()
    shown, _ = counted(log)
    evidence = Evidence.of(log)
    (part,) = evidence.parts()
    weights = dict(enumerate(by_rank))
    numbers = evidence.query_numbers[part.of_query]
    expected = [
        sum(times * weights.get(p, 0.0) for (q, d, p), times in shown.items() if (q, d) == (query, document)) / often
        for query, document, often in zip(numbers, part.documents, part.impressions, strict=True)
    ]
    assert Placement.as_shown(evidence).weights(part)(np.array(by_rank)).tolist() == pytest.approx(expected)


def test_nothing_that_was_clicked_has_no_weights() -> None:
    log = log_of_four_queries()
    evidence = Evidence.of(replace(log, clicks=np.zeros_like(log.clicks)))
    (part,) = evidence.parts(clicked=True)
    assert Placement.as_shown(evidence).weights(part)(np.array([1.0, 0.5])).tolist() == []

"""The documents of each page in another order, by a loop over the pages and in worlds whose gain is known."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.evaluation import Assumption, Candidates, Evidence, UnseenPart, compare, counterfactual_value
from ultr.evaluation.comparison import AS_SHOWN
from ultr.evaluation.counterfactual import Valuation
from ultr.evaluation.placement import Placement, placement_of
from ultr.evaluation.raw_clicks import beside_raw_clicks
from ultr.metrics import Interval

DOCUMENTS = 12


class ByFirstFeature:
    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, 0]


def pages(seed: int, *, lists: int = 40) -> ClickLog:
    """Pages of several lengths with gaps between their positions, some documents of a query on each."""
    random = np.random.default_rng(seed)
    queries, lengths = random.integers(0, 4, size=lists), random.integers(1, 6, size=lists)
    shown = [random.permutation(DOCUMENTS)[:length] for length in lengths]
    positions = [np.sort(random.permutation(8)[:length]) + 1 for length in lengths]
    impressions = random.integers(1, 5, size=lists)
    return ClickLog.of(
        features=np.arange(4.0 * DOCUMENTS)[:, None],
        documents=np.concatenate([query * DOCUMENTS + each for query, each in zip(queries, shown, strict=True)]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        positions=np.concatenate(positions),
        clicks=np.ones(lengths.sum(), dtype=np.int64),
        impressions=impressions,
        queries=queries.astype(str),
    )


def by_loop(log: ClickLog, scores: Doubles, by_position: Doubles) -> dict[tuple[int, int], float]:
    """The mean weight of each document of each query; those that tie share the mean of their places."""
    sums: dict[tuple[int, int], float] = defaultdict(float)
    often: dict[int, int] = defaultdict(int)
    for number in range(log.lists):
        rows = slice(log.offsets[number], log.offsets[number + 1])
        documents, places = log.documents[rows], by_position[log.position.values[rows]]
        query, impressions = int(log.queries[number]), int(log.impressions[number])
        often[query] += impressions
        for document in documents:
            above = int((scores[documents] > scores[document]).sum())
            ties = int((scores[documents] == scores[document]).sum())
            sums[query, int(document)] += impressions * float(places[above : above + ties].mean())
    return {(query, document): total / often[query] for (query, document), total in sums.items()}


@pytest.mark.parametrize("span", [1, 5, 2**20])
@pytest.mark.parametrize("grades", [2, 1_000])
def test_each_page_keeps_its_documents_and_its_places(span: int, grades: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = pages(0)
    scores = np.random.default_rng(1).integers(0, grades, size=len(log.features)).astype(np.float64)
    by_position = 1 / np.arange(1.0, 9.0)
    expected = by_loop(log, scores, by_position)
    monkeypatch.setattr(ragged, "SPAN", span)
    evidence = Evidence.of(log)
    placed = placement_of(scores[evidence.documents], evidence)
    for clicked in (False, True):
        for part in evidence.parts(clicked=clicked):
            numbers = evidence.query_numbers[part.queries][part.of_query]
            wanted = [expected[int(q), int(d)] for q, d in zip(numbers, part.documents, strict=True)]
            np.testing.assert_allclose(placed.weights(part)(by_position), wanted)
            cut = placed.weights(part)(by_position[:3])
            np.testing.assert_allclose(cut, placed.weights(part)(by_position * (np.arange(8) < 3)))


def test_candidates_of_ones_own_are_ranked_among_all_of_a_query() -> None:
    log = pages(0)
    evidence = Evidence.of(log, Candidates.shown(log))
    scores = np.arange(len(evidence.documents)) * 1.0
    assert placement_of(scores, evidence).same_as(Placement.ranked(scores, evidence))


class Linear:
    """Scores by the first feature."""

    feature_names = ("score", "version")

    def __init__(self, sign: float = 1.0) -> None:
        self.sign = sign

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return self.sign * features[:, 0]


def world(*, stock: bool, gap: bool, versions: bool) -> ClickLog:
    """Expected clicks of propensities 1 / position, times 100 impressions, on pages in the order of a score.

    With `stock`, half of the documents are on each page. With `gap`, two advertisements stand on top of every second
    page. With `versions`, a second feature of each document is another on every page, and so is its row.
    """
    random = np.random.default_rng(0)
    queries, pages_each, count = 60, 6, 8
    score = random.random((queries, count))
    rows, positions, clicks, features, offsets, of_query = [], [], [], [], [0], []
    for query in range(queries):
        for page in range(pages_each):
            chosen = random.permutation(count)[: count // 2] if stock else np.arange(count)
            shown = chosen[np.argsort(-score[query, chosen])]
            place = np.arange(1, len(shown) + 1) + (2 if gap and page % 2 else 0)
            for document, position in zip(shown, place, strict=True):
                version = page if versions else 0
                rows.append((query, document, version))
                features.append((score[query, document], version))
                positions.append(position)
                clicks.append(round(100 * (0.9 - 0.8 * score[query, document]) / position))
            offsets.append(len(rows))
            of_query.append(f"{query:02}")
    known = {row: number for number, row in enumerate(sorted(set(rows)))}
    matrix = np.zeros((len(known), 2))
    for row, values in zip(rows, features, strict=True):
        matrix[known[row]] = values
    return ClickLog.of(
        features=matrix,
        feature_names=Linear.feature_names,
        documents=[known[row] for row in rows],
        offsets=offsets,
        positions=positions,
        clicks=clicks,
        impressions=np.full(len(of_query), 100),
        queries=of_query,
    )


@pytest.mark.parametrize("kind", ["stock", "gap", "versions"])
@pytest.mark.filterwarnings("ignore::ultr.errors.SeenDataWarning")
def test_the_ranker_that_was_served_gains_nothing(kind: str) -> None:
    log = world(**{name: name == kind for name in ("stock", "gap", "versions")})
    theta = 1 / np.arange(1.0, len(log.position.levels) + 1)
    found = compare(Linear(-1.0), Linear(), log, propensities=theta, names=("turned", "served"))
    difference = found.value_against_shown.difference
    assert difference is not None
    assert (difference.low, difference.mean, difference.high) == pytest.approx((0, 0, 0), abs=1e-12)
    # The order turned around is the best one, and its gain that of the same pages, page by page.
    turned = counterfactual_value(Linear(-1.0), log, propensities=theta).value
    rates = 0.9 - 0.8 * log.features[log.documents, 0].astype(np.float64)
    examined = 1 / log.positions
    best = sum(
        float(np.sort(rates[start:stop])[::-1] @ examined[start:stop])
        for start, stop in zip(log.offsets[:-1], log.offsets[1:], strict=True)
    )
    assert turned == pytest.approx(best / log.lists, rel=0.01)
    assert found.values[AS_SHOWN].value == pytest.approx(log.clicks.sum() / log.impressions.sum(), rel=0.01)


@pytest.mark.filterwarnings("ignore::ultr.errors.SeenDataWarning")
@pytest.mark.parametrize("versions", [2, 400])
@pytest.mark.parametrize("weighting", ["ips", "self-normalised", "doubly-robust"])
def test_pages_of_other_documents_change_no_value(versions: int, weighting: str) -> None:
    """A feature that changes every day makes new documents of the same ones, so that each is on few pages of all."""

    def value(days: int) -> float:
        log = ClickLog.of(
            features=[[relevance, day] for day in range(days) for relevance in (0.0, 1.0, 2.0)],
            documents=np.concatenate([np.array([0, 1, 2, 1, 0, 2]) + 3 * day for day in range(days)]),
            offsets=np.arange(0, 6 * days + 1, 3),
            clicks=np.tile([2, 3, 1, 6, 1, 2], days),
            impressions=np.full(2 * days, 10),
            queries=["q"] * (2 * days),
        )
        found = counterfactual_value(
            ByFirstFeature(),
            log,
            propensities=[1.0, 0.5, 0.02],
            smallest=0.3,
            weighting=weighting,
            relevance=np.tile([0.1, 0.5, 0.7], days) if weighting == "doubly-robust" else None,
        )
        # The third document was seen at .02 only, so that its weight is clipped, on however many days.
        assert found.clipped > 0.1
        return found.value

    assert value(versions) == pytest.approx(value(1))


def test_candidates_take_the_places_that_pages_had_and_not_those_of_advertisements() -> None:
    """One page has its documents at 3 and 4, the other at 1 and 3: rank 1 is seen at 3 and at 1."""
    log = ClickLog.of(
        features=[[1.0], [0.0]],
        documents=[0, 1, 1, 0],
        offsets=[0, 2, 4],
        positions=[3, 4, 1, 3],
        clicks=[3, 1, 4, 2],
        impressions=[10, 30],
        queries=["q", "q"],
    )
    theta = np.array([1.0, 0.8, 0.5, 0.2])
    relevance = np.array([5 / (10 * 0.5 + 30 * 0.5), 5 / (10 * 0.2 + 30 * 1.0)])
    places = np.array([(10 * 0.5 + 30 * 1.0), (10 * 0.2 + 30 * 0.5)])
    evidence = Evidence.of(log, Candidates.shown(log))
    valuation = Valuation(theta)
    for scores, order in (([1.0, 0.0], [0, 1]), ([0.0, 1.0], [1, 0])):
        found = valuation.of(placement_of(np.array(scores), evidence), evidence)
        assert found.value == pytest.approx(relevance[order] @ places / 40)
    tied = valuation.of(placement_of(np.zeros(2), evidence), evidence)
    assert tied.value == pytest.approx(relevance.sum() * places.mean() / 40)
    # All candidates are on both pages, so that ranking them is ordering the pages.
    pages = Evidence.of(log)
    assert found.value == pytest.approx(valuation.of(placement_of(np.array([0.0, 1.0]), pages), pages).value)
    # A cut-off is one of positions, as on pages.
    cut = replace(valuation, cutoff=1)
    assert cut.of(placement_of(np.array([1.0, 0.0]), evidence), evidence).value == pytest.approx(relevance[0] * 30 / 40)


def test_documents_of_one_half_of_the_pages_alone_have_no_part_in_what_the_other_half_says() -> None:
    log = ClickLog.of(
        features=np.arange(6.0)[:, None],
        documents=[0, 1, 2, 3, 4, 5],
        offsets=[0, 2, 4, 6],
        clicks=[1, 0, 0, 1, 1, 0],
        queries=["q", "q", "q"],
    )
    evidence = Evidence.of(log)
    ours, raw = beside_raw_clicks(np.arange(6.0), evidence, log, None, None, seed=0)
    for placement, part in (*ours, *raw):
        assert np.isfinite(Valuation(np.array([1.0, 0.5])).of(placement, part).totals).all()


def test_orders_that_differ_below_the_ends_of_all_pages_are_not_alike() -> None:
    """Pages show one document, so that second and third places bring nothing; the orders are two all the same."""
    log = ClickLog.of(
        features=np.arange(6.0)[:, None],
        documents=np.arange(6),
        offsets=np.arange(7),
        clicks=[4, 3, 2, 1, 2, 3],
        impressions=[10] * 6,
        queries=["a", "a", "a", "b", "b", "b"],
    )
    known: dict[str, Any] = {"propensities": [1.0], "assumption": Assumption(None, None, "Not tested.")}
    known |= {"candidates": Candidates.shown(log), "names": ("first", "turned"), "unseen": UnseenPart(log, "the log")}
    orders: dict[str, Any] = {
        "first": SimpleNamespace(score=lambda features, offsets: -features[:, 0]),
        "turned": SimpleNamespace(score=lambda features, offsets: np.choose(features[:, 0].astype(int) % 3, [2, 0, 1])),
    }
    found = compare(orders["first"], orders["turned"], log, **known)
    assert found.value.verdict == "cannot tell"
    assert found.value.difference == Interval(0.0, 0.0, 0.0)
    assert compare(orders["first"], orders["first"], log, **known).value.verdict == "they rank alike"

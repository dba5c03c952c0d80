from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.diagnosis.logs import thorough

from ultr.arrays import Doubles
from ultr.bias.rigidity import LARGEST
from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict, diagnose
from ultr.diagnosis.linkage import Linkage

NO_FEATURES = np.zeros((800, 0))


def test_documents_at_all_positions_link_them() -> None:
    finding = Linkage.of(thorough()).section()
    assert finding.verdict is Verdict.GOOD
    assert "link all 4 positions" in finding.answer
    assert finding.numbers["connected"]
    assert finding.numbers["swaps"] == []


def test_a_weak_link_is_named() -> None:
    finding = Linkage.of(thorough(pages=400)).section()
    assert finding.verdict is Verdict.CAREFUL
    assert "weakest link" in finding.answer
    assert "merge them" in finding.advice


def test_fixed_rankings_leave_only_the_features_to_tell() -> None:
    finding = Linkage.of(thorough(swaps=False)).section()
    assert finding.verdict is Verdict.CAREFUL
    assert "similar features" in finding.answer
    assert "the other way round" in finding.advice


def test_links_by_documents_with_the_same_features_are_told_from_those_by_the_same_document() -> None:
    """Documents of fixed rankings have one of five prices: each price stood everywhere, each document at one place."""
    prices = (np.random.default_rng(0).integers(5, size=800) * 10.0)[:, None]
    finding = Linkage.of(thorough(swaps=False, features=prices)).section()
    assert finding.verdict is Verdict.CAREFUL
    assert "documents with the same features count as one, 800 documents as 5" in finding.answer
    assert "tell documents apart" in finding.advice
    assert "count as one" not in Linkage.of(thorough(features=prices)).section().answer
    found = diagnose(thorough(pages=4_000, swaps=False, features=prices), samples=2, draws=19)
    headline = "This log can be debiased only as far as documents with similar features are alike."
    # One feature ranks in one way, so that nothing is said of a gain.
    assert found.headline == headline
    assert found.steps[-1].startswith("keep: ultr train click ")


def test_without_features_fixed_rankings_tell_nothing() -> None:
    log = thorough(swaps=False, features=NO_FEATURES)
    assert Linkage.of(log).section().verdict is Verdict.BAD


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
    finding = Linkage.of(log).section()
    assert finding.verdict is Verdict.BAD
    assert "fall into 2 parts" in finding.answer
    assert finding.numbers["parts"] in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert finding.numbers["swaps"] == ["position 2 and position 3"]
    assert "at both position 2 and position 3" in finding.advice


def test_links_without_clicks_do_not_count() -> None:
    log = thorough(pages=4_000, features=NO_FEATURES)
    last = log.positions == 4
    without = replace(log, clicks=np.where(last, 0, log.clicks))
    assert Linkage.of(without).section().verdict is Verdict.GOOD  # the documents were clicked elsewhere
    none = replace(log, clicks=np.zeros_like(log.clicks))
    assert Linkage.of(none).section().verdict is Verdict.BAD


def test_a_factor_that_splits_the_log_is_told_from_positions() -> None:
    """The device depends on the query, so no document was seen on two."""
    pages = 40_000
    device = np.where(np.arange(pages) % 2 == 0, "phone", "desk")
    finding = Linkage.of(thorough(device=np.repeat(device, 4), features=NO_FEATURES)).section()
    assert finding.verdict is Verdict.BAD
    assert "by position alone all are linked" in finding.answer.lower()
    assert "leave the other factors out" in finding.advice.lower()
    assert not finding.numbers["connected"]
    assert finding.numbers["positions_connected"]


def _seen_at(sets: list[list[int]], *, rates: Doubles | None = None, shown: int = 1_000, **extra: Any) -> ClickLog:
    """Each document at each of its positions, alone on a page; rates [documents, positions]."""
    documents = np.repeat(np.arange(len(sets)), [len(positions) for positions in sets])
    positions = np.concatenate(sets)
    often = np.full(len(documents), shown)
    clicks = often // 2 if rates is None else np.rint(shown * rates[documents, positions - 1]).astype(np.int64)
    given: dict[str, Any] = {"features": np.eye(len(sets)), "clicks": clicks} | extra
    return ClickLog.of(
        documents=documents,
        offsets=np.arange(len(documents) + 1),
        positions=positions,
        impressions=often,
        queries=documents,
        **given,
    )


def _two_worlds() -> tuple[ClickLog, ClickLog]:
    """Trust bias, alpha g + beta. Ten documents were seen at positions 1 and 2, ten at 3 and 4, one at 2 and 3.

    In the other world the relevance of the second ten is nearer to that of the one between, s = 0.6 times as far, and
    their alpha and beta make up for it: g' = x + s (g - x), alpha' = alpha / s, beta' = beta + alpha x (1 - 1 / s).
    """
    alpha, beta = np.array([0.50, 0.40, 0.30, 0.20]), np.array([0.30, 0.20, 0.10, 0.06])
    first, second, between, s = np.linspace(0.1, 0.75, 10), np.linspace(0.3, 0.9, 10), 0.4, 0.6
    lower = np.arange(4) >= 2
    other_alpha = np.where(lower, alpha / s, alpha)
    other_beta = np.where(lower, beta + alpha * between * (1 - 1 / s), beta)
    one = np.r_[first, second, between]
    other = np.r_[first, between + s * (second - between), between]
    assert one[9] < one[19], "the two best documents"
    assert other[9] > other[19], "change places"
    sets = [*[[1, 2]] * 10, *[[3, 4]] * 10, [2, 3]]
    grades = np.digitize(one, [0.3, 0.5, 0.7])
    worlds = (np.outer(one, alpha) + beta, np.outer(other, other_alpha) + other_beta)
    first_log, second_log = (_seen_at(sets, rates=rates, shown=20_000, grades=grades) for rates in worlds)
    return first_log, second_log


def test_two_worlds_with_the_same_click_rates_and_other_orders_are_not_called_good() -> None:
    one, other = _two_worlds()
    np.testing.assert_array_equal(one.clicks, other.clicks)
    found = diagnose(one, samples=5)
    assert found.dimension.rank == 2
    finding = {finding.name: finding for finding in found.findings}["identifiability"]
    assert finding.verdict is Verdict.CAREFUL
    assert finding.numbers["dimension"] == 1
    assert finding.numbers["wanted_dimension"] == 2
    assert not finding.numbers["affine"]
    assert "no vectors of dimension 2" in finding.answer
    assert "across position 2 with position 3 there are none" in finding.answer
    assert "under all 4 positions" in finding.advice
    assert "similar features" in found.headline
    assert "identify rank 1 only" in {finding.name: finding for finding in found.findings}["scalar"].answer
    bare = replace(one, features=np.zeros((21, 0), dtype=np.float32), feature_names=())
    assert Linkage.of(bare).section(2).verdict is Verdict.BAD


def test_random_rankings_support_as_many_dimensions_as_there_can_be() -> None:
    four = Linkage.of(thorough()).section(3)
    assert (four.verdict, four.numbers["dimension"]) == (Verdict.GOOD, 3)
    assert "the most that 4 positions can" in four.answer
    assert "The clicks ask for dimension 3" in four.answer
    everywhere = [list(range(1, 11))] * 20
    ten = Linkage.of(_seen_at(everywhere)).section(3)
    assert (ten.verdict, ten.numbers["dimension"]) == (Verdict.GOOD, LARGEST)
    assert not ten.numbers["dimension_is_exact"]
    assert f"dimension {LARGEST} at least" in ten.answer


def test_adjacent_swaps_support_one_dimension_and_say_so() -> None:
    swaps = [[place, place + 1] for place in range(1, 10)] * 20
    linkage = Linkage.of(_seen_at(swaps))
    one = linkage.section()
    assert (one.verdict, one.numbers["dimension"]) == (Verdict.GOOD, 1)
    assert "one number for each position, but no vectors of dimension 2" in one.answer
    assert [link["dimension"] for link in one.numbers["links"]] == [1] * 9
    two = linkage.section(2)
    assert two.verdict is Verdict.CAREFUL
    assert "Affine" in two.advice
    assert "Affine" not in linkage.section(3).advice


@pytest.mark.parametrize("wanted", [2, 3, 4])
@pytest.mark.parametrize(
    "sets",
    [
        [[place, place + 1] for place in range(1, 10)],
        [[1, place] for place in range(2, 9)],
        [*[[1, 2, 3, 4]] * 5, *[[5, 6, 7, 8, 9]] * 5, [4, 5]],
    ],
    ids=["adjacent", "pivot", "two parts"],
)
def test_what_is_advised_makes_the_dimension_identified(sets: list[list[int]], wanted: int) -> None:
    linkage = Linkage.of(_seen_at(sets))
    assert linkage.supported.dimension < wanted
    windows = [[value + 1 for value in window] for window in linkage.supported.windows(wanted)]
    assert Linkage.of(_seen_at([*sets, *windows * wanted])).supported.dimension >= wanted


def test_two_positions_never_identify_two_dimensions() -> None:
    finding = Linkage.of(_seen_at([[1, 2]] * 50)).section(2)
    assert (finding.verdict, finding.numbers["dimension"]) == (Verdict.CAREFUL, 1)
    assert finding.numbers["windows"] == []
    assert "more than 2 values" in finding.advice


@pytest.mark.parametrize(("common", "verdict"), [(1, Verdict.CAREFUL), (2, Verdict.GOOD)])
def test_two_documents_seen_all_over_both_parts_are_enough_for_two_dimensions(common: int, verdict: Verdict) -> None:
    sets = [*[[1, 2, 3]] * 20, *[[4, 5, 6]] * 20, *[list(range(1, 7))] * common]
    finding = Linkage.of(_seen_at(sets)).section(2)
    assert (finding.verdict, finding.numbers["dimension"]) == (verdict, common)


@pytest.mark.parametrize(("few", "verdict"), [(99, Verdict.CAREFUL), (100, Verdict.GOOD)])
def test_the_clicks_that_count_are_those_on_documents_that_tell_the_dimension(few: int, verdict: Verdict) -> None:
    """Between positions 3 and 4, swaps have many clicks, but tell nothing of a second dimension."""
    sets = [*[[1, 2, 3]] * 20, *[[4, 5, 6]] * 20, *[[3, 4]] * 20, *[list(range(1, 7))] * 2]
    log = _seen_at(sets)
    tell = np.flatnonzero(log.documents >= 60)
    clicks = log.clicks.copy()
    clicks[tell] = 0
    clicks[tell[[0, -1]]] = [50, few - 50]
    finding = Linkage.of(replace(log, clicks=clicks)).section(2)
    assert finding.verdict is verdict
    assert f"2 documents with {few} clicks" in finding.answer
    assert Linkage.of(replace(log, clicks=clicks)).section(1).verdict is Verdict.GOOD


@pytest.mark.parametrize(("few", "verdict"), [(99, Verdict.CAREFUL), (100, Verdict.GOOD)])
def test_a_larger_dimension_is_never_called_better(few: int, verdict: Verdict) -> None:
    """The link of positions 4 and 5 has few clicks; the documents that cross it have many, but at position 1."""
    log = _seen_at([*[[1, 2, 3, 4, 5]] * 5, *[[4, 5]] * 5])
    clicks = np.where(log.positions == 1, 500, 0)
    clicks[(log.positions == 5) & (log.documents == 0)] = few
    linkage = Linkage.of(replace(log, clicks=clicks))
    assert [linkage.section(wanted).verdict for wanted in (1, 2, 3)] == [verdict] * 3


def _log(**change: Any) -> ClickLog:
    """Two documents, each seen at both of two positions with 300 clicks."""
    given: dict[str, Any] = {
        "features": [[1.0], [2.0]],
        "documents": [0, 1, 1, 0],
        "offsets": [0, 2, 4],
        "clicks": [200, 100, 200, 100],
        "impressions": [1_000, 1_000],
        "queries": ["a", "a"],
    }
    return ClickLog.of(**(given | change))


@pytest.mark.parametrize(("columns", "features"), [(0, False), (1, True), (2, True)])
def test_a_log_has_features_from_one_on(columns: int, features: bool) -> None:  # noqa: FBT001
    found = Linkage.of(_log(features=np.eye(2)[:, :columns] if columns else np.zeros((2, 0))))
    assert found.features is features
    assert (found.alike, found.together, found.weakest) == (None, None, found.position.links[0])
    assert found.weakest is not None
    assert (found.weakest.documents, found.weakest.clicks) == (2, 600)


def test_a_factor_with_one_value_is_no_factor() -> None:
    assert Linkage.of(_log(device=["desk"] * 4)).together is None
    both = Linkage.of(_log(device=["desk", "desk", "phone", "phone"]))
    assert both.together is not None
    assert len(both.whole.names) == 4


@pytest.mark.parametrize(
    ("features", "documents", "alike"),
    [
        ([[1.0], [2.0], [3.0], [4.0]], [0, 1, 2, 3], None),  # nothing links the two positions
        ([[1.0], [2.0], [2.0], [1.0]], [0, 1, 2, 3], (4, 2)),  # equal features do
        ([[1.0], [2.0], [2.0], [1.0]], [0, 1, 1, 0], None),  # documents do, although some features are equal
        ([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0], None),
        ([[1.0], [2.0], [1.0], [2.0]], [0, 1, 2, 3], None),  # equal features at the same positions
    ],
)
def test_documents_with_the_same_features_are_named_only_where_they_alone_make_the_links(
    features: list[list[float]], documents: list[int], alike: tuple[int, int] | None
) -> None:
    assert Linkage.of(_log(features=features, documents=documents)).alike == alike
    assert Linkage.of(_log(features=np.zeros((4, 0)), documents=documents)).alike is None

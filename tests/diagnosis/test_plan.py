from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr.bias.identifiability import BiasGraph, Link
from ultr.bias.value_sets import ValueSets
from ultr.data.click_log import ClickLog
from ultr.data.exploration_plan import ExplorationPlan
from ultr.diagnosis.linkage import FEW_CLICKS_ON_A_LINK, Linkage
from ultr.diagnosis.plan import SHARE, exploration_plan, in_words
from ultr.diagnosis.supported_dimension import SupportedDimension
from ultr.errors import DataError


def log_of(*lists: tuple[str, int, list[int]], documents: str = "uvwxyz") -> ClickLog:
    """Lists of documents with impressions and clicks."""
    return ClickLog.of(
        features=np.zeros((len(documents), 0)),
        documents=[documents.index(name) for names, _, _ in lists for name in names],
        offsets=np.cumsum([0, *(len(names) for names, _, _ in lists)]),
        impressions=[often for _, often, _ in lists],
        clicks=[click for _, _, clicks in lists for click in clicks],
        queries=["q"] * len(lists),
    )


def plan_of(log: ClickLog, **other: Any) -> ExplorationPlan:
    return exploration_plan(Linkage.of(log), pages=int(log.impressions.sum()), **other)


def test_one_swap_for_each_missing_link_and_none_more() -> None:
    # 1 and 2 are linked, and 3 and 4; nothing leads from 2 to 3.
    log = log_of(("uvxy", 10_000, [4_000, 2_000, 1_000, 500]), ("vuyx", 10_000, [3_000, 3_000, 700, 800]))
    plan = plan_of(log)
    assert [(pair.first, pair.second) for pair in plan.pairs] == [(2, 3)]
    assert plan.most_ranks_lost == 1
    assert plan.pairs[0].probability == pytest.approx(SHARE)
    # Clicks on exchanged documents are q N times the rates at 2 (5,000 of 20,000) and 3 (1,700 of 20,000).
    expected = FEW_CLICKS_ON_A_LINK / (SHARE * (0.25 + 0.085))
    assert plan.pages == pytest.approx(expected, rel=0.01)


def test_pairs_with_fewer_clicks_are_exchanged_more_often_so_that_all_are_ready_at_once() -> None:
    plan = plan_of(log_of(("uvxy", 20_000, [8_000, 2_000, 1_000, 200])))
    assert [(pair.first, pair.second) for pair in plan.pairs] == [(1, 2), (2, 3), (3, 4)]
    rates = np.array([0.5, 0.15, 0.06])
    chances = np.array([pair.probability for pair in plan.pairs])
    assert chances * rates == pytest.approx(np.full(3, (chances * rates)[0]), rel=0.01)
    assert plan.epsilon == pytest.approx(SHARE, rel=1e-4)
    assert chances * rates * plan.pages == pytest.approx(np.full(3, FEW_CLICKS_ON_A_LINK), rel=0.01)
    assert len({pair.pages for pair in plan.pairs}) == 1


def test_a_weak_link_is_made_stronger_by_the_nearest_positions_across_it() -> None:
    # 1 and 3 are linked by few clicks, 1 and 2 by many: across the weak link, 2 and 3 are the nearest.
    log = log_of(
        ("uvx", 10_000, [4_000, 2_000, 1_000]), ("vux", 10_000, [3_000, 3_000, 700]), ("wvz", 10, [4, 2, 0]),
        ("yvw", 10, [1, 2, 2]),
    )  # fmt: skip
    plan = plan_of(log)
    assert [(pair.first, pair.second) for pair in plan.pairs] == [(2, 3)]
    assert "6 clicks" in plan.pairs[0].why


def test_nothing_is_asked_for_where_all_is_linked() -> None:
    log = log_of(("uvx", 10_000, [4_000, 2_000, 1_000]), ("vxu", 10_000, [3_000, 3_000, 700]))
    plan = plan_of(log)
    assert plan.pairs == ()
    assert in_words(plan).startswith("Nothing needs to be explored")


@pytest.mark.parametrize(("clicks", "asked"), [(99, True), (100, False), (1, True)])
def test_a_link_is_asked_for_as_many_clicks_as_it_lacks_of_a_hundred(clicks: int, *, asked: bool) -> None:
    """Document u was seen at both positions of 1,000 pages; position 1 has no click and counts as half a one."""
    plan = plan_of(log_of(("uv", 500, [0, 0]), ("xu", 500, [0, clicks])))
    assert len(plan.pairs) == asked
    if asked:
        (pair,) = plan.pairs
        assert (pair.first, pair.second, pair.ranks, plan.most_ranks_lost) == (1, 2, 1, 1)
        assert pair.why == f"the link between the two sides rests on {clicks} click{'' if clicks == 1 else 's'}"
        rates = (0 + 0.5) / 1_001 + (clicks + 0.5) / 1_001
        assert pair.pages == math.ceil((100 - clicks) / rates / 0.05)
        assert pair.probability == 0.05


def test_pairs_share_a_twentieth_of_the_pages_by_what_each_needs_alone() -> None:
    """Nothing was seen twice. Position 3 is on half of the pages only, so that a pair with it needs more of them."""
    plan = plan_of(log_of(("uvx", 500, [250, 100, 50]), ("yz", 500, [250, 100])))
    rates = [(500.5 + 200.5) / 1_001, (200.5 / 1_001 + 50.5 / 501) / 2]
    alone = [100 / rate for rate in rates]
    # Six digits are kept.
    assert [pair.probability for pair in plan.pairs] == [float(f"{0.05 * each / sum(alone):.6g}") for each in alone]
    assert {pair.pages for pair in plan.pairs} == {math.ceil(sum(alone) / 0.05)}
    assert {pair.why for pair in plan.pairs} == {"no clicked document links the positions above with those below"}
    assert in_words(plan) == (
        f"Exchange positions 1 and 2 ({5 * alone[0] / sum(alone):.2f}%), 2 and 3 ({5 * alone[1] / sum(alone):.2f}%) of "
        "the pages, at most one pair on a page and no document by more than 1 rank; after about "
        f"{math.ceil(sum(alone) / 0.05):,} pages each link rests on 100 clicks."
    )


def _graph(parts: list[int], links: list[Link], *, shown: list[float] | None = None) -> BiasGraph:
    count = len(parts)
    return BiasGraph(
        names=tuple(f"position {place + 1}" for place in range(count)),
        levels=np.arange(count)[:, None],
        impressions=np.array(shown or [1_000.0] * count),
        click_rates=np.full(count, 0.25),
        parts=np.array(parts),
        links=tuple(links),
    )


def _linkage(position: BiasGraph, **other: Any) -> Linkage:
    none = np.empty(0, dtype=np.int64)
    seen = ValueSets(np.empty((0, len(position.names)), dtype=np.bool_), none, none)
    given: dict[str, Any] = {"together": None, "features": True, **other}
    dimension = given.pop("dimension", 1)
    return Linkage(position, supported=SupportedDimension(position, seen, dimension, affine=False, cuts=()), **given)


def test_across_a_weak_link_the_nearest_pair_with_the_most_clicks_is_exchanged() -> None:
    """The link of 1 and 4 parts 1, 2, 5 from 3, 4: 2 and 3 are as near as 4 and 5, which are shown more."""
    links = [
        Link(0, 3, 1, 10.0, 20, bridge=True),
        Link(0, 1, 9, 100.0, 500, bridge=True),
        Link(0, 4, 9, 200.0, 500, bridge=True),
        Link(2, 3, 9, 300.0, 500, bridge=True),
    ]
    for shown, rates, pair in (
        ([9, 5, 5, 9, 9], [8] * 5, (4, 5)),
        ([9, 9, 9, 9, 5], [8] * 5, (2, 3)),
        ([9, 9, 4, 5, 5], [8] * 5, (4, 5)),  # the fewer clicks of the two decide
        ([8, 8, 8, 5, 5], [8, 2, 2, 8, 8], (4, 5)),  # clicks and not impressions
    ):
        graph = _graph([0] * 5, links, shown=[1_000.0 * each for each in shown])
        graph = replace(graph, click_rates=np.array(rates) / 32)
        (found,) = exploration_plan(_linkage(graph), pages=10_000).pairs
        assert (found.first, found.second) == pair


def test_a_pair_of_another_part_is_not_taken_for_one_across_the_link() -> None:
    """1 and 3 are linked by few clicks; 2 stands between them, but is no part of theirs."""
    graph = _graph([0, 1, 0], [Link(0, 2, 1, 10.0, 20, bridge=True)])
    found = exploration_plan(_linkage(graph, dimension=0), pages=1_000)
    assert [(pair.first, pair.second) for pair in found.pairs] == [(1, 2), (1, 3)]
    assert found.most_ranks_lost == 2
    assert "no document by more than 2 ranks;" in in_words(found)


@pytest.mark.parametrize(
    ("connected", "dimension", "wanted", "note"),
    [
        (
            False,
            0,
            3,
            "positions are exchanged within the values of other bias factors, which it does not link with each other",
        ),
        (True, 1, 1, ""),
        (True, 2, 2, ""),
        (True, 0, 1, ""),
        (
            True,
            1,
            2,
            "the clicks ask for dimension 2, for which documents must be seen at more positions than two, as the "
            "doctor says; the plan serves one number for each position",
        ),
    ],
)
def test_what_a_plan_leaves_open_is_said(connected: bool, dimension: int, wanted: int, note: str) -> None:  # noqa: FBT001
    position = _graph([0, 0], [Link(0, 1, 9, 100.0, 500, bridge=True)])
    together = _graph([0, 0 if connected else 1], [])
    plan = exploration_plan(_linkage(position, together=together, dimension=dimension), pages=9, wanted=wanted)
    assert (plan.pairs, plan.most_ranks_lost, plan.note) == ((), 0, note)
    end = f" {note[0].upper()}{note[1:]}." if note else ""
    assert in_words(plan) == (f"Nothing needs to be explored to tell one number for each position from relevance.{end}")


def test_positions_that_nothing_links_need_no_note_on_other_factors() -> None:
    apart = _graph([0, 1], [])
    assert exploration_plan(_linkage(apart, together=apart, dimension=0), pages=9).note == ""


def test_a_log_of_one_page_needs_as_many_pages_as_its_clicks_say() -> None:
    """One click on one page counts as 1.5 of 2, none as 0.5 of 2."""
    plan = plan_of(log_of(("uv", 1, [1, 0])))
    assert plan.pages == math.ceil(100 / (1.5 / 2 + 0.5 / 2) / 0.05)


def test_one_position_has_nothing_to_be_exchanged_with() -> None:
    plan = exploration_plan(_linkage(_graph([0], []), dimension=0), pages=9)
    assert plan == ExplorationPlan(note="the log has one position only, so that there are no two to exchange")


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = plan_of(log_of(("uvxy", 20_000, [8_000, 2_000, 1_000, 200])))
    plan.write(tmp_path / "plan.json")
    assert ExplorationPlan.read(tmp_path / "plan.json") == plan
    assert "no document by more than 1 rank;" in in_words(plan)


GOOD: dict[str, Any] = {
    "format": "ultr exploration plan 1",
    "pairs": [{"first": 2, "second": 3, "probability": 0.05, "pages": 10, "why": ""}],
    "most_ranks_lost": 1,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "ultr exploration plan 2"}, "format"),
        ({"pairs": [{**GOOD["pairs"][0], "first": 0}]}, "greater than or equal to 1"),
        ({"pairs": [{**GOOD["pairs"][0], "first": True}]}, "valid integer"),
        ({"pairs": [{**GOOD["pairs"][0], "first": 3}]}, "upper position first"),
        ({"pairs": [{**GOOD["pairs"][0], "second": 5}]}, "costs 3 ranks"),
        ({"pairs": [{**GOOD["pairs"][0], "probability": 0}]}, "greater than or equal to 0.000000001"),
        ({"pairs": [{**GOOD["pairs"][0], "probability": "0.1"}]}, "valid number"),
        ({"pairs": [{**GOOD["pairs"][0], "other": 1}]}, "not permitted"),
        ({"pairs": GOOD["pairs"] * 2}, "stands twice"),
        ({"pairs": [{**GOOD["pairs"][0], "first": k, "second": k + 1, "probability": 0.6} for k in (1, 2)]}, "1.2"),
        ({"pairs": GOOD["pairs"] * 2_000}, "at most 1000"),
        ({"secret": "\x1b[2J"}, "not permitted"),
        ({"most_ranks_lost": 10**9}, "less than or equal"),
        ({"pairs": {}}, "valid"),
    ],
)
def test_a_plan_that_is_none_is_refused_in_a_sentence(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(GOOD))
    ExplorationPlan.read(file)
    file.write_text(json.dumps(GOOD | change))
    with pytest.raises(DataError, match=r"is not an exploration plan .*ultr doctor LOG --plan") as error:
        ExplorationPlan.read(file)
    assert said in str(error.value)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff\xfe", b'{"probability": NaN}', b"null", b" " * 2**21])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(content)
    with pytest.raises(DataError):
        ExplorationPlan.read(file)
    with pytest.raises(DataError, match="cannot read"):
        ExplorationPlan.read(tmp_path / "none.json")

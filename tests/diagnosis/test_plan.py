from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.exploration_plan import ExplorationPlan
from ultr.diagnosis.linkage import FEW_CLICKS_ON_A_LINK, Linkage
from ultr.diagnosis.plan import SHARE, exploration_plan, in_words
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

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.placements import Placements
from ultr.errors import DataError
from ultr.preparation.growth import joined

PAGES: dict[str, Any] = {
    "features": np.eye(3),
    "documents": [0, 1, 2, 1, 0, 2, 0, 1, 2],
    "offsets": [0, 3, 6, 9],
    "clicks": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "queries": ["a", "a", "b"],
    "periods": ["2026-05-01", "2026-05-01", "2026-05-02"],
}
CHANCES = [0.95, 0.9, 0.95, 0.05, 0.05, 0.95, 0.95, 0.9, 0.95]
BASES = [1, 2, 3, 2, 1, 3, 1, 2, 3]


def explored(**other: Any) -> ClickLog:
    return ClickLog.of(**{**PAGES, "placement_propensities": CHANCES, "base_positions": BASES, **other})


def placements_of(log: ClickLog) -> Placements:
    assert log.placements is not None
    return log.placements


def test_a_log_without_placements_is_what_it_was() -> None:
    plain, placed = ClickLog.of(**PAGES), explored()
    assert plain.placements is None
    assert replace(placed, placements=None).fingerprint() == plain.fingerprint()
    assert "placements" not in " ".join(plain.optional())
    assert placed.fingerprint() != plain.fingerprint()


def test_rows_with_other_placements_stay_apart_and_equal_ones_are_one() -> None:
    twice = {"documents": [0, 1, 0, 1, 0, 1], "offsets": [0, 2, 4, 6], "clicks": [1, 0, 0, 0, 0, 1]}
    common: dict[str, Any] = {"features": np.eye(2), "queries": ["a"] * 3, **twice}
    same = ClickLog.of(**common, placement_propensities=[0.5] * 6, base_positions=[1, 2] * 3)
    assert same.impressions.tolist() == [3]
    chances = ClickLog.of(**common, placement_propensities=[0.5, 0.5, 0.5, 0.5, 0.25, 0.25], base_positions=[1, 2] * 3)
    assert sorted(chances.impressions.tolist()) == [1, 2]
    bases = ClickLog.of(**common, placement_propensities=[0.5] * 6, base_positions=[1, 2, 1, 2, 2, 1])
    assert sorted(bases.impressions.tolist()) == [1, 2]
    unknown = ClickLog.of(**common, placement_propensities=[np.nan] * 6)
    assert unknown.impressions.tolist() == [3], "what is not known is the same"


def test_placements_follow_their_rows_through_orders_parts_and_splits() -> None:
    log = explored(positions=[3, 1, 2, 1, 2, 3, 1, 2, 3])
    # Documents stand from the top down: the first list is 1, 2, 0 then.
    assert placements_of(log).bases.tolist() == [2, 3, 1, 2, 1, 3, 1, 2, 3]
    assert placements_of(log).propensities.tolist() == [0.9, 0.95, 0.95, 0.05, 0.05, 0.95, 0.95, 0.9, 0.95]
    some = placements_of(log.select(np.array([2, 0])))
    assert some.bases.tolist() == [1, 2, 3, 2, 3, 1]
    kept, held = log.split(0.5, by="time")
    assert placements_of(kept).propensities.tolist() == [0.9, 0.95, 0.95, 0.05, 0.05, 0.95]
    assert placements_of(held).propensities.tolist() == [0.95, 0.9, 0.95]
    pages = explored(impressions=[10, 10, 10])
    for part in pages.split(0.5, by="page"):
        assert placements_of(part).bases.tolist() == BASES


def test_placements_are_saved_with_the_log_and_belong_to_its_fingerprint(tmp_path: Path) -> None:
    log = explored()
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    assert loaded.fingerprint() == log.fingerprint()
    assert placements_of(loaded).propensities.tolist() == CHANCES
    assert placements_of(loaded).bases.tolist() == BASES
    file = tmp_path / "log" / "placement-propensities.npy"
    np.save(file, np.where(np.load(file) == 0.05, 0.04, np.load(file)))
    with pytest.raises(DataError, match="damaged"):
        ClickLog.load(tmp_path / "log")
    ClickLog.of(**PAGES).save(tmp_path / "plain")
    assert "placements" not in json.loads((tmp_path / "plain" / "manifest.json").read_text())


def test_logs_with_and_without_them_are_joined() -> None:
    old, new = replace(ClickLog.of(**PAGES).select(np.array([0, 1])), splits=()), explored().select(np.array([2]))
    both = joined(old, new, np.arange(3))
    known = placements_of(both)
    assert np.isnan(known.propensities).tolist() == [True] * 6 + [False] * 3
    assert known.bases.tolist() == [0] * 6 + [1, 2, 3]
    assert joined(old, replace(new, placements=None), np.arange(3)).placements is None


@pytest.mark.parametrize(
    ("chances", "said"),
    [
        ([0.0, *CHANCES[1:]], "above 0 and at most 1, got 0"),
        ([1.5, *CHANCES[1:]], "got 1.5"),
        ([-0.5, *CHANCES[1:]], "got -0.5"),
        (["x", *CHANCES[1:]], "must be numbers"),
        (CHANCES[1:], "one for each placement propensity"),
        ([CHANCES], "flat array"),
    ],
)
def test_what_is_no_probability_is_refused(chances: list[Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        explored(placement_propensities=chances)


def test_base_positions_are_positions() -> None:
    with pytest.raises(DataError, match="from 1, or 0"):
        explored(base_positions=[-1, *BASES[1:]])
    with pytest.raises(DataError, match="must be integers"):
        explored(base_positions=[1.5, *BASES[1:]])
    with pytest.raises(DataError, match="9 shown documents, but 8 placement"):
        replace(explored(), placements=Placements.of(CHANCES[1:], BASES[1:]))

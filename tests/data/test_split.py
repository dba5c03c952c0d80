from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.data.test_click_log import random_log
from tests.data.test_periods import timed_log

from ultr.data.click_log import ClickLog
from ultr.data.provenance import Lineage, Provenance
from ultr.data.split import SPLITS, Split
from ultr.errors import DataError
from ultr.files import read_json, write_json


@pytest.mark.parametrize("by", SPLITS)
def test_both_parts_of_a_split_know_how_they_were_cut_out(by: str) -> None:
    log = timed_log()
    kept, held = log.split(0.4, by=by, seed=3)
    seed = 0 if by == "time" else 3  # Nothing is drawn by time.
    assert kept.splits == (Split(log.fingerprint(), by, 0.4, seed, "kept"),)  # type: ignore[arg-type]
    assert held.splits == (Split(log.fingerprint(), by, 0.4, seed, "held-out"),)  # type: ignore[arg-type]
    assert held.splits[0].is_apart_from(kept.splits[0])
    assert not held.splits[0].is_apart_from(held.splits[0])
    assert log.splits == ()


def test_a_split_of_a_part_keeps_the_chain() -> None:
    log = timed_log()
    middle = log.split(0.2, by="time")[0]
    last = middle.split(0.3, seed=1)[1]
    assert last.splits == (*middle.splits, Split(middle.fingerprint(), "query", 0.3, 1, "held-out"))
    lineage = Lineage.of(last)
    assert lineage.path == (log.fingerprint(), middle.fingerprint(), last.fingerprint())
    assert lineage.cuts_below({log.fingerprint()}) == last.splits
    assert lineage.cuts_below({middle.fingerprint()}) == last.splits[1:]
    assert lineage.cuts_below({last.fingerprint()}) == ()
    assert lineage.cuts_below({"another"}) is None


def test_a_selection_is_marked_as_one_and_collapsing_changes_no_pages() -> None:
    log = random_log()
    chosen = log.select(np.arange(7))
    assert chosen.splits == (Split(log.fingerprint(), "selection"),)
    assert not chosen.splits[0].is_apart_from(chosen.splits[0].opposite)
    part = log.split(0.5)[0]
    assert part.select(np.arange(3)).splits == (*part.splits, Split(part.fingerprint(), "selection"))
    assert part.collapse().splits == part.splits
    assert log.collapse().splits == ()


def test_the_record_is_no_part_of_the_fingerprint() -> None:
    log = random_log()
    assert log.select(np.arange(log.lists)).fingerprint() == log.fingerprint()


def test_the_record_is_saved_with_a_log_and_folders_without_one_are_read(tmp_path: Path) -> None:
    log = timed_log()
    part = log.split(0.3)[0].split(0.25, by="page", seed=2)[1]
    part.save(tmp_path / "part")
    assert ClickLog.load(tmp_path / "part").splits == part.splits
    log.save(tmp_path / "log")
    assert "splits" not in json.loads((tmp_path / "log" / "manifest.json").read_text())
    assert ClickLog.load(tmp_path / "log").splits == ()


@pytest.mark.parametrize("change", [{"by": "luck"}, {"part": "both"}, {"parent": 3}, {"colour": "red"}])
def test_a_damaged_record_is_one_data_error(change: dict[str, object], tmp_path: Path) -> None:
    random_log().split(0.5)[0].save(tmp_path / "log")
    path = tmp_path / "log" / "manifest.json"
    manifest = read_json(path)
    manifest["splits"][0] |= change
    write_json(path, manifest, sealed=True)
    with pytest.raises(DataError, match=r"its manifest is wrong at 'splits\.0"):
        ClickLog.load(tmp_path / "log")


def test_provenance_names_the_data_and_what_chose_the_weights() -> None:
    log = random_log()
    kept, held = log.split(0.5)
    found = Provenance.of(kept, held)
    assert found.data == (Lineage(kept.fingerprint(), kept.splits),)
    assert found.validation == (Lineage(held.fingerprint(), held.splits),)
    assert Provenance.of(log) == Provenance((Lineage(log.fingerprint()),))

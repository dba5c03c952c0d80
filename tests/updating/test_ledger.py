"""The ledger: a chain of entries that says what is served."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ultr.errors import DataError
from ultr.updating import Ledger, LedgerEntry


def _written(folder: Path, *decisions: str) -> Ledger:
    ledger = Ledger(folder)
    for number, decision in enumerate(decisions):
        day = f"2026-01-{number + 1:02d}"
        model = day if decision in ("first", "promoted") else "as before"
        ledger = ledger.append(_entry(ledger, decision, day=day, model=model))
    return ledger


def _entry(ledger: Ledger, decision: str, **content: Any) -> LedgerEntry:
    usual = {"reason": "a test", "day": "2026-01-01", "at": "now", "model": "m", "file_digest": "d", "log": ""}
    return ledger.next_entry(decision=decision, **usual | content)


def test_it_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    numbers = {"low": math.nan, "pair": (1, 2.5), "text": "ä"}
    ledger = ledger.append(_entry(ledger, "first", judgement=numbers))
    ledger = ledger.append(_entry(ledger, "kept"))
    assert Ledger.read(tmp_path) == ledger
    assert ledger.entries[0].judgement == {"low": None, "pair": [1, 2.5], "text": "ä"}


def test_a_rollback_takes_the_last_model_away(tmp_path: Path) -> None:
    ledger = _written(tmp_path, "first", "kept", "promoted", "promoted", "rolled back", "kept", "promoted")
    assert [entry.model for entry in ledger.served] == ["2026-01-01", "2026-01-03", "2026-01-07"]


def test_days_are_remembered_and_keeping_is_counted(tmp_path: Path) -> None:
    ledger = _written(tmp_path, "first", "promoted", "kept", "kept")
    assert ledger.kept_in_a_row == 2
    assert ledger.decided("2026-01-03") == ledger.entries[2]
    assert ledger.decided("2026-01-09") is None


@pytest.mark.parametrize("damage", ["removed", "cut", "changed", "exchanged", "another file"])
def test_damage_is_one_sentence(tmp_path: Path, damage: str) -> None:
    _written(tmp_path, "first", "promoted", "kept")
    path, other = tmp_path / "000002.json", tmp_path / "000003.json"
    match damage:
        case "removed":
            path.unlink()
        case "cut":
            path.write_text(path.read_text()[:100])
        case "changed":
            path.write_text(path.read_text().replace("promoted", "kept"))
        case "exchanged":
            # An entry that is whole by itself, of another ledger.
            ledger = _written(tmp_path / "other", "first", "kept")
            path.write_text((tmp_path / "other" / "000002.json").read_text())
            assert ledger.entries[1] != Ledger.read(tmp_path / "other").entries[0]
        case _:
            other.write_text(json.dumps({"format": "ultr ledger 1"}))
    with pytest.raises(DataError, match=r"restore|write it again"):
        Ledger.read(tmp_path)

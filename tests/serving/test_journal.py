from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ultr.serving.exploration import Exploration
from ultr.serving.hourly_files import HourlyFiles
from ultr.serving.journal import Entry, Journal
from ultr.serving.recent_queries import LATE, RecentQueries
from ultr.serving.shown import Action, ShownList

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_a_disk_that_hangs_holds_up_nobody_and_what_does_not_fit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, told = threading.Event(), list[tuple[Entry, str]]()
    files = HourlyFiles(tmp_path, most_bytes=10**6)
    write = files.write

    def hanging(queries: bytes, events: bytes, *, now: datetime) -> None:
        goes_on.wait(30)
        write(queries, events, now=now)

    monkeypatch.setattr(files, "write", hanging)
    journal = Journal(files, lambda entry, result: told.append((entry, result)), most_waiting=10)
    entries = [Action("q", str(number), "click", NOW, None) for number in range(40)]
    accepted = [entry for entry in entries if journal.put(entry)]
    # The thread may have taken some once, which makes room for as many again.
    assert 10 <= len(accepted) <= 20
    assert [entry for entry, result in told if result == "queue"] == [each for each in entries if each not in accepted]
    goes_on.set()
    assert journal.close()
    assert [entry for entry, result in told if result == "logged"] == accepted
    (file,) = tmp_path.glob("ubi_events-*")
    assert len(file.read_text().splitlines()) == len(accepted)
    assert not journal.put(entries[0]), "nothing is taken after the end"


def test_a_list_is_in_the_file_of_its_own_hour_however_late_it_is_written(tmp_path: Path) -> None:
    journal = Journal(HourlyFiles(tmp_path, most_bytes=10**6), lambda *_: None)
    midnight, second = datetime(2026, 5, 2, tzinfo=UTC), timedelta(seconds=1)
    before, after = (_shown(name, at) for name, at in (("before", midnight - second), ("after", midnight + second)))
    for entry in (before, Action("before", "d", "click", midnight - second, 0), after):
        assert journal.put(entry)
    assert journal.close()
    found = {path.name.split("-", 1)[1][:13]: path.read_text() for path in tmp_path.glob("ubi_queries-*")}
    assert found.keys() == {"2026-05-01T23", "2026-05-02T00"}
    assert '"before"' in found["2026-05-01T23"]
    assert '"after"' in found["2026-05-02T00"]
    (events,) = (path.read_text().splitlines() for path in tmp_path.glob("ubi_events-2026-05-01T23-*"))
    assert len(events) == 2, "an impression and the click that came with it"


def _shown(name: str, at: datetime) -> ShownList:
    return ShownList(name, "shoes", at, "model", Exploration(), 1, ("d",), (1.0,), (0,))


def test_the_oldest_queries_are_forgotten() -> None:
    recent, names = RecentQueries(most_bytes=100_000), [f"q{number}" for number in range(200)]
    for name in names:
        assert recent.claim(name, ("x", "y" * 256), NOW)
        recent.keep(name)
    known = [name for name in names if recent.join(name, "y" * 256, "click", NOW) == ("joined", 1)]
    assert known == names[-len(known) :]
    assert 50 < len(known) < 150


def test_an_event_is_late_after_half_an_hour() -> None:
    recent = RecentQueries()
    recent.claim("q", ("x",), NOW)
    assert recent.join("q", "x", "click", NOW)[0] == "unknown", "it was not answered yet"
    recent.keep("q")
    assert recent.join("q", "x", "click", NOW + LATE)[0] == "joined"
    assert recent.join("q", "x", "purchase", NOW + LATE + timedelta(seconds=1))[0] == "late"

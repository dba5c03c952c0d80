"""Logs of interleaved lists, written as the service writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from ultr.preparation.interleaved_lists import CreditedClicks

START = datetime(2026, 5, 1, tzinfo=UTC)
OLD, NEW = "a" * 32, "b" * 32
TEAMS = (("x", "old", True), ("y", "new", True), ("z", "old", False))
"""Documents of every list, with their teams and whether they give credit."""


@dataclass(frozen=True)
class Shown:
    """A list and what was clicked in it, with the minutes after it."""

    query_id: str
    clicks: Sequence[tuple[str, float]] = ()
    hours: float = 0.0
    client: str | None = None
    explore: str = "team-draft"
    pair: tuple[str, str] = (OLD, NEW)
    action: str = "click"
    documents: Sequence[tuple[str, str, bool]] = TEAMS

    @property
    def at(self) -> datetime:
        return START + timedelta(hours=self.hours)

    def query(self) -> dict[str, Any]:
        ultr: dict[str, Any] = {"policy": self.pair[0], "explore": self.explore}
        if self.explore == "team-draft":
            ultr |= {"against": self.pair[1], "share": 0.5}
        names = [document for document, _, _ in self.documents]
        return {
            "query_id": self.query_id,
            "user_query": "shoes",
            "client_id": self.client,
            "timestamp": written(self.at),
            "query_response_hit_ids": names,
            "query_attributes": {"ultr": ultr},
        }

    def events(self) -> list[dict[str, Any]]:
        shown = [
            self._event(
                document,
                "impression",
                self.at,
                {"propensity": 0.5} | ({"team": team, "credited": credited} if self.explore == "team-draft" else {}),
            )
            for document, team, credited in self.documents
        ]
        acts = [
            self._event(document, self.action, self.at + timedelta(minutes=minutes), None)
            for document, minutes in self.clicks
        ]
        return [*shown, *acts]

    def _event(self, document: str, action: str, at: datetime, ultr: dict[str, Any] | None) -> dict[str, Any]:
        attributes = {"object": {"object_id": document}, **({} if ultr is None else {"ultr": ultr})}
        return {
            "query_id": self.query_id,
            "action_name": action,
            "timestamp": written(at),
            "event_attributes": attributes,
        }


LAST = Shown("last", hours=1_000, explore="none")
"""A list that was shown long after the others, so that none of them is young."""


def written(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write(folder: Path, lists: Iterable[Shown], *, as_parquet: bool = False, hour: str = "2026") -> Path:
    folder.mkdir(exist_ok=True)
    found = list(lists)
    tables = {
        "ubi_queries": [each.query() for each in found],
        "ubi_events": [event for each in found for event in each.events()],
    }
    for name, rows in tables.items():
        if as_parquet:
            parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{name}-{hour}.parquet")
        else:
            (folder / f"{name}-{hour}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def outcomes_of(counts: Mapping[tuple[int, int], int]) -> dict[CreditedClicks, int]:
    """Numbers of lists by the clicks that both have won, and no others."""
    return {CreditedClicks(old, new, old + new): count for (old, new), count in counts.items()}


def wins(old: int, new: int, ties: int = 0) -> list[Shown]:
    """Lists of which so many vote for each, and the last one."""
    clicked: list[Sequence[tuple[str, float]]] = [[("x", 1)]] * old + [[("y", 1)]] * new + [()] * ties
    return [*(Shown(f"q{number}", clicks) for number, clicks in enumerate(clicked)), LAST]

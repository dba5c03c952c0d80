"""Lists of a UBI log that two rankers have made together, by the clicks that each of them has won."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultr import checks
from ultr.data.column_names import check_column
from ultr.errors import DataError
from ultr.preparation.attributes import attribute, has_attribute
from ultr.preparation.engine import DUCKDB, Engine, connect
from ultr.preparation.sources import name_of, tables_of
from ultr.preparation.times import microseconds
from ultr.preparation.ubi import EVENTS, IMPRESSION, QUERIES
from ultr.preparation.values import text

MINUTES = 30.0
"""Time after a list in which what users do counts."""
SHORT = 8
"""Letters of a digest that are shown."""
_MINUTE = 60 * 10**6
_OF_LISTS = ("explore", "policy", "against")
_TEAM_DRAFT, _OLD, _NEW = "team-draft", "old", "new"
_OBJECT = "event_attributes.object.object_id"
_OF_PLACES = ("team", "credited")


@dataclass(frozen=True)
class InterleavedLists:
    """Lists of one pair of rankers."""

    old: str
    """Digest of the ranker that answers."""
    new: str
    """Digest of the one that may take over."""
    last: int
    """When the last list was shown, in microseconds since 1970."""
    outcomes: Mapping[tuple[int, int], int]
    """Number of lists by the clicks that the old and the new ranker have won in them."""
    young: int = 0
    """Lists that are left out, because what users do with them may still be on its way."""
    repeated: int = 0
    """Lists of other pairs and of this one that are left out, because several have the same id."""

    @property
    def lists(self) -> int:
        """Number of lists that count."""
        return sum(self.outcomes.values())

    @property
    def short(self) -> str:
        """Both rankers by the beginnings of their digests."""
        return f"{self.old[:SHORT]} and {self.new[:SHORT]}"


def read_interleaved(
    folder: str | Path,
    *,
    action: str = "click",
    minutes: float = MINUTES,
    per_client: bool = False,
    memory: str = "1GB",
) -> list[InterleavedLists]:
    """The interleaved lists of a folder that `ultr serve --log-to` wrote, a value for each pair of rankers, in time.

    A document that was clicked counts once for the ranker that brought it, where its place gives credit, if the click
    came within so many minutes of the list. Lists count once these minutes are over at the time of the newest list, so
    that a list that counts does not change any more. With `per_client`, one list of each client counts: the first that
    somebody won, or else the first; lists without a `client_id` do not.
    """
    if not Path(folder).is_dir():
        raise DataError(f"there is no folder {folder}; give the one that `ultr serve --log-to` writes")
    checks.positive("minutes", minutes)
    with (
        tempfile.TemporaryDirectory(prefix="ultr-") as work,
        connect(DUCKDB, Path(work), memory=memory) as engine,
    ):
        engine.source = name_of(folder)
        return _read(engine, folder, action=action, wait=round(minutes * _MINUTE), per_client=per_client)


def _read(engine: Engine, folder: str | Path, *, action: str, wait: int, per_client: bool) -> list[InterleavedLists]:
    queries, events = tables_of(engine, folder, (QUERIES, EVENTS))
    lists, newest = _lists(engine, queries, folder)
    if per_client:
        if "client_id" not in queries.columns:
            raise DataError(f"no list of {folder} has a client_id; send it with each query, or leave out --per-client")
        lists = lists.filter(lists.client.notnull())
    all_lists = engine.count(lists)
    times = lists.group_by("query_id").agg(times=lists.count())
    lists = engine.keep(lists.semi_join(times.filter(times.times == 1), "query_id"))
    won = _won(engine, lists, events, action=action, wait=wait, what=f"{EVENTS} of {folder}")
    joined = lists.left_join(won, "query_id")
    outcomes = joined.select(
        *lists.columns,
        old_won=joined.old_won.fill_null(0),
        new_won=joined.new_won.fill_null(0),
        is_young=joined["at"] > newest - wait,
    )
    if per_client:
        outcomes = _one_per_client(outcomes)
    keys = ["policy", "against", "old_won", "new_won", "is_young"]
    rows = engine.fetch(outcomes.group_by(keys).agg(lists=outcomes.count(), last=outcomes["at"].max())).to_pylist()
    return _by_pair(rows, repeated=all_lists - engine.count(lists))


def _lists(engine: Engine, queries: Any, folder: object) -> tuple[Any, int]:
    """The interleaved lists, and the time of the newest list of all."""
    what = f"{QUERIES} of {folder}"
    for name in ("query_id", "timestamp"):
        check_column(name, queries.columns, what=what)
    paths = {name: f"query_attributes.ultr.{name}" for name in _OF_LISTS}
    none = DataError(f"no list of {folder} was interleaved; serve with --interleave NEW.onnx --log-to {folder}")
    if not all(has_attribute(queries, path) for path in paths.values()):
        raise none
    import ibis

    own = {name: text(attribute(queries, path, what=what)) for name, path in paths.items()}
    client = text(queries.client_id) if "client_id" in queries.columns else ibis.null("string")
    at = microseconds(engine, queries, "timestamp", what=what)
    shown = queries.select(query_id=text(queries.query_id), at=at, client=client, **own)
    shown = engine.keep(shown.filter(shown.query_id.notnull() & shown["at"].notnull()))
    lists = shown.filter((shown.explore == _TEAM_DRAFT) & shown.policy.notnull() & shown.against.notnull())
    newest = engine.row(shown.aggregate(newest=shown["at"].max()))["newest"]
    if not engine.count(lists.limit(1)):
        raise none
    return lists.drop("explore"), int(newest)


def _won(engine: Engine, lists: Any, events: Any, *, action: str, wait: int, what: str) -> Any:
    """The clicks that both rankers have won, of each list with some."""
    for name in ("query_id", "action_name", "timestamp"):
        check_column(name, events.columns, what=what)
    names = {"document": _OBJECT} | {name: f"event_attributes.ultr.{name}" for name in _OF_PLACES}
    own = {name: text(attribute(events, path, what=what)) for name, path in names.items()}
    at = microseconds(engine, events, "timestamp", what=what)
    kind = text(events.action_name).strip().lower()
    acts = events.select(query_id=text(events.query_id), kind=kind, done=at, **own).semi_join(lists, "query_id")
    acts = engine.keep(acts)
    places = acts.filter((acts.kind == IMPRESSION) & (acts.credited.lower() == "true"))
    places = places.select("query_id", "document", "team").distinct()
    done = acts.filter(acts.kind == action.lower()).group_by("query_id", "document").agg(done=acts.done.min())
    done = done.join(lists.select("query_id", "at"), "query_id")
    in_time = done.filter(done.done <= done["at"] + wait).select("query_id", "document")
    clicked = places.join(in_time, ["query_id", "document"])
    return clicked.group_by("query_id").agg(
        old_won=(clicked.team == _OLD).sum().cast("int64"), new_won=(clicked.team == _NEW).sum().cast("int64")
    )


def _one_per_client(outcomes: Any) -> Any:
    """The first list of each client that somebody has won, or else the first."""
    import ibis

    is_tied = (outcomes.old_won == outcomes.new_won).cast("int64")
    ranked = outcomes.mutate(is_tied=is_tied)
    order = [ranked.is_young, ranked.is_tied, ranked["at"], ranked.query_id]
    number = ibis.row_number().over(group_by=["policy", "against", "client"], order_by=order)
    ranked = ranked.mutate(number=number)
    return ranked.filter(ranked.number == 0)


def _by_pair(rows: list[dict[str, Any]], *, repeated: int) -> list[InterleavedLists]:
    outcomes: dict[tuple[str, str], Counter[tuple[int, int]]] = {}
    young: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], int] = {}
    for row in rows:
        pair = row["policy"], row["against"]
        found = outcomes.setdefault(pair, Counter())
        if row["is_young"]:
            young[pair] += row["lists"]
        else:
            found[row["old_won"], row["new_won"]] += row["lists"]
        last[pair] = max(last.get(pair, row["last"]), row["last"])
    pairs = sorted(outcomes, key=lambda pair: (last[pair], pair))
    return [InterleavedLists(*pair, last[pair], dict(outcomes[pair]), young[pair], repeated) for pair in pairs]

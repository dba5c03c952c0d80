"""Lists of a UBI log that two rankers have made together, by the clicks that each of them has won."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
_SLACK = 10**6
"""A click may be this much older than its list: a second, for clocks that differ."""
_OF_LISTS = ("explore", "policy", "against")
_TEAM_DRAFT, _OLD, _NEW = "team-draft", "old", "new"
_OBJECT = "event_attributes.object.object_id"
_OF_PLACES = ("team", "credited")


class CreditedClicks(NamedTuple):
    """The documents of an interleaved list that were clicked."""

    old: int
    """Those that the old ranker has brought, where that gives credit."""
    new: int
    """Those that the new one has."""
    clicks: int
    """All of them, with or without credit."""

    @property
    def vote(self) -> float:
        """The vote of the user for the new ranker, from 0 to 1, shared between all that was clicked.

        The clicks of users who go by position alone do not depend on the coins, and each place with credit belongs to
        either team with probability one half. So their votes have the mean 1/2. That would not be so of votes for who
        has won more clicks, or were they shared between the clicks with credit alone: which places of later rounds give
        credit depends on the coins of earlier ones.

        >>> CreditedClicks(old=0, new=1, clicks=2).vote
        0.75
        """
        return 0.5 + (self.new - self.old) / (2 * self.clicks) if self.clicks else 0.5


@dataclass(frozen=True)
class InterleavedLists:
    """Lists of one pair of rankers."""

    old: str
    """Digest of the ranker that answers."""
    new: str
    """Digest of the one that may take over."""
    last: int
    """When the last list was shown, in microseconds since 1970."""
    outcomes: Mapping[CreditedClicks, int]
    """Number of lists by what users did with them."""
    young: int = 0
    """Lists that are left out, because what users do with them may still be on its way."""
    repeated: int = 0
    """Lists of other pairs and of this one that are left out, because several lists have the same id."""
    per_client: bool = False
    """True if one list of each client counts."""

    @property
    def lists(self) -> int:
        """Number of lists that count."""
        return sum(self.outcomes.values())

    @property
    def short(self) -> str:
        """Both rankers by the beginnings of their digests."""
        return f"{self.old[:SHORT]} and {self.new[:SHORT]}"


def read_interleaved(
    folder: str | Path, *, action: str = "click", minutes: float = MINUTES, per_client: bool = False
) -> list[InterleavedLists]:
    """The interleaved lists of a folder that `ultr serve --log-to` wrote, a value for each pair of rankers, in time.

    A document that was clicked counts once for the ranker that brought it, where its place gives credit, if the click
    came after the list and within so many minutes of it. Lists count once these minutes are over at the time of the
    newest list, so that a list that counts does not change any more; one whose id another list has does not count. With
    `per_client`, one list of each client counts: the first with a click that gives credit, or else the first; lists
    without a `client_id` do not.
    """
    if not Path(folder).is_dir():
        raise DataError(f"there is no folder {folder}; give the one that `ultr serve --log-to` writes")
    checks.positive("minutes", minutes)
    with (
        tempfile.TemporaryDirectory(prefix="ultr-") as work,
        connect(DUCKDB, Path(work), memory="1GB") as engine,
    ):
        engine.source = name_of(folder)
        return _read(engine, folder, action=action, wait=round(minutes * _MINUTE), per_client=per_client)


def _read(engine: Engine, folder: str | Path, *, action: str, wait: int, per_client: bool) -> list[InterleavedLists]:
    queries, events = tables_of(engine, folder, (QUERIES, EVENTS))
    shown = _shown(engine, queries, folder)
    newest = int(engine.row(shown.aggregate(newest=shown["at"].max()))["newest"])
    lists = shown.filter((shown.explore == _TEAM_DRAFT) & shown.policy.notnull() & shown.against.notnull())
    if not engine.count(lists.limit(1)):
        raise _none_in(folder)
    if per_client:
        if "client_id" not in queries.columns:
            raise DataError(f"no list of {folder} has a client_id; send it with each query, or leave out --per-client")
        lists = lists.filter(lists.client.notnull())
    all_lists = engine.count(lists)
    # Of a list that was shown as usual, too, a click may be on that one.
    times = shown.group_by("query_id").agg(times=shown.count())
    lists = engine.keep(lists.drop("explore").semi_join(times.filter(times.times == 1), "query_id"))
    won = _won(engine, lists, events, action=action, wait=wait, what=f"{EVENTS} of {folder}")
    joined = lists.left_join(won, "query_id")
    outcomes = joined.select(
        *lists.columns,
        old_won=joined.old_won.fill_null(0),
        new_won=joined.new_won.fill_null(0),
        clicks=joined.clicks.fill_null(0),
        is_young=joined["at"] > newest - wait,
    )
    if per_client:
        outcomes = _one_per_client(outcomes)
    keys = ["policy", "against", "old_won", "new_won", "clicks", "is_young"]
    rows = engine.fetch(outcomes.group_by(keys).agg(lists=outcomes.count(), last=outcomes["at"].max())).to_pylist()
    return _by_pair(rows, repeated=all_lists - engine.count(lists), per_client=per_client)


def _none_in(folder: object) -> DataError:
    return DataError(f"no list of {folder} was interleaved; serve with --interleave NEW.onnx --log-to {folder}")


def _shown(engine: Engine, queries: Any, folder: object) -> Any:
    """All lists, interleaved or not, with their times, clients and how they were made."""
    what = f"{QUERIES} of {folder}"
    for name in ("query_id", "timestamp"):
        check_column(name, queries.columns, what=what)
    paths = {name: f"query_attributes.ultr.{name}" for name in _OF_LISTS}
    if not all(has_attribute(queries, path) for path in paths.values()):
        raise _none_in(folder)
    import ibis

    own = {name: text(attribute(queries, path, what=what)) for name, path in paths.items()}
    client = text(queries.client_id) if "client_id" in queries.columns else ibis.null("string")
    at = microseconds(engine, queries, "timestamp", what=what)
    shown = queries.select(query_id=text(queries.query_id), at=at, client=client, **own)
    return engine.keep(shown.filter(shown.query_id.notnull() & shown["at"].notnull()))


def _won(engine: Engine, lists: Any, events: Any, *, action: str, wait: int, what: str) -> Any:
    """The clicks that both rankers have won, and all clicks, of each list with some."""
    for name in ("query_id", "action_name", "timestamp"):
        check_column(name, events.columns, what=what)
    names = {"document": _OBJECT} | {name: f"event_attributes.ultr.{name}" for name in _OF_PLACES}
    own = {name: text(attribute(events, path, what=what)) for name, path in names.items()}
    at = microseconds(engine, events, "timestamp", what=what)
    kind = text(events.action_name).strip().lower()
    acts = events.select(query_id=text(events.query_id), kind=kind, done=at, **own).semi_join(lists, "query_id")
    acts = engine.keep(acts)
    is_credited = (acts.credited.lower() == "true").fill_null(False)
    team = is_credited.ifelse(acts.team, "")
    places = acts.filter(acts.kind == IMPRESSION).select("query_id", "document", team=team).distinct()
    done = acts.filter(acts.kind == action.lower()).group_by("query_id", "document").agg(done=acts.done.min())
    done = done.join(lists.select("query_id", "at"), "query_id")
    in_time = done.filter(done.done.between(done["at"] - _SLACK, done["at"] + wait)).select("query_id", "document")
    clicked = places.join(in_time, ["query_id", "document"])
    return clicked.group_by("query_id").agg(
        old_won=(clicked.team == _OLD).sum().cast("int64"),
        new_won=(clicked.team == _NEW).sum().cast("int64"),
        clicks=clicked.document.nunique(),
    )


def _one_per_client(outcomes: Any) -> Any:
    """The first list of each client with a click that gives credit, or else the first."""
    import ibis

    ranked = outcomes.mutate(is_open=(outcomes.old_won + outcomes.new_won == 0).cast("int64"))
    order = [ranked.is_young, ranked.is_open, ranked["at"], ranked.query_id]
    number = ibis.row_number().over(group_by=["policy", "against", "client"], order_by=order)
    ranked = ranked.mutate(number=number)
    return ranked.filter(ranked.number == 0)


def _by_pair(rows: list[dict[str, Any]], *, repeated: int, per_client: bool) -> list[InterleavedLists]:
    outcomes: dict[tuple[str, str], Counter[CreditedClicks]] = {}
    young: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], int] = {}
    for row in rows:
        pair = row["policy"], row["against"]
        found = outcomes.setdefault(pair, Counter())
        if row["is_young"]:
            young[pair] += row["lists"]
        else:
            found[CreditedClicks(row["old_won"], row["new_won"], row["clicks"])] += row["lists"]
        last[pair] = max(last.get(pair, row["last"]), row["last"])
    pairs = sorted(outcomes, key=lambda pair: (last[pair], pair))
    return [
        InterleavedLists(*pair, last[pair], dict(outcomes[pair]), young[pair], repeated, per_client) for pair in pairs
    ]

"""The options of a preparation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ultr import checks
from ultr.data.grades import written
from ultr.data.signal import CLICK
from ultr.errors import OptionError
from ultr.preparation.columns import UBI, Columns, factor_edges, read_columns, signal_column
from ultr.preparation.engine import DUCKDB, check_memory
from ultr.preparation.robots import RobotRules

DAY = "day"
MOST_PERIODS = 1_000
_LISTS = ("factors", "features", "impression", "unjudged")


@dataclass(frozen=True, kw_only=True)
class Options(Columns):
    """The options of `prepare` and `read_log`: names of columns, and how they are read."""

    columns: str | Path | None = None
    """A TOML file with names of columns, or one of expedia, sogou, trec2014, trivago, yandex, ubi; what is named
    beside it counts more."""
    features_from: Any = None
    """A second table with the features, joined by query and document, or by document."""
    clicks_from: Any = None
    """A table of events, joined to what was shown by impression and document, or by user or query, document and time;
    --click and --signal then name actions."""
    action: str | None = None
    """Column of the events that says what happened; without it, every event is a click."""
    event_id: str | None = None
    """Column of the events that is the same where one was written twice."""
    event_columns: Mapping[str, str] = field(default_factory=dict)
    """Column of the events for one of the log as COLUMN=COLUMN OF THE EVENTS, where the names differ."""
    window: float = 1800.0
    """Seconds after a page in which an event without an impression may belong to it."""
    page_offset: str | None = None
    """Attribute of UBI queries with the number of results before the first of a page; without it, the ordinals of
    events tell."""
    periods: int | str = 10
    """Parts that the time is cut into, with about as many pages each; or day, which a log needs that is to grow."""
    rare: int = 100
    """A value of a bias factor with fewer impressions becomes the level `other`."""
    fewest_pages: int = 1
    """A query with fewer pages is put aside."""
    fewest_user_pages: int = 1
    """A user or session with fewer pages is put aside."""
    drop_robots: bool = False
    """Put pages and users aside that click like robots."""
    robots: RobotRules = field(default_factory=RobotRules)
    """From when on pages and users count as robots."""
    pairs: bool = False
    """Also count which documents were clicked together, which pair-debias needs."""
    strict: bool = False
    """Stop where a row would be put aside."""
    engine: str = DUCKDB
    """duckdb, spark, or the connection string of another Ibis back end such as postgres://user@host/database."""
    memory: str = "4GB"
    """Memory that the engine may use before it spills to disk."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Checked options; an unknown name is an `OptionError` that lists them all."""
        known = [each.name for each in fields(cls) if each.name != "guessed"]
        for name in given:
            checks.one_of("an option of a preparation", name, known)
        plain = dict(given)
        if isinstance(impression := plain.get("impression"), str):
            plain["impression"] = (impression,)
        for name in _LISTS:
            plain[name] = _listed(name, plain[name]) if name in plain else ()
        plain["unjudged"] = tuple(written(each) for each in plain["unjudged"])
        named = Columns() if plain.get("columns") is None else read_columns(plain["columns"])
        from_file = {each.name: getattr(named, each.name) for each in fields(Columns)}
        # A frame can be asked neither for its truth nor for being equal to something.
        empty = {name for name, value in plain.items() if isinstance(value, tuple | Mapping) and not value}
        beside = {name: value for name, value in plain.items() if value is not None and name not in empty}
        options = cls(**(from_file | beside))
        options._check()
        return options

    def _check(self) -> None:
        checks.integer("rare", self.rare, at_least=0)
        for name in ("fewest_pages", "fewest_user_pages"):
            checks.integer(name, getattr(self, name), at_least=1)
        if self.periods != DAY and checks.integer("periods", self.periods, at_least=2) > MOST_PERIODS:
            raise OptionError(f"periods must be at most {MOST_PERIODS:,}, got {self.periods:,}")
        check_memory(self.memory)
        if self.positions_from is not None:
            checks.integer("positions_from", self.positions_from, at_least=0)
        names = self.factor_names
        if len(set(names)) < len(names):
            raise OptionError(f"a bias factor is given twice: {', '.join(names)}")
        if "position" in names:
            raise OptionError("the position is a bias factor in any case; leave it out of the factors")
        for each in self.factors:
            factor_edges(each)
        if CLICK in self.signals:
            raise OptionError("the signal 'click' is there in any case; name its column with --click")
        for text in self.signals.values():
            signal_column(text)
        if self.base_position is not None and self.propensity is None:
            raise OptionError("base_position says where exploration found a document; name --propensity beside it")
        if self.fewest_user_pages > 1 and self.user is None:
            raise OptionError("fewest_user_pages needs the column of the user or session; name it with --user")
        self.robots.check()

    @property
    def ubi(self) -> bool:
        """True if the log is one of OpenSearch's User Behavior Insights."""
        return str(self.columns) == UBI

    @property
    def by_day(self) -> bool:
        """True if periods are days, so that days can be added."""
        return self.time is not None and self.periods == DAY

    def roles(self) -> Columns:
        """The names of columns alone."""
        return Columns(**{each.name: getattr(self, each.name) for each in fields(Columns)})


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    what = "labels" if name == "unjudged" else "columns"
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or (name != "unjudged" and not all(isinstance(each, str) for each in value)):
        raise OptionError(f"{name} must be a list of {what}, got {value!r}")
    return tuple(value)

"""A first look at a raw log: its columns, their kinds, and its rows in one layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ultr.data.column_names import listed
from ultr.errors import DataError
from ultr.preparation import values
from ultr.preparation.columns import Columns, signal_column
from ultr.preparation.engine import Engine
from ultr.preparation.factors import factor_columns
from ultr.preparation.feature_columns import feature_columns, in_words
from ultr.preparation.growth import Grown
from ultr.preparation.opened import Opened, open_log
from ultr.preparation.options import Options
from ultr.preparation.rows import RowFormat, page_of, row_format, rows_of, with_lists
from ultr.preparation.times import time_of

_TIMES = ("time", "timestamp", "date", "day", "datetime", "ts", "created_at", "event_time")
_CHANCES = ("propensity", "placement_propensity")
_FACTORS = (
    *("device", "platform", "layout", "user_agent", "os", "browser", "country", "locale", "page_number", "page"),
    *("grid_row", "grid_column", "row", "column", "viewport", "pixels"),
)


@dataclass(frozen=True)
class Surveyed:
    """What is known of a log before its pages are looked at."""

    table: Any
    layout: RowFormat
    rows: Any
    """See `rows_of`."""
    hints: tuple[str, ...]
    opened: Opened

    @property
    def columns(self) -> Columns:
        """The roles of the columns."""
        return self.layout.columns

    def rows_on(self, engine: Engine, pages: Any, *, nameless: bool = False) -> Any:
        """The rows of these pages alone, and with `nameless` those without an impression."""
        page = self.rows.page if self.layout.pages else page_of(self.table, self.columns)
        wanted = page.isin(pages.page)
        if nameless:
            wanted = wanted | page.isnull()
        if self.layout.pages:
            return self.rows.filter(wanted)
        # Raw rows are left out before any work on them.
        return rows_of(engine, self.table.filter(wanted), self.layout)

    def in_words(self) -> str:
        """One line on what the columns were taken for."""
        columns = self.columns
        roles = {"impression": ", ".join(columns.impression)}
        names = ("query", "document", "position", "click", "user", "time", "label", "propensity", "base_position")
        roles |= {role.replace("_", " "): getattr(columns, role) for role in names}
        said = [
            f"{role} = {name}{' (guessed)' if role in columns.guessed else ''}" for role, name in roles.items() if name
        ]
        said += [f"signal {name} = {column}" for name, column in columns.signals.items()]
        factors, features = self.layout.factors, self.layout.features
        binned = [f"{each.name} in {len(each.edges) + 1} bins" if each.edges else each.name for each in factors]
        said += [f"factors = {', '.join(binned)}"] if binned else []
        said += [f"features = {listed([each.name for each in features], most=5)}"] if features else []
        said += [kinds] if (kinds := in_words(features)) else []
        shape = "one row a result page" if self.layout.pages else "one row a shown document"
        return f"{self.opened.name}: {shape}; {'; '.join(said)}"


def survey(engine: Engine, log: object, options: Options, grown: Grown | None) -> Surveyed:
    """Open a log and find out what its columns are; those of the log that it is added to are known."""
    opened = open_log(engine, log, options)
    table, what = opened.table, opened.name
    asked = replace(options.roles(), **opened.roles)
    inline = replace(asked, features=()) if options.features_from is not None else asked
    layout = row_format(engine, table, inline.found_in(table.columns, what=what), what=what)
    columns = layout.columns
    if layout.pages:
        table = with_lists(engine, table, columns, what=what)
    categories = () if grown is None else grown.categories
    features = feature_columns(engine, table, columns.features, what=what, categories=categories)
    if not opened.cheap:
        used = dict.fromkeys([*columns.used(), *columns.features])
        table = engine.keep(table.select(*used))
    _check_ids(engine, table, columns, what)
    _check_signals(engine, table, columns, what)
    layout = replace(
        layout,
        factors=factor_columns(engine, table, columns.factors, known={} if grown is None else grown.edges),
        features=features,
        null_is_no_click=_null_is_no_click(engine, table, layout),
        time=None
        if columns.time is None
        else time_of(engine, table, columns.time, what=what, with_days=options.by_day),
    )
    rows = rows_of(engine, table, layout)
    # Pages without an id are numbered, and only once in the same way.
    rows = engine.keep(rows) if layout.pages else engine.named_view(rows)
    return Surveyed(table, layout, rows, _hints(engine, opened.table, columns), opened)


def _check_ids(engine: Engine, table: Any, columns: Columns, what: str) -> None:
    """Raise a `DataError` for ids that were rounded: floats cannot tell whole numbers from 2^53 on apart."""
    names = [*columns.impression, str(columns.query), str(columns.document)]
    floats = [name for name in dict.fromkeys(names) if table[name].type().is_floating()]
    if not floats:
        return
    largest = engine.row(table.aggregate([table[name].abs().max().name(f"n{i}") for i, name in enumerate(floats)]))
    for i, name in enumerate(floats):
        if (largest[f"n{i}"] or 0) >= 2**53:
            raise DataError(
                f"column {name!r} of {what} holds ids as floats of 2^53 and more, which are rounded; "
                "give them as integers or text"
            )


def _check_signals(engine: Engine, table: Any, columns: Columns, what: str) -> None:
    """Raise a `DataError` for a signal that is an amount, such as a price: it would put the rows of buyers aside."""
    for signal, text in columns.signals.items():
        name, threshold = signal_column(text)
        column = table[name].unnest() if table[name].type().is_array() else table[name]
        if threshold is not None or column.type().is_integer() or column.type().is_boolean():
            continue
        given = values.as_number(column).cast("float64").name("value").as_table()
        broken = given.filter(given.value != given.value.floor()).limit(1)
        if rows := engine.fetch(broken).to_pylist():
            raise DataError(
                f"column {name!r} of {what} holds amounts such as {rows[0]['value']:g}, and a signal counts how often "
                f"something happened; count it from a threshold on, as in --signal '{signal}={name}>=0.01'"
            )


def _null_is_no_click(engine: Engine, table: Any, layout: RowFormat) -> bool:
    """True if the click is missing somewhere and 0 nowhere: then missing is how the log says that there was none."""
    column = table[layout.columns.click]
    if layout.pages or column.type().is_array():
        return False
    none = values.count(column) == 0
    found = engine.row(
        table.aggregate(missing=values.absent(column).cast("int64").sum(), none=none.cast("int64").sum())
    )
    return bool(found["missing"]) and not found["none"]


def _follows(engine: Engine, table: Any, name: str, position: str | None) -> bool:
    """True if the position says what a column holds, as where positions go on over pages: the bias knows it already."""
    if position is None or table[name].type().is_array() or table[position].type().is_array():
        return False
    places = table.select(position).distinct()
    return engine.count(table.select(position, name).distinct()) == engine.count(places)


def _hints(engine: Engine, table: Any, columns: Columns) -> tuple[str, ...]:
    """Sentences on columns that look like a time, a cause of bias or a mark of random pages, and are not used."""
    taken = {*columns.used(), *columns.features}
    free = [name for name in table.columns if name not in taken]
    hints = []
    times = [name for name in free if name.lower() in _TIMES or table[name].type().is_timestamp()]
    if columns.time is None and times:
        hints.append(
            f"{listed(times, most=3)} looks like a time: --time {times[0]} allows splits by time and a growing log"
        )
    causes = [name for name in free if name.lower() in _FACTORS and not _follows(engine, table, name, columns.position)]
    if causes:
        hints.append(
            f"{listed(causes, most=5)} may be a cause of bias: --factor {causes[0]} lets the bias differ by it"
        )
    random = [name for name in free if "random" in name.lower() and _differs(engine, table[name])]
    if random:
        hints.append(
            f"{listed(random, most=3)} may mark pages in random order, which are mixed with the others here: prepare "
            f'them apart ("sql:SELECT * FROM ... WHERE {random[0]} = 1"), for they tell the bias and judge rankers'
        )
    chances = [name for name in free if name.lower() in _CHANCES]
    if columns.propensity is None and chances:
        hints.append(
            f"{listed(chances, most=3)} may be the probability of a placement by exploration: "
            f"--propensity {chances[0]} gives exact weights to the curves"
        )
    return tuple(hints)


def _differs(engine: Engine, column: Any) -> bool:
    """True if a column has two values at least."""
    return bool(engine.row(column.nunique().name("values").as_table())["values"] > 1)

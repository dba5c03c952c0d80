"""A raw log as rows of one layout: one for each shown document, with the fault it has by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from ultr.data.bias_factor import MOST_POSITIONS
from ultr.data.column_names import listed
from ultr.errors import DataError
from ultr.preparation import reasons, values
from ultr.preparation.columns import Columns, signal_column
from ultr.preparation.engine import SPARK, Engine
from ultr.preparation.factors import FactorColumn
from ultr.preparation.feature_columns import FeatureColumn
from ultr.preparation.times import written

_JOINT, _ESCAPE = "\x1f", "\x1e"


@dataclass(frozen=True)
class RowFormat:
    """Format of the rows of a log, and what a look at its values tells."""

    columns: Columns
    pages: bool
    """One row per result page, with lists, in place of one row per shown document."""
    factors: tuple[FactorColumn, ...] = ()
    features: tuple[FeatureColumn, ...] = ()
    null_is_no_click: bool = False
    """True if the column of clicks says nothing where there was none, as a left join does."""
    time: Any = None
    """The column of times as values that sort."""


def row_format(engine: Engine, table: Any, columns: Columns, *, what: str) -> RowFormat:
    """The format of a log: rows for documents, or for pages."""
    listy = table[columns.document].type().is_array()
    if listy and table[columns.document].type().value_type.is_struct():
        fields = ", ".join(table[columns.document].type().value_type.names)
        raise DataError(
            f"{columns.document} of {what} holds lists of records ({fields}), not of ids; give a row for each "
            "document, as sql:SELECT with unnest does, or lists of ids"
        )
    if columns.position is not None and not listy:
        if not columns.impression:
            raise DataError(
                f"{what} has no column that tells one result page from another; name it with --impression "
                f"(several as a,b), of: {listed(table.columns)}"
            )
        return RowFormat(columns, pages=False)
    if not _holds_lists(engine, table[columns.document], columns):
        raise DataError(
            f"{what} has no column that looks like the position, and {columns.document} holds no lists; "
            f"name the position with --position, one of: {listed(table.columns)}"
        )
    if columns.features:
        raise DataError(
            f"{what} has one row a result page, so its features must come from a second table; give --features-from"
        )
    if columns.position is not None and not _holds_lists(engine, table[columns.position], columns):
        if "position" not in columns.guessed:
            raise DataError(
                f"{what} has one row a result page, so {columns.position} must be a list like {columns.document}; "
                "without --position the documents of a page stand at 1, 2, 3, ..."
            )
        columns = columns.without("position")
    # A session has several pages, so that a column of a log of pages tells them apart only if it is said to.
    return RowFormat(columns.without("impression") if "impression" in columns.guessed else columns, pages=True)


def with_lists(engine: Engine, table: Any, columns: Columns, *, what: str) -> Any:
    """A log of pages with lists in place of text that has a value for each document.

    Signals are given as clicks are, in bits or with separators. A factor is that of the whole page unless it has as
    many values as documents on every page.
    """
    documents = _listed(engine, table[columns.document], columns)
    lists: dict[str, Any] = {}
    if columns.position is not None:
        lists[columns.position] = _listed(engine, table[columns.position], columns)
    for name, text in columns.signals.items():
        column = table[signal_column(text)[0]]
        if not (column.type().is_array() or column.type().is_string()):
            raise DataError(
                f"{what} has one row a result page, so the signal {name} must have a value for each document, as a "
                f"list or as text like {columns.click}; {column.get_name()} has one for the whole page"
            )
        if column.type().is_string():
            lists[column.get_name()] = _in_pieces(engine, column, documents, columns)
    for name in columns.factor_names:
        if table[name].type().is_string():
            pieces = _listed(engine, table[name], columns)
            fits = table.aggregate(
                others=(pieces.length() != documents.length()).cast("int64").sum(),
                several=(documents.length() > 1).cast("int64").sum(),
            )
            found = engine.counts(fits)
            if found["several"] and not found["others"]:
                lists[name] = pieces
    return table.mutate(**lists) if lists else table


def _holds_lists(engine: Engine, column: Any, columns: Columns) -> bool:
    """True for lists, and for text with a separator somewhere."""
    if column.type().is_array():
        return True
    given = values.text(column).name("given").as_table()
    return engine.count(given.filter(given.given.contains(columns.separator)).limit(1)) > 0


def _in_pieces(engine: Engine, column: Any, documents: Any, columns: Columns) -> Any:
    """The values of text such as `0,1,0` or `010`; of a page with one document it is all of the text."""
    import ibis

    text = values.text(column).strip()
    letters = ibis.range(0, text.length().cast("int64")).map(lambda place: text.substr(place, 1))
    whole = (documents.length() == 1) & ~text.contains(columns.separator)
    return ibis.cases(
        (whole, ibis.array([text])), (text.contains(columns.separator), _listed(engine, text, columns)), else_=letters
    )


def rows_of(engine: Engine, table: Any, layout: RowFormat) -> Any:
    """The rows of a log: page, query, document, key (the document as it was given), position, click, events (number
    of clicks), s0, ..., f0, ..., p0, p1 (placement), x0, ... (features), h0, ... (features to tell lists apart by),
    fault, and what was given; with a time, a label and a user, these too.
    """
    import ibis

    columns = layout.columns
    own = {}
    if columns.time:
        given = table[columns.time]
        own = {"time": layout.time, "given_time": given if given.type().is_string() else written(given)}
    if columns.user:
        own["user"] = values.text(table[columns.user])
    cells = _of_pages(engine, table, columns, own) if layout.pages else _of_documents(table, layout, own)
    factors = {f"f{i}": factor.level(cells[f"f{i}"]) for i, factor in enumerate(layout.factors)}
    signals = {f"s{i}": _signal(cells, i, text) for i, text in enumerate(columns.signals.values())}
    features = [name for name in cells.columns if name[0] in "xh" and name[1:].isdigit()]
    placed, wrong = _placements(cells, columns)
    rows = cells.select(
        "page",
        "different",
        "unusable",
        *features,
        query=values.text(cells["query"]),
        no_query=values.no_text(cells["query"]),
        key=cells.document,
        document=values.text(cells.document),
        no_document=values.no_text(cells.document),
        position=values.position(cells.position, columns.first_position if columns.position else 1),
        given_position=values.as_text(cells.position),
        events=values.count(cells.click, null_is_zero=layout.null_is_no_click),
        given_click=values.as_text(cells.click),
        **factors,
        **signals,
        **placed,
        misplaced=wrong,
        **({"label": values.label(cells.label, columns.unjudged)} if columns.label else {}),
        **{name: cells[name] for name in own},
    )
    numeric = [f"f{i}" for i, factor in enumerate(layout.factors) if factor.edges]
    fault = ibis.cases(
        (rows.page.isnull(), reasons.NO_IMPRESSION.code),
        (rows.no_query, reasons.NO_QUERY.code),
        (rows.different, reasons.LENGTHS.code),
        (rows.position.isnull(), reasons.NO_POSITION.code),
        (rows.position < 1, reasons.BELOW_ONE.code),
        (rows.position > MOST_POSITIONS, reasons.TOO_FAR.code),
        *([(rows.time.isnull(), reasons.NO_TIME.code)] if columns.time else []),
        (rows.no_document, reasons.NO_DOCUMENT.code),
        (rows.events.isnull(), reasons.CLICK.code),
        *((rows[name].isnull(), reasons.SIGNAL.code) for name in signals),
        *((rows[name].isnull(), reasons.NO_FACTOR.code) for name in numeric),
        (rows.unusable, reasons.NOT_FINITE.code),
        (rows.misplaced, reasons.PLACEMENT.code),
        else_=reasons.KEPT,
    )
    rows = rows.mutate(
        fault=fault.cast("int16"),
        click=(rows.events > 0).fill_null(False).cast("int8"),
        events=rows.events.fill_null(0),
    )
    return rows.drop("different", "unusable", "no_query", "no_document", "misplaced")


def _of_documents(table: Any, layout: RowFormat, own: dict[str, Any]) -> Any:
    """The cells of a log with one row for each shown document."""
    import ibis

    columns = layout.columns
    unusable = reduce(or_, (each.unusable(table) for each in layout.features), ibis.literal(value=False))
    features = [value for each in layout.features for value in each.values(table)]
    return table.select(
        page=page_of(table, columns),
        query=table[columns.query],
        document=table[columns.document],
        position=table[columns.position],
        click=table[columns.click],
        different=ibis.literal(value=False),
        unusable=unusable,
        **{f"x{i}": value for i, value in enumerate(features)},
        **{f"h{i}": each.given(table) for i, each in enumerate(layout.features)},
        **_others(table, columns),
        **({"label": table[columns.label]} if columns.label else {}),
        **own,
    )


def _of_pages(engine: Engine, table: Any, columns: Columns, own: dict[str, Any]) -> Any:
    """The cells of a log with one row for each result page, a row for each document."""
    import ibis

    documents = _listed(engine, table[columns.document], columns)
    clicks = table[columns.click]
    if not clicks.type().is_array():
        clicks = values.as_text(clicks).replace(columns.separator, "").replace(" ", "")
    positions = {} if columns.position is None else {"positions": table[columns.position]}
    labels = {"label": _listed(engine, table[columns.label], columns)} if columns.label else {}
    others = _others(table, columns)
    lists = positions | others | labels
    different = (clicks.length() != documents.length()).fill_null(True)
    for given in lists.values():
        if given.type().is_array():
            # A list that is empty says nothing of the documents, and nothing wrong.
            different = different | ((given.length() > 0) & (given.length() != documents.length())).fill_null(False)
    pages = table.select(
        page=page_of(table, columns) if columns.impression else ibis.row_number(),
        query=table[columns.query],
        document=documents,
        clicks=clicks,
        different=different,
        **lists,
        **own,
    )
    rows = pages.unnest("document", offset="place", keep_empty=True)
    # A page without documents is one row without a document, at the place of the first.
    rows = rows.mutate(place=rows.place.fill_null(0))
    return rows.select(
        "page",
        "query",
        "different",
        *own,
        document=values.as_text(rows.document).strip(),
        position=_item(rows, "positions") if positions else rows.place + 1,
        click=_item(rows, "clicks") if rows.clicks.type().is_array() else rows.clicks.substr(rows.place, 1),
        unusable=ibis.literal(value=False),
        **{name: _item(rows, name) for name in others | labels},
    )


def _others(table: Any, columns: Columns) -> dict[str, Any]:
    """The columns of bias factors, of placements and of signals."""
    factors = {f"f{i}": table[name] for i, name in enumerate(columns.factor_names)}
    placements = {"propensity": columns.propensity, "base": columns.base_position}
    factors |= {role: table[name] for role, name in placements.items() if name is not None}
    return factors | {f"signal{i}": table[signal_column(text)[0]] for i, text in enumerate(columns.signals.values())}


def _placements(cells: Any, columns: Columns) -> tuple[dict[str, Any], Any]:
    """The propensity p0 and the base position p1 of a row as far as they are logged, and where they cannot be."""
    import ibis

    placed, wrong = {}, ibis.literal(value=False)
    if columns.propensity is not None:
        placed["p0"] = values.propensity(cells.propensity)
        wrong = wrong | (~values.absent(cells.propensity) & placed["p0"].isnull())
    if columns.base_position is not None:
        base = values.position(cells.base, columns.first_position)
        placed["p1"] = base.between(1, MOST_POSITIONS).ifelse(base, None)
        wrong = wrong | (~values.absent(cells.base) & placed["p1"].isnull())
    return placed, wrong


def _signal(cells: Any, number: int, text: str) -> Any:
    column, threshold = cells[f"signal{number}"], signal_column(text)[1]
    found = values.count(column, null_is_zero=True) if threshold is None else values.reached(column, threshold)
    return found.cast("int64")


def _listed(engine: Engine, column: Any, columns: Columns) -> Any:
    if column.type().is_array():
        return column
    # Spark takes a separator as a regular expression.
    return values.text(column).split(rf"\Q{columns.separator}\E" if engine.name == SPARK else columns.separator)


def _item(rows: Any, name: str) -> Any:
    """The value for a document: that at its place of a list, which may be too short, or that of the page."""
    given = rows[name]
    if not given.type().is_array():
        return given
    return (rows.place < given.length()).ifelse(given[rows.place], None)


def page_of(table: Any, columns: Columns) -> Any:
    """The id of a page: a number as it is, else text, that of several columns joined so that no two are the same."""
    first, *others = (table[name] for name in columns.impression)
    if not others and first.type().is_integer() and not first.type().is_uint64():
        return first.cast("int64")
    if not others:
        return values.text(first)
    joined = _escaped(first)
    for column in others:
        joined = joined + _JOINT + _escaped(column)
    return joined


def _escaped(column: Any) -> Any:
    """Text in which the joint does not occur."""
    given = values.text(column)
    if not column.type().is_string():
        return given
    return given.replace(_ESCAPE, f"{_ESCAPE}0").replace(_JOINT, f"{_ESCAPE}1")

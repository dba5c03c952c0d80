"""A raw log as rows of one layout: one for each shown document, with the fault it has by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from ultr.data.column_names import listed
from ultr.errors import DataError
from ultr.preparation import reasons
from ultr.preparation.columns import Columns
from ultr.preparation.engine import Engine
from ultr.preparation.times import written

MISSING = "missing"
"""The level of a bias factor where a row has no value of it."""
_JOINT = "\x1f"
_FAR = 2**40
_LARGEST = 3.4028234663852886e38
"""The largest finite float32."""
_ABSENT = ("", "nan", "na", "n/a", "null")
"""Texts that stand for a number that is missing, as they do in the CSV files of judged lists."""


@dataclass(frozen=True)
class RowFormat:
    """Format of the rows of a log."""

    columns: Columns
    pages: bool
    """One row per result page, with lists, in place of one row per shown document."""


def row_format(engine: Engine, table: Any, columns: Columns, *, what: str) -> RowFormat:
    """The format of a log: rows for documents, or for pages."""
    listy = table[columns.document].type().is_array()
    if columns.position is not None and not listy:
        if not columns.impression:
            raise DataError(
                f"{what} has no column that tells one result page from another; name it with --impression "
                f"(several as a,b), of: {listed(table.columns)}"
            )
        return RowFormat(columns, pages=False)
    if not listy:
        first = table.filter(text(table[columns.document]).contains(columns.separator)).limit(1)
        if not engine.fetch(first.select(columns.document)).num_rows:
            raise DataError(
                f"{what} has no column that looks like the position, and {columns.document} holds no lists; "
                f"name the position with --position, one of: {listed(table.columns)}"
            )
    if columns.features:
        raise DataError(
            f"{what} has one row a result page, so its features must come from a second table; give --features-from"
        )
    if columns.position is not None and not table[columns.position].type().is_array():
        if "position" not in columns.guessed:
            raise DataError(
                f"{what} has one row a result page, so {columns.position} must be a list like {columns.document}; "
                "without --position the documents of a page stand at 1, 2, 3, ..."
            )
        columns = columns.without("position")
    # A session has several pages, so that a column of a log of pages tells them apart only if it is said to.
    return RowFormat(columns.without("impression") if "impression" in columns.guessed else columns, pages=True)


def rows_of(table: Any, layout: RowFormat, *, time: Any | None = None) -> Any:
    """The rows of a log: page, query, document, position, click, f0, f1, ..., fault, given_position, given_click.

    With a `time`, a column of the table, also time and given_time; with labels, also label.
    """
    import ibis

    columns = layout.columns
    times = {} if time is None else {"time": time, "given_time": _given_time(table[columns.time])}
    cells = (_of_pages if layout.pages else _of_documents)(table, columns, times)
    factors = [f"f{i}" for i in range(len(columns.factors))]
    rows = cells.select(
        "page",
        "query",
        "different",
        "unusable",
        document=text(cells.document),
        position=_position(cells.position, columns.positions_from if columns.position else 1),
        given_position=_as_text(cells.position),
        click=_click(cells.click),
        given_click=_as_text(cells.click),
        **{name: text(cells[name]).fill_null(MISSING) for name in factors},
        **({"label": label(cells.label, columns.unjudged)} if columns.label else {}),
        **{name: cells[name] for name in times},
    )
    fault = ibis.cases(
        (rows.page.isnull(), reasons.NO_IMPRESSION.code),
        (rows.query.isnull(), reasons.NO_QUERY.code),
        (rows.different, reasons.LENGTHS.code),
        (rows.position.isnull(), reasons.NO_POSITION.code),
        (rows.position < 1, reasons.BELOW_ONE.code),
        (rows.position > reasons.MOST_POSITIONS, reasons.TOO_FAR.code),
        *([(rows.time.isnull(), reasons.NO_TIME.code)] if times else []),
        (rows.document.isnull(), reasons.NO_DOCUMENT.code),
        (rows.click.isnull(), reasons.CLICK.code),
        (rows.unusable, reasons.NOT_FINITE.code),
        else_=reasons.KEPT,
    )
    rows = rows.mutate(fault=fault.cast("int16")).drop("different", "unusable")
    # What was given is only of interest where it is wrong, and costs nothing elsewhere.
    wrong = rows.fault != reasons.KEPT
    given = [name for name in rows.columns if name.startswith("given_")]
    return rows.mutate(**{name: ibis.ifelse(wrong, rows[name], ibis.null("string")) for name in given})


def text(column: Any) -> Any:
    """A column as text; null where there is nothing in it."""
    import ibis

    kind = column.type()
    if kind.is_floating():
        whole = column.try_cast("int64")
        written = ibis.ifelse(whole.cast("float64") == column.cast("float64"), whole.cast("string"), _as_text(column))
        return ibis.ifelse(column.isnan(), ibis.null("string"), written)
    written = _as_text(column)
    return ibis.ifelse(written.strip() == "", ibis.null("string"), written) if kind.is_string() else written


def number(column: Any) -> Any:
    """A column as float32; null where it is missing or no finite number."""
    import ibis

    value = column.cast("int8") if column.type().is_boolean() else column
    narrow = (value if value.type().is_numeric() else _as_text(value).try_cast("float64")).try_cast("float32")
    # NaN lies outside this range too: engines order it after all numbers.
    return ibis.ifelse(narrow.between(-_LARGEST, _LARGEST), narrow, ibis.null("float32"))


def no_number(column: Any) -> Any:
    """True where a column has a value that is no finite number; one that is missing (NULL, NaN) is none."""
    kind = column.type()
    present = column.notnull()
    if kind.is_floating():
        present = present & ~column.isnan()
    elif not (kind.is_numeric() or kind.is_boolean()):
        present = present & ~_as_text(column).strip().lower().isin(_ABSENT)
    return present & number(column).isnull()


def label(column: Any, unjudged: tuple[str, ...]) -> Any:
    """A judge's label as text, whole numbers without a point as `grades.written` has it; null where there is none."""
    import ibis

    given = text(column).strip()
    given = ibis.ifelse(given.re_search(r"^[-+]?[0-9]+[.]0*$"), given.re_extract(r"^([^.]*)", 1), given)
    return ibis.ifelse((given.lower() == "nan") | given.isin(unjudged), ibis.null("string"), given)


def _of_documents(table: Any, columns: Columns, times: dict[str, Any]) -> Any:
    """The cells of a log with one row for each shown document."""
    import ibis

    unusable = reduce(or_, (no_number(table[name]) for name in columns.features), ibis.literal(value=False))
    return table.select(
        page=_page(table, columns),
        query=text(table[columns.query]),
        document=table[columns.document],
        position=table[columns.position],
        click=table[columns.click],
        different=ibis.literal(value=False),
        unusable=unusable,
        **{f"f{i}": table[name] for i, name in enumerate(columns.factors)},
        **({"label": table[columns.label]} if columns.label else {}),
        **times,
    )


def _of_pages(table: Any, columns: Columns, times: dict[str, Any]) -> Any:
    """The cells of a log with one row for each result page, a row for each document."""
    import ibis

    documents = _listed(table[columns.document], columns)
    clicks = table[columns.click]
    if not clicks.type().is_array():
        clicks = _as_text(clicks).replace(columns.separator, "").replace(" ", "")
    factors = {f"f{i}": table[name] for i, name in enumerate(columns.factors)}
    positions = {} if columns.position is None else {"positions": table[columns.position]}
    labels = {"label": _listed(table[columns.label], columns)} if columns.label else {}
    lists = positions | factors | labels
    different = (clicks.length() != documents.length()).fill_null(True)
    for values in lists.values():
        if values.type().is_array():
            # A list that is empty says nothing of the documents, and nothing wrong.
            different = different | ((values.length() > 0) & (values.length() != documents.length())).fill_null(False)
    pages = table.select(
        page=_page(table, columns) if columns.impression else ibis.row_number(),
        query=text(table[columns.query]),
        document=documents,
        clicks=clicks,
        different=different,
        **lists,
        **times,
    )
    rows = pages.unnest("document", offset="place", keep_empty=True)
    # A page without documents is one row without a document, at the place of the first.
    rows = rows.mutate(place=rows.place.fill_null(0))
    return rows.select(
        "page",
        "query",
        "different",
        *times,
        document=_as_text(rows.document).strip(),
        position=_item(rows, "positions") if positions else rows.place + 1,
        click=_item(rows, "clicks") if rows.clicks.type().is_array() else rows.clicks.substr(rows.place, 1),
        unusable=ibis.literal(value=False),
        **{name: _item(rows, name) for name in factors | labels},
    )


def _listed(column: Any, columns: Columns) -> Any:
    # Spark takes a separator as a regular expression, in which this one stands for itself.
    return column if column.type().is_array() else text(column).replace(columns.separator, _JOINT).split(_JOINT)


def _item(rows: Any, name: str) -> Any:
    """The value for a document: that at its place of a list, which may be too short, or that of the page."""
    import ibis

    values = rows[name]
    if not values.type().is_array():
        return values
    return ibis.ifelse(rows.place < values.length(), values[rows.place], ibis.null(values.type().value_type))


def _given_time(given: Any) -> Any:
    return given if given.type().is_string() else written(given)


def _page(table: Any, columns: Columns) -> Any:
    first, *others = (table[name] for name in columns.impression)
    if not others and first.type().is_integer() and not first.type().is_uint64():
        return first.cast("int64")
    joined = text(first)
    for column in others:
        joined = joined + _JOINT + text(column)
    return joined


def _click(column: Any) -> Any:
    """A click as 1 or 0; null where it is neither."""
    import ibis

    kind = column.type()
    if kind.is_numeric():
        click = ibis.cases((column == 1, 1), (column == 0, 0), else_=ibis.null("int8"))
    else:
        written = _as_text(column).strip().lower()
        click = ibis.cases(
            (written.isin(["1", "1.0", "true", "t"]), 1),
            (written.isin(["0", "0.0", "false", "f"]), 0),
            else_=ibis.null("int8"),
        )
    return click.cast("int8")


def _position(column: Any, first: int) -> Any:
    """A position from 1, where the log counts from `first`; null where it is no integer."""
    import ibis

    shift = 1 - first
    if column.type().is_integer():
        # Far enough to be a fault, near enough not to overflow.
        bounded = column.clip(upper=_FAR) if column.type().is_unsigned_integer() else column.clip(-_FAR, _FAR)
        return bounded.cast("int64") + shift
    value = column if column.type().is_numeric() else _as_text(column).try_cast("float64")
    whole = value.try_cast("int64")
    return ibis.ifelse(whole.cast("float64") == value.cast("float64"), whole + shift, ibis.null("int64"))


def _as_text(column: Any) -> Any:
    return column if column.type().is_string() else column.cast("string")

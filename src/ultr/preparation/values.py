"""Values of columns as text and as numbers, alike in every engine."""

from __future__ import annotations

from typing import Any

_LARGEST = 3.4028234663852886e38
"""The largest finite float32."""
_ABSENT = ("", "nan", "na", "n/a", "null")
"""Texts that stand for a number that is missing, as they do in the CSV files of judged lists."""
_AFTER_BLANKS = "!"
"""All texts that begin with a blank come before this one."""
_FAR = 2**40
_YES, _NO = ("true", "t", "yes"), ("false", "f", "no")


def text(column: Any) -> Any:
    """A column as text; null where there is nothing in it."""
    kind = column.type()
    if kind.is_floating():
        whole = column.try_cast("int64")
        is_whole = whole.cast("float64") == column.cast("float64")
        return column.isnan().ifelse(None, is_whole.ifelse(whole.cast("string"), as_text(column)))
    return _blank(column).ifelse(None, column) if kind.is_string() else as_text(column)


def number(column: Any) -> Any:
    """A column as float32; null where it is missing or no finite number."""
    import ibis

    kind = column.type()
    if kind.is_boolean():
        return column.cast("float32")
    value = as_number(column)
    narrow = value if kind.is_float32() else value.try_cast("float32")
    if kind.is_integer():
        return narrow
    # Engines order NaN after all numbers, so that it is not finite either. Adding 0 makes -0 and 0 the same.
    finite = narrow.abs() <= ibis.literal(_LARGEST, "float32")
    return finite.ifelse(narrow + ibis.literal(0, "float32"), None)


def no_number(column: Any) -> Any:
    """True where a column has a value that is no finite number; one that is missing (NULL, NaN) is none."""
    import ibis

    kind = column.type()
    if kind.is_integer() or kind.is_boolean():
        return ibis.literal(value=False)
    if kind.is_float32():
        return column.isinf()
    return ~absent(column) & number(column).isnull()


def no_number_at_all(column: Any) -> Any:
    """True where a text has a value that cannot be read as a number, be it finite or not."""
    return ~absent(column) & column.try_cast("float64").isnull()


def label(column: Any, unjudged: tuple[str, ...]) -> Any:
    """A judge's label as text, whole numbers without a point as `grades.written` has it; null where there is none."""
    given = text(column).strip()
    given = given.re_search(r"^[-+]?[0-9]+[.]0*$").ifelse(given.re_extract(r"^([^.]*)", 1), given)
    return ((given.lower() == "nan") | given.isin(unjudged)).ifelse(None, given)


def count(column: Any, *, null_is_zero: bool = False) -> Any:
    """A number of clicks or of another signal, from 0; null where it is none."""
    import ibis

    kind = column.type()
    if kind.is_boolean():
        found = column.cast("int64")
    else:
        whole = _whole(column)
        found = (whole >= 0).ifelse(whole, None)
    if not (kind.is_boolean() or kind.is_numeric()):
        written = as_text(column).strip().lower()
        found = ibis.cases((written.isin(_YES), 1), (written.isin(_NO), 0), else_=found)
    if null_is_zero:
        found = absent(column).ifelse(0, found)
    return found.cast("int64")


def propensity(column: Any) -> Any:
    """A probability above 0 as float64; null where it is none."""
    value = as_number(column).cast("float64")
    return ((value > 0) & (value <= 1)).ifelse(value, None)


def reached(column: Any, threshold: float) -> Any:
    """1 where a number reaches a threshold, 0 where it does not or is missing; null where it is no number."""
    import ibis

    value = as_number(column)
    return ibis.cases((absent(column), 0), (value >= threshold, 1), (value < threshold, 0), else_=ibis.null("int64"))


def absent(column: Any) -> Any:
    """True where there is no value of a number."""
    if column.type().is_string():
        return column.isnull() | column.strip().lower().isin(_ABSENT)
    return no_text(column)


def no_text(column: Any) -> Any:
    """True where `text` is null, without making the text."""
    kind = column.type()
    if kind.is_floating():
        return column.isnull() | column.isnan()
    return column.isnull() | _blank(column) if kind.is_string() else column.isnull()


def _blank(column: Any) -> Any:
    """True where a text has nothing but blanks; only those that begin with one are looked at whole."""
    return (column < _AFTER_BLANKS).ifelse(column.strip() == "", False)


def position(column: Any, first: int) -> Any:
    """A position from 1, where the log counts from `first`; null where it is no integer."""
    shift = 1 - first
    if column.type().is_signed_integer() and not shift:
        return column.cast("int64")
    if column.type().is_integer():
        # Far enough to be a fault, near enough not to overflow.
        bounded = column.clip(upper=_FAR) if column.type().is_unsigned_integer() else column.clip(-_FAR, _FAR)
        return bounded.cast("int64") + shift
    return _whole(column) + shift


def _whole(column: Any) -> Any:
    """A column as integers; null where it is none."""
    value = as_number(column)
    whole = value.try_cast("int64")
    if value.type().is_integer():
        return whole
    return (whole.cast("float64") == value.cast("float64")).ifelse(whole, None)


def as_number(column: Any) -> Any:
    """A column as numbers, as the engine reads text; null where it cannot."""
    return column if column.type().is_numeric() else as_text(column).try_cast("float64")


def as_text(column: Any) -> Any:
    """A column as text, as the engine writes it."""
    return column if column.type().is_string() else column.cast("string")

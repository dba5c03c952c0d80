"""Times of pages: any column of times as values that sort, and the periods that they are cut into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultr.errors import DataError
from ultr.preparation.engine import SPARK, Engine

NUMBER, MOMENT = "float64", "timestamp('UTC')"
"""Types that text is read as."""
_ISO = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?( ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)?$"
)
"""The one way of writing a moment that every engine reads alike."""
_NO_TIMES = "column {name} of {what} holds no times; give a column of timestamps, of dates as 2024-01-31, or of numbers"
_SAMPLE = 1_000
_LEAST_SECONDS = 10**8
"""Numbers below these seconds since 1970, in March 1973, are no times but a count of something else."""
_MIDNIGHT = " 00:00:00"


def time_of(engine: Engine, table: Any, name: str, *, what: str, with_days: bool = False) -> Any:
    """A column of times as numbers, dates or moments, in UTC where no zone is given; null where there is no time.

    Text is read as numbers or as ISO 8601, whichever its first values are. `with_days` turns numbers since 1970 into
    moments, in the unit of `microseconds`; smaller ones, which would all lie before 1973, stay numbers.
    """
    time = _time_of(engine, table, name, what=what)
    if with_days and time.type().is_numeric():
        import ibis

        seconds = (microseconds(engine, table, name, what=what) // 10**6).cast("int64")
        if (engine.row(table.aggregate(last=seconds.max()))["last"] or 0) >= _LEAST_SECONDS:
            return ibis.literal("1970-01-01 00:00:00").cast("timestamp") + seconds.as_interval("s")
    return time


def _time_of(engine: Engine, table: Any, name: str, *, what: str) -> Any:
    column = table[name]
    kind = column.type()
    if kind.is_signed_integer() or kind.is_date() or kind.is_timestamp():
        return column
    if kind.is_numeric():
        return _finite(column.cast(NUMBER))
    if kind.is_string():
        number, moment = _finite(column.strip().try_cast(NUMBER)), _moment(column.strip())
        first = table.select(number=number.notnull(), moment=moment.notnull())
        first = engine.fetch(first.filter(first.number | first.moment).limit(_SAMPLE))
        if first.num_rows:
            return number if sum(first["number"].to_pylist()) > sum(first["moment"].to_pylist()) else moment
    raise DataError(_NO_TIMES.format(name=repr(name), what=what))


def microseconds(engine: Engine, table: Any, name: str, *, what: str) -> Any:
    """A column of times as microseconds since 1970 in UTC, so that those of two tables can be compared.

    Numbers are seconds, or milli-, micro- or nanoseconds where the largest of them would lie beyond the year 5000.
    Text may hold numbers and ISO 8601 side by side.
    """
    column = table[name]
    kind = column.type()
    if kind.is_date():
        return _since_1970(engine, column.cast("timestamp"))
    if kind.is_timestamp():
        return _since_1970(engine, column)
    number, moment = column, None
    if kind.is_string():
        number, moment = column.strip().try_cast(NUMBER), _since_1970(engine, _moment(column.strip()))
    if not number.type().is_numeric():
        raise DataError(_NO_TIMES.format(name=repr(name), what=what))
    number = number if number.type().is_integer() else _finite(number.cast(NUMBER))
    given = {"largest": number.abs().max(), "moments": number.count() if moment is None else moment.count()}
    found = engine.row(table.aggregate(**given))
    if found["largest"] is None and not (moment is not None and found["moments"]):
        raise DataError(_NO_TIMES.format(name=repr(name), what=what))
    units = [(10**17, 10**-3), (10**14, 1), (10**11, 10**3)]
    unit = next((unit for least, unit in units if (found["largest"] or 0) >= least), 10**6)
    # Engines divide in float64, which holds the result, if not the dividend, to less than a half.
    scaled = (number - number % 1000) / 1000 if unit < 1 else number * unit
    whole = scaled.round().cast("int64")
    return whole if moment is None else moment.coalesce(whole)


def written(time: Any) -> Any:
    """Times as text, alike in every engine."""
    return time.cast("string").re_replace(r"[+]00$", "")


def period_begins(engine: Engine, pages: Any, *, count: int) -> list[Any]:
    """The first time of each of at most so many periods with about as many pages, as text unless times are numbers.

    A time belongs to period `floor(count * share)`, where `share` is that of the pages before it and half of its own.
    So pages of one time are in one period, and a period that no time belongs to is left out.
    """
    import ibis

    times = pages.group_by("time").agg(pages=pages.count().cast("int64"))
    up_to = times.pages.sum().over(ibis.window(order_by=times.time, preceding=None, following=0)).cast("int64")
    total = times.pages.sum().over(ibis.window()).cast("int64")
    times = times.mutate(period=(2 * up_to - times.pages) * count // (2 * total))
    first = times.group_by("period").agg(begin=times.time.min())
    begin = first.begin if first.begin.type().is_numeric() else written(first.begin)
    found: list[Any] = engine.fetch(first.select("period", begin=begin).order_by("period"))["begin"].to_pylist()
    return found


def day_begins(engine: Engine, pages: Any) -> list[str]:
    """The first time of each day that has a page."""
    if pages.time.type().is_numeric():
        raise DataError(
            f"the times of {engine.source} are numbers, which have no days; give a column of dates or timestamps, "
            "or a number of --periods"
        )
    days = pages.select(day=pages.time.cast("date").cast("string")).distinct()
    return sorted(f"{day[:10]}{_MIDNIGHT}" for day in engine.fetch(days)["day"].to_pylist())


def period(time: Any, starts: Sequence[Any]) -> Any:
    """The number of the period that each time is in, from 0."""
    import ibis

    later = [(time >= ibis.literal(start).cast(time.type()), number) for number, start in enumerate(starts)][1:]
    return ibis.cases(*reversed(later), else_=0).cast("int64") if later else ibis.literal(0, "int64")


def names(starts: Sequence[Any]) -> tuple[str, ...]:
    """The beginnings of periods as they are shown: days without the time of day where all begin at midnight.

    >>> names(["2024-01-01 00:00:00", "2024-02-01 00:00:00"]), names([1.0, 2.5])
    (('2024-01-01', '2024-02-01'), ('1', '2.5'))
    """
    texts = [str(int(start)) if isinstance(start, float) and start.is_integer() else str(start) for start in starts]
    if all(text.endswith(_MIDNIGHT) for text in texts):
        return tuple(text.removesuffix(_MIDNIGHT) for text in texts)
    return tuple(texts)


def _finite(number: Any) -> Any:
    return (number.notnull() & ~number.isnan() & ~number.isinf()).ifelse(number, None)


def _moment(text: Any) -> Any:
    return text.re_search(_ISO).ifelse(text.try_cast(MOMENT), None)


def _since_1970(engine: Engine, moment: Any) -> Any:
    if engine.name == SPARK:
        # Ibis cannot ask Spark for a fraction of a second, which text shows without zeros at its end.
        fraction = written(moment).re_extract(r"[.]([0-9]{1,6})", 1).rpad(6, "0")
    else:
        fraction = moment.microsecond()
    # Engines disagree on whether the seconds since 1970 have a fraction.
    return moment.truncate("s").epoch_seconds().cast("int64") * 10**6 + fraction.cast("int64")

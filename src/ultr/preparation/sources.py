"""The places of a log: files of several formats, a table of a database, or a frame in memory."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultr import checks
from ultr.data.named_features import explained_frame
from ultr.datasets.delimited import PACKED, TABS, delimiter, ending, first_line
from ultr.errors import DataError, OptionError, UltrWarning
from ultr.preparation.engine import DUCKDB, Engine
from ultr.preparation.json_lines import read_json
from ultr.preparation.queries import attach, name_of_query, run_query
from ultr.preparation.remote import has_table, remote_table
from ultr.preparation.stacking import stacked

if TYPE_CHECKING:
    import pyarrow

PARQUET, TEXT, JSON = "parquet", "csv", "json"
FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    **dict.fromkeys((".csv", *TABS), TEXT),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), JSON),
}
_SQL = "sql:"
_DATABASE = "duckdb:"
_ROW_NUMBERS = re.compile(r"__index_level_\d+__")
"""What Arrow calls an index of pandas that has no name."""
_WHAT_OF_IT = re.compile(r"(?P<path>.*?)[?](?P<what>sql|table)=(?P<value>.*)", re.DOTALL)


def name_of(log: object) -> str:
    """Name of a log in a message."""
    if not isinstance(log, str | Path):
        return f"the {type(log).__module__.partition('.')[0]} frame"
    text = str(log)
    if text.startswith(_SQL):
        return name_of_query(text.removeprefix(_SQL))
    asked = _WHAT_OF_IT.fullmatch(text.removeprefix(_DATABASE)) if text.startswith(_DATABASE) else None
    return f"{name_of_query(asked['value'])} of {asked['path']}" if asked and asked["what"] == "sql" else text


def is_columnar(log: object) -> bool:
    """True for what an engine reads column by column: Parquet files, tables of a database, frames."""
    if not isinstance(log, str | Path) or "?table=" in str(log):
        return True
    text = str(log)
    if text.startswith((_SQL, _DATABASE)) or "://" in text:
        return False
    return Path(text).exists() and _format(files_of(text)[0]) == PARQUET


def open_table(engine: Engine, log: object) -> Any:
    """A log, or a table of features, as an Ibis table of an engine; the numbers of pandas' rows are no column of it."""
    table = _opened(engine, log)
    return table.drop(*(name for name in table.columns if _ROW_NUMBERS.fullmatch(name)))


def _opened(engine: Engine, log: object) -> Any:
    if not isinstance(log, str | Path):
        return _frame(log)
    text = str(log)
    if text.startswith(_SQL):
        return run_query(engine, text.removeprefix(_SQL))
    if text.startswith(_DATABASE):
        return _database(engine, text)
    if "://" in text:
        raise OptionError(f"{text} is not a file of this machine; name a table and give the database by --engine")
    if engine.remote is not None and (has_table(engine, text) or not (_format(Path(text)) or Path(text).exists())):
        return remote_table(engine, text)
    return _files(engine, files_of(text))


def tables_of(engine: Engine, log: object, names: Sequence[str]) -> list[Any]:
    """Several tables by name out of one place: a folder with files for each, of whatever formats, or a database."""
    if not isinstance(log, str | Path):
        raise OptionError(f"give the folder or the database that holds {' and '.join(names)}, not a frame")
    text = str(log)
    if text.startswith(_DATABASE):
        return [_database(engine, f"{text}?table={name}") for name in names]
    if engine.remote is not None and not Path(text).is_dir():
        return [remote_table(engine, f"{text}.{name}") for name in names]
    tables = []
    for name in names:
        found = sorted(path for path in Path(text).expanduser().glob(f"{name}*") if path.is_dir() or _format(path))
        if not found:
            raise DataError(f"{text} has no {name}; give a folder with {' and '.join(f'{n}.jsonl' for n in names)}")
        parts = _parts(engine, [file for path in found for file in files_of(str(path))])
        tables.append(stacked([table for table, _ in parts]))
    return tables


def _files(engine: Engine, files: list[Path]) -> Any:
    """Files of a log as a table of the columns that all of them have."""
    parts = _parts(engine, files)
    everywhere = set.intersection(*(set(table.columns) for table, _ in parts))
    named = {name for table, _ in parts for name in table.columns}
    lacking = {name: file for table, file in parts for name in named - set(table.columns)}
    if lacking:
        told = ", ".join(f"{name} (not in {file.name})" for name, file in sorted(lacking.items())[:5])
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        warnings.warn(f"columns that not all files have are left out: {told}{more}", UltrWarning, stacklevel=2)
    return stacked([table.select(*(name for name in table.columns if name in everywhere)) for table, _ in parts])


def _parts(engine: Engine, files: list[Path]) -> list[tuple[Any, Path]]:
    """Tables of files that are alike, each with its first file; engines take columns and types of one file for all."""
    alike: dict[str, list[Path]] = {}
    for file in files:
        alike.setdefault(_kind(file), []).append(file)
    return [(_table(engine, alike[kind]), alike[kind][0]) for kind in sorted(alike)]


def _kind(file: Path) -> str:
    """The format of a file, and what its own columns are; JSON has no columns before all of it is read."""
    if _format(file) == PARQUET:
        return f"{PARQUET} {_schema(file).remove_metadata()}"
    _check_whole(file)
    if _format(file) == TEXT:
        header = first_line(file)
        separator = delimiter(file, header)
        return f"{TEXT} {separator} {sorted(next(csv.reader([header], delimiter=separator), []))}"
    return str(_format(file))


def files_of(place: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, all of one format."""
    if not place:
        raise OptionError("the log is an empty text; give a file, a folder or a pattern (. for the current folder)")
    path = Path(place).expanduser()
    if path.is_file():
        if _format(path) is None:
            known = ", ".join(FORMATS)
            raise DataError(f"{path} has no ending that says its format; rename it to one of {known} (or with .gz)")
        return [path]
    inside = path.rglob("*") if path.is_dir() else _matching(path)
    found = sorted(file for file in inside if file.is_file() and _format(file) and file.name[0] not in "._")
    if not found:
        what = f"{place} holds" if path.is_dir() else f"there is no file {place}, and it fits as a pattern"
        raise DataError(f"{what} no file of a format that is read ({', '.join(FORMATS)}); check the path")
    formats = sorted({str(_format(file)) for file in found})
    if len(formats) > 1:
        raise DataError(
            f"{place} holds files of several formats ({', '.join(formats)}); give a pattern such as *.parquet"
        )
    return found


def _matching(pattern: Path) -> list[Path]:
    if not any(letter in str(pattern) for letter in "*?["):
        return []
    if any("**" in part and part != "**" for part in pattern.parts):
        raise OptionError(f"{pattern} is no pattern: ** stands for folders, alone between slashes as in logs/**/*.csv")
    root = Path(pattern.anchor) if pattern.is_absolute() else Path()
    return list(root.glob(str(pattern.relative_to(pattern.anchor) if pattern.is_absolute() else pattern)))


def _format(path: Path) -> str | None:
    return FORMATS.get(ending(path))


def _table(engine: Engine, files: list[Path]) -> Any:
    """Files of one format and the same columns as a table."""
    # DuckDB takes every name for a pattern.
    names = [re.sub(r"([*?\[])", r"[\1]", str(file)) if engine.name == DUCKDB else str(file) for file in files]
    kind = _format(files[0])
    if kind == PARQUET:
        with engine.explained():
            return engine.connection.read_parquet(names if engine.name == DUCKDB or len(names) > 1 else names[0])
    if kind == TEXT:
        return _texts(engine, files, names)
    return read_json(engine, files, names)


def _texts(engine: Engine, files: list[Path], names: list[str]) -> Any:
    """Files of separated values, with everything as text: a bit string of clicks is no number."""
    header = first_line(files[0])
    if not header.strip():
        raise DataError(f"{files[0]} is empty; its first line must hold the names of the columns")
    if "\0" in header:
        raise DataError(f"{files[0]} is not a text file in UTF-8, perhaps in UTF-16; write it as UTF-8")
    separator = delimiter(files[0], header)
    if engine.name != DUCKDB:
        options = {"header": True, "sep": separator, "inferSchema": False, "escape": '"', "mode": "FAILFAST"}
        with engine.explained():
            return engine.connection.read_csv(names, **options)
    # Without `skip` and `comment`, lines that fit the others badly or start with # are left out without a word.
    form = {"header": True, "delim": separator, "quote": '"', "escape": '"', "skip": 0, "comment": ""}
    try:
        return engine.connection.read_csv(names, all_varchar=True, **form)
    except Exception:
        with engine.explained():
            _read_in_vain(engine, files[0], names[0], form | {"auto_detect": False})
            raise


def _read_in_vain(engine: Engine, file: Path, name: str, form: dict[str, Any]) -> None:
    """Raise what is wrong with the lines of a file, where guessing its form only says that it cannot be guessed."""
    header = next(csv.reader([first_line(file)], delimiter=form["delim"]))
    columns = {f"{number} {column}": "string" for number, column in enumerate(header)}
    engine.connection.read_csv([name], columns=columns, **form).count().execute()


def _schema(file: Path) -> pyarrow.Schema:
    """The columns of a Parquet file; what is no whole one is a `DataError`."""
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.read_schema(file)
    except PermissionError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise DataError(
            f"{file} is not a whole Parquet file, it was perhaps not written to its end; write it again or leave it out"
        ) from error


def _check_whole(file: Path) -> None:
    """Raise a `DataError` for a packed file that was cut off, which engines read as far as it goes."""
    packed = PACKED.get(file.suffix.lower())
    if packed is None:
        return
    import pyarrow

    try:
        with pyarrow.input_stream(str(file), compression=packed) as stream:
            while stream.read(2**20):
                pass
    except PermissionError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file} is damaged ({error}); write it again or leave it out") from error


def _database(engine: Engine, text: str) -> Any:
    """A table or a query of a DuckDB file, which a query knows as `log`; a second file is `features`."""
    place = text.removeprefix(_DATABASE)
    asked = _WHAT_OF_IT.fullmatch(place)
    path = str(Path(asked["path"] if asked else place.partition("?")[0]).expanduser())
    if engine.name != DUCKDB:
        raise OptionError(f"{text} needs the engine duckdb, not {engine.name}")
    if not Path(path).is_file():
        raise DataError(f"there is no DuckDB file {path}; give duckdb:FILE?table=NAME or duckdb:FILE?sql=SELECT ...")
    name = engine.attached.setdefault(path, "features" if engine.attached else "log")
    if asked and asked["what"] == "sql":
        return run_query(engine, asked["value"], databases={name: path})
    with engine.explained():
        if name not in engine.connection.list_catalogs():
            attach(engine.connection.con, path, name)
        tables = engine.connection.list_tables(database=(name, "main"))
        if asked is None:
            raise OptionError(f"{text} must end in ?table=NAME or ?sql=SELECT ...; its tables: {', '.join(tables)}")
        checks.one_of(f"the table of {path}", asked["value"], tables)
        return engine.connection.table(asked["value"], database=(name, "main"))


def _frame(frame: object) -> Any:
    import ibis
    import narwhals
    import pyarrow

    wanted = "a log must be a path or a frame (pandas, polars, Arrow)"
    with explained_frame(frame, what=name_of(frame), wanted=wanted):
        known = frame if isinstance(frame, pyarrow.Table) else narwhals.from_native(frame)  # type: ignore[call-overload]
        if isinstance(known, narwhals.LazyFrame):
            known = known.collect()
        table = known if isinstance(known, pyarrow.Table) else known.to_arrow()
    # DuckDB does not tell upper case from lower case in names, and would take the first.
    twice = [name for name, count in Counter(map(str.casefold, table.column_names)).items() if count > 1]
    if twice:
        raise DataError(
            f"{name_of(frame)} has several columns called {twice[0]!r}, upper and lower case being the same; rename one"
        )
    return ibis.memtable(table)

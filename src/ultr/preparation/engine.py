"""The engines that do the work: DuckDB inside the process, which may read from another database, or Spark."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ultr.datasets.delimited import not_utf8
from ultr.errors import DataError, MissingExtraError, OptionError, UltrError, how_to_install

DUCKDB = "duckdb"
SPARK = "spark"
CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
"""Settings of a DuckDB that fetches and loads nothing, and takes no variable of Python for a table."""
_SIZE = re.compile(r"\s*([1-9][0-9]{0,5}(?:\.[0-9]+)?)\s*([MG]i?B)\s*", re.IGNORECASE)


@dataclass
class Engine:
    """A connection, and a folder for what it has to keep on the way."""

    name: str
    connection: Any
    work: Path
    memory: str = "0MB"
    source: str = "the log"
    """Name of what is being read, for messages."""
    attached: dict[str, str] = field(default_factory=dict)
    """The databases that are read, by path, and what a query calls them."""
    named: int = 0
    """Number of names that were made up."""
    remote: Any = None
    """Connection to another database, whose tables are brought here."""

    def keep(self, expression: Any) -> Any:
        """The table that an expression gives, computed once and kept on disk or in the back end."""
        name = self.fresh("kept")
        with self.explained():
            if self.name == SPARK:
                path = str(self.work / name)
                self.connection.to_parquet(expression, path)
                return self.connection.read_parquet(path)
            return self.connection.create_table(name, expression, temp=True)

    def named_view(self, expression: Any) -> Any:
        """The same expression under a name, so that DuckDB, not Ibis, puts it into every query that uses it."""
        if self.name == SPARK:
            return expression
        with self.explained():
            return self.connection.create_view(self.fresh("view"), expression)

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        self.named += 1
        return f"{name}_{self.named}"

    def fetch(self, expression: Any) -> Any:
        """The result as an Arrow table in memory; only for what is small or collapsed."""
        with self.explained():
            return self.connection.to_pyarrow(expression)

    def make_room(self) -> None:
        """Keep less in memory from here on, since Python needs some for the collapsed log."""
        if self.name == DUCKDB and (less := _bytes(self.memory) // 4) > 200 * 10**6:
            with self.explained():
                self.connection.raw_sql(f"SET memory_limit = '{less}B'")

    def half_of_memory(self) -> str:
        """Memory for a second DuckDB beside this one."""
        return f"{_bytes(self.memory) // 2}B"

    def row(self, expression: Any) -> dict[str, Any]:
        """The only row of a result."""
        rows: list[dict[str, Any]] = self.fetch(expression).to_pylist()
        return rows[0]

    def counts(self, expression: Any) -> dict[str, int]:
        """The only row of a result that has counts and sums alone; a sum of nothing, which is null, is 0."""
        return {name: int(value or 0) for name, value in self.row(expression).items()}

    def count(self, expression: Any) -> int:
        """The number of rows of a result."""
        return self.counts(expression.count().name("count").as_table())["count"]

    def batches(self, expression: Any) -> Iterator[Any]:
        """The result as Arrow record batches, one after the other."""
        with self.explained():
            yield from self.connection.to_pyarrow_batches(expression, chunk_size=100_000)

    @contextmanager
    def explained(self, source: str | None = None) -> Iterator[None]:
        """Turn what the back end complains about into one sentence."""
        try:
            yield
        except UltrError:
            raise
        except Exception as error:
            text = _first_line(error)
            if text.lower().endswith("query interrupted"):
                # This is how DuckDB passes Ctrl-C on.
                raise KeyboardInterrupt from error
            if not _is_of_a_back_end(error):
                raise
            if (said := _on_encoding(error, source or self.source)) is not None:
                raise DataError(said) from error
            name = self.name if self.remote is None else f"{self.remote.name} or {self.name}"
            raise DataError(_in_words(text, source or self.source, name)) from error


@contextmanager
def connect(engine: str, work: Path, *, memory: str) -> Iterator[Engine]:
    """An engine by its name or by a connection string of Ibis."""
    _need("ibis", "prepare")
    limit = check_memory(memory)
    if engine == SPARK:
        yield from _spark(work, limit)
    elif engine == DUCKDB or "://" in str(engine):
        with _without_question_mark(work) as plain:
            yield from _duckdb(plain, limit) if engine == DUCKDB else _beside(engine, plain, limit)
    else:
        raise OptionError(
            f"engine must be duckdb, spark or the connection string of an Ibis back end such as "
            f"postgres://user@host/database, got {engine!r}"
        )


def check_memory(text: str) -> str:
    """A size such as 4GB or 500MB, or an `OptionError`."""
    if not _SIZE.fullmatch(str(text)):
        raise OptionError(f"memory must be a size such as 4GB or 500MB, got {text!r}")
    return text.strip()


def _bytes(memory: str) -> int:
    found = _SIZE.fullmatch(memory)
    assert found is not None, "the size was checked with the other options"
    return int(float(found[1]) * {"MB": 10**6, "GB": 10**9, "MIB": 2**20, "GIB": 2**30}[found[2].upper()])


@contextmanager
def _without_question_mark(folder: Path) -> Iterator[Path]:
    """A folder whose path DuckDB can work in: it writes its log ahead beside `what`, not beside `what?`."""
    if "?" not in str(folder.resolve()):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="ultr-") as other:
        yield Path(other)


def _duckdb(work: Path, memory: str) -> Iterator[Engine]:
    _need("duckdb", "prepare")
    import ibis

    connection = ibis.duckdb.connect(
        work / "work.duckdb",
        memory_limit=memory,
        temp_directory=str(work / "spilled"),
        preserve_insertion_order=False,
        **CLOSED,
    )
    connection.raw_sql("SET enable_progress_bar = false")
    try:
        yield Engine(DUCKDB, connection, work, memory)
    finally:
        connection.disconnect()


def _spark(work: Path, memory: str) -> Iterator[Engine]:
    _need("pyspark", "spark")
    import ibis
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    before = SparkSession.getActiveSession()
    try:
        session = before or (
            SparkSession.builder.appName("ultr prepare")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", re.sub(r"\s*([MG])i?B$", r"\1", memory, flags=re.IGNORECASE).lower())
            .config("spark.sql.warehouse.dir", str(work / "warehouse"))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", str(4 * (os.cpu_count() or 1)))
            .getOrCreate()
        )
    except (PySparkException, OSError) as error:
        raise OptionError(f"Spark does not start ({_first_line(error)}); it needs Java 17 or newer") from error
    try:
        yield Engine(SPARK, ibis.pyspark.connect(session), work)
    finally:
        if before is None:
            session.stop()


def _beside(url: str, work: Path, memory: str) -> Iterator[Engine]:
    """DuckDB, with a connection to another database by the side."""
    import ibis

    try:
        connection = ibis.connect(url)
    except ModuleNotFoundError as error:
        scheme = url.partition("://")[0]
        known = scheme.startswith("postgres")
        command = how_to_install("postgres") if known else f"pip install 'ibis-framework[{scheme}]'"
        raise MissingExtraError(f"the engine {scheme} needs {error.name}; install it with: {command}") from error
    except Exception as error:
        raise OptionError(f"cannot connect to the engine {url.partition('://')[0]}: {_first_line(error)}") from error
    try:
        for engine in _duckdb(work, memory):
            engine.remote = connection
            yield engine
    finally:
        connection.disconnect()


def _need(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise MissingExtraError(f"preparing a log needs {module}; install it with: {how_to_install(extra)}")


def _is_of_a_back_end(error: Exception) -> bool:
    roots = {part.__module__.partition(".")[0] for part in type(error).__mro__}
    return bool(roots & {"duckdb", "_duckdb", "ibis", "pyspark", "py4j", "pyarrow", "sqlglot", "psycopg"})


def _in_words(text: str, what: str, engine: str) -> str:
    """One sentence on what a back end complains about, and what to do."""
    said = text.lower()
    if "no space left" in said or "failed to offload" in said:
        return f"the disk is full ({text}); make space or give another --out"
    if "out of memory" in said:
        return f"the memory is not enough ({text}); give more by --memory"
    if "requires the extension" in said or ("exists in the" in said and "extension" in said):
        return (
            f"{what} needs an extension of DuckDB ({text}); none is loaded, and nothing is fetched from a network: "
            "give files of this machine"
        )
    if "conflicting lock" in said:
        return f"{what} is open elsewhere ({text}); close it there or copy it"
    return f"{what} cannot be read by {engine}: {text}; mend or write it again"


def _on_encoding(error: Exception, what: str) -> str | None:
    """A sentence on the file that DuckDB finds is not in UTF-8; None if it complains about something else."""
    text = str(error)
    if "not utf-8 encoded" not in text:
        return None
    line, file = re.search(r"CSV Error on Line: (\d+)", text), re.search(r"^\s*file = (.+)$", text, re.MULTILINE)
    return not_utf8(what if file is None else file[1].strip(), None if line is None else line[1])


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # DuckDB says where a text file is wrong in the first line, and why further down.
    known = ("Expected Number", "Value with unterminated", "Column with name")
    why = [line for line in lines[1:] if line.startswith(known)]
    return ": ".join([*(lines[:1] or [type(error).__name__]), *why[:1]]).rstrip(".;:")[:300]

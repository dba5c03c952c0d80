"""Tables that a command printed, as a small file which pages of documentation are written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from ultr.errors import DataError
from ultr.experiments.store import code_version
from ultr.files import read_json, write_json
from ultr.pages import Table
from ultr.version import __version__

FORMAT = "ultr tables 1"
_LIBRARIES = ("torch", "numpy", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu")


@dataclass(frozen=True)
class StoredTables:
    """Tables of one command, with every number behind them and what they depend on."""

    title: str
    command: str
    """The command that prints them, with FOLDER in the place of what only one machine has."""
    tables: Sequence[Table]
    numbers: Any
    date: str
    code: str
    """The code that decided the numbers, as `code_version` names it."""
    versions: Mapping[str, str]
    """Versions of ultr and of the libraries that are installed beside it."""

    @classmethod
    def now(cls, title: str, command: str, tables: Sequence[Table], numbers: Any) -> StoredTables:
        """Tables that were made today, by the code as it is."""
        libraries = {name: version for name in _LIBRARIES if (version := _version(name))}
        versions = {"ultr": __version__, **libraries}
        return cls(title, command, tables, numbers, str(datetime.now(UTC).date()), code_version(), versions)

    def write(self, path: Path) -> None:
        """Keep them in a JSON file."""
        write_json(path, {"format": FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> StoredTables:
        """The tables of a file."""
        content = read_json(path)
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise DataError(f"{path} holds no tables that this version of ultr reads; run its command again")
        try:
            return cls(**content | {"tables": [Table(**table) for table in content["tables"]]})
        except (KeyError, TypeError) as error:
            raise DataError(f"{path} is damaged ({error}); run its command again") from error

    def as_markdown(self, title: str | None = None) -> str:
        """One table by its title, or all of them each under its own; and below, where they come from."""
        if title is None:
            parts = [f"{table.title[:1].upper()}{table.title[1:]}:\n\n{table.as_markdown()}" for table in self.tables]
        else:
            parts = [table.as_markdown() for table in self.tables if table.title == title]
        if not parts:
            titles = ", ".join(repr(table.title) for table in self.tables)
            raise DataError(f"there is no table {title!r} of `{self.command}`; it has {titles}")
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return "\n".join([*parts, f"*`{self.command}`, {self.date}, {versions}.*\n"])


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

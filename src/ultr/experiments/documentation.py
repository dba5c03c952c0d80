"""Pages of documentation whose tables are written from stored ones.

A page says where a table stands by two comments:

    <!-- table: NAME -->             all tables of `results/NAME.json`, each under its title
    <!-- table: NAME, TITLE -->      the one with this title
    ...
    <!-- end of table -->

All that stands between them is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ultr.errors import DataError
from ultr.experiments.store import code_version
from ultr.experiments.stored_tables import StoredTables
from ultr.files import new_file

RESULTS = "results"
_PLACE = re.compile(
    r"^<!-- table: (?P<name>[\w.-]+)(?:, (?P<title>[^\n]+?))? -->$.*?^<!-- end of table -->$", re.DOTALL | re.MULTILINE
)
_MARK = re.compile(r"^<!-- (?:table: [^\n]*|end of table) -->$", re.MULTILINE)


@dataclass(frozen=True)
class WrittenPage:
    """A page with the tables that are stored for it."""

    page: Path
    text: str
    changed: bool
    missing: tuple[str, ...]
    """Names of tables that nothing is stored of; what the page had there is left."""
    older: tuple[str, ...]
    """Names of tables that other code has made than the present one."""


def written_pages(docs: Path) -> Iterator[WrittenPage]:
    """Every page that has places for tables, with the tables in them."""
    if not (docs / RESULTS).is_dir():
        raise DataError(f"there is no folder {docs / RESULTS}; run this in a checkout of the repository")
    for page in sorted(docs.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if _MARK.search(text):
            yield _written(page, text, docs / RESULTS)


def write_pages(docs: Path) -> list[WrittenPage]:
    """Write the tables into the pages. Nothing is written if any table cannot be."""
    pages = list(written_pages(docs))
    for page in pages:
        if page.changed:
            with new_file(page.page) as draft:
                draft.write_text(page.text, encoding="utf-8")
    return pages


def _written(page: Path, text: str, results: Path) -> WrittenPage:
    if len(_MARK.findall(text)) != 2 * len(_PLACE.findall(text)):
        raise DataError(f"{page}: a table there has no end, or an end no table; close each with <!-- end of table -->")
    missing, older = dict[str, None](), dict[str, None]()

    def table(place: re.Match[str]) -> str:
        name, title = place["name"], place["title"]
        file = results / f"{name}.json"
        if not file.exists():
            missing[name] = None
            return place[0]
        stored = StoredTables.read(file)
        if stored.code != code_version():
            older[name] = None
        mark = place[0].partition("\n")[0]
        return f"{mark}\n\n{stored.as_markdown(title)}\n<!-- end of table -->"

    after = _PLACE.sub(table, text)
    return WrittenPage(page, after, after != text, tuple(missing), tuple(older))

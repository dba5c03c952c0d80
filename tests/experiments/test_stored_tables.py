"""Tables that are stored, and the pages that are written from them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.console import ultr

from ultr.errors import DataError
from ultr.experiments.documentation import write_pages, written_pages
from ultr.experiments.store import code_version
from ultr.experiments.stored_tables import StoredTables
from ultr.pages import Table

DOCS = Path(__file__).parents[2] / "docs"
TABLES = (
    Table("trust clicks", [{"ranker": "Click", "nDCG@10": ".718"}, {"ranker": "DLA", "nDCG@10": ".751"}]),
    Table("real clicks", [{"ranker": "Click", "nDCG@10": ".612"}], bold={"nDCG@10": "Click"}),
)
PAGE = """# Page

Before.

<!-- table: small, real clicks -->
| ranker | nDCG@10 |
|---|---|
| Click | .600 |
<!-- end of table -->

Between .600.

<!-- table: small -->
<!-- end of table -->

<!-- table: lost -->
| old |
|---|
| .123 |
<!-- end of table -->

After.
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "results").mkdir(parents=True)
    StoredTables.now("Small", "ultr reproduce small", TABLES, {"mean": 0.612}).write(
        tmp_path / "docs" / "results" / "small.json"
    )
    (tmp_path / "docs" / "page.md").write_text(PAGE)
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    return tmp_path / "docs"


def _stored(docs: Path, **changes: object) -> None:
    file = docs / "results" / "small.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_stored_tables_come_back_with_command_date_code_and_versions(docs: Path) -> None:
    stored = StoredTables.read(docs / "results" / "small.json")
    assert list(stored.tables) == list(TABLES)
    assert (stored.command, stored.numbers) == ("ultr reproduce small", {"mean": 0.612})
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", stored.date)
    assert stored.code == code_version()
    assert {"ultr", "torch", "numpy"} <= set(stored.versions)


def test_tables_are_written_between_the_marks_and_nothing_else_is_changed(docs: Path) -> None:
    (page,) = write_pages(docs)
    text = (docs / "page.md").read_text()
    assert page.changed
    assert text == page.text
    first, second, lost = re.findall(r"<!-- table: .*? -->\n(.*?)<!-- end of table -->", text, re.DOTALL)
    assert "| Click | .612 |" in first
    assert ".600" not in first
    assert ".718" not in first
    assert "*`ultr reproduce small`, 20" in first
    assert "Trust clicks:\n\n| ranker" in second
    assert "| DLA | .751 |" in second
    assert "Real clicks:\n\n| ranker" in second
    assert second.count("`ultr reproduce small`") == 1
    assert lost == "| old |\n|---|\n| .123 |\n"

    def outside(page: str) -> str:
        return re.sub(r" -->\n.*?<!-- end", " --><!-- end", page, flags=re.DOTALL)

    assert outside(text) == outside(PAGE)
    assert (docs / "other.md").read_text() == "# Other\n"


def test_pages_that_are_written_stay_as_they_are(docs: Path) -> None:
    write_pages(docs)
    time = (docs / "page.md").stat().st_mtime_ns
    assert not any(page.changed for page in write_pages(docs))
    assert (docs / "page.md").stat().st_mtime_ns == time


def test_tables_that_are_not_stored_or_of_other_code_are_named(docs: Path) -> None:
    (page,) = written_pages(docs)
    assert (page.missing, page.older) == (("lost",), ())
    _stored(docs, code="another")
    (page,) = written_pages(docs)
    assert page.older == ("small",)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("small, real clicks", "small, no clicks", "no table 'no clicks' .* it has 'trust clicks', 'real clicks'"),
        ("<!-- end of table -->\n\nAfter", "After", "page.md: a table there has no end"),
        ("\nBefore.", "\n<!-- end of table -->\n", "page.md: a table there has no end"),
    ],
)
def test_a_page_with_a_place_that_cannot_be_filled_is_refused(docs: Path, before: str, after: str, fault: str) -> None:
    (docs / "page.md").write_text(PAGE.replace(before, after, 1))
    (docs / "a.md").write_text(PAGE)
    with pytest.raises(DataError, match=fault):
        write_pages(docs)
    assert (docs / "a.md").read_text() == PAGE, "nothing is written in part"


def test_a_file_that_holds_no_tables_is_refused(docs: Path) -> None:
    _stored(docs, format="ultr model 1")
    with pytest.raises(DataError, match=r"small\.json holds no tables .* run its command again"):
        write_pages(docs)
    _stored(docs, format="ultr tables 1", tables=[{"rows": []}])
    with pytest.raises(DataError, match=r"small\.json is damaged"):
        write_pages(docs)


def test_the_command_says_what_it_wrote_and_what_is_left(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(docs.parent)
    printed = ultr("reproduce", "docs").stdout
    assert "docs/page.md: written\n  left as they are, since nothing is stored of them: lost\n" in printed
    assert ".612" in (docs / "page.md").read_text()
    assert "docs/page.md: as it was" in ultr("reproduce", "docs").stdout
    (page,) = json.loads(ultr("reproduce", "docs", "--json").stdout)
    assert page == {"page": "docs/page.md", "changed": False, "missing": ["lost"], "older": []}
    assert "takes none of its options" in ultr("reproduce", "docs", "--seeds", "0", expect=2).stderr
    assert "takes none of its options" in ultr("reproduce", "docs", "--out", "elsewhere", expect=2).stderr
    monkeypatch.chdir(docs)
    assert "in a checkout" in ultr("reproduce", "docs", expect=2).stderr


def test_the_pages_of_the_documentation_have_the_stored_numbers() -> None:
    pages = list(written_pages(DOCS))
    assert [page.page.name for page in pages if page.changed] == [], "run: ultr reproduce docs"
    assert [name for page in pages for name in page.missing] == [], "a table is stored before a page asks for it"
    shown = {name for page in pages for name in re.findall(r"<!-- table: ([\w.-]+)", page.text)}
    files = list((DOCS / "results").glob("*"))
    assert {file.name for file in files} <= {f"{name}.json" for name in shown}
    for file in files:
        assert not re.search(r"(^|[\s=])/", StoredTables.read(file).command), "a folder of one machine"

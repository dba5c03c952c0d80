from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.pages.browser import chromium
from typer.core import TyperGroup
from typer.main import get_command

import ultr
from ultr.cli import app

ROOT = Path(__file__).parents[1]
FETCHED = {"src", "srcset", "data", "poster", "xlink:href"}
"""Attributes whose address a browser fetches by itself. `href` is one of them only in <link>."""
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//", flags=re.IGNORECASE)


class Fetches(HTMLParser):
    """The addresses that a page makes the browser fetch, and its pictures without words."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.wordless: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.addresses += [value for name, value in given.items() if name in FETCHED]
        if tag == "link":
            self.addresses.append(given.get("href", ""))
        if "id" in given:
            self.ids.add(given["id"])
        words = given.get("alt") if tag == "img" else given.get("aria-label")
        if (tag == "img" or given.get("role") == "img") and not words:
            self.wordless.append(str(given))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert not built.returncode, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Fetches]:
    found = {}
    for path in site.rglob("*.html"):
        found[path.relative_to(site).as_posix()] = fetches = Fetches()
        fetches.feed(path.read_text())
    return found


def test_nothing_is_fetched_from_elsewhere(site: Path, pages: dict[str, Fetches]) -> None:
    assert len(pages) > 30
    for name, page in pages.items():
        assert not [address for address in page.addresses if ELSEWHERE.match(address)], name
    for path in site.rglob("*.css"):
        imported = re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]*)", path.read_text())
        assert not imported, path


def test_no_page_asks_for_a_script_that_the_theme_would_fetch(site: Path) -> None:
    # The theme fetches mermaid for diagrams, and figures from GitHub where there is a repository.
    for path in site.rglob("*.html"):
        assert 'class="mermaid"' not in path.read_text(), path
    assert "repo_url" not in (ROOT / "mkdocs.yml").read_text()


def test_every_picture_and_formula_has_words(site: Path, pages: dict[str, Fetches]) -> None:
    for name, page in pages.items():
        assert not page.wordless, name
    for path in site.rglob("*.html"):
        text = path.read_text()
        assert "arithmatex" not in text, f"{path} has a formula that was not drawn"
        assert "<!-- picture:" not in text, f"{path} lacks a picture"


def test_the_concepts_have_pictures(site: Path) -> None:
    for page in (site / "concepts").glob("*.html"):
        assert '<figure class="picture"><svg' in page.read_text(), page


@pytest.mark.parametrize("width", [1200, 390])
def test_search_finds_pages_that_are_opened_as_files(site: Path, width: int) -> None:
    asked: list[str] = []
    with chromium() as browser:
        tab = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        tab.set_default_timeout(120_000)
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((site / "methods" / "dla.html").as_uri())
        if width < 960:
            tab.locator("label.md-header__button[for=__search]").click()
            tab.wait_for_function("document.activeElement.className.includes('md-search__input')")
        box = tab.locator("input.md-search__input")
        box.click()
        box.press_sequentially("infinite scroll")
        first = tab.locator(".md-search-result__link").first
        first.wait_for()
        assert "pagination.html" in str(first.get_attribute("href"))
        first.click()
        tab.wait_for_url("**/pagination.html*")
        assert tab.locator("h1").first.is_visible()
    assert asked
    assert {address.partition("://")[0] for address in asked} == {"file"}


def test_every_public_name_is_in_the_reference(pages: dict[str, Fetches]) -> None:
    known = set().union(*(page.ids for name, page in pages.items() if name.startswith("reference/")))
    missing = [name for name in ultr.__all__ if name != "__version__" and f"ultr.{name}" not in known]
    assert not missing


def test_every_option_is_in_the_reference_as_the_command_takes_it(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text()
    parts = dict(part.split("</h2>", 1) for part in text.split("<h2 ")[1:])
    told = {title.partition(">")[2].partition("<")[0]: body for title, body in parts.items()}
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    assert set(told) == {f"ultr {name}" for name in group.commands}
    for name, command in group.commands.items():
        asked = [word for parameter in command.params for word in parameter.opts if word.startswith("--")]
        assert asked
        missing = [word for word in asked if not re.search(f"<code>{word}[ <]", told[f"ultr {name}"])]
        assert not missing, name

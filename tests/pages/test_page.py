from __future__ import annotations

import re
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ultr.pages import Drawing, Page, Section, Table, Verdict, blank, notebook
from ultr.pages.drawing import tip

UNCLOSED = {"meta", "link", "br", "img", "input", "hr"}


class Elements(HTMLParser):
    """Every element of a page; fails where one is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in UNCLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawing() -> Drawing:
    figure, axes = blank(4, 2)
    axes.plot([1, 2], [3, 4], color="#3b6fb6")
    axes.fill_between([1, 2], [3, 4], [4, 5], hatch="/")
    return Drawing(figure, 'Two points, "one" < two')


def page() -> Page:
    table = Table("counts", [{"name": "<b>", "number": "1,000"}, {"name": "b", "number": "20"}])
    folded = Table("more", [{"": "x", "text": "one & two"}], folded=True)
    section = Section(
        "First?",
        "Yes & no.\n\nBoth.",
        Verdict.GOOD,
        "Do it.",
        tables=[table, folded],
        figures={"one": drawing, "two": drawing, "none": lambda: None},
        parts=[Section("Part?", "In part.", Verdict.BAD, word="no", folded=True, figures={"three": drawing})],
    )
    return Page("A <title>", "All in all.", [section, Section("Second?", folded=True)], ["One.", "Two."], "the end")


def test_a_page_is_well_formed_and_asks_for_nothing_outside() -> None:
    text = page().html()
    elements = Elements(text)
    assert elements.open == []
    for tag, attributes in elements.found:
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name) or "#"
            assert target[0] == "#" or target == "data:,", f"{tag} asks for {target}"
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_what_a_user_wrote_cannot_become_markup() -> None:
    text = page().html()
    assert "A &lt;title&gt;" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


def test_every_id_is_there_once_and_every_reference_has_one() -> None:
    text = page().html()
    ids = [attributes["id"] for _, attributes in Elements(text).found if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = re.findall(r'(?:url\(|href=")#([^)"]+)', text)
    assert wanted
    assert set(wanted) <= set(ids)


def test_a_drawing_has_a_text_alternative_and_takes_the_colour_of_the_page() -> None:
    svg = drawing().svg("one")
    (tag, attributes), *_ = Elements(svg).found
    assert tag == "svg"
    assert attributes["role"] == "img"
    assert attributes["aria-label"] == 'Two points, "one" < two'
    assert attributes["viewbox"] == "0 0 288 144"
    assert "currentColor" in svg
    assert "#000000" not in svg
    assert "#3b6fb6" in svg


def test_a_pointer_on_a_point_reads_its_value() -> None:
    figure, axes = blank(4, 2)
    tip(axes, 1, 2, 'A & "B", position 1: 2.000')
    tip(axes, float("nan"), 2, "nothing")
    svg = Drawing(figure, "points").svg("one")
    assert '<title>A &amp; "B", position 1: 2.000</title>' in svg
    assert "nothing" not in svg
    Elements(svg)


def test_a_notebook_gets_the_sections_without_script_and_with_ids_of_their_own() -> None:
    one, other = page().fragment(), Page("another", "", page().sections).fragment()
    assert "<script" not in one
    assert "<html" not in one
    assert "First?" in one
    assert Elements(one).open == []
    ids = [{attributes["id"] for _, attributes in Elements(text).found if "id" in attributes} for text in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_a_notebook_without_the_libraries_for_pages_shows_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook(page()) == page().fragment()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert notebook(page()) is None


def test_dollars_that_a_user_wrote_are_not_mathematics() -> None:
    figure, axes = blank(4, 2)
    axes.set_title("$5 or $6_{")
    assert ">$5 or $6_{</text>" in Drawing(figure, "prices").svg("one")


def test_only_a_page_of_several_sections_lists_them() -> None:
    assert "<nav" in page().html()
    assert "<nav" not in Page("A title", "", [Section("A title")]).html()


def test_options_of_commands_stay_on_one_line_and_what_is_around_them_stays_text() -> None:
    section = Section("q", commands=["ultr x --hold-out hash a--b"])
    text = Page("--title", "", [section], ["Use --log <b>."]).html()
    assert '<li>Use <span class="option">--log</span> &lt;b&gt;.</li>' in text
    assert 'ultr x <span class="option">--hold-out</span> hash a--b' in text
    assert "<title>--title</title>" in text


def test_the_same_page_is_the_same_text() -> None:
    assert page().html() == page().html()


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    table = Table("", [{"a": "1.5", "b": "x", "c": ""}, {"a": "-2", "b": "1", "c": "3"}])
    assert [table.is_numeric(column) for column in table.columns] == [True, False, True]


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    monkeypatch.setattr(Drawing, "svg", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        page().write(path)
    assert path.read_text() == "before"
    monkeypatch.undo()
    page().write(path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_browser_may_run_the_script_of_the_page_and_nothing_else() -> None:
    text = page().html()
    policies = [
        attributes["content"] or ""
        for tag, attributes in Elements(text).found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    rules = dict(rule.strip().split(" ", 1) for rule in policies[0].split(";"))
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert rules.pop("script-src") == " ".join(
        f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


@pytest.mark.filterwarnings("ignore:Glyph")
def test_what_would_turn_text_around_is_made_visible() -> None:
    figure, axes = blank(4, 2, xlabel="title \u202eevil")
    axes.set_xticks([0, 1], ["tick \u2066", "\x1b[2J"])
    table = Table("table \u200f", [{"column \u202e": "cell \x9b31m"}])
    section = Section(
        "section \u202e", figures={"caption \u202e": lambda: Drawing(figure, "description \u202e")}, tables=[table]
    )
    text = Page("page \u202e", "summary \u202e", [section]).html()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    for shown in (
        r"title \u202eevil",
        r"tick \u2066",
        r"\x1b[2J",
        r"cell \x9b31m",
        r"description \u202e",
        r"caption \u202e",
    ):
        assert shown in text

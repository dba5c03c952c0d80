"""What every page must be in a real browser, be it the doctor's or a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from playwright.sync_api import Page as Tab
from tests.diagnosis.logs import thorough
from tests.pages.browser import chromium
from tests.pages.every_figure import every_figure
from tests.pages.test_page import page as plain
from tests.reporting.runs import by_clicks, by_labels, compared

from ultr.diagnosis import diagnose
from ultr.pages import Page, Section, Table

PHONE = {"width": 360, "height": 740}
PAPER = {"width": 718, "height": 1_000}
"""The width of A4 without margins of a centimetre, in pixels."""
PAGES: dict[str, Callable[[], Page]] = {
    "plain": plain,
    "figures": every_figure,
    "doctor": lambda: diagnose(thorough(pages=4_000), samples=5, draws=19).page(),
    "report by labels": by_labels,
    "report by clicks": by_clicks,
    "comparison": compared,
}
CUT = """() => {
  const inside = (inner, outer) => inner.left > outer.left - 1 && inner.right < outer.right + 1
    && inner.top > outer.top - 1 && inner.bottom < outer.bottom + 1;
  const box = (each) => each.getBoundingClientRect();
  const cut = [...document.querySelectorAll("svg text")].filter((each) => !inside(box(each), box(each.closest("svg"))));
  const wide = [...document.querySelectorAll(".wide, pre, figure, section")].filter((each) => {
    const { left, right } = each.getBoundingClientRect();
    return left < -1 || right > innerWidth + 1;
  });
  return [...cut, ...wide].map((each) => each.textContent.trim().slice(0, 40));
}"""
"""Texts that stick out of their chart, and what sticks out of the page; tables scroll inside a box of class `wide`."""
SILENT = """() => [...document.querySelectorAll(".tips path")].filter((each) => {
  each.scrollIntoView({ block: "center", inline: "center" });
  const { left, top, width, height } = each.getBoundingClientRect();
  return !document.elementFromPoint(left + width / 2, top + height / 2)?.closest(".tips");
}).map((each) => each.textContent)"""
CONTRASTS = """() => {
  const part = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (c) => 0.2126 * part(c[0] / 255) + 0.7152 * part(c[1] / 255) + 0.0722 * part(c[2] / 255);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
  };
  const kinds = "h1, h2, h3, h4, p, li, figcaption, th, td, summary, code, footer, .badge, svg text";
  const words = [...document.querySelectorAll(kinds)];
  return words.filter((each) => each.textContent.trim() && !each.closest("[id*=cell-]")).map((each) => {
    const style = getComputedStyle(each);
    const own = light(numbers(each.tagName === "text" ? style.fill : style.color)), under = light(behind(each));
    return [(Math.max(own, under) + 0.05) / (Math.min(own, under) + 0.05), each.textContent.trim().slice(0, 40)];
  });
}"""
SORTED = """() => [...document.querySelectorAll("table")].map((table) => {
  const rows = () => [...table.tBodies[0].rows].map((row) => row.textContent);
  const sorted = (head) => {
    head.querySelector("button").click();
    return {
      marks: [...table.querySelectorAll("th[aria-sort]")].map((each) => each.getAttribute("aria-sort")),
      cells: [...table.tBodies[0].rows].map((row) => row.cells[head.cellIndex].textContent.trim()),
      rows: rows(),
    };
  };
  const heads = [...table.querySelectorAll("th")].filter((head) => head.querySelector("button"));
  return { rows: rows(), heads: heads.map((head) => ({ ascending: sorted(head), descending: sorted(head) })) };
})"""
"""Every table before and after a click on each head, and another one."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module", params=list(PAGES))
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("pages") / "page.html"
    PAGES[request.param]().write(target)
    return target


@pytest.fixture
def open_page(browser: Browser, path: Path) -> Iterator[Callable[..., Tab]]:
    """The page in a tab of its own; whatever it logs, throws or asks for is a failure."""
    opened: list[BrowserContext] = []

    def show(file: Path = path, **options: Any) -> Tab:
        context = browser.new_context(**options)
        opened.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: faults.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: faults.append(f"error: {error}"))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(file.as_uri())
        return tab

    faults: list[str] = []
    asked: list[str] = []
    yield show
    for context in opened:
        context.close()
    assert faults == []
    outside = [url for url in asked if not url.startswith("data:") and not url.endswith(".html")]
    assert outside == [], "a page must ask for nothing"


def test_a_page_opens_without_an_error_or_a_request(open_page: Callable[..., Tab]) -> None:
    tab = open_page()
    assert tab.title() == tab.locator("h1").inner_text()
    tab.evaluate("for (const each of document.querySelectorAll('summary')) each.click()")


def test_every_chart_has_a_size_and_a_text_alternative(open_page: Callable[..., Tab]) -> None:
    for options in ({}, {"viewport": PHONE}):
        tab = open_page(**options)
        charts = tab.evaluate(
            "[...document.querySelectorAll('svg')].map((each) => [each.getAttribute('role'), "
            "each.getAttribute('aria-label'), each.getBoundingClientRect().width, each.getBoundingClientRect().height])"
        )
        assert charts
        for role, label, *size in charts:
            assert role == "img"
            assert len(label) > 10
            assert min(size) > 50, label


def test_no_page_scrolls_sideways_on_a_phone_and_its_charts_can_be_read(open_page: Callable[..., Tab]) -> None:
    tab = open_page(viewport=PHONE)
    tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    smallest = tab.evaluate(
        "Math.min(...[...document.querySelectorAll('svg text')].map((each) => each.getBoundingClientRect())"
        ".map((box) => Math.min(box.width, box.height)).filter((size) => size > 0), 99)"
    )
    assert smallest > 3


@pytest.mark.parametrize("width", [390, 1200])
def test_no_text_of_a_chart_is_cut_and_nothing_sticks_out_of_the_page(
    open_page: Callable[..., Tab], width: int
) -> None:
    tab = open_page(viewport={"width": width, "height": 900})
    tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert tab.evaluate(CUT) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_a_pointer_in_the_middle_of_what_has_a_value_reads_one(open_page: Callable[..., Tab]) -> None:
    tab = open_page(viewport={"width": 1200, "height": 900})
    tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert tab.evaluate(SILENT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_charts_have_contrast_in_light_and_dark(open_page: Callable[..., Tab], scheme: str) -> None:
    tab = open_page(color_scheme=scheme)
    tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    found = tab.evaluate(CONTRASTS)
    assert len(found) > 10
    assert [each for each in found if each[0] < 4.5] == []


def test_on_paper_nothing_is_hidden_or_cut_off(open_page: Callable[..., Tab]) -> None:
    tab = open_page(viewport=PAPER)
    tab.emulate_media(media="print")
    assert tab.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]
    hidden = tab.evaluate(
        "[...document.querySelectorAll('h2, h3, h4, p, th, td, svg, pre, summary, figcaption')]"
        ".filter((each) => !each.checkVisibility()).map((each) => each.textContent)"
    )
    assert hidden == []
    ends = tab.evaluate(
        "[...document.querySelectorAll('table, svg, pre')].map((each) => each.getBoundingClientRect().right)"
    )
    assert max(ends) <= PAPER["width"] + 1
    assert len(tab.pdf(format="A4")) > 10_000


def test_every_table_sorts_up_and_down(open_page: Callable[..., Tab]) -> None:
    for table in open_page().evaluate(SORTED):
        for head in table["heads"]:
            for direction, turn in (("ascending", 1), ("descending", -1)):
                after = head[direction]
                assert after["marks"] == [direction]
                assert sorted(after["rows"]) == sorted(table["rows"])
                cells = after["cells"]
                known = [number for text in cells if (number := _number(text)) is not None]
                assert all(turn * a <= turn * b for a, b in pairwise(known)), (direction, cells)
                assert cells == sorted(cells, key=lambda text: (not text, _number(text) is None)), cells


def _number(text: str) -> float | None:
    """What a cell starts with, if it is a number."""
    found = re.match(r"[+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?", text.replace("▲ ", "").replace("▼ ", "-"))
    return None if found is None else float(found[0].replace(",", ""))


def test_numbers_sort_by_size_words_by_letter_and_gaps_last(browser: Browser, tmp_path: Path) -> None:
    columns = {
        "number": (["9", "1,000", "-20", "", "+.5"], ["-20", "+.5", "9", "1,000", ""]),
        "interval": (["0.71\n.70-.72", "0.8", ".9", "0.10", "1"], ["0.10", "0.71\n.70-.72", "0.8", ".9", "1"]),
        "share": (["9%", "100%", "5.5%", "0%", "12%"], ["0%", "5.5%", "9%", "12%", "100%"]),
        "move": (["▲ 2", "▼ 10", "=", "▼ 9", "▲ 11"], ["▼ 10", "▼ 9", "▲ 2", "▲ 11", "="]),
        "word": (["d10", "d9", "", "b", "C"], ["b", "C", "d9", "d10", ""]),
        "day": (
            ["2014-02-01", "2014-01-10", "2014-01-09", "2013-12-31", "n/a"],
            ["2013-12-31", "2014-01-09", "2014-01-10", "2014-02-01", "n/a"],
        ),
    }
    rows = [{name: given[row] for name, (given, _) in columns.items()} for row in range(5)]
    target = tmp_path / "page.html"
    Page("sorting", "", [Section("table", tables=[Table("", rows)])]).write(target)
    tab = browser.new_page()
    tab.goto(target.as_uri())
    for place, (name, (_, wanted)) in enumerate(columns.items(), start=1):
        tab.get_by_role("button", name=name).click()
        assert tab.locator(f"tbody td:nth-child({place})").all_inner_texts() == wanted
        tab.get_by_role("button", name=name).click()
        full = [text for text in wanted if text]
        numbers = [text for text in full if _number(text) is not None]
        others = [text for text in full if _number(text) is None]
        cells = tab.locator(f"tbody td:nth-child({place})").all_inner_texts()
        assert cells == [*reversed(numbers), *reversed(others), *([""] * (5 - len(full)))]
    tab.close()

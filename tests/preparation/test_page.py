from __future__ import annotations

from pathlib import Path

from ultr.preparation.reasons import REASONS

PAGE = Path(__file__).parents[2] / "docs" / "prepare.md"


def test_every_reason_has_a_place_on_the_page() -> None:
    section = PAGE.read_text().partition("## What is put aside")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    page, row = (" ".join(column) for column in zip(*rows, strict=True))
    shorter = {
        "two queries on one page": "two queries",
        "position below 1": "below 1",
        "position above 10,000": "above 10,000",
        "same document twice on a page": "the same document twice",
        "conflicting features": "features that differ",
    }
    for reason in REASONS:
        assert shorter.get(reason.text, reason.text) in (page if reason.whole_page else row)

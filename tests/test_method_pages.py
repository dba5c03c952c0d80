from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from ultr.cli import main
from ultr.methods import METHODS

PAGES = Path(__file__).parents[1] / "docs" / "methods"
SMALLER = (
    (r"train_queries=[0-9_]+", "train_queries=60, validation_queries=20, test_queries=20"),
    (r"steps=[0-9_]+", "steps=3"),
    (r"impressions=[0-9_]+", "impressions=50_000"),
    (r"svm_share=[0-9.]+", "svm_share=0.1"),
    (r"letor-like=[0-9]+", "letor-like=60"),
    (r"--steps [0-9]+", "--steps 3"),
    (r"--impressions [0-9]+", "--impressions 50000"),
    (r"--svm-share [0-9.]+", "--svm-share 0.1"),
)
"""What makes an example fast; without a share for the Ranking SVM, 1 % of so few queries is one query."""


def _blocks(name: str, language: str) -> list[str]:
    """The code blocks of a page in a language, made smaller."""
    blocks = re.findall(r"```(\w*)\n(.*?)```", (PAGES / f"{name}.md").read_text(), flags=re.DOTALL)
    found = [text for kind, text in blocks if kind == language]
    for pattern, smaller in SMALLER:
        found = [re.sub(pattern, smaller, text) for text in found]
    return found


def test_every_method_has_a_page_that_the_index_links() -> None:
    linked = re.findall(r"\]\(([a-z-]+)\.md\)", (PAGES / "index.md").read_text())
    assert set(linked) == set(METHODS)
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *METHODS}


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_links_to_other_files_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("name", METHODS)
def test_the_python_of_the_page_trains_the_method(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = _blocks(name, "python")
    names: dict[str, object] = {}
    exec(compile(code, f"{name}.md", "exec"), names)
    assert type(names["ranker"]) is METHODS[name]
    assert hasattr(names["ranker"], "network_")


@pytest.mark.parametrize("name", METHODS)
def test_the_commands_of_the_page_train_the_method(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (commands,) = _blocks(name, "")
    assert f"ultr train {name} " in commands
    for line in commands.strip().splitlines():
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as exit_:
            main()
        assert not exit_.value.code, line
    assert (tmp_path / "model" / "manifest.json").exists()

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.documentation import page as pages
from tests.documentation import stand_ins
from tests.draws import few_draws, plain_drawings
from tests.experiments.in_this_process import in_this_process

from ultr.cli import EXTRAS
from ultr.clicks import CLICK_MODELS
from ultr.methods import METHODS
from ultr.version import __version__

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
METHOD_PAGES = ROOT / "docs" / "methods"
GIVEN = (
    stand_ins.judged,
    stand_ins.candidates,
    stand_ins.raw_log,
    stand_ins.candidates_of_raw_log,
    stand_ins.features,
    stand_ins.shown_and_clicked,
    stand_ins.titles,
    stand_ins.hotel_searches,
    stand_ins.clickouts,
    stand_ins.days,
    stand_ins.shop_days,
    stand_ins.lenient,
    stand_ins.ubi,
    stand_ins.interleaved,
    stand_ins.exported,
    stand_ins.result_pages,
    stand_ins.click_log,
    stand_ins.log_with_swaps,
    stand_ins.model,
    stand_ins.forest,
    stand_ins.network,
    stand_ins.shop,
    stand_ins.runs,
    stand_ins.demo,
)
ELSEWHERE = {
    "docs/serve.md": "tests/serving/test_page.py sends its requests to a service",
    "docs/deploy.md": "tests/deployment/test_dockerfile.py runs its line where docker is, and the steps of the image",
}
"""Pages whose code is run by tests of their own."""
MOST_NOT_RUN = 10
"""Blocks of all pages that are not run. Before raising it, think of a stand-in or of `run with`."""


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.usefixtures("_operators_read_once")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```" in page.read_text() and _name(page) not in ELSEWHERE], ids=_name
)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # What a page registers is forgotten after it.
    for registry in (CLICK_MODELS, METHODS):
        monkeypatch.setattr(registry, "_members", dict(registry._members))
    given: dict[str, Callable[..., object]] = {each.__name__: each for each in GIVEN}
    patches = (stand_ins.small_demo, few_draws, plain_drawings)
    patched = {each.__name__: partial(each, monkeypatch) for each in patches}
    in_this_process(monkeypatch)
    pages.run(page, given | patched)


def test_few_blocks_are_not_run() -> None:
    left_out = [f"{block.where}: {block.not_run}" for page in PAGES for block in pages.blocks(page) if block.not_run]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)


def test_no_block_is_overlooked() -> None:
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(), flags=re.MULTILINE)
        assert len(fences) == 2 * len(list(pages.blocks(page))), page


def test_every_note_stands_above_a_block() -> None:
    for page in PAGES:
        notes = re.findall(r"^ *<!--\s*(?:not run|run with|given|numbers)", page.read_text(), flags=re.MULTILINE)
        assert len(notes) == sum(len(block.notes) for block in pages.blocks(page)), page


def test_every_method_has_a_page_that_the_index_links() -> None:
    linked = re.findall(r"\]\(([a-z-]+)\.md\)", (METHOD_PAGES / "index.md").read_text())
    assert set(linked) == set(METHODS)
    assert {path.stem for path in METHOD_PAGES.glob("*.md")} == {"index", *METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_the_page_of_a_method_trains_it(name: str) -> None:
    code = {block.kind: block.text for block in pages.blocks(METHOD_PAGES / f"{name}.md")}
    assert f"ranker = {METHODS[name].__name__}(" in code["python"]
    assert f"ultr train {name} " in code["bash"]


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=_name)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_install_lines_are_true() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    files = [ROOT / "Dockerfile", ROOT / "Makefile", ROOT / "constraints.txt", *PAGES]
    files += [path for folder in ("src", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")]
    named = set(EXTRAS.values())
    for path in files:
        text = path.read_text()
        # No public index has it: a line installs the checkout (`.`) or a file.
        assert not re.search(r"pip install (?:-\S+ (?:\S+\.txt )?)*'?ultr\b(?!-)", text), path
        for found in re.findall(r"(?:\.|\.whl)\[([a-z][a-z,]*)\]'", text):
            named |= set(found.split(","))
        for found in re.findall(r"how_to_install\(('[^)]*')\)", text):
            named |= set(re.findall("[a-z]+", found))
        named |= set(re.findall(r'imported\("[\w.]+", "([a-z]+)"', text))
    assert {"all", "serve", "testing", "postgres", "xgboost"} <= named
    assert named <= extras
    assert re.findall(r"ultr-([\d.]+)-py3", (ROOT / "docs" / "install.md").read_text()) == [__version__]


def test_every_name_on_the_page_about_the_paper_exists() -> None:
    names = re.findall(r"`(ultr\.[\w.]+)`", (ROOT / "docs" / "paper.md").read_text())
    assert len(names) > 30
    assert not _exists("ultr.losses.listwise.softmax_cross_entropi")
    for name in names:
        assert _exists(name), name


def _exists(name: str) -> bool:
    """True if a dotted name leads to something; a field of a dataclass need be no attribute of it."""
    module, parts = name, list[str]()
    while True:
        try:
            found: Any = import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            parts.insert(0, last)
    for part in parts:
        fields = {**getattr(found, "model_fields", {}), **getattr(found, "__dataclass_fields__", {})}
        if part not in fields and not hasattr(found, part):
            return False
        found = getattr(found, part, None)
    return True


def _printed(shown: str, printed: str, *, exact: bool = True) -> bool:
    try:
        pages.compare(shown, printed, exact=exact, where="here")
    except AssertionError:
        return False
    return True


def test_what_is_shown_is_compared_with_what_is_printed() -> None:
    assert _printed("a 1\n\n b 2", "a 1 \nb 2\n\n")
    assert not _printed("a 1", "a 2")
    assert _printed("a 1 ──", "a  20.5 ────", exact=False)
    assert not _printed("a 1", "b 1", exact=False)
    assert _printed("a\n...\nd", "a\nb\nc\nd")
    assert _printed("a\n...\nd", "a\nd")
    assert not _printed("a\n...\nd", "a\nb\nc")
    assert not _printed("a", "a\nb")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```rust\nlet x;\n```", "cannot be run"),
        ("```\nls\n```", "only `ultr ...`, `curl ...` and `python FILE` are run"),
        ("<!-- run with: 3 -> 2 -->\n```python\nx = 1\n```", "there is no '3' to replace"),
        ("<!-- not run: -->\n```python\n1 / 0\n```", "give a reason"),
        ("```text\n1\n```", "no code above prints this"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", "but this is printed"),
        ("```console\n$ ultr --version\nultr 9\n```", "but this is printed"),
        ("```console\nultr --version\n```", "a console starts with"),
    ],
)
def test_a_page_that_does_not_hold_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{text}\n")
    with pytest.raises(AssertionError, match=re.escape(fault)):
        pages.run(page, {})


def test_notes_change_what_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        '```toml title="a.toml"\nx = 1\n```\n\n<!-- given: y = two() -->\n<!-- run with: 50 -> y -->\n\n'
        '```python\nfrom pathlib import Path\nprint(50, Path("a.toml").read_text())\n```\n\n```text\n2 x = 1\n```\n\n'
        "<!-- not run: it would fail -->\n```python\n1 / 0\n```\n"
    )
    pages.run(page, {"two": lambda: 2})

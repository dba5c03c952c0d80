"""A page of the documentation as what can be run: its code blocks from top to bottom."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from tests.cli.console import ultr
from tests.serving.service import running

COLUMNS = 96
"""How wide the output of commands is; wider blocks scroll on the site."""
COMMANDS = ("", "bash", "console")
_FENCE = re.compile(r"^( *)```(\w*)(?: +title=\"([^\"]+)\")?\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"<!--\s*(not run|run with|given|numbers may differ):?\s*((?:(?!-->).)*?)\s*-->", flags=re.DOTALL)
_NOTES = re.compile(rf"(?:{_NOTE.pattern}\s*)+\Z", flags=re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block and the notes that stand right above it."""

    kind: str
    title: str | None
    text: str
    where: str
    """File and line."""
    notes: dict[str, str]

    @property
    def not_run(self) -> str | None:
        """The reason why it is not run, if it is not."""
        return self.notes.get("not run")

    @property
    def exact(self) -> bool:
        """Whether its output is shown number for number."""
        return "numbers may differ" not in self.notes and "run with" not in self.notes

    def smaller(self) -> str:
        """The text with the replacements of `run with: old -> new; old -> new`, each of which must occur."""
        text = self.text
        for change in filter(None, re.split(r";\s*", self.notes.get("run with", ""))):
            old, new = change.split(" -> ")
            assert old in text, f"{self.where}: there is no {old!r} to replace"
            text = text.replace(old, new)
        return text


def blocks(page: Path) -> Iterator[Block]:
    """The code blocks of a page."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        indent, kind, title, body = found.groups()
        above = _NOTES.search(text[: found.start()])
        notes = dict(_NOTE.findall(above[0])) if above else {}
        body = "\n".join(line.removeprefix(indent) for line in body.splitlines())
        line = text.count("\n", 0, found.start()) + 1
        yield Block(kind, title, body, f"{page.name}:{line}", notes)


def run(page: Path, given: dict[str, Callable[..., object]]) -> None:
    """Run a page in the working folder; `given` is what the notes `given: ...` may call."""
    module = ModuleType(f"page_{page.stem}")  # dataclasses look for the module that they are in
    names = vars(module)
    printed = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        for block in blocks(page):
            if block.not_run is not None:
                assert block.not_run, f"{block.where}: give a reason for not running it"
                continue
            if "given" in block.notes:
                scope = names | given
                exec(compile(block.notes["given"], block.where, "exec"), scope)
                names.update({name: value for name, value in scope.items() if name not in given})
            if block.title is not None:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.smaller() + "\n")
            elif block.kind == "python":
                printed = _python(block, names)
            elif block.kind in COMMANDS:
                printed = _commands(block)
            elif block.kind == "text":
                assert printed is not None, f"{block.where}: no code above prints this"
                compare(block.text, printed, exact=block.exact, where=block.where)
            else:
                message = f"a block of the kind {block.kind!r} cannot be run; see CONTRIBUTING.md for what can"
                raise AssertionError(f"{block.where}: {message}")


def _python(block: Block, names: dict[str, object]) -> str:
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(block.smaller(), block.where, "exec"), names)
    return out.getvalue()


def _commands(block: Block) -> str:
    printed = ""
    for words, shown in _steps(block):
        answer = _command(words, block)
        if shown.strip():
            compare(shown, answer, exact=block.exact, where=block.where)
        printed += answer
    return printed


def _steps(block: Block) -> Iterator[tuple[list[str], str]]:
    """The commands, each with what the page shows below it, which only a console does."""
    text = block.smaller().replace("\\\n", " ")
    if block.kind == "console":
        before, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert not before, f"{block.where}: a console starts with `$ ` and a command"
    else:
        parts = text.splitlines()
    for part in parts:
        command, _, shown = part.partition("\n")
        if words := shlex.split(command, comments=True):
            yield words, shown


def _command(words: list[str], block: Block) -> str:
    if words[:2] == ["ultr", "serve"]:
        with running(Path(words[2]), *words[3:]) as service:
            assert service.stop() == 0
        return ""
    if words[0] == "ultr":
        return ultr(*words[1:], columns=COLUMNS).stdout
    if words[0] == "curl":
        for sent in (word.removeprefix("@") for word in words if word.startswith("@")):
            json.loads(Path(sent).read_text(), parse_constant=pytest.fail)
        return ""
    assert words[:1] == ["python"] == words[:-1], (
        f"{block.where}: only `ultr ...`, `curl ...` and `python FILE` are run, not {' '.join(words)!r}; "
        "mark the block <!-- not run: why -->"
    )
    out = StringIO()
    with redirect_stdout(out):
        runpy.run_path(words[1], run_name="__main__")
    return out.getvalue()


def compare(shown: str, printed: str, *, exact: bool, where: str) -> None:
    """Check what a page shows against what was printed; a line `...` stands for any lines, blank ones do not count."""
    expected, found = (_lines(text, exact=exact) for text in (shown, printed))
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in expected)
    assert re.fullmatch(pattern, "".join(line + "\n" for line in found)), (
        f"{where}: the page shows\n{shown}\n\nbut this is printed:\n{printed}"
    )


def _lines(text: str, *, exact: bool) -> list[str]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if exact:
        return lines
    numberless = (re.sub(r"[-+]?[\d.,]*\d", "0", line) for line in lines)
    return [re.sub(r"(\s|─|━)+", " ", line).strip() for line in numberless]

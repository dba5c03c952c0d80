"""The mutants of `python -m benchmarks.mutants`: which there are, and that tests are held against them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mutants.__main__ import EQUIVALENT, PACKAGES, Tried, as_listed, is_in, key, listed, of_package
from benchmarks.mutants.mutant import Mutant, mutants, mutated
from benchmarks.mutants.trial import Suite

ROOT = Path(__file__).parents[2]
VERDICT = '''"""Three faults of 10."""
MANY = 10

def verdict(clicks, rate=0.5):
    """Good from 10 clicks on."""
    if clicks < MANY:
        return min(clicks, 1)
    return rate and not clicks
'''


def test_the_mutants_of_a_function_are_these() -> None:
    found = [(each.line, each.scope, each.change) for each in mutants(VERDICT)]
    assert found == [
        (2, "", "MANY = 10 -> MANY = 11"),
        (2, "", "MANY = 10 -> MANY = 9"),
        (4, "verdict", "def verdict(clicks, rate=0.5): pass -> def verdict(clicks, rate=0.55): pass"),
        (4, "verdict", "def verdict(clicks, rate=0.5): pass -> def verdict(clicks, rate=0.45): pass"),
        (6, "verdict", "if clicks < MANY: pass -> if clicks <= MANY: pass"),
        (6, "verdict", "if clicks < MANY: pass -> if clicks >= MANY: pass"),
        (7, "verdict", "return min(clicks, 1) -> return max(clicks, 1)"),
        (7, "verdict", "return min(clicks, 1) -> return min(clicks, 2)"),
        (8, "verdict", "return rate and (not clicks) -> return rate or not clicks"),
        (8, "verdict", "return rate and (not clicks) -> return rate and clicks"),
    ]
    assert [each.at_import for each in mutants(VERDICT)] == [True] * 4 + [False] * 6


def test_a_mutated_file_has_its_fault_and_no_other() -> None:
    for each in mutants(VERDICT):
        before, after = (text.removesuffix(": pass") for text in each.change.split(" -> "))
        assert before not in mutated(VERDICT, each.number)
        assert after in mutated(VERDICT, each.number)
    assert "MANY = 10" in mutated(VERDICT, 9)


@pytest.mark.parametrize(
    ("statement", "faults"),
    [
        ("x = a + 1", ["x = a - 1", "x = a + 2"]),
        ("def f(a, seed=0, b=0):\n    pass", ["def f(a, seed=0, b=1):\n    pass"]),
        ("def f(*, seed=0, b=0):\n    pass", ["def f(*, seed=0, b=1):\n    pass"]),
        ("x = a - b", ["x = a + b"]),
        ("x = a * b", ["x = a / b"]),
        ("x = a / b", ["x = a * b"]),
        ("x = a & b", ["x = a | b"]),
        ("x = ~a", ["x = a"]),
        ("x = -a", ["x = a"]),
        ("x = a == b", ["x = a != b"]),
        ("x = a is b", ["x = a is not b"]),
        ("x = a not in b", ["x = a in b"]),
        ("x = a > b", ["x = a >= b", "x = a <= b"]),
        ("x = a <= b < c", ["x = a < b < c", "x = a > b < c", "x = a <= b <= c", "x = a <= b >= c"]),
        ("x = a or b", ["x = a and b"]),
        ("x = np.maximum(a, b)", ["x = np.minimum(a, b)"]),
        ("x = a.any()", ["x = a.all()"]),
        ("x = True", ["x = False"]),
        ("x = 0", ["x = 1"]),
        ("x = 3", ["x = 4", "x = 2"]),
        ("x = 0.0", ["x = 1.0"]),
        ("x = 2.0", ["x = 2.2", "x = 1.8"]),
        ("x = b if a else c", ["x = b if not a else c"]),
        ("x = f'{a + b:.2f}'", ["x = f'{a - b:.2f}'"]),
        ("x = [a for a in b if a > c]", ["x = [a for a in b if a >= c]", "x = [a for a in b if a <= c]"]),
    ],
)
def test_each_kind_of_fault_is_made(statement: str, faults: list[str]) -> None:
    assert [mutated(statement, each.number) for each in mutants(statement)] == faults


@pytest.mark.parametrize(
    "statement",
    [
        "'Text of 3 words.'",
        "x: int | None",
        "Choice = int | None",
        "x = isinstance(a, int | str)",
        "raise ValueError(f'{a + 1} is not 3')",
        "assert a > 3",
        "from a import b",
        "x = a + 'text'",
        "x = f'{a} click' + ('s' if a != 1 else '')",
        "x = zip(a, b, strict=True)",
        "x = 1e-09",
        "x = f(seed=3)",
        "def f(a, seed=0, *, strict=True):\n    pass",
        "class A:\n    seed: int = 0",
        "@dataclass(frozen=True)\nclass A:\n    x: int",
        "if TYPE_CHECKING:\n    x = 3",
    ],
)
def test_words_types_and_guards_are_left_as_they_are(statement: str) -> None:
    assert mutants(statement) == []


def test_a_fault_that_is_made_twice_in_a_function_has_two_names() -> None:
    first, second = (each.change for each in mutants("f(a)\nx = 0\nx = 0"))
    assert (first, second) == ("x = 0 -> x = 1", "x = 0 -> x = 1 (2)")


def test_long_statements_are_cut_to_what_differs() -> None:
    found = mutants(f"x = [{', '.join(['word'] * 30)}, a > b and c, {', '.join(['word'] * 30)}]")[0]
    assert len(found.change) < 150
    assert "a > b and c" in found.change.split(" -> ")[0]
    assert "a > b or c" in found.change.split(" -> ")[1]


SUITE = Suite(
    seconds={"a.py::slow": 9.0, "a.py::fast": 1.0, "a.py::other": 0.5, "b.py::apart": 0.1},
    lines={"src/file.py": {3: ["a.py::slow", "a.py::fast"], 7: ["b.py::apart"], 9: []}},
)


@pytest.mark.parametrize(
    ("lines", "at_import", "limit", "chosen"),
    [
        ((2, 3), False, 100.0, ["a.py::fast", "a.py::slow", "a.py::other"]),
        ((2, 3), False, 10.0, ["a.py::fast", "a.py::slow"]),
        ((2, 3), False, 0.5, ["a.py::fast"]),
        ((4, 7), False, 100.0, ["b.py::apart"]),
        ((9, 9), False, 100.0, []),
        ((1, 1), True, 100.0, ["b.py::apart", "a.py::fast", "a.py::slow", "a.py::other"]),
    ],
)
def test_tests_that_run_a_line_come_first_then_others_of_their_file(
    lines: tuple[int, int],
    at_import: bool,  # noqa: FBT001
    limit: float,
    chosen: list[str],
) -> None:
    mutant = Mutant(0, 1, "", "", lines, at_import)
    assert SUITE.tests_of("src/file.py", mutant, most_seconds=limit) == chosen


def test_survivors_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    mutant = mutants('x = "back\\\\slash" if a else "bb"')[0]
    (tmp_path / "survivors.toml").write_text(as_listed([Tried("src/file.py", mutant, False, 1)]))
    assert listed(tmp_path / "survivors.toml") == {key("src/file.py", mutant): ""}


def test_equivalent_mutants_exist_and_have_a_reason() -> None:
    every = [key(file, mutant) for package in PACKAGES for file, mutant in of_package(package, ROOT)]
    left_out = listed(EQUIVALENT)
    assert [each for each in left_out if not any(is_in(mutant, {each}) for mutant in every)] == []
    assert all(left_out.values())


@pytest.mark.parametrize(
    ("change", "same"), [("x = 1...", True), ("x = 10 -> x = 11", True), ("x = 11...", False), ("x = 10", False)]
)
def test_three_dots_stand_for_any_end_of_a_change(change: str, same: bool) -> None:  # noqa: FBT001
    assert is_in(("file", "scope", "x = 10 -> x = 11"), {("file", "scope", change)}) is same
    assert not is_in(("file", "other", "x = 10 -> x = 11"), {("file", "scope", change)})


RUN = """
import sys
from pathlib import Path
from benchmarks.mutants import __main__ as command, trial
trial.LIBRARIES = ()
command.ROOT, command.PACKAGES = Path(sys.argv[1]), ("tiny",)
sys.exit(command.main(sys.argv[2:]))
"""
COUNTS = """
def many(x):
    return x > 10

def few(x):
    return x < 3

def none(x):
    return -x
"""
ONCE = """
import sys
assert not hasattr(sys, "imported_once")
sys.imported_once = "yes"

def one(x):
    return -x
"""
TESTS = """
from ultr.tiny.counts import few, many
from ultr.tiny.once import one

def test_one():
    assert one(1) == -1

def test_many():
    assert [many(x) for x in (10, 11)] == [False, True]

def test_few():
    assert few(2)
"""


def _run(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(root), "--package", "tiny", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_tests_of_a_package_kill_what_they_look_at_and_nothing_else(tmp_path: Path) -> None:
    """One threshold is tested from both sides, the other from one; a third function has no test.

    The code of the other file cannot be run twice, so that nobody can tell whether a mutant fails for its fault.
    """
    for folder in ("src/ultr/tiny", "tests/tiny"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n')
    for name in ("src/ultr/__init__.py", "src/ultr/tiny/__init__.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "src/ultr/tiny/counts.py").write_text(COUNTS)
    (tmp_path / "src/ultr/tiny/once.py").write_text(ONCE)
    (tmp_path / "tests/tiny/test_counts.py").write_text(TESTS)
    numbers, survivors = tmp_path / "numbers.json", tmp_path / "survivors.toml"
    found = _run(tmp_path, "--json", str(numbers), "--survivors", str(survivors))
    assert found.returncode == 1, found.stderr
    alive = [change for _, _, change in listed(survivors)]
    faults = ["return x < 3 -> return x <= 3", "return x < 3 -> return x < 4", "return -x -> return x"]
    assert alive == [*faults, "return -x -> return x"]
    assert "src/ultr/tiny/once.py cannot be swapped" in found.stdout
    assert "src/ultr/tiny/counts.py:9 in none: return -x -> return x   [no test runs it]" in found.stdout
    (share,) = json.loads(numbers.read_text())
    assert share["value"] == pytest.approx(6 / 10)
    assert (tmp_path / "src/ultr/tiny/counts.py").read_text() == COUNTS
    (tmp_path / "tests/tiny/test_others.py").write_text("def test_slow():\n    pass\n")
    assert "4 mutants, 3 tests" in _run(tmp_path, "--again", str(survivors), "--tests", "count").stdout

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import ultr

SOURCE = Path(__file__).parents[1] / "src"
NAMED_TWICE: set[str] = set()
"""Class names that still stand for two things; nothing may be added."""


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("code", ["import ultr", "import ultr.cli", "from ultr import ClickLog, JudgedLists"])
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    loaded = _run(f"{code}; import sys; print(*sys.modules)").split()
    assert not {"torch", "sklearn", "matplotlib", "pandas", "pytest", "hypothesis"} & set(loaded)


@pytest.mark.parametrize("library", ["pytest", "hypothesis"])
def test_without_what_the_contract_tests_need_the_missing_extra_is_named(library: str) -> None:
    code = f"import sys; sys.modules['{library}'] = None\ntry: import ultr.testing\nexcept ImportError as e: print(e)"
    assert _run(code) == "ultr.testing needs pytest and hypothesis: pip install '.[testing]' in a checkout of ultr\n"


def test_every_public_name_can_be_imported() -> None:
    for name in ultr.__all__:
        assert getattr(ultr, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Vectorisation'"):
        ultr.Vectorisation  # noqa: B018


def test_the_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert ultr.__version__ == project["project"]["version"]


def test_without_torch_the_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport ultr\ntry: ultr.load\nexcept ImportError as e: print(e)"
    assert "pip install '.[train]' in a checkout" in _run(code)


def test_no_source_file_uses_pickle() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text
        assert "torch.save" not in text
        assert "torch.load" not in text


def test_no_class_name_stands_for_two_things() -> None:
    homes = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in re.findall(r"^class _?(\w+)", path.read_text(), flags=re.MULTILINE):
            homes[name].append(path.relative_to(SOURCE).as_posix())
    assert {name: places for name, places in homes.items() if len(places) > 1 and name not in NAMED_TWICE} == {}
    assert {name for name in NAMED_TWICE if len(homes[name]) < 2} == set(), "take these off the list"


def test_no_module_name_stands_in_three_packages() -> None:
    homes = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        homes[path.name].append(path.parent.relative_to(SOURCE).as_posix())
    assert {name: places for name, places in homes.items() if len(places) > 2 and name != "__init__.py"} == {}

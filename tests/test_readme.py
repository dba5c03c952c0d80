from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    smaller = code.replace("2_000", "100").replace("steps=500", "steps=5")
    assert smaller != code
    exec(compile(smaller, str(README), "exec"), {})
    assert (tmp_path / "ranker" / "manifest.json").exists()

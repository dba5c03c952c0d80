"""The package of docs/add-a-method.md, installed and used as any method is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documentation.page import blocks
from tests.plugin import install

from ultr.data.click_log import ClickLog

TRAIN = ["train", "additive", "--log", "log", "--steps", "10", "--set", "hidden=8", "--out", "m"]
PAGE = Path(__file__).parents[2] / "docs" / "add-a-method.md"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with the method of the page."""
    folder = tmp_path_factory.mktemp("site-packages")
    titled = {block.title: block.text for block in blocks(PAGE)}
    install(
        folder,
        code="",
        package="my_ranking",
        group="ultr.methods",
        entry="additive",
        value="my_ranking.additive:Additive",
    )
    (folder / "my_ranking" / "additive.py").write_text(titled["my_ranking/additive.py"])
    (folder / "test_additive.py").write_text(titled["test_additive.py"])
    assert 'additive = "my_ranking.additive:Additive"' in titled["pyproject.toml"]
    return folder


def _run(installed: Path, *command: str, folder: Path) -> str:
    paths = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_an_installed_method_is_trained_loaded_exported_and_reported(
    installed: Path, small_log: ClickLog, tmp_path: Path
) -> None:
    small_log.save(tmp_path / "log")
    assert "additive" in _run(installed, "ultr", "methods", folder=tmp_path)
    small = ["--log", "log", "--steps", "10", "--set", "hidden=8"]
    trained = _run(
        installed, "ultr", "train", "additive", *small, "--set", "penalty=0.1", "--out", "m", folder=tmp_path
    )
    assert "a ranker by the method additive" in trained
    told = _run(installed, "ultr", "report", "m", "--log", "log", "--out", "report.html", folder=tmp_path)
    assert "report.html" in told
    assert "additive" in (tmp_path / "report.html").read_text()
    assert "m.onnx" in _run(installed, "ultr", "export", "m", folder=tmp_path)
    assert (tmp_path / "m.onnx").exists()


def test_it_inherits_the_contract(installed: Path, tmp_path: Path) -> None:
    chosen = "same_seed or killed or exported or saving"
    told = _run(
        installed,
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(installed / "test_additive.py"),
        "-k",
        chosen,
        folder=tmp_path,
    )
    assert " passed" in told
    assert "failed" not in told


def test_without_its_package_a_model_is_refused_by_name(installed: Path, small_log: ClickLog, tmp_path: Path) -> None:
    small_log.save(tmp_path / "log")
    _run(
        installed,
        "ultr",
        "train",
        "additive",
        "--log",
        "log",
        "--steps",
        "3",
        "--set",
        "hidden=4",
        "--out",
        "m",
        folder=tmp_path,
    )
    refused = subprocess.run(
        [sys.executable, "-m", "ultr", "export", "m"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "method must be one of" in refused.stderr
    assert "'additive'" in refused.stderr

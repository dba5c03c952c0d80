"""The package of docs/add-a-method.md, installed and used as any method is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import ultr
from tests.documentation.page import blocks
from tests.draws import few_draws, plain_drawings
from tests.plugin import install

from ultr.data.click_log import ClickLog
from ultr.methods import METHODS

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
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def used(
    installed: Path, small_log: ClickLog, tmp_path_factory: pytest.TempPathFactory, _operators_read_once: None
) -> tuple[Path, str]:
    """The folder in which the method was used by every command, and what they said."""
    folder = tmp_path_factory.mktemp("used")
    small_log.select(np.arange(100)).save(folder / "log")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(installed)
        patch.setattr(METHODS, "_members", dict(METHODS._members))
        few_draws(patch)
        plain_drawings(patch)
        told = [
            ultr("methods"),
            ultr(*TRAIN, "--set", "penalty=0.1"),
            ultr("report", "m", "--log", "log", "--out", "report.html"),
            ultr("export", "m"),
        ]
    return folder, "".join(each.stdout for each in told)


def test_an_installed_method_is_trained_loaded_exported_and_reported(used: tuple[Path, str]) -> None:
    folder, told = used
    listed, separator, trained = told.partition("m: a ranker by the method additive\n")
    assert separator, told
    assert "additive" in listed
    assert "report.html" in trained
    assert "additive" in (folder / "report.html").read_text()
    assert "m.onnx" in trained
    assert (folder / "m.onnx").exists()


def test_it_inherits_the_contract(installed: Path, tmp_path: Path) -> None:
    """In a process of its own, which finds the package as any other does."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(installed / "test_additive.py")]
    told = _run(installed, *command, "-k", "same_seed or killed or saving or (exported and flat)", folder=tmp_path)
    assert " passed" in told
    assert "failed" not in told


def test_without_its_package_a_model_is_refused_by_name(
    used: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(used[0])
    refused = ultr("export", "m", "--out", tmp_path / "m.onnx", expect=2).stderr
    assert "method must be one of" in refused
    assert "'additive'" in refused
    assert not list(tmp_path.iterdir())

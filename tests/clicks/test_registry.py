from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from tests.plugin import install

import ultr
from ultr.clicks import CLICK_MODELS, click_model, register
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError, PluginError


def test_the_names_are_those_of_the_documentation() -> None:
    assert list(CLICK_MODELS) == [
        "real",
        "trust",
        "position-based",
        "user-browsing",
        "cascade",
        "dependent-click",
        "dynamic-bayesian",
    ]


def test_an_unknown_name_lists_the_known_ones_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"real, trust, .* did you mean 'cascade'\?"):
        click_model("casscade")


def test_an_unknown_option_lists_the_options_and_the_closest() -> None:
    with pytest.raises(OptionError, match=r"trust must be one of noise, examination, .*'noise'\?"):
        click_model("trust", nois=0.1)


def test_options_reach_the_model() -> None:
    assert click_model("position-based", examination=[1.0, 0.5]).positions == 2


def test_what_is_no_click_model_is_refused_with_what_it_lacks() -> None:
    class Untold:
        name: ClassVar[str] = "untold"

    with pytest.raises(PluginError, match=r"Untold cannot be used: it must be a frozen dataclass"):
        register(Untold)
    with pytest.raises(PluginError, match=r"must have positions, counts, sessions, as ultr\.clicks\.ClickModel says"):
        register(dataclass(type("Half", (), {"name": "half", "probabilities": None})))


def test_a_package_of_somebody_elses_is_simulated_by_the_command_line(tmp_path: Path) -> None:
    install(tmp_path / "packages")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "packages"), str(Path(ultr.__file__).parents[1])])
    }
    command = [sys.executable, "-m", "ultr", "simulate", "--data", "letor-like=20", "--impressions", "2000"]

    def simulate(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)

    done = simulate("--svm-share", "0.5", "--clicks", "eager", "--set", "noise=1", "--out", str(tmp_path / "log"))
    assert done.returncode == 0, done.stderr
    log = ClickLog.load(tmp_path / "log")
    # With noise 1 every shown document is clicked.
    assert (log.clicks == np.repeat(log.impressions, log.lengths)).all()
    unknown = simulate("--clicks", "eagre", "--out", str(tmp_path / "other"))
    assert unknown.returncode == 2
    assert "dynamic-bayesian, eager, got 'eagre'; did you mean 'eager'?" in unknown.stderr

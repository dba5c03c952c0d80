"""Names, folders and files from strangers, as the commands meet them."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.console import ultr
from tests.diagnosis.logs import thorough

from ultr.cli import output
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.files import read_json, write_json
from ultr.methods import ClickBaseline
from ultr.relevance import MLP

EVIL = "\x1b]0;PWNED\x07\x1b[31mred\x1b[2J \x9b \u202e"
SHOWN = r"\x1b]0;PWNED\x07\x1b[31mred\x1b[2J \x9b \u202e"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with a factor whose name and levels are escape sequences, in a folder whose name is a command."""
    folder = tmp_path_factory.mktemp("hostile") / "log; touch PWNED #"
    whole = thorough(pages=4_000)
    factors = [BiasFactor(EVIL, factor.values, factor.levels) for factor in whole.factors[1:2]] or [
        BiasFactor(EVIL, whole.position.values % 2, (EVIL, "plain"))
    ]
    levels = tuple(f"{EVIL}{number}" for number in range(len(factors[0].levels)))
    replace(whole, factors=(whole.position, replace(factors[0], levels=levels, edges=()))).save(folder)
    return folder


def test_escape_sequences_are_shown_instead_of_obeyed(log: Path) -> None:
    shown = ultr("doctor", log, "--samples", 5, "--full", columns=400)
    assert SHOWN in shown.stdout
    assert not ACTING.search(shown.stdout)


def test_escape_sequences_in_errors_and_warnings_are_shown_instead_of_obeyed(log: Path, tmp_path: Path) -> None:
    said = ultr("doctor", log.with_name(EVIL), expect=2).stderr
    assert SHOWN in said
    assert not ACTING.search(said)
    train = ["--log", log, "--steps", 2, "--set", "hidden=4", "--out", tmp_path / "model"]
    told = ultr("train", "inverse-propensity", *train).stderr
    assert "leaves out" in told
    assert not ACTING.search(told)


def test_commands_print_through_the_one_function_that_makes_text_visible() -> None:
    for path in Path(output.__file__).parent.glob("*.py"):
        if path.name not in ("output.py", "serve.py"):
            assert "typer.echo(" not in path.read_text(), path.name


@pytest.mark.usefixtures("_plain_drawings")
def test_suggested_commands_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    log = tmp_path / "log; touch PWNED #"
    thorough(pages=4_000).save(log)
    text = ultr("doctor", log, "--samples", 5, "--html", tmp_path / "page.html", columns=1_000).stdout
    commands = re.findall(r"ultr (?:train|compare) [^\n]*?--log ([^\n]*)", text)
    assert commands
    assert all(command.startswith(shlex.quote(str(log))) for command in commands)
    quoted = shlex.quote(str(log)).replace("'", "&#39;")
    assert f"ultr doctor {quoted}" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("method", ["click", "vectorization"])
def test_a_network_that_no_memory_holds_is_one_sentence_with_its_size(method: str, log: Path, tmp_path: Path) -> None:
    train = ["train", method, "--log", log, "--out", tmp_path / "model", "--steps", 1]
    said = ultr(*train, "--set", f"hidden={10**14}", expect=2).stderr
    assert re.search(r"there is not enough memory: [\d.e+]+ TiB were asked for at once", said)
    assert not (tmp_path / "model").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_second_training_into_a_folder_is_refused_at_once_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    thorough(pages=4_000).save(tmp_path / "log")
    options = ["--log", tmp_path / "log", "--set", "hidden=8", "--set", "evaluate_every=20"]
    train = [*("train", "click"), *options, "--out", tmp_path / "new" / "model", "--steps", 100_000]
    process = subprocess.Popen([sys.executable, "-m", "ultr", *map(str, train)], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "new" / ".model.checkpoint").exists() and time.monotonic() < end:
            time.sleep(0.02)
        said = ultr(*train, "--seed", 1, expect=2).stderr
        assert "another training is writing" in said
        assert "give another --out" in said
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / "new" / ".model.lock").exists()
    (tmp_path / "new" / ".model.checkpoint").unlink()
    ultr(*train[:-1], 20)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["model"]


def test_a_training_that_fails_leaves_no_folders_behind(tmp_path: Path) -> None:
    ultr("train", "click", "--log", tmp_path / "none", "--out", tmp_path / "a" / "b" / "model", expect=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_few_draws", "_plain_drawings")
def test_a_report_says_which_log_it_reads_because_a_manifest_names_it(small_log: ClickLog, tmp_path: Path) -> None:
    small_log.save(tmp_path / "elsewhere")
    ClickBaseline(relevance=MLP(hidden=(4,), steps=2)).fit(small_log).save(tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    origin = {"command": "ultr train", "log": "../elsewhere"}
    write_json(manifest, read_json(manifest) | {"origin": origin}, sealed=True)
    said = ultr("report", tmp_path / "model").stderr
    told = f"log: {tmp_path / 'elsewhere'}, which the manifest of model names; --log gives another"
    assert told in said.splitlines()
    shutil.rmtree(tmp_path / "elsewhere")
    small_log.save(tmp_path / "log")
    assert "which the manifest" not in ultr("report", tmp_path / "model", "--log", tmp_path / "log").stderr

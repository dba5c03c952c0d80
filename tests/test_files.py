from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ultr.drafts import draft_beside
from ultr.errors import DataError, OptionError, UltrWarning
from ultr.files import new_file, new_folder, parse_toml, read_json, write_json


def _written_by_ultr(folder: Path) -> None:
    with new_folder(folder) as draft:
        (draft / "old").write_text("x")
        write_json(draft / "manifest.json", {"format": "ultr test 1"})


def test_a_folder_that_ultr_did_not_write_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "manifest.json").write_text('{"format": "thesis"}')
    with (
        pytest.raises(OptionError, match="files that ultr did not write"),
        new_folder(tmp_path / "thesis", overwrite=True),
    ):
        pass


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    _written_by_ultr(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with new_folder(tmp_path / "link", overwrite=True) as draft:
        (draft / "new").write_text("y")
    assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["new"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_folder_appears_only_when_the_block_ends_well(tmp_path: Path) -> None:
    def fail_half_way() -> None:
        with new_folder(tmp_path / "out") as draft:
            (draft / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []
    with new_folder(tmp_path / "out") as draft:
        (draft / "whole").write_text("x")
        assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "whole").read_text() == "x"


def test_a_folder_with_content_is_replaced_only_when_asked(tmp_path: Path) -> None:
    _written_by_ultr(tmp_path / "out")
    with pytest.raises(OptionError, match="is not empty"), new_folder(tmp_path / "out"):
        pass
    with new_folder(tmp_path / "out", overwrite=True) as draft:
        (draft / "new").write_text("y")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failed_replacement_leaves_the_old_folder(tmp_path: Path) -> None:
    _written_by_ultr(tmp_path / "out")
    with pytest.raises(RuntimeError), new_folder(tmp_path / "out", overwrite=True):
        raise RuntimeError
    assert (tmp_path / "out" / "old").read_text() == "x"


def test_an_interruption_between_the_two_renames_brings_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written_by_ultr(tmp_path / "out")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out", overwrite=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "old").read_text() == "x"


def test_a_folder_that_was_filled_in_the_meantime_is_left_alone_and_the_result_kept_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def filled_on_the_way() -> None:
        with new_folder(out) as draft:
            (draft / "result").write_text("mine")
            out.mkdir()
            (out / "result").write_text("theirs")

    with pytest.raises(OptionError, match=r"appeared at .*out while .* the result is in .*out-new, move it"):
        filled_on_the_way()
    assert (out / "result").read_text() == "theirs"
    assert (tmp_path / "out-new" / "result").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-new"]


def test_overwriting_removes_only_what_was_there_at_the_start(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _written_by_ultr(out)
    with new_folder(out, overwrite=True) as draft:
        (draft / "result").write_text("mine")
        (out / "notes").mkdir()
        (out / "notes" / "today.txt").write_text("theirs")
    assert sorted(path.name for path in out.rglob("*")) == ["notes", "result", "today.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_that_changed_while_a_folder_was_overwritten_are_kept_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _written_by_ultr(out)

    def changed_on_the_way() -> None:
        with new_folder(out, overwrite=True) as draft:
            (draft / "old").write_text("mine")
            (out / "old").write_text("theirs")

    with pytest.warns(UltrWarning, match=r"files of .*out changed .* kept in .*out-old"):
        changed_on_the_way()
    assert (out / "old").read_text() == "mine"
    assert (tmp_path / "out-old" / "old").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out-old"]


def test_of_two_who_write_a_shared_folder_the_first_one_counts(tmp_path: Path) -> None:
    with new_folder(tmp_path / "key", shared=True) as draft:
        (draft / "by").write_text("the second")
        with new_folder(tmp_path / "key", shared=True) as other:
            (other / "by").write_text("the first")
    assert (tmp_path / "key" / "by").read_text() == "the first"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from ultr.files import new_folder

with new_folder(sys.argv[1], overwrite=True) as draft:
    (draft / "half").write_text("x")
    if sys.argv[2] == "between":
        rename = Path.rename
        Path.rename = lambda self, to: os.kill(os.getpid(), 9) if self.name == "new" else rename(self, to)
    else:
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("when", ["inside", "between"])
def test_what_a_killed_process_left_is_gone_after_the_next_one(tmp_path: Path, when: str) -> None:
    out = tmp_path / "out"
    _written_by_ultr(out)
    (tmp_path / ".out-mine").mkdir()
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(out), when], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(".out-*.ultr-draft"))) == 1
    with pytest.raises(RuntimeError), new_folder(tmp_path / "out", overwrite=True):
        raise RuntimeError
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out-mine", "out"]
    assert (out / "old").read_text() == "x"


@pytest.mark.parametrize("renamed", ["before", "after"])
def test_a_signal_while_a_draft_gets_its_name_leaves_nothing(
    renamed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def stopped(path: Path, place: Path) -> Path:
        if renamed == "after":
            rename(path, place)
        raise SystemExit(143)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(SystemExit), draft_beside(tmp_path / "log"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_draft_of_a_process_that_lives_is_left_alone(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out", shared=True) as draft:
        (draft / "half").write_text("x")
        with pytest.raises(RuntimeError), new_folder(tmp_path / "out"):
            raise RuntimeError
        assert (draft / "half").read_text() == "x"


def test_the_current_folder_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="holds the current folder"), new_folder(".", overwrite=True):
        pass


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(OptionError, match="is a file, not a folder"), new_folder(tmp_path / "out", overwrite=True):
        pass


def test_a_file_appears_only_when_the_block_ends_well(tmp_path: Path) -> None:
    def fail_half_way() -> None:
        with new_file(tmp_path / "a") as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appeared_in_the_meantime_is_left_alone(tmp_path: Path) -> None:
    def appears_on_the_way() -> None:
        with new_file(tmp_path / "a.onnx", overwrite=False) as draft:
            draft.write_text("mine")
            (tmp_path / "a.onnx").write_text("theirs")

    with pytest.raises(OptionError, match=r"the result is in .*a-new\.onnx"):
        appears_on_the_way()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.onnx": "theirs", "a-new.onnx": "mine"}


def test_json_comes_back(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": [1, 2.5, None]})
    assert read_json(tmp_path / "a.json") == {"b": [1, 2.5, None]}


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe{}"])
def test_broken_json_is_a_data_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json is not valid JSON"):
        read_json(tmp_path / "a.json")
    with pytest.raises(DataError, match=r"cannot read .*b\.json"):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('["\\ud800"]', "not valid JSON .*surrogates not allowed"),
        ("9" * 10_000, "not valid JSON"),
    ],
)
def test_json_of_a_stranger_ends_in_a_sentence(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_json(tmp_path / "a.json")


def test_a_pipe_is_no_json_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(DataError, match="is not a file"):
        read_json(tmp_path / "a.json")


def test_a_sealed_file_comes_back_and_a_changed_one_does_not(tmp_path: Path) -> None:
    content = {"a": [1, 2.5, None, "é"], "b": {"c": math.nan}}
    write_json(tmp_path / "a.json", content, sealed=True)
    assert read_json(tmp_path / "a.json") == {"a": [1, 2.5, None, "é"], "b": {"c": None}}
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "a.json").write_text(text.replace("2.5", "2.25"))
    with pytest.raises(DataError, match="its digest is another"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = 1" + "0" * 10_000, "a = ["])
def test_toml_of_a_stranger_ends_in_a_sentence(text: str) -> None:
    with pytest.raises(DataError, match="stranger is not valid TOML"):
        parse_toml(text, "stranger")

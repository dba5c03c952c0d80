from __future__ import annotations

from pathlib import Path

import pytest

from ultr.errors import DataError, OptionError
from ultr.files import new_file, new_folder, read_json, write_json


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
    rename, calls = Path.replace, []

    def interrupted(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out", overwrite=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "old").read_text() == "x"


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

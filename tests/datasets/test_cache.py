from __future__ import annotations

import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from hashlib import file_digest
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from ultr.data.judged import JudgedLists
from ultr.datasets import cache
from ultr.datasets.cache import default_cache, read_judged
from ultr.datasets.svmlight import read_svmlight
from ultr.errors import DataError

TEXT = b"2 qid:7 1:0.5 3:4\n0 qid:7 1:0.25\n1 qid:b 2:3e2\n"
LONG_AGO = 1_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "judged.txt"
    file.write_bytes(TEXT)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which every file was last changed an hour ago."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 3_600_000_000_000)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were parsed, one item each time."""
    files: list[Path] = []

    def reading(path: Path, **options: int | None) -> JudgedLists:
        files.append(path)
        return read_svmlight(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "read_svmlight", reading)
    return files


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One item for each time a file was hashed."""
    files: list[str] = []

    def hashing(stream: object, digest: object) -> object:
        files.append("hashed")
        return file_digest(stream, digest)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "file_digest", hashing)
    return files


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "judged").iterdir())


def test_the_second_read_maps_the_same_lists(path: Path, folder: Path, parsed: list[Path]) -> None:
    plain = read_svmlight(path)
    first, second = read_judged(path, cache=folder), read_judged(path, cache=folder)
    assert len(parsed) == 1
    for lists in (first, second):
        assert lists.fingerprint() == plain.fingerprint()
        assert repr(lists) == repr(plain)
        assert lists.feature_names == plain.feature_names
        assert not lists.features.flags.owndata
        assert not lists.features.flags.writeable


def test_none_turns_the_cache_off(
    path: Path, tmp_path: Path, parsed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ULTR_CACHE", str(tmp_path / "unused"))
    read_judged(path, cache=None)
    assert read_judged(path, cache=None).features.flags.writeable
    assert len(parsed) == 2
    assert not (tmp_path / "unused").exists()


def test_the_default_folder_comes_from_the_environment(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ULTR_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache() == tmp_path / "home" / ".cache" / "ultr"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert default_cache() == tmp_path / "shared" / "ultr"
    monkeypatch.setenv("ULTR_CACHE", str(tmp_path / "own"))
    assert default_cache() == tmp_path / "own"
    read_judged(path)
    assert len(entries(tmp_path / "own")) == 1


def test_without_a_home_folder_there_is_no_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("ULTR_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert default_cache() is None
    assert read_judged(path).documents == 3


def test_options_have_entries_of_their_own(path: Path, folder: Path) -> None:
    assert read_judged(path, cache=folder).features.shape == (3, 3)
    assert read_judged(path, cache=folder, features=5).features.shape == (3, 5)
    assert read_judged(path, cache=folder, max_label=4).max_label == 4
    assert len(entries(folder)) == 3


def test_the_content_counts_and_not_the_name(path: Path, folder: Path, parsed: list[Path]) -> None:
    copy = path.with_name("copy.txt")
    copy.write_bytes(TEXT)
    read_judged(path, cache=folder)
    read_judged(copy, cache=folder)
    assert parsed == [path]


def test_a_changed_file_is_read_again(path: Path, folder: Path, later: None) -> None:
    read_judged(path, cache=folder)
    path.write_bytes(TEXT.replace(b"0.25", b"0.75"))
    assert read_judged(path, cache=folder).features[1, 0] == 0.75


def test_a_settled_file_is_hashed_once(path: Path, folder: Path, hashed: list[str], later: None) -> None:
    for _ in range(3):
        read_judged(path, cache=folder)
    assert len(hashed) == 1


def test_a_file_changed_a_moment_ago_is_hashed_every_time(path: Path, folder: Path, hashed: list[str]) -> None:
    read_judged(path, cache=folder)
    before = len(hashed)
    read_judged(path, cache=folder)
    assert len(hashed) == before + 1
    assert not (folder / "digests").exists()


def test_a_change_in_the_same_tick_of_the_clock_is_seen(path: Path, folder: Path) -> None:
    state = path.stat()
    read_judged(path, cache=folder)
    with path.open("r+b") as stream:
        stream.write(TEXT.replace(b"0.25", b"0.75"))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert read_judged(path, cache=folder).features[1, 0] == 0.75


def test_an_old_time_set_by_hand_does_not_hide_a_change(path: Path, folder: Path, later: None) -> None:
    os.utime(path, (LONG_AGO, LONG_AGO))
    read_judged(path, cache=folder)
    with path.open("r+b") as stream:
        stream.write(TEXT.replace(b"0.25", b"0.75"))
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert read_judged(path, cache=folder).features[1, 0] == 0.75


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(file: Path, **options: int | None) -> JudgedLists:
        file.write_bytes(b"0 qid:1 1:1\n")
        return read_svmlight(file)

    monkeypatch.setattr(cache, "read_svmlight", changing)
    assert read_judged(path, cache=folder).documents == 1
    assert not (folder / "judged").exists()


@pytest.mark.parametrize("name", ["features.npy", "labels.npy", "offsets.npy", "query_ids.npy", "manifest.json"])
@pytest.mark.parametrize("damage", ["removed", "emptied", "cut", "changed", "replaced"])
def test_a_damaged_entry_is_made_again(name: str, damage: str, path: Path, folder: Path, parsed: list[Path]) -> None:
    plain = read_judged(path, cache=folder).fingerprint()
    (entry,) = entries(folder)
    file = entry / name
    content = file.read_bytes()
    if damage == "removed":
        file.unlink()
    else:
        changed = {
            "emptied": b"",
            "cut": content[:-9],
            "changed": b"?" + content[1:],
            "replaced": b"[1, 2]",
        }
        file.write_bytes(changed[damage])
    assert read_judged(path, cache=folder).fingerprint() == plain
    assert len(parsed) == 2
    assert read_judged(path, cache=folder).fingerprint() == plain
    assert len(parsed) == 2


def test_one_changed_value_in_an_entry_is_noticed(path: Path, folder: Path) -> None:
    plain = read_judged(path, cache=folder).fingerprint()
    (entry,) = entries(folder)
    features = np.load(entry / "features.npy")
    features[0, 0] += 1
    np.save(entry / "features.npy", features)
    assert read_judged(path, cache=folder).fingerprint() == plain


def test_a_damaged_digest_memo_is_made_again(path: Path, folder: Path, later: None, hashed: list[str]) -> None:
    read_judged(path, cache=folder)
    (memo,) = (folder / "digests").iterdir()
    for content in ("", "[]", "{}", json.dumps({"state": [1, 2, 3, 4], "digest": "no"})):
        memo.write_text(content)
        before = len(hashed)
        assert read_judged(path, cache=folder).documents == 3
        assert len(hashed) == before + 1


def test_a_cache_that_cannot_be_written_does_not_break_reading(path: Path, tmp_path: Path, later: None) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert read_judged(path, cache=blocked / "cache").documents == 3
    assert read_judged(path, cache=blocked).documents == 3


def test_a_full_disk_does_not_break_reading(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert read_judged(path, cache=folder).documents == 3
    assert entries(folder) == []


def test_a_bad_file_is_refused_and_leaves_nothing(path: Path, folder: Path, tmp_path: Path) -> None:
    path.write_bytes(b"0 qid:1 1:x\n")
    with pytest.raises(DataError, match="line 1: "):
        read_judged(path, cache=folder)
    with pytest.raises(DataError, match="No such file"):
        read_judged(tmp_path / "missing", cache=folder)
    with pytest.raises(DataError, match="Is a directory"):
        read_judged(tmp_path, cache=folder)
    assert not (folder / "judged").exists()


def fingerprint_of(path: Path, folder: Path) -> str:
    return read_judged(path, cache=folder).fingerprint()


def test_processes_that_write_one_entry_at_once_all_succeed(path: Path, folder: Path) -> None:
    path.write_bytes(b"".join(b"%d qid:%d 1:%d\n" % (i % 3, i // 9, i) for i in range(20_000)))
    expected = read_svmlight(path).fingerprint()
    with ProcessPoolExecutor(4, mp_context=get_context("forkserver")) as pool:
        results = [pool.submit(fingerprint_of, path, folder) for _ in range(8)]
        assert {result.result() for result in results} == {expected}
    assert fingerprint_of(path, folder) == expected


def test_an_entry_that_appears_while_one_is_written_is_no_error(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def racing(file: Path, **options: int | None) -> JudgedLists:
        monkeypatch.setattr(cache, "read_svmlight", read_svmlight)
        read_judged(file, cache=folder)
        return read_svmlight(file)

    monkeypatch.setattr(cache, "read_svmlight", racing)
    assert read_judged(path, cache=folder).documents == 3
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("name", ["features.npy", "labels.npy", "offsets.npy", "query_ids.npy"])
def test_bits_that_rot_while_the_time_stays_are_noticed(name: str, path: Path, folder: Path) -> None:
    plain = read_judged(path, cache=folder).fingerprint()
    (entry,) = entries(folder)
    file, whole = entry / name, (entry / name).read_bytes()
    status = file.stat()
    for place in range(len(whole) - 8, len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert read_judged(path, cache=folder).fingerprint() == plain
        status = file.stat()

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ultr.data import log_fingerprint
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.files import DIGEST, read_json, write_json
from ultr.methods import ClickBaseline
from ultr.relevance import MLP

TINY = ClickBaseline(relevance=MLP(hidden=(4,), steps=1))


@pytest.fixture
def folder(small_log: ClickLog, tmp_path: Path) -> Path:
    small_log.save(tmp_path / "log")
    return tmp_path / "log"


def _change_a_feature(folder: Path) -> None:
    features = np.load(folder / "features.npy", mmap_mode="r+")
    features[0, 0] += 1
    features.flush()


def test_no_flipped_bit_of_a_log_folder_goes_unnoticed(folder: Path) -> None:
    generator, fingerprint = np.random.default_rng(1), ClickLog.load(folder).fingerprint()
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for place in [*range(12), *generator.choice(len(whole), size=12)]:
            content = bytearray(whole)
            content[place] ^= 1 << int(generator.integers(8))
            path.write_bytes(content)
            # A blank in the header of an array may be another one: what is loaded is the same.
            try:
                assert ClickLog.load(folder).fingerprint() == fingerprint
            except DataError:
                continue
        path.write_bytes(whole)


def test_a_large_log_that_was_changed_is_not_trained_on_and_not_split(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_fingerprint, "CHECKED", 0)
    _change_a_feature(folder)
    log = ClickLog.load(folder)
    with pytest.raises(DataError, match="log is damaged: its arrays are not those that were written"):
        TINY.fit(log)
    with pytest.raises(DataError, match="is damaged"):
        log.split()
    with pytest.raises(DataError, match="is damaged"):
        log.save(folder.with_name("again"))


def test_a_small_log_that_was_changed_is_refused_when_it_is_loaded(folder: Path) -> None:
    _change_a_feature(folder)
    with pytest.raises(DataError, match="restore the click log or write it again"):
        ClickLog.load(folder)


def test_a_log_of_before_there_were_digests_is_read(folder: Path, small_log: ClickLog) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["fingerprint"] == small_log.fingerprint()
    del manifest["fingerprint"], manifest[DIGEST]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert ClickLog.load(folder).fingerprint() == small_log.fingerprint()


def test_parts_and_copies_of_a_loaded_log_have_fingerprints_of_their_own(folder: Path) -> None:
    log = ClickLog.load(folder)
    kept, held_out = log.split(0.5)
    assert len({log.fingerprint(), kept.fingerprint(), held_out.fingerprint()}) == 3


@pytest.mark.parametrize("name", ["features.npy", "manifest.json"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str, folder: Path) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(DataError, match="is not a file"):
        ClickLog.load(folder)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000000, 4)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4)}",
        "(" * 9_000,
    ],
)
def test_an_array_with_a_hostile_header_is_a_data_error(header: str, folder: Path) -> None:
    text = header.encode().ljust(9_214) + b"\n"
    (folder / "features.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(DataError, match=r"features\.npy is missing or damaged"):
        ClickLog.load(folder)


@pytest.mark.parametrize(("name", "kind"), [("features", "S4"), ("features", "c8"), ("query_ids", "S4")])
def test_arrays_of_another_type_are_refused(name: str, kind: str, folder: Path) -> None:
    path = folder / f"{name}.npy"
    np.save(path, np.load(path).astype(kind))
    with pytest.raises(DataError, match="features must be floating-point numbers and query_ids texts"):
        ClickLog.load(folder)


def test_more_positions_than_any_list_has_are_refused(folder: Path) -> None:
    manifest = read_json(folder / "manifest.json")
    manifest["factors"][0]["levels"] = [str(place) for place in range(1, 10_002)]
    write_json(folder / "manifest.json", manifest, sealed=True)
    with pytest.raises(DataError, match="positions end at 10,000"):
        ClickLog.load(folder)

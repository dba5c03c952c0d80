from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultr.arrays import fingerprint
from ultr.data import gathering, ragged
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

LISTS, LENGTH = 200_000, 20
_WITHIN_A_LIMIT = """
import resource, sys
from pathlib import Path
from ultr.data import gathering
from ultr.data.click_log import ClickLog

gathering.LARGE = 2**20
folder, limit, by = sys.argv[1], int(sys.argv[2]), sys.argv[3]
ClickLog.of(features=[[0.0]], documents=[0], offsets=[0, 1], clicks=[0]).fingerprint()
lines = Path("/proc/self/status").read_text().splitlines()
used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + limit, -1))
log = ClickLog.load(folder)
print(log.fingerprint(), *(part.lists for part in log.split(0.1, by=by)))
"""


def a_log(*, lists: int, length: int, seed: int = 0) -> ClickLog:
    """Lists of random lengths up to `length`, with every optional array, many times fewer queries than lists."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, length + 1, size=lists)
    offsets = ragged.from_lengths(lengths)
    impressions = random.integers(1, 9, size=lists)
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    clicks = random.binomial(np.repeat(impressions, lengths), 0.3)
    return ClickLog(
        features=random.normal(size=(50, 2)).astype(np.float32),
        documents=random.integers(50, size=offsets[-1]),
        offsets=offsets,
        factors=(
            BiasFactor("position", places.astype(np.int32), tuple(str(n + 1) for n in range(length))),
            BiasFactor("device", random.integers(2, size=offsets[-1]).astype(np.int32), ("desk", "phone")),
        ),
        impressions=impressions,
        clicks=clicks,
        queries=random.integers(7, size=lists),
        query_ids=np.array([f"q{n}" for n in range(7)]),
        feature_names=("a", "b"),
        periods=random.integers(4, size=lists),
        period_names=("1", "2", "3", "4"),
    )


PARTS: dict[str, Callable[[ClickLog], Sequence[ClickLog]]] = {
    "a mask": lambda log: [log.select(np.arange(log.lists) % 3 == 0)],
    "numbers": lambda log: [log.select(np.array([5, 2, 2, log.lists - 1]))],
    "no list": lambda log: [log.select(np.empty(0, dtype=np.int64))],
    "queries": lambda log: log.split(0.3),
    "pages": lambda log: log.split(0.3, by="page", seed=1),
    "time": lambda log: log.split(0.3, by="time"),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_log_are_the_same_in_files_and_span_by_span(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    log = a_log(lists=100, length=6)
    expected = PARTS[part](log)
    monkeypatch.setattr(gathering, "LARGE", 1)
    monkeypatch.setattr(ragged, "SPAN", 7)
    found = PARTS[part](log)
    assert [each.fingerprint() for each in found] == [each.fingerprint() for each in expected]


def test_a_log_with_pairs_has_the_same_parts_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    log = ClickLog.of(
        features=np.arange(8.0)[:, None],
        documents=np.tile(np.arange(4), 60) + np.repeat(random.integers(4, size=60), 4),
        offsets=np.arange(0, 241, 4),
        clicks=random.random(240) < 0.4,
        pairs=True,
    )
    chosen = np.arange(log.lists) % 2 == 0
    expected = log.select(chosen)
    monkeypatch.setattr(gathering, "LARGE", 1)
    monkeypatch.setattr(ragged, "SPAN", 5)
    found = log.select(chosen)
    assert expected.pair_clicks is not None
    assert found.fingerprint() == expected.fingerprint()


def test_only_large_arrays_are_put_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LARGE", 800)
    assert gathering.new_array(99, np.int64).base is None
    assert isinstance(gathering.new_array(100, np.int64).base, np.memmap)


def test_a_full_disk_is_one_data_error_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gathering, "LARGE", 1)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=r"cannot be put into .*\(No space left on device\).*TMPDIR"):
        gathering.new_array(10, np.int64)


@pytest.mark.parametrize("fault", ["order", "clicks"])
@pytest.mark.parametrize("place", [0, 50, 99])
def test_a_fault_is_found_in_every_span(monkeypatch: pytest.MonkeyPatch, fault: str, place: int) -> None:
    log = a_log(lists=100, length=6)
    long = log.select(log.lengths > 1)
    number = place * long.lists // 100
    row = long.offsets[number]
    monkeypatch.setattr(ragged, "SPAN", 7)
    values = long.factors[0].values if fault == "order" else long.clicks
    values[row] = values[row + 1] if fault == "order" else long.impressions[number] + 1
    with pytest.raises(DataError, match="from the top down" if fault == "order" else "more clicks than impressions"):
        replace(long)


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12))
def test_spans_cover_all_lists_once_and_are_as_long_as_they_may_be(lengths: list[int], most: int) -> None:
    offsets = ragged.from_lengths(np.array(lengths, dtype=np.int64))
    found = list(ragged.spans(offsets, most=most))
    assert [number for span in found for number in np.arange(len(lengths))[span.lists]] == list(range(len(lengths)))
    for span in found:
        start, stop = span.lists.start, span.lists.stop
        assert (span.rows.start, span.rows.stop) == (offsets[start], offsets[stop])
        assert span.spread(np.arange(len(lengths))).tolist() == ragged.list_numbers(offsets)[span.rows].tolist()
        assert stop - start == 1 or (offsets[stop] - offsets[start] <= most and stop - start <= most)
        more = stop < len(lengths) and stop - start < most
        assert not more or offsets[stop + 1] - offsets[start] > most


@pytest.mark.parametrize("shape", [(), (0, 3), (3_000_000,), (1_500_000, 2)])
def test_the_fingerprint_is_the_digest_of_the_bytes_in_any_order_in_memory(shape: tuple[int, ...]) -> None:
    array = np.asarray(np.random.default_rng(0).normal(size=shape))
    expected = blake2b(f"<f8{shape}".encode() + array.tobytes(), digest_size=16).hexdigest()
    assert fingerprint(array) == fingerprint(array.copy(order="F")) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on data counts what we mean on Linux only")
@pytest.mark.parametrize("by", ["query", "page"])
def test_a_log_is_loaded_named_and_split_in_a_fraction_of_its_size(tmp_path: Path, by: str) -> None:
    rows = LISTS * LENGTH
    positions = tuple(str(n + 1) for n in range(LENGTH))
    places = np.tile(np.arange(LENGTH, dtype=np.int32), LISTS)
    log = ClickLog(
        features=np.zeros((LENGTH, 1), dtype=np.float32),
        documents=np.tile(np.arange(LENGTH), LISTS),
        offsets=np.arange(0, rows + 1, LENGTH),
        factors=(BiasFactor("position", places, positions),),
        impressions=np.full(LISTS, 3),
        clicks=np.arange(rows) % 4,
        queries=np.arange(LISTS) % 100,
        query_ids=np.array([str(n) for n in range(100)]),
        feature_names=("a",),
    )
    log.save(tmp_path / "log")
    size = sum(path.stat().st_size for path in (tmp_path / "log").iterdir())
    ended = subprocess.run(
        [sys.executable, "-c", _WITHIN_A_LIMIT, str(tmp_path / "log"), str(size // 4), by],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ended.returncode, ended.stderr
    assert ended.stdout.split()[0] == log.fingerprint()

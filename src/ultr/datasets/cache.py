"""Judged lists kept as memory-mapped arrays, so that a file is parsed only once.

A cache folder holds

    judged/<key>/     features.npy, labels.npy, offsets.npy, query_ids.npy and manifest.json; the key is a digest of
                      the bytes of the text file, the options it was read with and `FORMAT`
    digests/<key>     the digest of a file, remembered for its path, size, times and inode as git's index does

Whatever is missing, damaged or cannot be written is made again or done without: the cache changes speed only.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from hashlib import blake2b, file_digest
from pathlib import Path
from stat import S_ISREG

import numpy as np

from ultr.arrays import fingerprint
from ultr.data.array_file import read_array
from ultr.data.judged import JudgedLists
from ultr.datasets.svmlight import read_svmlight
from ultr.errors import UltrError
from ultr.files import new_folder, read_json, write_json

FORMAT = "ultr judged lists 1"
CHECKED = 2**26
"""An array of at most so many bytes is compared with its digest whenever it is used; a larger one would take longer
than a tenth of a second, and is trusted by its size and time."""
_ARRAYS = ("features", "labels", "offsets", "query_ids")
# A file changed twice within one tick of its file system's clock shows one time for both contents.
_SETTLED_NANOSECONDS = 2_000_000_000


def default_cache() -> Path | None:
    """The folder in ULTR_CACHE, else `ultr` in XDG_CACHE_HOME or ~/.cache; None if there is no home folder."""
    if chosen := os.environ.get("ULTR_CACHE"):
        return Path(chosen)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "ultr"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "ultr"
    return None


def read_judged(
    path: str | Path,
    *,
    cache: str | Path | None = "default",
    features: int | None = None,
    max_label: int | None = None,
) -> JudgedLists:
    """The judged lists that `read_svmlight` gives, memory-mapped and read-only if they come through the cache.

    Args:
        path: The file, plain or compressed.
        cache: The cache folder; "default" is `default_cache()`, None turns it off.
        features: The number of columns; by default the highest feature id in the file.
        max_label: The highest grade of the data set; by default the highest in the file.

    """
    folder = default_cache() if cache == "default" else cache
    digest = None if folder is None else _digest(Path(path), Path(folder))
    if folder is None or digest is None:
        return read_svmlight(path, features=features, max_label=max_label)
    entry = Path(folder) / "judged" / _key(FORMAT, digest, f"features={features}", f"max_label={max_label}")
    if kept := _load(entry):
        return kept
    lists = read_svmlight(path, features=features, max_label=max_label)
    if _digest(Path(path), Path(folder)) == digest:  # else the file was changed while it was read
        _save(entry, lists)
    return _load(entry) or lists


def _key(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _digest(path: Path, cache: Path) -> str | None:
    """The digest of the bytes of a file; None if it cannot be read."""
    place = Path(os.path.abspath(path))
    memo = cache / "digests" / _key(str(place))
    try:
        state = _state(place)
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            content = json.loads(memo.read_text("utf-8"))
            if content["state"] == state:
                return str(content["digest"])
        asked = time.time_ns()
        with place.open("rb") as stream:
            digest = file_digest(stream, lambda: blake2b(digest_size=32)).hexdigest()
        if _state(place) != state:
            return None
    except OSError:
        return None
    if asked - max(state[1:3]) > _SETTLED_NANOSECONDS:
        with suppress(OSError):
            write_json(memo, {"path": str(place), "state": state, "digest": digest})
    return digest


def _state(path: Path) -> list[int]:
    status = path.stat()
    if not S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a file whose content stays")
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _save(entry: Path, lists: JudgedLists) -> None:
    """Write the entry, or nothing if the folder cannot be written or another process was faster."""
    shutil.rmtree(entry, ignore_errors=True)
    with suppress(OSError, UltrError), new_folder(entry, shared=True) as draft:
        for name in _ARRAYS:
            np.save(draft / f"{name}.npy", getattr(lists, name))
        manifest = {
            "format": FORMAT,
            "feature_names": lists.feature_names,
            "max_label": lists.max_label,
            "files": _files(draft),
            "digests": {name: fingerprint(getattr(lists, name)) for name in _ARRAYS},
        }
        write_json(draft / "manifest.json", manifest)


def _files(entry: Path) -> dict[str, list[int]]:
    """Size and time of each array file, which any later change to it gives away without reading it."""
    states = {name: (entry / f"{name}.npy").stat() for name in _ARRAYS}
    return {name: [status.st_size, status.st_mtime_ns] for name, status in states.items()}


def _load(entry: Path) -> JudgedLists | None:
    """The judged lists of an entry; None if it is missing or damaged."""
    try:
        manifest = read_json(entry / "manifest.json")
        if manifest["files"] != _files(entry):
            return None
        arrays = {name: np.asarray(read_array(entry / f"{name}.npy")) for name in _ARRAYS}
        small = [name for name in _ARRAYS if arrays[name].nbytes <= CHECKED]
        if any(fingerprint(arrays[name]) != manifest["digests"][name] for name in small):
            return None
        return JudgedLists(
            **arrays,
            feature_names=tuple(manifest["feature_names"]),
            max_label=int(manifest["max_label"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None

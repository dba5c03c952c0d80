"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import json
import math
import os
import shutil
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from ultr.drafts import OLD, draft_beside, put_aside
from ultr.errors import DataError, OptionError, UltrWarning

DIGEST = "manifest_digest"
"""The key of a sealed JSON file that holds the digest of all others."""


@contextmanager
def new_folder(path: str | Path, *, overwrite: bool = False, shared: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the place of `path` only when the block ends well.

    A killed or failed run leaves `path` as it was. Without `overwrite`, a folder that already has something in it
    is refused; with it, one that has something else in it than what ultr wrote, known by the format in its manifest.

    Files that appear in `path` during the block are never removed: without `overwrite`, what was written is put beside
    it and an `OptionError` says where; with it, they stay. A `shared` folder is named by its content, so that what
    another process has put there in the meantime is as good.
    """
    check_new_folder(path, overwrite=overwrite)
    target = Path(path).resolve()
    before = _files_in(target)
    with draft_beside(target) as work:
        draft, old = work / "new", work / OLD
        draft.mkdir()
        yield draft
        if overwrite and target.is_dir():
            target.rename(old)
        try:
            # This takes the place of an empty folder, and of nothing else.
            draft.rename(target)
        except OSError as error:
            if not target.exists():
                raise
            if not shared:
                place = put_aside(draft, target, "new")
                raise OptionError(_appeared(path, place)) from error
        _remove(old, before)
        for file in sorted(_files_in(old)):
            if not (target / file).exists():
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                (old / file).rename(target / file)
        if _files_in(old):
            place = put_aside(old, target, OLD)
            warnings.warn(
                UltrWarning(f"files of {path} changed while it was written again, and are kept in {place}"),
                stacklevel=3,
            )
        shutil.rmtree(old, ignore_errors=True)


def check_new_folder(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise an `OptionError` if `new_folder` would refuse this path."""
    target = Path(path).resolve()
    ancestor = next(folder for folder in (target, *target.parents) if folder.exists())
    if not ancestor.is_dir():
        raise OptionError(f"{ancestor} is a file, not a folder; give another path for the output than {path}")
    if not os.access(target.parent if ancestor == target else ancestor, os.W_OK):
        raise OptionError(f"{path} cannot be written there; give another path or change the permissions of {ancestor}")
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise OptionError(f"{path} is not empty; remove it, give another path or ask to overwrite it (--overwrite)")
    if target.is_dir() and any(target.iterdir()) and not _is_ours(target):
        raise OptionError(f"{path} holds files that ultr did not write and is not overwritten; give another path")
    if target == Path.cwd() or target in Path.cwd().parents:
        raise OptionError(f"{path} holds the current folder and cannot be replaced; give another path for the output")


def _is_ours(folder: Path) -> bool:
    try:
        content = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and str(content.get("format")).startswith("ultr ")


def _files_in(folder: Path) -> dict[Path, tuple[int, ...]]:
    """The files below a folder, and what tells that one was changed or exchanged."""
    found: dict[Path, tuple[int, ...]] = {}
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_dir():
            state = path.lstat()
            found[path.relative_to(folder)] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def _remove(folder: Path, files: Mapping[Path, tuple[int, ...]]) -> None:
    """Remove the files of a folder that have not changed since `files` was noted."""
    for file, state in _files_in(folder).items():
        if files.get(file) == state:
            (folder / file).unlink()


def _appeared(path: str | Path, place: Path) -> str:
    return (
        f"something appeared at {path} while this was written, and is left alone; the result is in {place}, "
        "move it to where it should be"
    )


@contextmanager
def new_file(path: str | Path, *, overwrite: bool = True) -> Iterator[Path]:
    """A file to write that takes the place of `path` only when the block ends well.

    Without `overwrite`, a file that has appeared there is left alone, and an `OptionError` says where this one is.
    """
    target = Path(path)
    with draft_beside(target) as work:
        draft = work / target.name
        yield draft
        if target.exists() and not overwrite:
            raise OptionError(_appeared(path, put_aside(draft, target, "new")))
        draft.replace(target)


def check_new_file(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise an `OptionError` if there is such a file that may not be overwritten."""
    if Path(path).exists() and not overwrite:
        raise OptionError(f"{path} exists; give another file or ask to overwrite it (--overwrite)")


def write_json(path: str | Path, content: Any, *, sealed: bool = False) -> None:
    """Write `content` as JSON, whole or not at all; a sealed file gets a digest of itself that `read_json` checks."""
    with new_file(path) as draft:
        draft.write_text(as_json(content | {DIGEST: _digest(content)} if sealed else content) + "\n", "utf-8")


def jsonable(content: Any) -> Any:
    """A value as JSON has it: lists for tuples, dicts for dataclasses, and none of numpy's numbers.

    >>> jsonable({"hidden": (64, 32)})
    {'hidden': [64, 32]}
    """
    return to_jsonable_python(content, fallback=lambda each: each.item())


def as_json(content: Any) -> str:
    """`content` as JSON text, null for what is no finite number: JSON knows no NaN."""
    return json.dumps(_without_nan(content), indent=2, allow_nan=False)


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def read_json(path: str | Path) -> Any:
    """The content of a JSON file; a missing, broken or, if it is sealed, changed one is a `DataError`."""
    check_is_file(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        # Half a surrogate pair is no text: it could be neither printed nor written.
        json.dumps(content, ensure_ascii=False).encode()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except RecursionError as error:
        raise DataError(f"{path} is nested too deeply to be a file of ultr; write it again or restore it") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({error}); write it again or restore it") from error
    if isinstance(content, dict) and DIGEST in content and content.pop(DIGEST) != _digest(content):
        raise DataError(
            f"{path} is damaged or was changed after it was written: its digest is another; restore it or write it "
            f"again, or remove {DIGEST!r} from it if the change is yours"
        )
    return content


def parse_toml(text: str, where: str | Path) -> dict[str, Any]:
    """The content of a TOML file; what is none is a `DataError`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{where} is not valid TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not valid TOML: nested too deeply, or a number that is too long") from error


def check_is_file(path: str | Path) -> None:
    """Raise a `DataError` for what is there and is no file, such as a pipe, which would be waited for."""
    if Path(path).exists() and not Path(path).is_file():
        raise DataError(f"{path} is not a file; restore it or write it again")


def _digest(content: Mapping[str, Any]) -> str:
    """A digest of what a JSON file says, however it is laid out."""
    return blake2b(as_json(content).encode(), digest_size=16).hexdigest()

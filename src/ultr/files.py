"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ultr.errors import DataError, OptionError


@contextmanager
def new_folder(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into that takes the place of `path` only when the block ends well.

    A killed or failed run leaves `path` as it was. Without `overwrite`, a folder that already has something in it
    is refused; with it, one that has something else in it than what ultr wrote, known by the format in its manifest.
    """
    check_new_folder(path, overwrite=overwrite)
    target = Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    old = draft.with_name(f"{draft.name}-old")
    try:
        yield draft
        draft.chmod(0o755)
        if target.is_dir():
            target.replace(old)
        draft.replace(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.replace(target)
        raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
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
        content = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and str(content.get("format")).startswith("ultr ")


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A file to write that takes the place of `path` only when the block ends well."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def check_new_file(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise an `OptionError` if there is such a file that may not be overwritten."""
    if Path(path).exists() and not overwrite:
        raise OptionError(f"{path} exists; give another file or ask to overwrite it (--overwrite)")


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as JSON, whole or not at all."""
    with new_file(path) as draft:
        draft.write_text(as_json(content) + "\n")


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
    """The content of a JSON file; a missing or broken one is a `DataError`."""
    try:
        return json.loads(Path(path).read_text())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON ({error}); write it again or restore it") from error

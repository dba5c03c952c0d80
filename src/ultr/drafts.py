"""Hidden folders beside an output, in which it is written before it takes its place."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ultr.locks import lock

_ENDING = ".ultr-draft"
OLD = "old"
"""Name of the folder inside a draft that keeps what the output takes the place of."""


@contextmanager
def draft_beside(target: Path) -> Iterator[Path]:
    """An empty folder that is gone when the block ends, and with it those that killed processes left for `target`.

    A living process holds a lock on its draft, which the system takes back when it dies, however it does.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    # It has no ending before it has a lock, so that nobody sweeps it in between.
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    draft, held = Path(f"{made}{_ENDING}"), None
    try:
        held = _lock(made)
        yield made.rename(draft)
    finally:
        # A signal may come before it has its ending.
        shutil.rmtree(made, ignore_errors=True)
        _discard(draft, target)
        if held is not None:
            os.close(held)


def put_aside(path: Path, target: Path, word: str) -> Path:
    """Move a folder or file to a name beside `target` that is free, such as `log-new`, where it stays."""
    names = (f"{target.stem}-{word}{number}{target.suffix}" for number in ("", *range(2, 1_000)))
    place = next(target.with_name(name) for name in names if not target.with_name(name).exists())
    return path.rename(place)


def _discard(draft: Path, target: Path) -> None:
    """Remove a draft. What the output was to take the place of goes back, or aside if something else is there now."""
    if (draft / OLD).exists():
        if target.exists():
            put_aside(draft / OLD, target, OLD)
        else:
            (draft / OLD).rename(target)
    shutil.rmtree(draft, ignore_errors=True)


def _sweep(target: Path) -> None:
    name = re.compile(rf"\.{re.escape(target.name)}-[a-z0-9_]{{8}}{re.escape(_ENDING)}")
    with suppress(OSError):
        for path in [path for path in target.parent.iterdir() if name.fullmatch(path.name)]:
            if (held := _lock(path)) is not None:
                _discard(path, target)
                os.close(held)


def _lock(folder: Path) -> int | None:
    """A lock on a folder; None if somebody else has it, or the file system knows none."""
    try:
        return lock(folder)
    except OSError:
        return None

"""Locks that the system takes back when a process ends, however it does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ultr.errors import OptionError


def lock(path: Path, flags: int = os.O_RDONLY) -> int | None:
    """A lock on a file or folder, to be closed; None if the file system knows none.

    A `BlockingIOError` if somebody else has it.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(path, flags, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def alone(path: Path, *, busy: str) -> Iterator[None]:
    """Be the only process in this block, by a lock on a file that is there meanwhile; else an `OptionError`.

    A killed process leaves the file behind, but no lock on it, and the next one takes both.
    """
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _lock_of_file(path, busy)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)
        with suppress(OSError):
            for folder in made:
                folder.rmdir()


def _lock_of_file(path: Path, busy: str) -> int | None:
    while True:
        try:
            descriptor = lock(path, os.O_RDWR | os.O_CREAT)
        except BlockingIOError as error:
            raise OptionError(busy) from error
        # Whoever had it may have removed the file between the two steps, and a third process made a new one.
        if descriptor is None or (path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())):
            return descriptor
        os.close(descriptor)

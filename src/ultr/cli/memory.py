"""Errors that say that memory has run out, in words."""

from __future__ import annotations

import re

_SIZES = (
    # NumPy; torch on the CPU; torch on a GPU; Arrow.
    r"Unable to allocate (?P<text>[\d.]+ \w+)",
    r"tried to allocate (?P<bytes>\d+) bytes",
    r"Tried to allocate (?P<text>[\d.]+ \w+)",
    r"(?:malloc|realloc) of size (?P<bytes>\d+) failed",
)
_SIGNS = ("can't allocate memory", "out of memory", "bad_alloc", "Storage size calculation overflowed")
"""Parts of the messages of errors that are no `MemoryError`."""


def out_of_memory(error: BaseException) -> str | None:
    """A sentence that says how much memory was asked for; None for an error that has another reason.

    >>> out_of_memory(MemoryError("Unable to allocate 21.8 TiB for an array with shape (3, 1000000000000)"))
    'there is not enough memory: 21.8 TiB were asked for at once; use fewer or shorter lists, smaller layers or batches'
    """
    text = str(error)
    if not isinstance(error, MemoryError) and not any(sign in text for sign in _SIGNS):
        return None
    asked = "more was asked for than there is"
    for found in filter(None, (re.search(size, text) for size in _SIZES)):
        amount = found.groupdict()
        asked = f"{amount.get('text') or _in_words(int(amount['bytes']))} were asked for at once"
        break
    return f"there is not enough memory: {asked}; use fewer or shorter lists, smaller layers or batches"


def _in_words(count: int) -> str:
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.3g} {unit}"

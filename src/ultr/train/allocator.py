"""Settings of the C library's allocator for training."""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""The names of glibc's `mallopt`."""
LARGEST, KEPT = 2**25, 2**29
"""Single allocations up to the first (the most that glibc takes) come from memory that was freed before; so much of it
is kept."""


def keep_freed_memory() -> None:
    """Let the next step have the memory of the last one.

    By default glibc gives large pieces back to the kernel as soon as they are freed, and a step gets fresh ones, which
    the kernel fills with zeros page by page. Where the C library is another one, nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(MMAP_THRESHOLD, LARGEST)
    mallopt(TRIM_THRESHOLD, KEPT)

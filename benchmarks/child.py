"""What a command costs in a process of its own: time, and memory that is its own apart from pages of mapped files."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO

INTERVAL = 0.05
"""Seconds between two looks at the memory of the child."""
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""An environment in which nothing computes with more threads than one."""


@dataclass(frozen=True)
class Usage:
    """What a child process used."""

    wall: float
    processor: float
    """Seconds of user and system time, its own children's included."""
    peak: int
    """The largest resident memory in bytes, by the kernel's own count at the last look."""
    anonymous: int
    """The largest resident memory in bytes that no file stands behind, as far as the looks at it saw.

    Pages of a memory-mapped file count as resident, but the kernel drops them when memory gets scarce.
    """
    output: str


def measure(command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end, `environment` added to that of this process; a failure is raised with its words."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = perf_counter()
        child = subprocess.Popen(command, stdout=output, stderr=errors, env={**os.environ, **(environment or {})})
        peak = anonymous = 0
        handle = os.pidfd_open(child.pid)
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        while not ended.poll(1_000 * INTERVAL):
            now = memory(child.pid)
            peak, anonymous = max(peak, now.get("VmHWM", 0)), max(anonymous, now.get("RssAnon", 0))
        wall = perf_counter() - started
        os.close(handle)
        _, code, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(code)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{_text(errors)}")
        return Usage(wall, used.ru_utime + used.ru_stime, peak, anonymous, _text(output))


def memory(process: int | str = "self") -> dict[str, int]:
    """The memory of a process in bytes, by its name in /proc, `VmHWM` being the peak; nothing if it has just ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")

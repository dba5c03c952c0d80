"""What the numbers of a benchmark depend on: the machine, the versions, the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "ultr",
    "numpy",
    "torch",
    "scikit-learn",
    "onnxruntime",
    "duckdb",
    "lightgbm",
    "xgboost",
    "xgboost-cpu",
    "clax-models",
    "jax",
)


@dataclass(frozen=True)
class Machine:
    """Where and with what something was measured."""

    processor: str
    cores: int
    """That this process may use."""
    threads: int
    """That torch uses."""
    memory: int
    """In bytes."""
    load: float
    """How many processes wanted a processor in the minute before."""
    system: str
    python: str
    packages: dict[str, str]
    """Versions of what is installed."""
    commit: str
    """With a plus sign where files differ from it; empty outside of a repository."""

    @classmethod
    def here(cls) -> Machine:
        """This one, now."""
        import torch

        return cls(
            processor=_processor(),
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            threads=torch.get_num_threads(),
            memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            load=os.getloadavg()[0],
            system=platform.platform(),
            python=platform.python_version(),
            packages={name: version for name in PACKAGES if (version := _version(name))},
            commit=_commit(),
        )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    folder = Path(__file__).parent
    try:
        commit, changes = (
            subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}+" if changes else commit

"""A PostgreSQL server of its own for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

USER = "postgres"
"""The server refuses to run as root, so that root runs it as this user, which Debian makes for it."""


def why_not() -> str | None:
    """The reason for which no server can be started, if there is one."""
    if find_spec("psycopg") is None:
        return "PostgreSQL needs psycopg (pip install '.[postgres]')"
    if programs() is None:
        return "PostgreSQL is not installed (Debian's package postgresql)"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL does not run as root, and there is no runuser"
    return None


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, which Debian keeps off the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "")]
    return found[-1].parent if found[-1].name else None


@contextmanager
def server() -> Iterator[str]:
    """The connection string of a server that listens on a socket in a folder of its own, and is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ultr-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    try:
        _run(folder, "initdb", "-U", "ultr", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        _run(folder, "pg_ctl", "-l", "log", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off", "-w", "start")
        try:
            yield f"postgres://ultr@/postgres?host={folder}"
        finally:
            _run(folder, "pg_ctl", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder)


def _run(folder: Path, program: str, *options: str) -> None:
    become = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
    where = programs()
    assert where is not None
    command = [*become, str(where / program), "-D", "data", *options]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

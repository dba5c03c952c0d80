from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO

import pytest

from ultr.cli import main


@dataclass(frozen=True)
class Result:
    stdout: str
    stderr: str


def ultr(*arguments: object, expect: int = 0, columns: int = 120) -> Result:
    """Run a command as its console script does."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["ultr", *map(str, arguments)])
        patch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as exit_:
            main()
    assert (exit_.value.code or 0) == expect, err.getvalue()
    return Result(out.getvalue(), err.getvalue())

"""The tests of a package, run on a copy of the tree with one file changed at a time.

Each run is a fork of this process, which has the large libraries imported already and nothing of `ultr`.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import HealthCheck, settings

from benchmarks.child import ONE_THREAD
from benchmarks.mutants.mutant import Mutant, mutated

LIBRARIES = ("hypothesis.extra.numpy", "scipy.stats", "sklearn.linear_model", "matplotlib.figure", "pandas", "torch")
"""Imported once, before any fork, as far as they are there."""
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")
START = 30.0
"""Seconds that a run may take beside its tests, to import and collect."""
SLOWER = 5.0
"""A run may take so many times as long as its tests took before; then it counts as one that does not end."""
PASSED, NO_TESTS = 0, 5


@dataclass(frozen=True)
class Suite:
    """The tests of a package, as they ran on the code as it is."""

    seconds: dict[str, float]
    """By the name of the test."""
    lines: dict[str, dict[int, list[str]]]
    """The tests that ran each line of each file; lines that were run by an import alone have none."""

    def tests_of(self, file: str, mutant: Mutant, *, most_seconds: float) -> list[str]:
        """The tests that can notice a mutant, the fastest first; then others of their files, which may share a fixture.

        What is run at import concerns every test that calls anything of the file.
        """
        first, last = (0, sys.maxsize) if mutant.at_import else mutant.lines
        by_line = self.lines.get(file, {})
        covering = {name for line, names in by_line.items() if first <= line <= last for name in names}
        files = {_file(name) for name in covering}
        beside = {name for name in self.seconds if _file(name) in files} - covering
        chosen: list[str] = []
        sum_of_seconds = 0.0
        for name in (*sorted(covering, key=self._order), *sorted(beside, key=self._order)):
            sum_of_seconds += self.seconds[name]
            if chosen and sum_of_seconds > most_seconds:
                break
            chosen.append(name)
        return chosen

    def _order(self, name: str) -> tuple[float, str]:
        return self.seconds[name], name


@dataclass(frozen=True)
class Tree:
    """A copy of the source and the tests, in a folder of its own."""

    folder: Path

    @classmethod
    def copy(cls, root: Path, folder: Path) -> Tree:
        """Copy what the tests of a package need."""
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.is_file():
                shutil.copy2(source, folder / name)
        return cls(folder)

    def suite(self, package: str) -> Suite:
        """Run the tests and examples of a package with the lines that each of them runs."""
        report = self.folder / "suite.json"
        places = [f"tests/{package}", f"src/ultr/{package}"]

        def run() -> int:
            tracer = coverage.Coverage(data_file=None, include=[f"*/src/ultr/{package}/*"], config_file=False)
            timer = _Timer(tracer)
            tracer.start()
            code = pytest.main([*_options(self.folder), *places], plugins=[timer])
            tracer.stop()
            data = tracer.get_data()
            lines = {
                str(Path(file).relative_to(self.folder)): {
                    line: [name for name in names if name] for line, names in data.contexts_by_lineno(file).items()
                }
                for file in data.measured_files()
            }
            report.write_text(json.dumps({"seconds": timer.seconds, "failed": timer.failed, "lines": lines}))
            return int(code)

        _forked(lambda: self._at_home(run, write_bytecode=True), seconds=3600.0)
        if not report.is_file():
            sys.exit(f"the tests of {package} cannot be run")
        found = json.loads(report.read_text())
        report.unlink()
        if found["failed"]:
            sys.exit(f"the tests of {package} fail before anything is changed, first {found['failed'][0]}")
        lines = {file: {int(line): names for line, names in by.items()} for file, by in found["lines"].items()}
        return Suite(found["seconds"], lines)

    def kills(self, file: str, mutant: Mutant, tests: Sequence[str], *, seconds: float) -> bool:
        """Run these tests, in this order, on the mutant: True if one fails or they do not end."""
        path = self.folder / file
        original, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutated(original, mutant.number), encoding="utf-8")
        # No compiled file may pass for that of the mutant: its time differs from that of any other.
        os.utime(path, ns=(times.st_atime_ns, time.time_ns() + 10**10))
        files = list(dict.fromkeys(map(_file, tests)))
        try:
            code = _forked(
                lambda: self._at_home(
                    lambda: int(pytest.main(["-x", *_options(self.folder), *files], plugins=[_Chosen(tests)]))
                ),
                seconds=START + SLOWER * seconds,
            )
        finally:
            path.write_text(original, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return code not in {PASSED, NO_TESTS}

    def _at_home(self, run: Callable[[], int], *, write_bytecode: bool = False) -> int:
        """Run something with this tree in the place of the one that is installed."""
        sys.dont_write_bytecode = not write_bytecode
        os.chdir(self.folder)
        paths = [str(self.folder / "src"), str(self.folder)]
        sys.path[:0] = paths
        # The same examples on every run, however slow the machine is.
        settings.register_profile(
            "mutants", derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck]
        )
        settings.load_profile("mutants")
        os.environ.update(PYTHONPATH=os.pathsep.join(paths), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        return run()


class _Timer:
    """Tells the tracer which test runs, and keeps how long each took."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        self.tracer, self.seconds, self.failed = tracer, dict[str, float](), list[str]()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tracer.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.tracer.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)


class _Chosen:
    """Runs some tests in a given order, and no others."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.places = {name: place for place, name in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.places), key=lambda item: self.places[item.nodeid]
        )


def import_libraries() -> None:
    """Import what takes long, with one thread each, so that a fork need not."""
    os.environ.update(ONE_THREAD)
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


def _options(folder: Path) -> list[str]:
    return ["-q", "-p", "no:cacheprovider", f"--rootdir={folder}", f"--basetemp={folder / 'temporary'}"]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _forked(run: Callable[[], int], *, seconds: float) -> int | None:
    """The exit code of something in a process of its own, without what it prints; None if it took longer."""
    sys.stdout.flush()
    process = os.fork()
    if not process:
        code = 1
        with suppress(BaseException):
            os.setpgid(0, 0)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            code = run()
        os._exit(code)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None

"""The tests of a package, run on a copy of the tree with one file changed at a time.

Each run is a fork of a process that has collected the tests already. Where a mutant is at work at import, it is a fork
of one that has imported the large libraries and nothing of `ultr`.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import coverage
import pytest
from hypothesis import HealthCheck, settings

from benchmarks.child import ONE_THREAD
from benchmarks.mutants.mutant import Mutant, mutated

LIBRARIES = ("hypothesis.extra.numpy", "scipy.stats", "sklearn.linear_model", "matplotlib.figure", "pandas", "torch")
"""Imported once, before any fork, as far as they are there."""
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")
PASSED = 0
MOMENT = 0.01
"""Seconds until a test that cannot be ended now is tried again."""


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


Attempt = Callable[[str, Mutant, Sequence[str], float], bool]
"""True if one of some tests fails on a mutant of a file, or if they take the processor more than so many seconds."""


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

    def collected(
        self, package: str, work: Callable[[Suite, Attempt], Any], *, limit: float, files: Sequence[str] = ()
    ) -> Any:
        """Run the tests of a package once, then some work with them in a process that has collected them already.

        Tests that take the processor longer than the limit, or fail, are left out, and those of files that have none of
        `files` in their names. In that process a mutant is its functions with other code, which takes a fraction of the
        time of an import.
        """
        result = self.folder / "result.json"
        out = os.dup(sys.stdout.fileno())

        def loop(session: Any) -> None:
            with os.fdopen(out, "w") as stream, redirect_stdout(stream):
                suite = self._suite(session, package, limit)
                unchanged, parent = dict[str, bool](), os.getppid()

                def attempt(file: str, mutant: Mutant, tests: Sequence[str], seconds: float) -> bool:
                    if os.getppid() != parent:
                        os._exit(1)  # whoever asked was ended
                    # Where even the same code fails when it is swapped, a failure says nothing.
                    if file not in unchanged:
                        unchanged[file] = _forked(lambda: self._swapped(file, None, session, tests)) == PASSED
                        if not unchanged[file]:
                            print(f"the code of {file} cannot be swapped, so that none of its mutants counts as found")
                    code = _forked(lambda: self._swapped(file, mutant.number, session, tests), seconds=seconds)
                    return unchanged[file] and code != PASSED

                result.write_text(json.dumps(work(suite, attempt)))

        places = [place for place in (f"tests/{package}", f"src/ultr/{package}") if (self.folder / place).is_dir()]
        if files:
            chosen = sorted((self.folder / places[0]).glob("test_*.py"))
            places[:1] = [
                str(path.relative_to(self.folder)) for path in chosen if any(part in path.stem for part in files)
            ]
        _forked(lambda: self._pytest(places, _Instead(loop)))
        if not result.is_file():
            sys.exit(f"the tests of {package} cannot be run")
        found = json.loads(result.read_text())
        result.unlink()
        return found

    def _suite(self, session: Any, package: str, limit: float) -> Suite:
        """Run all tests that were collected, with the lines that each of them runs."""
        report = self.folder / "suite.json"

        def run() -> int:
            tracer = coverage.Coverage(data_file=None, include=[f"*/src/ultr/{package}/*"], config_file=False)
            timer = _Timer(tracer, limit, self.folder)
            session.config.pluginmanager.register(timer)
            tracer.start()
            _run(session, session.items, to_the_end=True)
            tracer.stop()
            data = tracer.get_data()
            lines = {
                str(Path(file).relative_to(self.folder)): {
                    line: [name for name in names if name and name not in timer.left_out]
                    for line, names in data.contexts_by_lineno(file).items()
                }
                for file in data.measured_files()
            }
            kept = {name: seconds for name, seconds in timer.seconds.items() if name not in timer.left_out}
            report.write_text(json.dumps([kept, lines, timer.left_out]))
            return PASSED

        _forked(run)
        seconds, lines, left_out = json.loads(report.read_text())
        if left_out:
            failing = [name for name, why in left_out.items() if why != TooSlowError.__name__]
            print(f"\n{len(left_out) - len(failing)} slow tests are left out, and these that fail: {failing}")
        return Suite(seconds, {file: {int(line): names for line, names in by.items()} for file, by in lines.items()})

    def _swapped(self, file: str, number: int | None, session: Any, tests: Sequence[str]) -> int:
        """Give the functions of a file the code of a mutant, or their own again, and run some tests in this order."""
        name = ".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__")
        module = importlib.import_module(name)
        source = (self.folder / file).read_text(encoding="utf-8")
        source = source if number is None else mutated(source, number)
        other = {"__name__": name, "__package__": module.__package__, "__file__": module.__file__}
        exec(compile(source, str(module.__file__), "exec"), other)
        swap_code(vars(module), other, str(module.__file__))
        items = {item.nodeid: item for item in session.items}
        return _run(session, [items[test] for test in tests])

    def imported(self, file: str, mutant: Mutant, tests: Sequence[str], seconds: float) -> bool:
        """Attempt a mutant that is at work when its file is imported, so that all must be imported anew."""
        path = self.folder / file
        original, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutated(original, mutant.number), encoding="utf-8")
        # No compiled file may pass for that of another mutant: each has a second of its own.
        os.utime(path, (times.st_atime, times.st_mtime + 1 + mutant.number))
        files = list(dict.fromkeys(map(_file, tests)))

        def loop(session: Any) -> None:
            sys.dont_write_bytecode = True
            items = {item.nodeid: item for item in session.items}
            os._exit(_run(session, [items[test] for test in tests]))

        try:
            code = _forked(lambda: self._pytest(files, _Instead(loop)), seconds=seconds)
        finally:
            path.write_text(original, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return code != PASSED

    def _pytest(self, places: Sequence[str], plugin: object) -> int:
        """Collect tests of this tree in the place of the one that is installed."""
        os.chdir(self.folder)
        paths = [str(self.folder / "src"), str(self.folder)]
        sys.path[:0] = paths
        os.environ.update(PYTHONPATH=os.pathsep.join(paths), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        # The same examples on every run, however slow the machine is.
        patient = settings(derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck])
        settings.register_profile("mutants", patient)
        settings.load_profile("mutants")
        options = ["-q", "-s", "-p", "no:cacheprovider", f"--rootdir={self.folder}"]
        return int(pytest.main([*options, f"--basetemp={self.folder / 'temporary'}", *places], plugins=[plugin]))


def swap_code(here: Mapping[str, Any], there: Mapping[str, Any], file: str) -> None:
    """Give the functions and methods of a file the code that they have in another version of it."""
    for name, value in here.items():
        if isinstance(value, type) and value.__module__ == there.get("__name__", there.get("__module__")):
            swap_code(vars(value), vars(there[name]), file)
            continue
        for one, other in zip(_functions(value), _functions(there.get(name)), strict=False):
            if one.__code__.co_filename == file:
                one.__code__, one.__defaults__ = other.__code__, other.__defaults__
                one.__kwdefaults__ = other.__kwdefaults__


def _functions(value: Any) -> list[FunctionType]:
    """The functions behind a name: itself, or that of a method, a property or a cache."""
    parts = [value, *(getattr(value, name, None) for name in ("__func__", "fget", "func", "__wrapped__"))]
    return [part for part in parts if isinstance(part, FunctionType)]


def _run(session: Any, items: Sequence[Any], *, to_the_end: bool = False) -> int:
    """Run tests in this order, to the first that fails: 0 if none does."""
    for item, following in zip(items, [*items[1:], None], strict=False):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed and not to_the_end:
            return 1
    return PASSED


class _Instead:
    """Does something else in the place of running the tests that were collected."""

    def __init__(self, loop: Callable[[Any], None]) -> None:
        self.loop = loop

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.loop(session)
        return True


class TooSlowError(BaseException):
    """A test takes too long to be run on many mutants."""


class _Timer:
    """Tells the tracer which test runs, keeps how long each took, and ends those that take too long."""

    def __init__(self, tracer: coverage.Coverage, limit: float, tree: Path) -> None:
        self.tracer, self.limit, self.tree = tracer, limit, str(tree)
        self.seconds, self.left_out, self.start = dict[str, float](), dict[str, str](), 0.0
        signal.signal(signal.SIGPROF, self._end)

    def _end(self, _: int, frame: FrameType | None) -> None:
        """End the test where it is in code of this tree, and not in the tracer, which would never free its lock."""
        files = []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        if any(file.startswith(self.tree) for file in files) and not any("/coverage/" in file for file in files):
            raise TooSlowError
        signal.setitimer(signal.ITIMER_PROF, MOMENT)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tracer.switch_context(nodeid)
        self.start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.limit)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.seconds[nodeid] = time.process_time() - self.start
        self.tracer.switch_context("")

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        # A fixture that was ended fails again, with the same error, for all tests that share it.
        if call.excinfo is not None and not issubclass(call.excinfo.type, pytest.skip.Exception):
            self.left_out.setdefault(item.nodeid, call.excinfo.type.__name__)


def import_libraries() -> None:
    """Import what takes long, with one thread each, so that a fork need not."""
    os.environ.update(ONE_THREAD)
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _forked(run: Callable[[], int], *, seconds: float | None = None) -> int:
    """The exit code of something in a process of its own, without what it prints, ended after so many CPU seconds."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 1
    with suppress(BaseException):
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds),) * 2)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        code = run()
    os._exit(code)

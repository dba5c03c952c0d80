"""The command line: one file per command."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer

from ultr.cli import output
from ultr.cli.memory import out_of_memory
from ultr.errors import UltrError, UltrWarning, how_to_install
from ultr.version import __version__

EXTRAS = {
    "torch": "train",
    "sklearn": "train",
    "matplotlib": "plots",
    "jinja2": "plots",
    "lightgbm": "trees",
    "optuna": "tune",
    "xgboost": "xgboost",
    "ibis": "prepare",
    "duckdb": "prepare",
    "narwhals": "prepare",
    "pyspark": "spark",
    "onnx": "export",
    "onnxscript": "export",
    "onnxruntime": "serve",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
}
"""The extra that brings a module that may be missing."""

app = typer.Typer(
    name="ultr",
    help="Unbiased learning to rank from click logs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
COMMANDS = (
    *("demo", "simulate", "prepare", "doctor", "methods", "train", "tune", "evaluate", "compare", "rank"),
    *("explain", "head", "export", "serve", "report", "update", "reproduce"),
)
"""The commands in the order of the help; each is a function in a file of its name."""
for command in COMMANDS:
    app.command()(getattr(import_module(f"ultr.cli.{command}"), command))


def _show_version(wanted: bool) -> None:
    if wanted:
        output.echo(f"ultr {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Unbiased learning to rank from click logs."""


def main() -> None:
    """Run the command line; what a user can mend ends in one sentence and exit code 2."""
    with _ended_by_sigterm():
        _run()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that nothing half-written stays; the exit code tells them apart."""
    if "TORCHELASTIC_RUN_ID" in os.environ or threading.current_thread() is not threading.main_thread():
        # Processes that train together wait for each other outside of Python, where nothing would interrupt them.
        yield
        return
    received = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except SystemExit as ended:
        raise SystemExit(128 + received[0] if received else ended.code) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _run() -> None:
    output.hush(False)
    warnings.showwarning = _show_warning
    warnings.simplefilter("default", UltrWarning)
    try:
        sys.exit(app(standalone_mode=False))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except UltrError as error:
        _fail(str(error))
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        # NumPy does not say why it could not write all.
        full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "requested and" in what
        mend = "check the path and its permissions"
        _fail(f"the disk is full ({what}); make space or write elsewhere" if full else f"{what}; {mend}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRAS:
            raise
        extra = EXTRAS[error.name.partition(".")[0]]
        _fail(f"this command needs {error.name}, which is not installed: {how_to_install(extra)}")
    except RecursionError:
        _fail("the input is nested too deeply; look for a damaged or hostile file")
    except Exception as error:
        if (sentence := out_of_memory(error)) is not None:
            _fail(sentence)
        # The usage errors of click, which typer keeps under a name of its own.
        in_words = getattr(error, "format_message", None)
        if in_words is None:
            raise
        usage: str = in_words()
        if not usage:
            _fail("name a command, such as ultr demo; ultr COMMAND --help shows its options")
        _fail(f"{usage[:1].lower()}{usage[1:].rstrip('.?')}; --help shows how")


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show a warning of ours as one sentence; those of others are for their developers."""
    if issubclass(category, UltrWarning) and os.environ.get("LOCAL_RANK", "0") == "0":
        output.echo(f"ultr: {message}", err=True)


def _fail(message: str) -> None:
    # Of several processes under torchrun on one machine, which fail alike, one is enough to say so.
    if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("LOCAL_RANK", "0") == "0":
        output.echo(f"ultr: {message}", err=True)
    sys.exit(2)

"""The command line: one file a command."""

from __future__ import annotations

import sys

import typer

from ultr.cli import demo, evaluate, rank, simulate, train
from ultr.errors import UltrError
from ultr.version import __version__

EXTRAS = {"torch": "train", "sklearn": "train", "matplotlib": "plots"}
"""Which extra brings a module that may be missing."""

app = typer.Typer(
    name="ultr",
    help="Unbiased learning to rank from click logs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("demo")(demo.demo)
app.command("simulate")(simulate.simulate)
app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("rank")(rank.rank)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ultr {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Unbiased learning to rank from click logs."""


def main() -> None:
    """Run the command line; what a user can mend ends in one sentence and exit code 2."""
    try:
        app()
    except UltrError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}; check the path, its permissions and the space on the disk")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRAS:
            raise
        extra = EXTRAS[error.name.partition(".")[0]]
        _fail(f"this command needs {error.name}, which is not installed: pip install 'ultr[{extra}]'")


def _fail(message: str) -> None:
    typer.echo(f"ultr: {message}", err=True)
    sys.exit(2)

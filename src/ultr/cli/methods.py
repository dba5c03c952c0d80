"""`ultr methods`: what can be trained."""

from __future__ import annotations

from dataclasses import asdict
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr.cli import options, output

if TYPE_CHECKING:
    from ultr.methods.estimator import Estimator


def methods(
    method: Annotated[str | None, typer.Argument(help="Name of a method, to see all about it.")] = None,
    json: options.Json = False,
) -> None:
    """List the methods, or show the formula, the paper and every option of one.

    Example: `ultr methods vectorization`
    """
    from ultr.methods import METHODS
    from ultr.methods import method as method_of
    from ultr.relevance.kinds import KINDS

    if method is None:
        rows = [_row(METHODS[name]) for name in METHODS]
        if json:
            output.print_json(rows)
        else:
            output.print_table(rows)
            output.echo("ultr methods NAME: formula, paper and options of one")
        return
    content = _whole(method_of(method))
    if json:
        output.print_json(content)
        return
    output.echo(f"{content['name']} (class {content['class']}) learns from {content['learns_from']}\n")
    output.echo(f"{content['docstring']}\n\nOptions, for --set NAME=VALUE or as arguments of {content['class']}:")
    _print_options(content["options"])
    for name, listed in content["relevance"].items():
        output.echo(f"\nOptions of the relevance model {name}, for --set or as arguments of {KINDS[name].__name__}:")
        _print_options(listed)


def _print_options(listed: list[dict[str, Any]]) -> None:
    for option in listed:
        output.echo(f"\n  {option['name']}: {option['type']} = {option['default']!r}")
        if option["description"]:
            output.echo(f"      {option['description']}")


def _row(kind: type[Estimator]) -> dict[str, str]:
    from ultr.methods import description

    return {
        "name": kind.name,
        "class": kind.__name__,
        "learns_from": description.source(kind),
        "summary": description.summary(kind),
    }


def _whole(kind: type[Estimator]) -> dict[str, Any]:
    from ultr.methods import description

    own = [asdict(option) for option in description.options(kind)]
    of_relevance = description.relevance_options(kind)
    relevance = {name: [asdict(option) for option in listed] for name, listed in of_relevance.items()}
    return {**_row(kind), "docstring": getdoc(kind), "options": own, "relevance": relevance}

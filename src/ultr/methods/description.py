"""The documentation of a method: its docstring and the descriptions of its options."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import MISSING, Field, dataclass, fields
from itertools import pairwise
from typing import Any

from ultr.data.click_log import ClickLog
from ultr.methods.estimator import Estimator
from ultr.relevance.relevance_model import Relevance


@dataclass(frozen=True)
class Option:
    """An option of a method."""

    name: str
    type: str
    default: Any
    description: str
    """Empty where the method gives none."""


def options(described: type[Estimator] | type[Relevance]) -> list[Option]:
    """The options of a method or relevance model, its own before those that it inherits."""
    written = _descriptions(described)
    found = [
        Option(field.name, str(field.type), _default(field), written.get(field.name, "")) for field in fields(described)
    ]
    own = inspect.get_annotations(described)
    return sorted(found, key=lambda option: option.name not in own)


def _default(field: Field[Any]) -> Any:
    """The default as it is written, of a relevance model only its kind."""
    if field.default_factory is MISSING:
        return field.default
    made = field.default_factory()
    return made.kind if isinstance(made, Relevance) else made


def summary(method: type[Estimator]) -> str:
    """The first sentence of the docstring."""
    first = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())
    # A dot after a space is a product, as in r . o.
    return re.split(r"(?<=\S\.)\s", first)[0]


def source(method: type[Estimator]) -> str:
    """What the method learns from: clicks or labels."""
    return "clicks" if method.learns_from is ClickLog else "labels"


def _descriptions(described: type[Estimator] | type[Relevance]) -> dict[str, str]:
    """The string under each field of the class and its bases, which Python itself throws away."""
    found: dict[str, str] = {}
    for kind in described.__mro__:
        if not issubclass(kind, Estimator | Relevance):
            continue
        (body,) = (node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef))
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found.setdefault(name, " ".join(words.split()))
    return found

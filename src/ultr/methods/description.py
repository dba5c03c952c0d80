"""What a method says of itself: its docstring and the descriptions of its options."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from ultr.data.click_log import ClickLog
from ultr.methods.estimator import Estimator


@dataclass(frozen=True)
class Option:
    """An option of a method."""

    name: str
    type: str
    default: Any
    description: str
    """Empty where the method gives none."""


def options(method: type[Estimator]) -> list[Option]:
    """The options of a method, its own before those that all methods have."""
    written = _descriptions(method)
    described = [
        Option(field.name, str(field.type), field.default, written.get(field.name, "")) for field in fields(method)
    ]
    own = inspect.get_annotations(method)
    return sorted(described, key=lambda option: option.name not in own)


def summary(method: type[Estimator]) -> str:
    """The first sentence of the docstring."""
    first = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())
    # A dot after a space is a product, as in r . o.
    return re.split(r"(?<=\S\.)\s", first)[0]


def source(method: type[Estimator]) -> str:
    """What the method learns from: clicks or labels."""
    return "clicks" if method.learns_from is ClickLog else "labels"


def _descriptions(method: type[Estimator]) -> dict[str, str]:
    """The string under each field of the class and its bases, which Python itself throws away."""
    found: dict[str, str] = {}
    for kind in method.__mro__:
        if not issubclass(kind, Estimator):
            continue
        (body,) = (node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef))
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found.setdefault(name, " ".join(words.split()))
    return found

"""The string under each field of a class, which Python itself throws away."""

from __future__ import annotations

import ast
import inspect
from dataclasses import is_dataclass
from itertools import pairwise


def field_docs(described: type) -> dict[str, str]:
    """The description of each field of a dataclass and of the dataclasses that it derives from, by name."""
    found: dict[str, str] = {}
    for kind in described.__mro__:
        if not is_dataclass(kind):
            continue
        (body,) = (node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef))
        for field, text in pairwise(body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found.setdefault(name, " ".join(words.split()))
    return found

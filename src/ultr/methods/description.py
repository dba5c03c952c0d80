"""The documentation of a method: its docstring and the descriptions of its options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from ultr.data.click_log import ClickLog
from ultr.field_docs import field_docs
from ultr.methods.estimator import Estimator
from ultr.methods.flat_options import usual_relevance
from ultr.relevance.kinds import KINDS
from ultr.relevance.relevance_model import Relevance


@dataclass(frozen=True)
class Option:
    """An option of a method."""

    name: str
    type: str
    default: Any
    description: str
    """Empty where the method gives none."""


def options(method: type[Estimator]) -> list[Option]:
    """The options of a method, its own before those that it inherits; of its relevance model only the kind."""
    found = _options(method(), without=method.without)
    own = inspect.get_annotations(method)
    return sorted(found, key=lambda option: option.name not in own)


def relevance_options(method: type[Estimator]) -> dict[str, list[Option]]:
    """The options of each relevance model that the method works with, by its kind."""
    without = [name.removeprefix("relevance__") for name in method.without if name.startswith("relevance__")]
    return {
        name: _options(usual_relevance(method, name), without=without)
        for name, kind in KINDS.items()
        if issubclass(kind, method.takes)
    }


def _options(made: Estimator | Relevance, *, without: Collection[str]) -> list[Option]:
    """The options of something made with its defaults."""
    written = field_docs(type(made))
    defaults = {field.name: getattr(made, field.name) for field in fields(made)}
    return [
        Option(
            field.name,
            str(field.type),
            getattr(defaults[field.name], "kind", defaults[field.name]),
            written.get(field.name, ""),
        )
        for field in fields(made)
        if field.name not in without
    ]


def summary(method: type[Estimator]) -> str:
    """The first sentence of the docstring."""
    first = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split())
    # A dot after a space is a product, as in r . o.
    return re.split(r"(?<=\S\.)\s", first)[0]


def source(method: type[Estimator]) -> str:
    """What the method learns from: clicks or labels."""
    return "clicks" if method.learns_from is ClickLog else "labels"
